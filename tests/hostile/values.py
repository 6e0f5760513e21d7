"""A fixed list of bad values, each made anew when asked for: scalars, containers, arrays, frames, networks, estimators.

`VALUES` is a dict label -> function of no arguments. They are handed, one at a time, to every argument of every public callable.
"""

import datetime
import decimal
import fractions
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.models import DiscreteBayesianNetwork
from scipy.sparse import csr_matrix

import pgm_bma

NAN, INF = float("nan"), float("inf")


def frame(**columns):
    return lambda: pd.DataFrame(columns)


def column(cells, n=12):
    """Two columns, one of them with these cells, repeated to `n` rows."""
    return lambda: pd.DataFrame({"a": (cells * n)[:n], "b": ["u", "v"] * (n // 2)}, dtype=object)


def typed(values, dtype):
    return lambda: pd.DataFrame({"a": pd.Series(values * 4, dtype=dtype), "b": ["u", "v"] * (len(values) * 2)})


def named(*names):
    """A table with these column names."""
    cells = np.random.default_rng(0).integers(0, 3, (12, len(names)))
    return lambda: pd.DataFrame(cells, columns=pd.Index(list(names), dtype=object, tupleize_cols=False))


def array(values, dtype=None):
    return lambda: np.array(values, dtype=dtype)


SCALARS = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    -(10**18),
    10**400,
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    1e-320,
    -1e-320,
    1e300,
    NAN,
    INF,
    -INF,
    1j,
    complex(NAN, 1),
    decimal.Decimal("NaN"),
    decimal.Decimal("1e500"),
    decimal.Decimal("0.5"),
    fractions.Fraction(1, 3),
    np.int8(-128),
    np.uint64(2**64 - 1),
    np.float16("nan"),
    np.float32(0.5),
    np.bool_(True),
    np.datetime64("NaT"),
    np.timedelta64(3, "D"),
    pd.NA,
    pd.NaT,
    pd.Timestamp("2020-02-30".replace("30", "29")),
    pd.Interval(0, 1),
    datetime.date(1, 1, 1),
]
TEXTS = ["", " ", "nan", "a", "zz", "\x00", "\ud800", "caf\u00e9", "=1+1", "../..", "a" * 100_000, b"", b"\xff\xfe"]
CONTAINERS = {
    "()": lambda: (),
    "(1,)": lambda: (1,),
    "[]": lambda: [],
    "[[]]": lambda: [[]],
    "[[], []]": lambda: [[], []],
    "[None]": lambda: [None],
    "['a']": lambda: ["a"],
    "['a', 'a']": lambda: ["a", "a"],
    "['zz']": lambda: ["zz"],
    "[['a', 'b'], ['c']]": lambda: [["a", "b"], ["c"]],
    "[[1, 2], [3]]": lambda: [[1, 2], [3]],
    "[('a', 'b')]": lambda: [("a", "b")],
    "[('a', 'a')]": lambda: [("a", "a")],
    "nested 100 deep": lambda: _nested(100),
    "{}": dict,
    "{'a': None}": lambda: {"a": None},
    "{None: 1}": lambda: {None: 1},
    "{'zz': [1]}": lambda: {"zz": [1]},
    "{'a': []}": lambda: {"a": []},
    "{'a': ['x', 'x']}": lambda: {"a": ["x", "x"]},
    "{'a': [[]]}": lambda: {"a": [[]]},
    "{'a': nan}": lambda: {"a": NAN},
    "{'a': -1}": lambda: {"a": -1},
    "lists of two lengths": lambda: {"a": [1, 2], "b": [1]},
    "set()": set,
    "{1, 'a'}": lambda: {1, "a"},
    "frozenset()": frozenset,
    "range(3)": lambda: range(3),
    "iterator": lambda: iter([1, 2]),
    "generator": lambda: (i for i in range(3)),
    "function": lambda: lambda *_: 1 / 0,
    "object()": object,
    "a class": lambda: dict,
    "...": lambda: ...,
    "slice": lambda: slice(3),
    "path": lambda: Path("/nowhere/at/all"),
    "folder": lambda: Path("/"),
    "generator of numbers": lambda: np.random.default_rng(0),
}
ARRAYS = {
    "0-d": array(5),
    "no numbers": array([]),
    "0 x 0": lambda: np.zeros((0, 0)),
    "0 x 3": lambda: np.zeros((0, 3)),
    "3 x 0": lambda: np.zeros((3, 0)),
    "1 x 1": lambda: np.zeros((1, 1)),
    "12 zeros": lambda: np.zeros(12),
    "12 ones": lambda: np.ones(12),
    "12 rows": lambda: np.arange(24).reshape(12, 2) % 3,
    "3-d": lambda: np.zeros((2, 2, 2)),
    "33 dimensions": lambda: np.zeros((1,) * 33),
    "12 NaN": lambda: np.full(12, NAN),
    "12 inf": lambda: np.full(12, INF),
    "12 negative": lambda: -np.ones(12),
    "12 of 1e300": lambda: np.full(12, 1e300),
    "12 of 5e-324": lambda: np.full(12, 5e-324),
    "NaN 12 x 2": lambda: np.full((12, 2), NAN),
    "inf 12 x 2": lambda: np.full((12, 2), INF),
    "complex": lambda: np.ones((12, 2), complex),
    "texts": array([["a", "b"]] * 12),
    "bytes": array([[b"a", b"\xff"]] * 12),
    "objects": lambda: np.array([[None, {}], [[], ()]] * 6, dtype=object),
    "dates": lambda: np.zeros((12, 2), "datetime64[s]"),
    "spans": lambda: np.zeros((12, 2), "timedelta64[s]"),
    "records": lambda: np.zeros(12, dtype=[("a", int), ("b", float)]),
    "masked": lambda: np.ma.masked_all((12, 2)),
    "sparse": lambda: csr_matrix(np.eye(12)),
    "read-only": lambda: _read_only(),
    "float16": lambda: np.arange(24, dtype=np.float16).reshape(12, 2) % 3,
    "big-endian": lambda: (np.arange(24).reshape(12, 2) % 3).astype(">i4"),
    "2**63": lambda: np.full((12, 2), 2**63, np.uint64),
    "one wrong label": array(["x", "y"] * 5 + ["x", "zz"]),
    "12 labels": array(["x", "y"] * 6),
    "one label": array(["x"] * 12),
    "11 labels": array((["x", "y"] * 6)[:11]),
}
FRAMES = {
    "empty frame": frame(),
    "no rows": frame(a=[], b=[]),
    "one row": frame(a=[1], b=[2], c=[0]),
    "one column": column([1, 2, 3]),
    "no columns": lambda: pd.DataFrame(index=range(12)),
    "all missing": frame(a=[None] * 12, b=[NAN] * 12),
    "constant": frame(a=[1] * 12, b=["u"] * 12),
    "ids": frame(a=range(300), b=range(300, 600)),
    "names twice": named("a", "a", "b"),
    "name None": named(None, "b", "c"),
    "name NaN": named(NAN, "b", "c"),
    "name empty": named("", "b", "c"),
    "numbers as names": named(0, 1, 2),
    "mixed names": named(0, "0", "b"),
    "tuples as names": named(("a", 1), ("a", 2), "c"),
    "named cluster and class": named("cluster", "class", "a"),
    "name of a surrogate": named("\ud800", "b", "c"),
    "two header lines": lambda: pd.DataFrame(np.eye(12, 2), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
    "index twice": lambda: pd.DataFrame({"a": [1, 2] * 6, "b": [0, 1, 1] * 4}, index=[0] * 12),
    "wide": lambda: pd.DataFrame(np.eye(2, 120, dtype=int)),
    "lists": column([[1], [2]]),
    "dicts": column([{}, {1: 2}]),
    "sets": column([{1}, set()]),
    "types": column([1, "1", 1.0, True, b"1", None]),
    "True and 1": column([True, 1, 1.0, 0, False]),
    "huge": column([10**30, -(10**30), 0]),
    "inf": column([INF, -INF, 1.0]),
    "signed zeros": column([0.0, -0.0]),
    "surrogates": column(["\ud800", "\udfff"]),
    "line ends": column(["a\n", "a\r", "a\x00"]),
    "NaNs of all kinds": column([None, NAN, pd.NA, pd.NaT, "x"]),
    "decimals": column([decimal.Decimal("NaN"), decimal.Decimal(1), decimal.Decimal("sNaN")]),
    "complex cells": column([1j, 2 + 0j]),
    "frames in cells": column([np.zeros(2), np.ones(2)]),
    "objects without order": column([object(), object()]),
    "types as cells": column([int, str]),
    "categories unused": typed(["x", "y"], pd.CategoricalDtype(["z", "y", "x"])),
    "no categories": typed([None, None], pd.CategoricalDtype([])),
    "Int64": typed([1, None], "Int64"),
    "boolean": typed([True, None], "boolean"),
    "dates and zones": typed(pd.date_range("2020", periods=3, tz="UTC").tolist(), "datetime64[ns, UTC]"),
    "periods": typed(list(pd.period_range("2020", periods=3)), "period[D]"),
    "sparse cells": typed([0, 1], pd.SparseDtype(int, 0)),
    "intervals": typed(list(pd.interval_range(0, 3)), "interval"),
    "Series": lambda: pd.Series([0, 1] * 6, name="t"),
    "empty Series": lambda: pd.Series([], dtype=object),
    "Index": lambda: pd.Index(range(12)),
}
OBJECTS = {
    "network without nodes": DiscreteBayesianNetwork,
    "network without tables": lambda: DiscreteBayesianNetwork([("a", "b")]),
    "network of others": lambda: DiscreteBayesianNetwork([("p", "q")]),
    "cycle": lambda: nx.DiGraph([("a", "b"), ("b", "a")]),
    "undirected": lambda: nx.Graph([("a", "b")]),
    "loop": lambda: nx.DiGraph([("a", "a")]),
    "empty graph": nx.DiGraph,
    "not fitted": lambda: pgm_bma.NaiveBayesClassifier(),
    "clusterer not fitted": lambda: pgm_bma.EMAClusterer(),
    "class of an estimator": lambda: pgm_bma.EMAClusterer,
}


def _nested(depth):
    found = []
    for _ in range(depth):
        found = [found]
    return found


def _read_only():
    found = np.arange(24).reshape(12, 2) % 3
    found.flags.writeable = False
    return found


def _label(value):
    text = repr(value)
    return text if len(text) < 40 else text[:20] + "..."


VALUES = {f"{type(value).__name__} {_label(value)}": (lambda value=value: value) for value in [*SCALARS, *TEXTS]}
VALUES |= CONTAINERS | ARRAYS | FRAMES | OBJECTS
