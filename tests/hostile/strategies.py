"""Bad values that nobody thought of: hypothesis strategies for anything an argument may be handed, and for whole tables.

Whole numbers are small, negative or huge: between them lie honest requests for much work.
"""

import datetime
import string

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

N_ROWS = 12  # those of the good calls

LETTERS = string.printable.replace("/", "") + "\x00\x85\u00e9\u4e2d\u202e\U0001f600"  # no path leaves the test's folder
whole = st.integers(-(2**70), 13) | st.integers(2**60, 2**70)
words = st.text(LETTERS, max_size=6)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    whole,
    st.floats(),
    st.complex_numbers(),
    words,
    st.binary(max_size=3),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.datetimes(datetime.datetime(1600, 1, 1)),
    st.timedeltas(),
    st.sampled_from([pd.NA, pd.NaT, np.datetime64("NaT"), np.float16("inf"), np.int8(-1), ..., int, object]),
)
keys = st.one_of(words, whole, st.none(), st.sampled_from(["a", "b", "c", "t"]))
containers = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=3),
        st.sampled_from(["a", "b", "c"]).map(lambda name: [name]),
    ),
    max_leaves=6,
)
sides = st.sampled_from([0, 1, 2, 3, 11, N_ROWS])
dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.floating_dtypes(),
    hnp.complex_number_dtypes(),
    hnp.unicode_string_dtypes(max_len=3),
    hnp.datetime64_dtypes(max_period="s", min_period="s"),
)
arrays = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, st.lists(sides, max_size=3).map(tuple)))


@st.composite
def columns(draw, n_rows=N_ROWS):
    """One column: a few drawn cells, repeated; as objects, as a type of numpy's, or as a categorical."""
    pool = draw(st.lists(scalars, min_size=1, max_size=4))
    kind = draw(
        st.sampled_from(["words", "categories", "objects", "numbers"])
    )  # a failure is made simple from the left
    if kind == "numbers":
        pool = draw(hnp.arrays(draw(hnp.integer_dtypes() | hnp.floating_dtypes()), 3)).tolist()
    if kind == "words":
        pool = ["u", "v", draw(words | st.none())]
    places = draw(st.lists(st.integers(0, len(pool) - 1), min_size=n_rows, max_size=n_rows))
    if kind == "categories":
        states = draw(st.lists(words, min_size=len(pool), max_size=len(pool) + 1, unique=True))
        return pd.Series(pd.Categorical.from_codes([place - 1 for place in places], states))
    cells = np.empty(n_rows, dtype=object)
    for row, place in enumerate(places):
        cells[row] = pool[place]
    return pd.Series(cells if kind == "objects" else [*cells])


@st.composite
def frames(draw):
    """A table: columns of all kinds, names that may repeat or be no words."""
    n_rows = draw(st.sampled_from([N_ROWS] * 10 + [1, 0]))
    found = draw(st.lists(columns(n_rows), min_size=1, max_size=4))
    names = ["a", "b", "c", "t"][: len(found)]
    if draw(st.booleans()):
        names = draw(st.lists(keys, min_size=len(found), max_size=len(found)))
    frame = pd.DataFrame({place: column for place, column in enumerate(found)}, index=range(n_rows))
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    return frame


good_weights = st.none() | st.lists(st.floats(0, 1e9), min_size=N_ROWS, max_size=N_ROWS)
weights = good_weights | good_weights | st.lists(st.floats() | whole, min_size=N_ROWS, max_size=N_ROWS)


def targets(n_rows):
    labels = st.lists(st.sampled_from("pqr"), min_size=n_rows, max_size=n_rows)
    return labels | labels.map(np.array) | columns(n_rows) | st.sampled_from(["t", None])


anything = st.one_of(scalars, containers, arrays, columns(), frames())
