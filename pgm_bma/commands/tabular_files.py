"""Tables from files: CSV, TSV and their relatives, plain or compressed, and Parquet; read as a person would read them.

Goes in: a path, or the name of an embedded data set, and what counts as missing. Comes out: `RawTable`, texts and numbers
with missing cells as NaN, an index column set apart. The separator is guessed from the first rows; so is the encoding (UTF-8
with or without mark, UTF-16 with mark, else Windows-1252). Blanks around cells and names are dropped. An empty cell is
missing, anything else only when it is named. A column is numbers when every cell is one, except codes such as 007.

A table in many files, or too large to be read, is `Scanned`: the fit sees all rows where they are; columns are judged, and
findings made, on a sample, which is read as if it were the table.
"""

import bz2
import csv
import difflib
import glob
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from pgm_bma import datasets
from pgm_bma.commands.output import UsageError, count, one_line
from pgm_bma.foundation.rows.dask_scan import local_workers
from pgm_bma.foundation.rows.duckdb_scan import find_files
from pgm_bma.foundation.rows.scan import MEMORY, scan_csv, scan_parquet, scan_table

SAMPLE = 100_000  # rows of a scan that are read
PARQUET = ".parquet"
# what changes cells, or looks at every row outside the fit
IN_MEMORY = ("weight", "discretize", "missing_codes", "numeric", "ordered", "covariates", "outcome", "test")
SEPARATORS = (",", ";", "\t", "|")
INDEX_NAMES = {"", "index", "id", "row", "rowid", "row_id", "row id", "rownames", "row_names", "case", "nr", "no", "#"}
LOOKS_MISSING = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", ".", "-", "*")
_SNIFFED_ROWS = 200
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8"))
_NOTHING = "\x00"  # stands for the name of the column behind a separator at the end of every row
_MAGIC = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ": lzma.decompress}
_CODE = re.compile(r"[+-]?0\d+$")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+$|[+-]?\d+$")


@dataclass
class RawTable:
    """A table as read. `notes` are lines for the reader; `target` is known for embedded data sets only."""

    frame: pd.DataFrame
    source: str
    sha256: str
    index: pd.Index
    target: str | None = None
    notes: list = field(default_factory=list)


def read_table(source, missing=(), header=True, data=()):
    """Read a file, or an embedded data set by its name.

    Parameters
    ----------
    source : path, or a name of `pgm_bma.list_datasets()`; a file of that name comes first
    missing : texts that mean "missing", in addition to the empty cell
    header : whether the first row holds the names of the columns; else they are x1, x2, ...
    data : names of columns that are data even where they look as if they numbered the rows

    Returns
    -------
    RawTable

    Raises
    ------
    ValueError, OSError
        With one line that says what is wrong and where.

    Examples
    --------
    >>> import os, tempfile
    >>> from pgm_bma.commands.tabular_files import read_table
    >>> path = os.path.join(tempfile.mkdtemp(), "plants.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("nr;leaf shape;height\\n1;'long';3\\n2;?;4\\n")
    >>> table = read_table(path, missing=["?"])
    >>> table.frame.columns.tolist(), table.index.name, int(table.frame["leaf shape"].isna().sum())
    (['leaf shape', 'height'], 'nr', 1)
    """
    path = Path(source)
    if path.is_dir() or not path.exists():
        return _read_dataset(str(source), path)
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if not content:
        raise ValueError(f"{source} is empty")
    for magic, decompress in _MAGIC.items():
        if content.startswith(magic):
            content = _decompressed(content, decompress, source)
            break
    if content[:4] == b"PAR1":
        frame, decimal_comma, notes = _read_parquet(content, source), False, []
    else:
        frame, decimal_comma, notes = _read_text(content, path, header)
    _check_names(frame, source)
    if not len(frame):
        raise ValueError(f"{source} has a header but no rows")
    frame, suspicions = _read_cells(frame, missing, decimal_comma)
    notes += suspicions
    frame, index, note = _set_index_apart(frame, data)
    return RawTable(frame, str(source), digest, index, notes=[*notes, *note])


