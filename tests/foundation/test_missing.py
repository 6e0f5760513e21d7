"""Missing as a value: which columns get the state, what it is called, and that an unseen value is not a missing one."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma.foundation.tables.missing import add_missing_state, mark_missing, with_missing_state
from pgm_bma.foundation.tables.table import encode, encode_like

FRAME = pd.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 1], "c": ["missing", "z", None]})


def test_columns_with_gaps_get_one_more_state():
    read = encode(FRAME)
    before = read.codes.copy()
    schema, codes, columns = add_missing_state(read.schema, read.codes)
    assert schema.states == (("x", "y", "missing"), (1, 2), ("missing", "z", "missing_"))
    assert codes.tolist() == [[0, 0, 0], [2, 1, 1], [1, 0, 2]]
    assert columns.tolist() == [0, 2]
    assert np.array_equal(read.codes, before)  # the caller's codes are not written to
    assert with_missing_state(read.schema, columns) == schema


@pytest.mark.filterwarnings("ignore:.*unseen in fit")  # expected of these rows
@pytest.mark.parametrize("as_array", [False, True])
def test_an_unseen_value_is_not_missing(as_array):
    read = encode(FRAME)
    columns = add_missing_state(read.schema, read.codes)[2]
    rows = pd.DataFrame({"a": [None, "new", "y"], "b": [None, 2, 9], "c": ["z", None, "new"]}, dtype=object)
    rows = rows.to_numpy() if as_array else rows[["c", "a", "b"]]  # columns go by name
    codes = mark_missing(rows, encode_like(rows, read.schema, "missing"), read.schema, columns)
    assert codes.tolist() == [[2, -1, 1], [-1, 1, 2], [1, -1, -1]]
