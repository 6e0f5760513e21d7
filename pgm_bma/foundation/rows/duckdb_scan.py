"""Rows read by DuckDB: Parquet and CSV files, its own relations and tables, pyarrow datasets.

DuckDB streams and folds (``GROUP BY ALL``) within its memory limit, spilling to disk past it. What it cannot tell, the
categories of a categorical column, is asked of pyarrow or of its ENUM type. CSV cells are read as text and given types from
the distinct texts of a whole column by pandas' own reader, so that row ten million cannot surprise row one.
"""

import glob
import os
from pathlib import Path
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.validation import Flag, Rule, bounded, check
from pgm_bma.foundation.rows.pieces import PieceBuilder, arrow_codes, missing_texts, read_texts
from pgm_bma.foundation.runtime.messages import needed
from pgm_bma.foundation.tables.columns import is_missing

LEAST_MEMORY = 512 * 10**6  # with less, DuckDB fails on wide tables instead of spilling
BATCH = 1 << 16  # rows in one Arrow batch
SAMPLED_PARTS = 8  # files or row groups that a sample is taken from, evenly spaced
_VIEW = "pgm_bma_rows"
_COUNT = "pgm_bma_count"


def _is_separator(value):
    """Return whether DuckDB takes it between two cells."""
    return isinstance(value, str) and 1 <= len(value.encode(errors="replace")) <= 4 and not set(value) & set('"\r\n\0')


SEPARATOR = Rule(
    "a text of one to four bytes between two cells, such as ',' or '\\t', without quotes and line ends", _is_separator
)