def frame_checksum(frame):
    """SHA-256 of a table's names and cells, for data that do not come from a file."""
    return hashlib.sha256(frame.to_csv(index=False).encode()).hexdigest()


def closest(name, known):
    """', did you mean ...?' where a known name is close, else the known names."""
    known = [str(each) for each in known]
    folded = {each.casefold(): each for each in known}
    near = [folded[each] for each in difflib.get_close_matches(str(name).casefold(), folded, n=2, cutoff=0.6)]
    if near:
        return f"did you mean {' or '.join(repr(each) for each in near)}?"
    shown = ", ".join(repr(each) for each in known[:12])
    return f"there are {shown}{f' and {len(known) - 12} more' if len(known) > 12 else ''}"


# ---------------------------------------------------------------------------------------------------- sources


def _read_dataset(name, path):
    if path.is_dir() or "/" in name or "\\" in name or path.suffix:
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        if name not in datasets.list_datasets():
            raise ValueError(f"{name} {what}")
    try:
        frame, target = datasets.load_dataset(name)  # nosec B615 # a table of the package, nothing is downloaded
    except ValueError:
        known = [*datasets.list_datasets(), *datasets.OUTSIDE]
        raise ValueError(f"no file {name!r}, and no embedded data set of that name: {closest(name, known)}") from None
    return RawTable(frame, name, frame_checksum(frame), pd.RangeIndex(1, len(frame) + 1, name="row"), target)


