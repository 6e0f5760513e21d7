"""Two stages of starts, and their table."""

import numpy as np
import pytest

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.numbers.starts import STARTS_DOC, finish_best, starts_table


def recorder(survivors):
    calls = []

    def finish(positions):
        calls.append(positions.tolist())
        return np.isin(positions, survivors)

    return finish, calls


def test_the_best_starts_are_finished_and_the_dead_come_last():
    scores = np.array([1.0, 5.0, np.nan, 4.0, 9.0])
    alive = np.array([True, True, True, True, False])
    finish, calls = recorder([1])
    finished = finish_best(scores, alive, 2, finish)
    assert calls == [[1, 3]] and finished.tolist() == [False, True, False, True, False]
    finish, calls = recorder([2])  # nobody survives: the next ones get their turn
    finish_best(scores, alive, 2, finish)
    assert calls == [[1, 3], [0, 2]]
    finish, calls = recorder([])
    assert finish_best(scores, alive, 2, finish).all() and calls == [[1, 3], [0, 2], [4]]
    finish, calls = recorder([0])
    assert finish_best(scores, alive, None, finish).all() and calls == [[0, 1, 2, 3, 4]]
    assert finish_best(scores, alive, 50, finish).all()


def test_columns_of_starts():
    table = starts_table([1.0, 2.0], [True, False], [3, 4], [0, 1], [False, True], log_likelihood=[5.0, 6.0])
    assert list(table) == ["start", "stage", "score", "log_likelihood", "converged", "n_iter", "weight"]
    assert table["stage"].tolist() == [1, 2] and starts_table([1.0], [True], [3], [1])["stage"].tolist() == [2]


def test_docstring_parts_are_filled_in():
    @fill(starts_=STARTS_DOC)
    class Face:
        """Text {starts_} end."""

    assert "One line per start" in Face.__doc__ and "{" not in Face.__doc__
    with pytest.raises(TypeError):
        fill(STARTS_DOC)
