"""Reading tables: types, order, folding, errors."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgm_bma.foundation.tables.table import (
    NO_VALUE,
    WIDE,
    Schema,
    decode,
    encode,
    encode_like,
    encode_target,
    fold,
    label_array,
)

labels = st.one_of(st.text(max_size=4), st.integers(-3, 3), st.booleans(), st.none(), st.dates())


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=12))
def test_decode_gives_back_what_was_encoded(rows):
    frame = pd.DataFrame(
        {"a": pd.Series([r[0] for r in rows], dtype=object), "b": pd.Series([r[1] for r in rows], dtype=object)}
    )
    table = encode(frame)
    back = decode(table.codes, table.schema)
    for name in frame:
        for given_value, found in zip(frame[name], back[name]):
            assert given_value == found or (pd.isna(given_value) and pd.isna(found))
    np.testing.assert_array_equal(encode_like(frame, table.schema), table.codes)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=1, max_size=30))
def test_fold_keeps_every_row_and_its_weight(rows):
    codes = np.array(rows, dtype=np.int8)
    folded, weights, inverse = fold(codes)
    np.testing.assert_array_equal(folded[inverse], codes)
    assert weights.sum() == len(rows)
    assert sorted(map(tuple, folded)) == list(map(tuple, folded)) == sorted(set(map(tuple, codes)))


def test_fold_of_many_columns_stays_sorted():
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(-1, 4, (20, 200)).astype(np.int8), 3, axis=0)
    folded, weights, inverse = fold(codes, np.full(60, 0.5))
    np.testing.assert_array_equal(folded[inverse], codes)
    np.testing.assert_array_equal(weights, 1.5)
    assert list(map(tuple, folded)) == sorted(map(tuple, folded))


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_states_keep_their_types_and_order():
    day = pd.Timestamp("2020-05-01")
    frame = pd.DataFrame(
        {
            "text": ["b", None, "a"],
            "string": pd.array(["y", pd.NA, "x"], dtype="string"),
            "category": pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"]),
            "whole": [10, 9, 10],
            "nullable": pd.array([2, None, 1], dtype="Int64"),
            "truth": [True, False, True],
            "mixed": pd.Series(["a", 3, 2.5], dtype=object),
            "day": [day, day, pd.NaT],
        }
    )
    table = encode(frame)
    assert table.schema.states == (
        ("a", "b"), ("x", "y"), ("lo", "mid", "hi"), (9, 10), (1, 2), (False, True), (2.5, 3, "a"), (day,)
    )  # fmt: skip
    assert [type(s[0]) for s in table.schema.states] == [str, str, str, int, int, bool, float, pd.Timestamp]
    assert table.codes.dtype == np.int8
    assert table.codes[1].tolist() == [-1, -1, 2, 0, -1, 0, 1, 0]


def test_dates_are_labels():
    days = [datetime.date(2024, 1, 2), datetime.date(2023, 1, 1)]
    assert encode(pd.DataFrame({"day": days})).schema.states == ((days[1], days[0]),)


def test_smallest_dtype():
    wide = pd.DataFrame({"id": [f"s{i:04d}" for i in range(300)]})
    assert encode(wide).codes.dtype == np.int16
    assert encode(wide.head(127)).codes.dtype == np.int8


@pytest.mark.parametrize("kind", ["array", "object array", "text frame", "float frame"])
def test_a_wide_block_is_coded_like_its_columns(kind):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 5, (30, WIDE + 5)) * np.arange(1, WIDE + 6)
    X = {
        "array": values,
        "object array": values.astype(object),
        "text frame": pd.DataFrame(values.astype(str)).mask(values == 0),
        "float frame": pd.DataFrame(values.astype(float)).mask(values == 0),
    }[kind]
    table = encode(X)
    frame = pd.DataFrame(X)
    for position, column in enumerate(frame):
        single = encode(frame[[column]])
        assert table.schema.states[position] == single.schema.states[0]
        np.testing.assert_array_equal(table.codes[:, position], single.codes[:, 0])
    np.testing.assert_array_equal(encode_like(X, table.schema), table.codes)
    if isinstance(X, pd.DataFrame):
        shuffled = frame[frame.columns[::-1]]
        np.testing.assert_array_equal(encode_like(shuffled, table.schema), table.codes)
        odd = frame.copy()
        odd.iloc[2, 3] = "never" if kind == "text frame" else 12345.0
        with pytest.raises(ValueError, match=r"column 3 holds .* unseen in fit"):
            encode_like(odd, table.schema)
        with pytest.warns(UserWarning, match=r"column 3 holds 1 value unseen in fit, such as .*: taken as missing"):
            assert encode_like(odd, table.schema, "missing")[2, 3] == -1


def test_lists_and_rows():
    table = encode([[1, "a"], [2, "b"]])
    assert table.schema.names == ("x0", "x1") and table.schema.states == ((1, 2), ("a", "b"))
    rows = [{"u": 1, "v": "a"}, {"v": "b", "u": 2}]
    assert encode(rows).schema.names == ("u", "v")
    assert encode_like([{"v": "b", "u": 1}], encode(rows).schema).tolist() == [[0, 1]]


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_columns_of_a_wide_object_table_keep_their_own_types():
    wide = pd.DataFrame(np.ones((3, WIDE), dtype=int), dtype=object)
    wide[1], wide[2] = pd.Series([True, False, True], dtype=object), pd.Series([2.5, 1.0, 1.0], dtype=object)
    states = encode(wide).schema.states
    assert [list(map(type, s)) for s in states[:3]] == [[int], [bool, bool], [float, float]]
    for odd, message in (([1], "column 40 holds \\[1\\]"), (np.inf, "column 40 holds an infinite value")):
        spoiled = wide.copy()
        spoiled.at[1, 40] = odd
        with pytest.raises(ValueError, match=message):
            encode(spoiled)


def test_objects_of_numpy_arrays_keep_their_types():
    times = [datetime.datetime(2021, 1, 1), datetime.datetime(2020, 1, 1)]
    assert list(map(type, encode(np.array([times], dtype=object).T).schema.states[0])) == [datetime.datetime] * 2


def test_small_floats_and_masked_cells():
    assert encode(np.array([[2], [1]], dtype=np.float16)).schema.states == ((1.0, 2.0),)
    masked = np.ma.masked_array([[3], [1], [2]], mask=[[False], [True], [False]])
    assert encode(masked).schema.states == ((2, 3),) and encode(masked).codes.ravel().tolist() == [1, -1, 0]


def test_many_floats_are_found_among_other_values():
    mixed = pd.DataFrame({"a": pd.Series(["high", *np.linspace(0, 1, 51)], dtype=object)})
    with pytest.raises(ValueError, match="'a' holds 51 different float values"):
        encode(mixed)


def test_weights_drop_rows_before_states_are_read():
    frame = pd.DataFrame({"a": ["x", "y", "z"]})
    table = encode(frame, sample_weight=[1, 0, 2.5])
    assert table.schema.states == (("x", "z"),) and table.weights.tolist() == [1, 2.5]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": [[1], [2]]}), "column 'a' holds \\[1\\], which cannot be a state"),
        (pd.DataFrame({"a": np.linspace(0, 1, 51)}), "51 different float values; discretise.*FrequencyDiscretizer"),
        (np.zeros(3), "Expected 2D array"),
        (np.ones((2, 2)) * 1j, "Complex data"),
    ],
)
def test_errors_name_the_column_and_the_cure(X, message):
    with pytest.raises(ValueError, match=message):
        encode(X)


def test_integers_that_missing_cells_turned_into_floats_are_welcome():
    values = np.append(np.arange(60.0), np.nan)
    assert len(encode(pd.DataFrame({"age": values})).schema.states[0]) == 60


def test_unreadable_tables():
    with pytest.raises(TypeError, match="cannot read a table from object"):
        encode(object())
    with pytest.raises(ValueError, match="'b' occurs twice"):
        encode(pd.DataFrame([[1, 2]], columns=["b", "b"]))
    with pytest.raises(ValueError, match="holds 1 twice"):
        encode(pd.DataFrame({"a": [1]}), {"a": [1, 2, 1]})
    for states, message in (
        ("x", "must be a list"),
        ({"x", "y"}, "has no order"),
        (["x", ["y"]], "holds \\['y'\\], which cannot be a state"),
    ):
        with pytest.raises(ValueError, match=message):
            encode(pd.DataFrame({"a": ["x"]}), {"a": states})
    with pytest.raises(ValueError, match="'a' holds 'x', which state_names\\['a'\\] does not list"):
        encode(pd.DataFrame({"a": ["x"]}), {"a": ["y"]})


def test_weights_that_are_no_numbers_or_too_large():
    frame = pd.DataFrame({"a": ["x", "y"]})
    for weights, message in ((["a", "b"], "one number per row"), ([1e308, 1e308], "adds up to inf rows")):
        with pytest.raises(ValueError, match=message):
            encode(frame, sample_weight=weights)


def test_polars_categories_and_arrow():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "enum": polars.Series(["u", None, "v"], dtype=polars.Enum(["v", "w", "u"])),
            "number": [3, None, 1],
            "text": ["b", "a", None],
            "truth": [True, None, False],
        }
    )
    table = encode(frame)
    assert table.schema.states == (("v", "w", "u"), (1, 3), ("a", "b"), (False, True))
    assert table.codes.tolist() == [[2, 1, 1, 1], [-1, -1, 0, -1], [0, 0, -1, 0]]
    arrow = encode(frame.drop("enum").to_arrow())
    assert arrow.schema.states == table.schema.states[1:]
    np.testing.assert_array_equal(arrow.codes, table.codes[:, 1:])


def test_a_polars_categorical_is_text():
    polars = pytest.importorskip("polars")
    column = polars.Series("a", ["u", None, "b", "u"], dtype=polars.Categorical)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (column, column.reverse()):  # the order of rows is not one of states
            table = encode(values.to_frame())
            assert table.schema.states == (("b", "u"),)
            assert encode_target(values.drop_nulls(), "y")[1] == ("b", "u")
    assert table.codes.ravel().tolist() == [1, 0, -1, 1]


def test_arrow_dictionaries_keep_their_order_and_types():
    arrow = pytest.importorskip("pyarrow")
    column = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, None]), arrow.array([30, 10, 20]))
    table = encode(arrow.table({"a": column}))
    assert table.schema.states == ((30, 10, 20),) and table.codes.ravel().tolist() == [0, 1, -1]


@pytest.mark.parametrize("kind", ["numbers", "texts", "both"])
def test_wide_polars_tables_are_coded_like_their_columns(kind):
    polars = pytest.importorskip("polars")
    values = np.random.default_rng(2).integers(0, 4, (6, WIDE)).tolist()
    columns = {f"c{i}": [row[i] if row[i] else None for row in values] + [1] for i in range(WIDE)}
    if kind != "numbers":
        columns = {n: [v and str(v) for v in c] if kind == "texts" or n == "c3" else c for n, c in columns.items()}
    wide = polars.DataFrame(columns)
    table = encode(wide)
    for position, name in enumerate(columns):
        single = encode(wide.select(name))
        assert table.schema.states[position] == single.schema.states[0]
        np.testing.assert_array_equal(table.codes[:, position], single.codes[:, 0])
    np.testing.assert_array_equal(encode_like(wide.select(list(columns)[::-1]), table.schema), table.codes)


def test_lists_in_cells_are_refused():
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="column 'a' holds \\[1\\]"):
        encode(polars.DataFrame({"a": [[1], [2]]}))


def test_labels_that_numpy_would_change_stay_themselves():
    assert label_array(("u", "u\0")).tolist() == ["u", "u\0"] and label_array(("u", "v")).dtype.kind == "U"
    assert [type(label) for label in label_array((-1, 2**63)).tolist()] == [int, int]
    assert decode(np.array([[0], [1]]), Schema(("a",), (("", "\0"),)))["a"].tolist() == ["", "\0"]


def test_targets():
    codes, states = encode_target(["b", "a", "b"], "y")
    assert codes.tolist() == [1, 0, 1] and states == ("a", "b")
    ordered = pd.Categorical(["b", "a"], categories=["c", "b", "a"])
    for y in (ordered, pd.Series(ordered), pd.Index(ordered)):
        assert encode_target(y, "y")[1] == ("c", "b", "a")
    for y in (7, "word", {"b", "a"}, {0: "a"}):
        with pytest.raises(ValueError, match="cannot read a column"):
            encode_target(y, "y")
    with pytest.raises(ValueError, match="'y' has no rows; declare"):
        encode_target([], "y")
    assert encode_target(["c", "a"], "y", ["a", "b"], unknown="missing")[0].tolist() == [-1, 0]
    with pytest.raises(ValueError, match="target 'y' has 1 missing value"):
        encode_target(["b", None], "y")
    with pytest.raises(ValueError, match="holds 'c', which state_names\\['y'\\] does not list"):
        encode_target(["c"], "y", ["a", "b"])


@pytest.mark.parametrize("n_columns", [3, WIDE])
@pytest.mark.parametrize("kind", ["text", "category"])
def test_unknown_values_are_counted_column_by_column(n_columns, kind):
    known = pd.DataFrame({f"c{i}": ["a", "b", "a", "b"] for i in range(n_columns)})
    new = known.assign(c0=["z", "b", "y", None], c2=["b", "b", "q", "a"]).astype("str" if kind == "text" else kind)
    new["c0"] = new["c0"].mask([False, False, False, True])
    with pytest.warns(UserWarning) as caught:
        codes = encode_like(new, encode(known).schema, "missing")
    (message,) = [str(warning.message) for warning in caught]
    assert re.match(
        r"2 columns hold values unseen in fit: 'c0' \(2, such as '[yz]'\), 'c2' \(1, such as 'q'\);", message
    )
    assert codes[:, 0].tolist() == [-1, 1, -1, -1] and codes[:, 2].tolist() == [1, 1, -1, 0]
    assert caught[0].filename == __file__  # it points here, not into the package
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode_like(new, encode(known).schema, "missing", quiet=True)
        # a category that no row holds is no unknown value
        encode_like(known.astype(pd.CategoricalDtype(["a", "b", "never"])), encode(known).schema, "missing")


def test_idle_columns_stay_and_are_warned_of_once():
    frame = pd.DataFrame({"a": [1, 2, 1], "e": [None] * 3, "f": [np.nan] * 3, "k": ["x"] * 3, "d": [None] * 3})
    with pytest.warns(UserWarning) as caught:
        table = encode(frame, {"d": ["u", "v"]})
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("column 'k' holds one value only and columns 'e', 'f', 'd' hold no value in these rows")
    assert table.schema.states == ((1, 2), (NO_VALUE,), (NO_VALUE,), ("x",), ("u", "v"))
    np.testing.assert_array_equal(encode_like(frame, table.schema), table.codes)
    pd.testing.assert_frame_equal(
        decode(table.codes, table.schema)[["e", "f", "d"]].isna(), frame[["e", "f", "d"]].isna()
    )