def _decompressed(content, decompress, source):
    try:
        return decompress(content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise ValueError(f"{source} cannot be unpacked: {error}") from None


def _read_parquet(content, source):
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except ImportError:
        raise ValueError(f"{source} is a Parquet file, which needs pyarrow: pip install pyarrow") from None
    except Exception as error:  # pyarrow has its own family of errors
        raise ValueError(f"{source} is not a readable Parquet file: {error}") from None
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame.apply(_plain_column) if frame.shape[1] else frame


def _plain_column(column):
    """Numbers as numbers, everything else as texts; missing cells are NaN."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        return pd.Series(column.to_numpy(dtype=float, na_value=np.nan)) if column.isna().any() else column
    cells = column.astype(object)
    return cells.where(cells.isna(), cells.map(str))


# ------------------------------------------------------------------------------------------------------ texts


def _read_text(content, path, header):
    """(frame of texts, whether 3,5 is a number, notes)."""
    text, notes = _decode(content, path)
    if "\x00" in text:
        raise ValueError(f"{path} is not a text table (it holds zero bytes); CSV, TSV and Parquet can be read")
    text = text.lstrip("\r\n\ufeff")
    separator, quote = _guess_format(text, path)
    head = _rows(text, separator, quote)
    if not head:
        raise ValueError(f"{path} holds no rows")
    names, body = (head[0], head[1:]) if header else ([f"x{i + 1}" for i in range(len(head[0]))], head)
    names = [name.strip() for name in names]
    if body and all(len(row) == len(names) + 1 for row in body):
        # R leaves the name of the row names away; other programs end every row with a separator
        names = [*names, _NOTHING] if all(not row[-1].strip() for row in body) else ["", *names]
    _check_widths(text, separator, quote, len(names), header, path)
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=r"\s+" if separator == " " else separator,
            quotechar=quote,
            header=0 if header else None,
            names=range(len(names)),
            dtype=str,
            keep_default_na=False,
            na_values=[],
            skipinitialspace=True,
            on_bad_lines="error",
        )
    except pd.errors.ParserError as error:
        raise ValueError(f"{path}: {one_line(error)}") from None
    last = frame.columns[-1]
    if names[-1] in ("", _NOTHING) and len(names) > 1 and (frame[last].str.strip() == "").all():
        frame, names = frame.drop(columns=last), names[:-1]
    elif names[-1] == _NOTHING:
        raise ValueError(f"{path}: some rows have one cell more than the header")
    frame.columns = names
    return frame, separator != ",", notes


def _check_widths(text, separator, quote, n_names, header, path):
    """Every row must have as many cells as the header: pandas would fill up or take the first column for an index."""
    for number, row in enumerate(_all_rows(text, separator, quote), start=1 - header):
        if number > 0 and len(row) != n_names:
            place, model = ("below the header ", "the header") if header else ("", "the first row")
            raise ValueError(f"{path}: row {number} {place}has {count(len(row), 'cell')}, {model} has {n_names}")


def _decode(content, path):
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding), []
            except UnicodeDecodeError:
                continue
    text = content.decode("cp1252", errors="replace")
    return text, [f"{path.name} is not UTF-8; read as Windows-1252 (Western European)"]


def _guess_format(text, path):
    """(separator, quote): the pair under which the first rows agree best in their number of cells, many cells winning."""
    if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t", '"'
    best, separator, quote = (0, 0.0, 1), ",", '"'
    for candidate in SEPARATORS:
        for mark in ('"', "'"):
            found = _agreement(_rows(text, candidate, mark))
            if found > best and found[2] > 1:
                best, separator, quote = found, candidate, mark
    if best[2] == 1 and (found := _agreement(_rows(text, " ", '"')))[2] > 1 and found[0] and found[1] == 1.0:
        return " ", '"'
    if quote == '"' and _wrapped(_rows(text, separator, '"'), "'"):
        quote = "'"
    return separator, quote


def _agreement(rows):
    """(how the header fits: 2 exactly, 1 but for row names, share of rows with the usual number of cells, that number)."""
    widths = [len(row) for row in rows[1:] or rows]
    if not widths:
        return 0, 0.0, 1
    usual = max(set(widths), key=lambda width: (widths.count(width), width))
    return {usual: 2, usual - 1: 1}.get(len(rows[0]), 0), widths.count(usual) / len(widths), usual


def _wrapped(rows, quote):
    """Return whether some cells stand in these quotes, and none has one only at its start."""
    begun = [cell.strip() for row in rows for cell in row if cell.strip().startswith(quote)]
    return bool(begun) and all(len(cell) > 1 and cell.endswith(quote) for cell in begun)


def _rows(text, separator, quote):
    """The first rows, blank ones left out."""
    return list(islice(_all_rows(text, separator, quote), _SNIFFED_ROWS))


def _all_rows(text, separator, quote):
    # a quote that never closes makes one giant cell: csv then stops, and the rows so far are what there is
    try:
        for row in csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, quotechar=quote, skipinitialspace=True
        ):
            if separator == " " and row and not row[-1]:
                row = row[:-1]
            if row and (len(row) > 1 or row[0].strip()):
                yield row
    except csv.Error:
        return


# -------------------------------------------------------------------------------------------- names and cells


def _check_names(frame, source):
    names = list(frame.columns)
    if not names:
        raise ValueError(f"{source} has no columns")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(
            f"{source} has two columns called {twice!r}; rename one, or pass --no-header if the first row is data"
        )
    unnamed = [i for i, name in enumerate(names) if name == "" and i > 0]
    if unnamed:
        raise ValueError(f"{source}: column {unnamed[0] + 1} has no name in the header")


def _read_cells(frame, missing, decimal_comma):
    """(frame, notes): empty and named cells become NaN, texts that are all numbers become numbers."""
    tokens, columns = {"", *missing}, {}
    suspects: dict[str, list] = {}
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column.dtype):
            columns[name] = column.mask(column.map(number_text).isin(tokens)) if missing else column
            continue
        codes, distinct = pd.factorize(column.to_numpy(dtype=object))  # few values, many cells
        texts = pd.Series(distinct, dtype=object).str.strip()
        texts = texts.mask(texts.isin(tokens))
        for position in np.flatnonzero(texts.isin(LOOKS_MISSING)):
            suspects.setdefault(texts[position], []).append((name, int((codes == position).sum())))
        columns[name] = _as_numbers(texts, decimal_comma).reindex(codes).set_axis(frame.index)  # -1 is in no index: NaN
        if (codes >= 0).all() and texts.notna().all() and columns[name].dtype == float:
            columns[name] = _whole(columns[name])
    return pd.DataFrame(columns), [_suspicion(text, places) for text, places in suspects.items()]


def _suspicion(text, places):
    cells = sum(cells for _, cells in places)
    where = repr(places[0][0]) if len(places) == 1 else f"{len(places)} columns"
    return (
        f"{count(cells, 'cell')} of {where} {'holds' if cells == 1 else 'hold'} {text!r}, taken as a value; if it means missing, "
        f"add --missing {text if text.isalnum() else repr(text)}"
    )


def _as_numbers(texts, decimal_comma):
    """Different texts as floats where every one is a number, else as they are."""
    known = texts.dropna()
    if known.empty or known.str.fullmatch(_CODE).any():
        return texts
    if decimal_comma and known.str.fullmatch(_DECIMAL_COMMA).all():
        known = known.str.replace(",", ".", regex=False)
    numbers = pd.to_numeric(known, errors="coerce").astype(float)
    if numbers.isna().any() or np.isinf(numbers).any():
        return texts
    return numbers.reindex(texts.index)


def number_text(value):
    """A number as people write it: 3 for 3.0, all digits of 1234567."""
    return str(int(value)) if float(value).is_integer() else str(float(value))


def parse_codes(text):
    """``-9,99`` or ``COLUMN:-9,99`` as (column or None, numbers)."""
    name, separator, codes = text.rpartition(":")
    numbers = tuple(float(code) for code in codes.split(",") if code.strip())
    if not numbers or not np.isfinite(numbers).all():
        raise ValueError(f"{text!r} holds no numbers")
    return (name if separator else None), numbers


def codes_text(pair):
    """The inverse of `parse_codes`."""
    name, numbers = pair
    codes = ",".join(number_text(number) for number in numbers)
    return codes if name is None else f"{name}:{codes}"


def is_code(text):
    """Return whether digits are a name rather than a number, as in 007."""
    return _CODE.fullmatch(text) is not None


def _whole(numbers):
    return numbers.astype(np.int64) if (numbers == numbers.round()).all() and abs(numbers).max() < 2**53 else numbers


def _set_index_apart(frame, data):
    """(frame, index, notes): a first column that only numbers or names the rows is not data."""
    plain = pd.RangeIndex(1, len(frame) + 1, name="row")
    frame = frame.reset_index(drop=True)
    name, column = frame.columns[0], frame.iloc[:, 0]
    distinct = not column.isna().any() and column.is_unique
    if frame.shape[1] > 1 and distinct and len(frame) > 1 and name not in data:
        counts = (
            pd.api.types.is_integer_dtype(column.dtype) and (column.diff().iloc[1:] == 1).all() and column[0] in (0, 1)
        )
        if str(name).strip().casefold() in INDEX_NAMES or (counts and len(frame) > 2):
            label = name or "row"
            rows = frame.drop(columns=name)
            return rows, pd.Index(column, name=label), [f"column {label!r} numbers the rows: not used as data"]
    if name == "":
        raise ValueError("the first column has no name and its values repeat; give it a name in the header")
    return frame, plain, []


# ------------------------------------------------------------------------------------------ tables that are scanned


def is_scanned(arguments):
    """Return whether the words ask for a scan: a pattern or a folder of files, or how it is to be done."""
    asked = [getattr(arguments, name, None) for name in ("memory", "workers", "scheduler")]
    path = Path(arguments.file)
    is_pattern = glob.has_magic(arguments.file) and not path.exists()
    is_folder = path.is_dir() and any(path.glob(f"*{PARQUET}"))
    return is_pattern or is_folder or any(value is not None for value in asked)


def files_checksum(paths):
    """SHA-256 of the names and sizes of the files: their content would take as long to read as the fit."""
    told = [[Path(path).name, os.stat(path).st_size] for path in paths]
    return hashlib.sha256(repr(told).encode()).hexdigest()


class Scanned:
    """The table of one run: `scan` has all rows, `table` a sample of them.

    arguments : of the command line
    """

    def __init__(self, arguments):
        self._open = ExitStack()
        self.arguments = arguments
        for name in IN_MEMORY:
            if getattr(arguments, name, None):
                raise UsageError(
                    f"--{name.replace('_', '-')} is for tables that are read whole; prepare the files first, or give a sample"
                )
        self.paths = find_files(arguments.file, PARQUET)
        self.scan = self._scan(arguments.memory or MEMORY)
        self.table = self._sample()

    def close(self):
        """End the workers that were started."""
        self._open.close()

    def _scan(self, memory):
        arguments, is_parquet = self.arguments, all(path.endswith(PARQUET) for path in self.paths)
        if arguments.workers is None and arguments.scheduler is None:
            if is_parquet:
                return scan_parquet(self.paths, memory=memory)
            return scan_csv(self.paths, header=not arguments.no_header, na_values=arguments.missing, memory=memory)
        if not is_parquet:
            raise UsageError("--workers and --scheduler read Parquet files; without them CSV files are scanned too")
        from pgm_bma.foundation.runtime.messages import needed

        distributed, frames = needed("distributed", "--workers"), needed("dask.dataframe", "--workers")
        address = arguments.scheduler
        client = local_workers(arguments.workers, memory) if address is None else distributed.Client(address)
        self._open.enter_context(client)
        return scan_table(frames.read_parquet(self.paths, split_row_groups=True), memory=memory)

    def _sample(self):
        """Some rows as a table that was read; equal ones stand side by side."""
        scan, names = self.scan, self.scan.names
        piece = scan._rows.sample(names, SAMPLE)
        columns = {}
        for name, values, codes in zip(names, piece.values, piece.codes.T):
            values = np.array([*scan._rows.typed(list(values)), None], dtype=object)
            columns[name] = pd.Series(np.repeat(values[codes], piece.counts)).infer_objects()
        frame = pd.DataFrame(columns)
        note = (
            f"{count(scan.n_rows, 'row')} in {count(len(self.paths), 'file')}: the fit sees all of them; columns are judged, and "
            f"sentences about rows rest on a sample of {len(frame)}"
        )
        if self.arguments.command == "compare":
            note = f"compared on a sample of {len(frame)} of {count(scan.n_rows, 'row')} in {count(len(self.paths), 'file')}"
        index = pd.RangeIndex(1, len(frame) + 1, name="row")
        return RawTable(frame, str(self.arguments.file), files_checksum(self.paths), index, notes=[note])

    def fit(self, estimator, columns, target=None):
        """Fit on all rows."""
        names = [*columns, *(() if target is None else (target,))]
        estimator.fit(self.scan.select(names), target)

    def predict_to(self, estimator, folder, name):
        """Predictions of all rows in a folder of Parquet files next to the other results; returns a line about them."""
        path = Path(folder) / name
        if path.is_dir() and all(file.name.startswith(("part-", ".part-")) for file in path.iterdir()):
            shutil.rmtree(path)  # of an earlier run, which may have been killed while it wrote a part
        kept = [self.arguments.id] if self.arguments.id else []
        files = estimator.predict_to(path, self.scan, keep=kept)
        rows, parts = count(self.scan.n_rows, "row"), count(len(files), "part")
        return f"{path}{os.sep} holds the predictions of all {rows}, one file for each of {parts}"
