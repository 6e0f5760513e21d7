"""Tables that stay where they are: scanned, folded into distinct rows with weights, never read as a whole.

`scan_parquet` and `scan_csv` return a `Scan`, which every estimator takes in `fit`; so are DuckDB relations and tables, pyarrow
datasets and dask DataFrames taken as they are. Fold first: where equal rows collapse far enough to fit in memory, an estimator
runs unchanged on the distinct rows with their counts as weights, and gives the same bits as on the raw rows. Whether they
collapse is estimated on a sample; the folding itself is exact.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import Integer, Optional, bounded, brief, check, is_hashable
from pgm_bma.foundation.rows import pieces as scan_pieces

SAMPLE_ROWS = 200_000  # that tell whether rows collapse
SCREENED_ROWS = 50_000  # that tell starts apart
MEMORY = "1GB"
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def scan_parquet(
    files: Any,
    *,
    columns: Any = None,
    memory: int | str = MEMORY,
    sample_rows: int | None = SCREENED_ROWS,
    threads: int | None = None,
) -> "Scan":
    """A table in Parquet files that is read in passes, never as a whole.

    Parameters
    ----------
    files : str, path or list of them
        A file, a folder, or a pattern such as ``"part-*.parquet"``; on this machine. A file whose name is the text itself is read,
        even if the text could be a pattern. The files have equal columns. A categorical column whose categories are the same in
        all files keeps them, unused ones included; else its values are sorted.
    columns : list of str, optional
        The columns to read; by default all but an index that pandas stored.
    memory : int or str, default="1GB"
        Bytes, or a text such as "500MB": what the engine and the folded rows may take. Past it the rows are visited in passes by
        methods that can (docs/howto/large_tables.md); other methods raise an error with the size.
    sample_rows : int or None, default=50000
        Where rows are visited in passes: rows on which many starts are screened, of which the best few see all rows. None runs
        every start on all rows.
    threads : int, optional
        Threads of DuckDB; by default one per core.

    Returns
    -------
    Scan
        A table that every estimator takes in `fit`, and `predict_to` and `predict_proba_to` read part by part.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> import pgm_bma
    >>> folder = tempfile.mkdtemp()
    >>> for part, letters in enumerate(["xxyyx", "yyxyy"]):
    ...     frame = pd.DataFrame({"a": list(letters), "b": list(letters.upper())})
    ...     frame.to_parquet(os.path.join(folder, f"part-{part}.parquet"))
    >>> rows = pgm_bma.scan_parquet(os.path.join(folder, "part-*.parquet"))
    >>> rows.n_rows, rows.names
    (10, ['a', 'b'])
    >>> clusterer = pgm_bma.EMAClusterer(n_clusters=2, random_state=0).fit(rows)
    >>> clusterer.n_samples_
    10
    """
    from pgm_bma.foundation.rows.duckdb_scan import parquet_rows

    limit = read_bytes(memory)
    return Scan(parquet_rows(files, limit, threads), limit, sample_rows=sample_rows)._selected(columns)


def scan_csv(
    files: Any,
    *,
    columns: Any = None,
    separator: str = ",",
    header: bool = True,
    na_values: Any = None,
    memory: int | str = MEMORY,
    sample_rows: int | None = SCREENED_ROWS,
    threads: int | None = None,
) -> "Scan":
    """A table in CSV files, plain or gzipped, that is read in passes, never as a whole.

    Cells are read as text; a column's type follows from all its distinct texts by the rules of ``pandas.read_csv``.

    Parameters
    ----------
    files : str, path or list of them
        A file, a folder, or a pattern such as ``"part-*.csv"``; on this machine. A file whose name is the text itself is read,
        even if the text could be a pattern. The files have equal columns.
    columns : list of str, optional
        The columns to read; by default all.
    separator : str, default=","
        Between the cells of a row.
    header : bool, default=True
        Whether the first row of every file holds the names of the columns; else they are x0, x1, ...
    na_values : str or list of str, optional
        Texts that mean missing in addition to those that ``pandas.read_csv`` knows.
    memory : int or str, default="1GB"
        See `scan_parquet`.
    sample_rows : int or None, default=50000
        See `scan_parquet`.
    threads : int, optional
        Threads of DuckDB; by default one per core.

    Returns
    -------
    Scan
        See `scan_parquet`.
    """
    from pgm_bma.foundation.rows.duckdb_scan import csv_rows

    limit = read_bytes(memory)
    rows = csv_rows(files, limit, threads, separator, header, na_values)
    return Scan(rows, limit, sample_rows=sample_rows)._selected(columns)


def scan_table(table: Any, *, memory: int | str = MEMORY, sample_rows: int | None = SCREENED_ROWS) -> "Scan":
    """A DuckDB relation or table, a pyarrow dataset or a dask DataFrame as a scan with its own settings.

    Estimators take such tables as they are; this is for other settings than the defaults.

    Parameters
    ----------
    table : DuckDB relation, pyarrow dataset or dask DataFrame
        The table; nothing is read.
    memory : int or str, default="1GB"
        See `scan_parquet`.
    sample_rows : int or None, default=50000
        See `scan_parquet`.

    Returns
    -------
    Scan
        See `scan_parquet`.
    """
    if not is_scan(table):
        raise TypeError(
            f"cannot scan a {type(table).__name__}; pass a DuckDB relation, a pyarrow dataset or a dask DataFrame"
        )
    return as_scan(table, memory, sample_rows)


def is_scan(X):
    """Return whether X is a `Scan` or a table of an engine that becomes one; imports nothing."""
    return isinstance(X, Scan) or _source(X) is not None


def as_scan(X, memory=MEMORY, sample_rows=SCREENED_ROWS):
    """A `Scan` of a DuckDB relation, a pyarrow dataset or a dask DataFrame; a Scan as it is."""
    if isinstance(X, Scan):
        return X
    limit, source = read_bytes(memory), _source(X)
    if source == "dask":
        from pgm_bma.foundation.rows.dask_scan import DaskRows

        return Scan(DaskRows(X), limit, sample_rows=sample_rows)
    from pgm_bma.foundation.rows.duckdb_scan import dataset_rows, relation_rows

    rows = relation_rows(X) if source == "duckdb" else dataset_rows(X, limit, None)
    return Scan(rows, limit, sample_rows=sample_rows)


def _source(X):
    module, name = type(X).__module__, type(X).__name__
    if module.partition(".")[0] in ("duckdb", "_duckdb") and name == "DuckDBPyRelation":
        return "duckdb"
    if module.startswith("dask.") and name in ("DataFrame", "Series"):
        return "dask"
    return "dataset" if module == "pyarrow._dataset" and name.endswith("Dataset") else None


class FoldedScan(NamedTuple):
    """Distinct rows of a scan: a DataFrame, one weight per row, and how many rows they stand for (those of weight 0 are absent)."""

    frame: pd.DataFrame
    weights: np.ndarray
    n_rows: int


class NotFolded(MemoryError):
    """Equal rows do not collapse far enough to fit in the memory that the scan may take."""


class NeedsRows(Exception):
    """Raised where rows are visited in passes by a choice that looks at them one by one: what it is, and what to pass instead."""

    def __init__(self, choice: str, instead: str) -> None:
        super().__init__(f"{choice} needs the distinct rows in memory (in passes: {instead})")


class Scan:
    """A table whose rows stay where they are; made by `scan_parquet` and `scan_csv`.

    Parameters
    ----------
    rows : engine
        Who reads the rows: DuckDB or dask.
    memory : int
        Bytes that the engine and the folded rows may take.
    names : list of str, optional
        The columns; by default all of the engine.
    sample_rows : int or None, default=50000
        Rows on which starts are screened where all rows are visited in passes.
    """

    def __init__(self, rows: Any, memory: int, names: Any = None, sample_rows: int | None = SCREENED_ROWS) -> None:
        check("sample_rows", sample_rows, Optional(Integer(1)))
        self._rows, self.memory, self.sample_rows = rows, memory, sample_rows
        self.names = list(rows.names if names is None else names)

    def __repr__(self) -> str:
        return f"Scan of {len(self._rows.parts)} part(s), {len(self.names)} columns"

    @cached_property
    def n_rows(self) -> int:
        """Return how many rows the table has."""
        return self._rows.n_rows()

    def select(self, columns: Any) -> "Scan":
        """The same table with some of its columns.

        Parameters
        ----------
        columns : list of str
            Their names, in the order in which they are wanted.

        Returns
        -------
        Scan
            A new scan; nothing is read.
        """
        columns = list(bounded("columns", columns))
        known = set(self.names)
        absent = [name for name in columns if not is_hashable(name) or name not in known]
        if absent:
            raise ValueError(f"no column {brief(absent[0])}; the columns are {_shown(self.names)}")
        return Scan(self._rows, self.memory, columns, self.sample_rows)

    def drop(self, columns: Any) -> "Scan":
        """The same table without some of its columns.

        Parameters
        ----------
        columns : str or list of str
            Their names.

        Returns
        -------
        Scan
            A new scan; nothing is read.
        """
        columns = [columns] if isinstance(columns, str) else list(columns)
        self.select(columns)  # an error for what is not a column
        return self.select([name for name in self.names if name not in set(columns)])

    def _selected(self, columns):
        return self if columns is None else self.select(columns)

    def fold(self, weight: str | None = None, states: Any = None) -> FoldedScan:
        """All rows as distinct rows with weights, exactly.

        Parameters
        ----------
        weight : str, optional
            A column that holds the weight of every row.
        states : dict column -> states, optional
            Columns whose states are declared; the categories of the others are looked up.

        Returns
        -------
        FoldedScan
            `frame`, `weights` and `n_rows`.

        Raises
        ------
        NotFolded
            A MemoryError that tells the size, the limit and the cure.
        """
        names = self.names
        self.check_weight(weight)
        piece = self._fold_within_limit(names)
        typed = [self._rows.typed(values) for values in piece.values]
        if any(new is not old for new, old in zip(typed, piece.values)):  # several texts may mean one value
            piece = scan_pieces.join_pieces(names, [piece._replace(values=typed)])
        undeclared = [name for name in names if name not in (states or {}) and name != weight]
        return FoldedScan(*scan_pieces.folded_frame(names, piece, self._rows.categories(undeclared), weight))

    def check_weight(self, weight: str | None) -> None:
        """An error unless the weights are a column of the scan, or absent.

        Parameters
        ----------
        weight : str or None
            Name of the column.
        """
        if weight is not None and weight not in self.names:
            raise ValueError(f"sample_weight={weight!r} is not a column; the columns are {_shown(self.names)}")

    def _fold_within_limit(self, names):
        limit = self.max_distinct(len(names))
        estimate = self._estimate(names, limit)
        if estimate > limit:
            raise NotFolded(_refusal(f"about {_short(estimate)}", limit, self, names))
        piece = self._rows.fold(names, limit)
        if piece is None:
            raise NotFolded(_refusal(f"more than {_short(limit)}", limit, self, names))
        return piece

    def max_distinct(self, n_columns: int) -> int:
        """Return how many distinct rows the memory allows.

        Parameters
        ----------
        n_columns : int
            Columns of a row.

        Returns
        -------
        int
            Rows.
        """
        return max(int(self.memory // row_bytes(n_columns)), 1)

    def _estimate(self, names, limit):
        """Number of distinct rows: 0 where there is surely room, infinite or a count where there is none."""
        if self.n_rows <= limit:
            return 0
        sample = self._rows.sample(names, SAMPLE_ROWS)
        low, high = distinct_bounds(sample.counts, self.n_rows)
        if low > limit or high <= limit:
            return low if low > limit else 0
        return self._rows.approximate_distinct(names)


def distinct_bounds(counts, n_rows):
    """Bounds of the number of distinct rows in `n_rows`, from how often each occurs in a sample.

    Below: Chao's estimate from the rows met once and twice. Above: d (N / m)^(f1 / d), since the number of distinct rows
    grows with at most the exponent that it has at the sample's end.
    """
    m, d, f1, f2 = counts.sum(), len(counts), (counts == 1).sum(), (counts == 2).sum()
    low = d + (f1 * f1 / (2.0 * f2) if f2 else f1 * (f1 - 1) / 2.0)
    high = d * (n_rows / m) ** (f1 / d) if d else 0.0
    return min(low, n_rows), min(high, n_rows)


def row_bytes(n_columns):
    """Bytes that a distinct row takes while it is folded, sorted and fitted: codes several times, keys and weights."""
    return 96 + 8 * n_columns


def read_bytes(memory):
    """Bytes of a number or of a text such as "500MB"."""
    text = str(memory).strip().upper() if isinstance(memory, (str, int, float, np.number)) else ""
    unit = next((u for u in sorted(_UNITS, key=len, reverse=True) if text.endswith(u)), "")
    try:
        value = float(text[: len(text) - len(unit)]) * _UNITS.get(unit, 1)
    except ValueError:
        value = np.nan
    if not 0 < value < 2**60:
        raise ValueError(
            f"memory={brief(memory)} is not a size; pass a number of bytes, or a text such as '500MB' or '2GB'"
        )
    return int(value)


def _refusal(found, limit, scan, names):
    size = _short(row_bytes(len(names)) * float(scan.n_rows))
    return (
        f"the {_short(scan.n_rows)} rows have {found} distinct ones in {len(names)} columns, more than the {_short(limit)} that "
        f"memory={_short(scan.memory)}B has room for (all rows: {size}B); pass memory= more, columns= fewer, or fit on a sample"
    )


def _shown(names):
    return ", ".join(map(repr, names[:12])) + (" and more" if len(names) > 12 else "")


def _short(number):
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"
