"""Rules of arrays, numbers and lists in saved files, with shapes written in symbols (`pgm_bma.files.invariants`)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pgm_bma.foundation.runtime.archive import Damaged

NAN, NEGATIVE_INFINITY = float("nan"), -float("inf")
_SUM, _SLACK = 1e-6, 1e-9  # what rounding may leave of a sum of probabilities, and of a bound
_LARGEST = 1e150  # of numbers: a product of two is finite
_FINITE = float(np.finfo(float).max)
_SHARED = ("n", "S", "k", "v", "cards", "starts", "variable_cards", "numbers", "n_numbers", "arcs", "lines", "profiled")


class Scope(dict):
    """Symbols and what they stand for."""

    def inner(self):
        """For a record inside: it shares the symbols of the estimator and binds its own."""
        return Scope({name: self[name] for name in _SHARED if name in self})

    def size(self, symbol, found):
        """Return what a symbol of a shape stands for; an unknown one is bound to `found`."""
        if symbol == "*":
            return found
        if symbol.isdigit():
            return int(symbol)
        name, sign, step = symbol.partition("+") if "+" in symbol else symbol.partition("-")
        shift = int(sign + step) if sign else 0
        return self.setdefault(name, found - shift) + shift


@dataclass(frozen=True)
class Array:
    """An array: its shape in symbols, its kind ("f" float64, "i" whole, "b" truth values), bounds, the axis that sums to one.

    below : symbol of the number, or numbers of the columns, that all values are below     same : symbol of what the values are
    empty : values that need not be in the bounds (-1, nan, -inf)
    by_state : the last axis are the states of all columns, and those of each column sum to one     log : of logarithms
    """

    shape: str
    kind: str = "f"
    low: float = -_LARGEST
    high: float = _LARGEST
    below: str = ""
    empty: tuple = ()
    sums: int | None = None
    same: str = ""
    by_state: bool = False
    log: bool = False

    def __call__(self, name, value, scope):
        want(isinstance(value, np.ndarray), name, "is no array")
        symbols = self.shape.split()
        want(value.ndim == len(symbols), name, f"has shape {value.shape}, not ({', '.join(symbols)})")
        sizes = tuple(scope.size(symbol, found) for symbol, found in zip(symbols, value.shape))
        want(value.shape == sizes, name, f"has shape {value.shape}, not {sizes}")
        kinds = {"f": ("<f8",), "i": ("<i4", "<i8"), "b": ("|b1",)}[self.kind]
        want(value.dtype.newbyteorder("<").str in kinds and value.dtype.isnative, name, f"is of type {value.dtype}")
        if self.kind == "b":
            return
        high = scope[self.below] - 1 if self.below else self.high
        want(not self.same or np.array_equal(value, scope[self.same]), name, "does not fit the states")
        good = (value >= self.low - _SLACK) & (value <= high + _SLACK)
        for each in self.empty:
            good |= np.isnan(value) if each != each else value == each
        if not good.all():
            raise Damaged(f"{name} holds {value[~good][0]}")
        if self.sums is not None:
            want_sums(name, value.sum(axis=self.sums))
        if self.by_state:
            for part in np.split(np.exp(value) if self.log else value, scope["starts"][1:-1], axis=-1):
                want_sums(name, part.sum(axis=-1) if part.shape[-1] else 1.0)


def Probability(shape, sums=None, **more):
    """An array of probabilities."""
    return Array(shape, low=0.0, high=1.0, sums=sums, **more)


def Log(shape):
    """An array of logarithms, that of zero among them."""
    return Array(shape, empty=(NEGATIVE_INFINITY,))


@dataclass(frozen=True)
class Maybe:
    """None, or what a rule wants."""

    rule: Any

    def __call__(self, name, value, scope):
        if value is not None:
            self.rule(name, value, scope)


@dataclass(frozen=True)
class Each:
    """A list or tuple of what a rule wants; symbols are bound for each anew."""

    rule: Any
    length: str = "*"

    def __call__(self, name, value, scope):
        want(isinstance(value, (list, tuple)), name, "is no list")
        want(len(value) == scope.size(self.length, len(value)), name, f"has {len(value)} entries")
        for i, item in enumerate(value):
            self.rule(f"{name}[{i}]", item, Scope(scope))


@dataclass(frozen=True)
class Indices:
    """A list or tuple of different positions, whole numbers from 0 to below what a symbol stands for."""

    below: str
    length: int | None = None

    def __call__(self, name, value, scope):
        want_indices(name, value, scope[self.below], self.length)


@dataclass(frozen=True)
class Long:
    """Anything of one axis and a length in symbols."""

    length: str

    def __call__(self, name, value, scope):
        found = np.shape(value) if isinstance(value, np.ndarray) else (len(value),)
        want(found == (scope.size(self.length, found[0]),), name, f"has not {scope.get(self.length)} entries")


@dataclass(frozen=True)
class Rising:
    """Finite numbers that rise, of any size, because they are only compared; there may be none."""

    def __call__(self, name, value, scope):
        Array("*", low=-_FINITE, high=_FINITE)(name, value, Scope())
        want((value[1:] > value[:-1]).all(), name, "does not rise")


@dataclass(frozen=True)
class Scalar:
    """A number, or None or NaN where `empty`."""

    low: float = -_LARGEST
    high: float = _LARGEST
    whole: bool = False
    empty: bool = False

    def __call__(self, name, value, scope):
        if self.empty and (value is None or value != value):
            return
        kinds = (int, np.integer) if self.whole else (int, float, np.integer, np.floating)
        good = isinstance(value, kinds) and not isinstance(value, bool) and self.low <= value <= self.high
        want(good, name, f"is {value!r:.60}")


def want(good, name, words):
    """A `Damaged` that names the field, unless it is good."""
    if not good:
        raise Damaged(f"{name} {words}")


def want_indices(name, values, size, length=None):
    """Whole numbers of Python, each once, in [0, size)."""
    good = isinstance(values, (list, tuple)) and all(type(i) is int and 0 <= i < size for i in values)
    want(
        good and len(set(values)) == len(values), name, f"is {values!r:.60}, not different positions of {size} columns"
    )
    want(length is None or len(values) == length, name, f"has not {length} entries")


def want_acyclic(name, parents):
    """parents : for every node those above it, in range."""
    left, placed = set(range(len(parents))), set[int]()
    while left:
        free = {node for node in left if placed.issuperset(parents[node])}
        want(bool(free), name, "has a cycle")
        placed |= free
        left -= free


def want_sums(name, sums):
    """Sums of probabilities are one."""
    want((np.abs(sums - 1) <= _SUM).all(), name, "holds probabilities that do not sum to one")


def want_tables(name, table, sizes):
    """Probabilities of a (states of all families one after another, clusters) table; sizes : (parent states, states) of each."""
    start = 0
    for rows, states in sizes:
        block = table[start : start + rows * states].reshape(rows, states, -1)
        start += rows * states
        want_sums(name, block.sum(axis=1) if states else 1.0)


TABLE = Probability("* *", sums=0)  # of a node of a network, a column per state of its parents
