"""Losses of the Kikuchi-Bayes paper refuse what would make them a silent wrong number."""

import math

import numpy as np
import pandas as pd
import pytest

from pgm_bma.evaluation import capped_log_loss, paper_error

HALF = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    "error, n_classes", [(0.5, 0), (0.5, 1), (0.5, 2.5), (0.5, "two"), (1.5, 2), (-0.1, 2), (math.nan, 2)]
)
def test_paper_error_refuses_what_is_no_error_or_no_number_of_classes(error, n_classes):
    with pytest.raises(ValueError, match="must be"):
        paper_error(error, n_classes)


@pytest.mark.parametrize(
    "proba",
    [
        [[50, 50], [90, 10]],
        [[-0.5, 1.5], [0.5, 0.5]],
        [[math.nan, 1], [0.5, 0.5]],
        [[0.2, 0.2], [0.5, 0.5]],
        np.log(HALF),
    ],
    ids=["percent", "negative", "nan", "no sum of one", "logs"],
)
def test_improper_probabilities_are_refused(proba):
    with pytest.raises(ValueError, match="row 0 of proba is not a probability distribution"):
        capped_log_loss(["a", "b"], proba, ["a", "b"])


@pytest.mark.parametrize("proba", [[], [[0.5, 0.5]], [["x", "y"], ["x", "y"]], [[0.5], [0.5]], None])
def test_probabilities_of_another_shape_are_refused(proba):
    with pytest.raises(ValueError, match="proba"):
        capped_log_loss(["a", "b"], proba, ["a", "b"])


def test_no_rows_no_mean():
    with pytest.raises(ValueError, match="0 rows in y"):
        capped_log_loss([], np.empty((0, 2)), ["a", "b"])


def test_unknown_classes_count_with_the_floor_and_are_told():
    with pytest.warns(UserWarning, match=r"1 of 2 rows of y have a class that is not among .* the first 'c'") as caught:
        loss = capped_log_loss(["a", "c"], HALF, ["a", "b"], floor=0.25)
    assert math.isclose(loss, -(math.log(0.5) + math.log(0.25)) / 2)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("gone", [None, math.nan, pd.NA])
def test_missing_labels_are_refused(gone):
    with pytest.raises(ValueError, match="1 missing labels, the first in row 1"):
        capped_log_loss(np.array(["a", gone], dtype=object), HALF, ["a", "b"])


@pytest.mark.parametrize(
    "keywords", [{"floor": 0}, {"floor": -1}, {"floor": 2}, {"sample_weight": [1, -1]}, {"sample_weight": [0, 0]}]
)
def test_floor_and_weights_are_checked(keywords):
    with pytest.raises(ValueError, match=next(iter(keywords))):
        capped_log_loss(["a", "b"], HALF, ["a", "b"], **keywords)


def test_weights_are_repetitions():
    proba = [[0.9, 0.1], [0.4, 0.6]]
    repeated = capped_log_loss(["a", "b", "b"], [proba[0], proba[1], proba[1]], ["a", "b"])
    assert math.isclose(capped_log_loss(["a", "b"], proba, ["a", "b"], sample_weight=[1, 2]), repeated)
