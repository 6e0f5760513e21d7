"""Shared foundation of all systems.

tables     DataFrames, arrays and scans become integer codes, once; kinds of columns, missing values
rows       a table is blocks of rows: one block in memory, many in files (DuckDB, Dask)
numbers    counts, Dirichlet families, the average over families, graphs, pairs of columns, starts
`faces`    base classes of the estimators, checks of parameters, shared docstrings
runtime    seeds, parallel work, progress, warnings, compiled code, atomic files
"""