class DuckDBRows:
    """A relation, and how to read its parts.

    relation : a DuckDB relation
    parts : list of (name, relation or pyarrow fragment) in order, which together are the relation
    declared : () -> dict column -> categories, for the columns that declare them
    names : list of str, the columns that are data
    texts : texts that mean missing where cells are read as text, else None
    """

    def __init__(self, relation, parts, declared, names, texts=None):
        self.relation, self.parts, self.declared = relation, parts, declared
        self.names, self.texts = list(names), texts
        _refuse_names(self.names)

    def _query(self, sql, source=None):
        return (self.relation if source is None else source).query(_VIEW, sql)

    def n_rows(self):
        """Return how many rows there are."""
        return int(self._query(_select("count(*)")).fetchall()[0][0])

    def sample(self, names, size):
        """A Piece of about `size` rows, taken from evenly spaced parts; from a single relation at random."""
        builder = PieceBuilder(names)
        chosen = _evenly(self.parts, SAMPLED_PARTS)
        for _, source in chosen:
            per_part = max(size // len(chosen), 1)
            if hasattr(source, "to_batches"):
                for batch in _sampled_batches(source, names, per_part):
                    builder.add([arrow_codes(c) for c in batch.columns], np.ones(batch.num_rows))
            else:
                take = (
                    f"LIMIT {per_part}"
                    if len(self.parts) > 1
                    else f"USING SAMPLE reservoir({per_part} ROWS) REPEATABLE (0)"
                )
                self._add_counted(builder, _select(f"{_listed(names)}, 1", take), source)
        return builder.finish()

    def approximate_distinct(self, names):
        """The number of distinct rows up to a few per cent, in one pass without memory."""
        cells = ", ".join(f"coalesce({_quoted(name)}::VARCHAR, chr(0))" for name in names)
        return int(self._query(_select(f"approx_count_distinct(hash({cells}))")).fetchall()[0][0])

    def fold(self, names, limit):
        """A Piece of all rows, or None as soon as there are more than `limit` distinct ones."""
        builder = PieceBuilder(names)
        complete = self._add_counted(
            builder, _select(f"{_listed(names)}, count(*) AS {_COUNT}", "GROUP BY ALL"), limit=limit
        )
        return builder.finish() if complete else None

    def _add_counted(self, builder, sql, source=None, limit=np.inf):
        reader = _arrow_reader(self._query(sql, source))
        n_rows = 0
        for batch in reader:
            n_rows += batch.num_rows
            if n_rows > limit:
                reader.close()
                return False
            *columns, counts = batch.columns
            builder.add([arrow_codes(column) for column in columns], counts.to_numpy(zero_copy_only=False))
        return True

    def categories(self, names):
        """dict column -> categories, of those columns that declare the same ones in every part."""
        return self.declared(names)

    def typed(self, values):
        """The values of a column as they are meant: texts of a CSV file become what pandas would read."""
        return values if self.texts is None else read_texts(values, self.texts)

    def count(self, weight=None):
        """Return how many rows there are, of positive weight."""
        return int(self._query(_select("count(*)", _positive(weight))).fetchall()[0][0])

    def profile(self, names, weight=None, limit=np.inf):
        """(values, how often each occurs, number of rows) of every column, in one pass over rows of positive weight; ends where a
        column has more than `limit` values.
        """
        if not names:
            return []
        listed, sets = _listed(names), ", ".join(f"({_quoted(name)})" for name in names)
        marks = ", ".join(f"grouping({_quoted(name)})" for name in names)  # 0: this line is of that column
        found: list[tuple[list, list]] = [([], []) for _ in names]
        # values as Arrow gives them: those of the batches that are coded later come from there too
        reader = _arrow_reader(
            self._query(_select(f"count(*), {listed}, {marks}", f"{_positive(weight)} GROUP BY GROUPING SETS ({sets})"))
        )
        for batch in reader:
            counts, cells = batch.column(0).to_numpy(zero_copy_only=False), batch.columns[1 : len(names) + 1]
            for (values, occurrences), column, mark in zip(found, cells, batch.columns[len(names) + 1 :]):
                chosen = np.flatnonzero(mark.to_numpy(zero_copy_only=False) == 0)
                values += column.take(chosen).to_pylist()
                occurrences += counts[chosen].tolist()
            if max(len(values) for values, _ in found) > limit:
                reader.close()
                break
        return [(values, counts, sum(counts)) for values, counts in found]

    def arrow_types(self, names):
        """Arrow types of columns, categoricals as what they hold."""
        import pyarrow as pa

        schema = self._query(_select(_listed(names), "LIMIT 0")).to_arrow_table().schema if names else []
        return [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema]

    def map_parts(self, function, job, names):
        """``[function(job, number, source, batches)]`` over the parts, one after the other."""
        return [
            function(job, i, file_source(name) if os.path.exists(name) else {"part": name}, self.batches(i, names))
            for i, (name, _) in enumerate(self.parts)
        ]

    def batches(self, part, names):
        """The rows of one part in their order: lists of (values, codes), one pair per column, with the number of rows."""
        _, source = self.parts[part]
        if hasattr(source, "to_batches"):
            reader = source.to_batches(columns=names, batch_size=BATCH)
        else:
            reader = _arrow_reader(self._query(_select(_listed(names)), source))
        for batch in reader:
            yield [arrow_codes(column) for column in batch.columns], batch.num_rows


# ----------------------------------------------------------------------------------------------------- sources


class ParquetFile:
    """A fragment that is opened whenever it is read: a file may have been written anew since it was listed.

    path : str
    """

    def __init__(self, path):
        self.path = path

    def _open(self):
        import pyarrow as pa

        dataset = needed("pyarrow.dataset", "scanning Parquet files")
        schema = needed("pyarrow.parquet", "scanning Parquet files").read_schema(self.path)
        texts = [
            field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        # texts as they lie in the file, numbers into a dictionary: ten times faster than as texts
        read = dataset.ParquetFileFormat(dictionary_columns=texts)
        return next(dataset.dataset(self.path, format=read).get_fragments())

    def to_batches(self, **options):
        """As a pyarrow fragment."""
        return self._open().to_batches(**options)

    def split_by_row_group(self):
        """As a pyarrow fragment."""
        return self._open().split_by_row_group()


def parquet_rows(files, memory, threads):
    """Rows of Parquet files; equal columns are asked for, their order may differ."""
    parquet = needed("pyarrow.parquet", "scanning Parquet files")
    paths = find_files(files, ".parquet")
    schemas = [_read_schema(parquet, path) for path in paths]
    names = _data_columns(schemas[0])
    _refuse_types(names, schemas[0], paths[0])
    for path, schema in zip(paths, schemas):
        _compare_columns(names, schemas[0], _data_columns(schema), schema, paths[0], path)
    files = [ParquetFile(path) for path in paths]
    listed = ", ".join(_file_text(path) for path in paths)
    relation = connect(memory, threads).sql(
        _select("*", source=f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false)")
    )
    return DuckDBRows(relation, list(zip(paths, files)), lambda wanted: arrow_categories(files, wanted, schemas), names)


def _read_schema(parquet, path):
    import pyarrow as pa

    try:
        return parquet.read_schema(path)
    except pa.ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file: {error}") from None


def csv_rows(files, memory, threads, separator, header, na_values):
    """Rows of CSV files, all cells as text."""
    check("header", header, Flag())
    check("separator", separator, SEPARATOR)
    paths = find_files(files, ".csv")
    for path in paths:
        if not os.path.getsize(path):
            raise ValueError(f"{path} is empty; leave it out")
    connection = connect(memory, threads)
    options = f"all_varchar=true, skip=0, header={str(bool(header)).lower()}, union_by_name={str(bool(header)).lower()}"
    options += f", delim={_text(separator)}, hive_partitioning=false"  # a folder called a=1 makes no column

    def read(chosen):
        listed = ", ".join(_file_text(path) for path in chosen)
        try:
            relation = connection.cursor().sql(_select("*", source=f"read_csv([{listed}], {options})"))
        except needed("duckdb", "scanning CSV files").Error as error:
            raise ValueError(f"{chosen[0]} cannot be read as CSV with separator={separator!r}: {error}") from None
        if not header:
            relation = relation.query(_VIEW, _select(_renamed(relation.columns)))
        return relation

    parts = [(path, read([path])) for path in paths]
    names = parts[0][1].columns
    for path, part in parts:
        _compare_columns(names, None, part.columns, None, paths[0], path)
    return DuckDBRows(read(paths), parts, lambda wanted: {}, names, missing_texts(na_values))


def relation_rows(relation):
    """Rows of a DuckDB relation or table; an ENUM declares its values."""
    types = dict(zip(relation.columns, relation.types))

    def declared(wanted):
        return {name: list(types[name].children[0][1]) for name in wanted if types[name].id == "enum"}

    return DuckDBRows(relation, [("rows", relation)], declared, relation.columns)


def dataset_rows(dataset, memory, threads):
    """Rows of a pyarrow dataset, its fragments as parts."""
    fragments = list(dataset.get_fragments())
    parts = [(getattr(fragment, "path", None) or f"fragment {i}", fragment) for i, fragment in enumerate(fragments)]
    schemas = [dataset.schema] * len(fragments)
    _refuse_types(_data_columns(dataset.schema), dataset.schema, "the dataset")
    relation = connect(memory, threads).from_arrow(dataset)
    return DuckDBRows(
        relation, parts, lambda wanted: arrow_categories(fragments, wanted, schemas), _data_columns(dataset.schema)
    )


def connect(memory, threads):
    """A DuckDB connection of its own within `memory` bytes."""
    duckdb = needed("duckdb", "scanning tables")
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit='{max(int(memory), LEAST_MEMORY)}B'")
    if threads is not None:
        connection.execute(f"SET threads={int(threads)}")
    return connection


def file_source(path):
    """Return what identifies the rows of a file: its name, size and time of change."""
    status = os.stat(path)
    return {"file": os.path.basename(path), "bytes": status.st_size, "changed": status.st_mtime_ns}


def find_files(files, suffix):
    """Paths of a path, a pattern, a folder, or a list of them, each once, sorted inside a pattern; a file of that name wins."""
    files = [files] if isinstance(files, (str, os.PathLike)) else list(bounded("files", files))
    found = []
    for item in files:
        path = os.fspath(item)
        if Path(path).is_dir():
            found += sorted(glob.glob(os.path.join(glob.escape(path), f"*{suffix}")))
        else:
            found += [path] if Path(path).is_file() else sorted(glob.glob(path, recursive=True))
    found = [str(path) for path in dict.fromkeys(found) if Path(path).is_file()]
    if not found:
        raise FileNotFoundError(
            f"no file matches {', '.join(repr(os.fspath(item)) for item in files) or 'an empty list'}"
        )
    return found


def arrow_categories(fragments, wanted, schemas):
    """Categories of the dictionary columns among `wanted` that are the same in every fragment, unused ones included."""
    import pyarrow as pa

    coded = [name for name in wanted if all(pa.types.is_dictionary(schema.field(name).type) for schema in schemas)]
    if not coded:
        return {}
    found = []
    for fragment in fragments:
        values: dict[Any, dict] = {name: {} for name in coded}
        for batch in fragment.to_batches(columns=coded, batch_size=BATCH):
            for name, column in zip(coded, batch.columns):
                if isinstance(column, pa.DictionaryArray):
                    values[name].update(dict.fromkeys(column.dictionary.to_pylist()))
        found.append({name: [v for v in values[name] if not is_missing(v)] for name in coded})
    return {name: found[0][name] for name in coded if found[0][name] and all(f[name] == found[0][name] for f in found)}


# -------------------------------------------------------------------------------------------------------- names


def _arrow_reader(relation):
    """Record batches of a relation; DuckDB 1 called it by another name."""
    read = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch
    return read(BATCH)


def _data_columns(schema):
    """Columns of an Arrow schema without the index that pandas stored among them."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def _compare_columns(names, schema, other_names, other, path, other_path):
    absent = [name for name in names if name not in set(other_names)] or [n for n in other_names if n not in set(names)]
    if absent:
        lacks, has = (other_path, path) if absent[0] in set(names) else (path, other_path)
        raise ValueError(
            f"{lacks} lacks the column {absent[0]!r} that {has} has; the files of one table have equal columns"
        )
    for name in names if schema is not None else ():
        kinds = [_kind(s.field(name).type) for s in (schema, other)]
        if len({*kinds} - {"null"}) > 1:
            raise ValueError(
                f"column {name!r} holds {kinds[0]} in {path} and {kinds[1]} in {other_path}; write it with one type"
            )


def _refuse_types(names, schema, path):
    import pyarrow as pa

    if not names:
        raise ValueError(f"{path} has no columns")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path} has two columns {twice[0]!r}; rename one")
    for name in names:
        if pa.types.is_duration(schema.field(name).type):  # DuckDB reads whole numbers where pyarrow reads durations
            raise ValueError(f"column {name!r} of {path} holds durations; write them as numbers or texts")


def _kind(type_):
    """Return what an Arrow type holds, as far as values of two files can be equal."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return _kind(type_.value_type)
    if pa.types.is_null(type_):
        return "null"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "numbers"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "texts"
    return str(type_)


def _refuse_names(names):
    if "" in names:
        raise ValueError("a column has an empty name, which DuckDB cannot read; give it a name")
    known: dict[str, Any] = {}
    for name in names:
        if name.casefold() in known:
            raise ValueError(
                f"columns {known[name.casefold()]!r} and {name!r} differ in case only, which DuckDB cannot tell apart; rename one"
            )
        known[name.casefold()] = name


def _select(what, rest="", source=_VIEW):
    """All SQL that is run: names of columns come through `_quoted`, paths and texts through `_text`, numbers are ours."""
    return f"SELECT {what} FROM {source} {rest}"  # nosec B608 # see above


def _positive(weight):
    """The condition that a row has a positive weight."""
    return "" if weight is None else f"WHERE TRY_CAST({_quoted(weight)} AS DOUBLE) > 0"


def _renamed(columns):
    return ", ".join(f"{_quoted(name)} AS {_quoted(f'x{i}')}" for i, name in enumerate(columns))


def _listed(names):
    return ", ".join(_quoted(name) for name in names)


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _file_text(path):
    """The path of one file in SQL, where DuckDB would read ``[ ] ? *`` as a pattern and ``~`` as a home."""
    path = os.path.abspath(path)
    escaped = glob.escape(path)
    if escaped != path and os.sep != "\\" and "\\" in path:  # inside a pattern, DuckDB takes it for a slash
        raise ValueError(f"DuckDB cannot read {path!r}: a backslash together with one of [ ? *; rename the file")
    return _text(escaped)


def _text(value):
    return "'" + str(value).replace("'", "''") + "'"


def _evenly(items, n):
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, min(n, len(items))).astype(int))]


def _sampled_batches(fragment, names, n_rows):
    """Batches of about `n_rows` rows from evenly spaced row groups of a fragment."""
    groups = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]
    chosen = _evenly(groups, SAMPLED_PARTS)
    for group in chosen:
        yield from group.head(max(n_rows // len(chosen), 1), columns=names).to_batches()
