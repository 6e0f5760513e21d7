"""What every system stands on: tables, counts, Dirichlet families, averaging, seeds, files, and the bases of the faces.

tables       table, columns, inputs, column_kinds, numeric_columns, cut_points, missing, filling
many rows    scan and scan_*, rows
numbers      counts, pairs, pair_groups, dirichlet, priors, averaging (the one idea), probabilities, graphs, starts, seeds
faces        face, classifier, clusterer, explanation, scorers, validation, docstrings, hints, notebook
work         compiling, kernel_compiler, kernel_lowering, parallel, progress, warn, extras, archive, atomic
"""
