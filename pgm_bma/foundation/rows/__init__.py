"""A table as blocks of rows: in memory it is one block, in files it is many (DuckDB, Dask)."""
