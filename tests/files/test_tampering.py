"""A checksum is no seal: files with one array changed and fitting checksums load with sound numbers, or not at all."""

import random

import numpy as np
import pytest

import pgm_bma
from tests.files.tampering import read_parts, tampered, write_tampered
from tests.saved.make import ALL, KIND, answers, fitted

N_TRIED = 30  # changes of each estimator; all of them were tried while this was written


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_a_changed_array_is_refused_at_load_or_gives_sound_numbers(name, tmp_path):
    path = tmp_path / "changed.pgm"
    pgm_bma.save(fitted(name), path)
    want, changes = answers(name, pgm_bma.load(path)), list(tampered(*read_parts(path)))
    refused = 0
    for what, *parts in random.Random(name).sample(changes, min(N_TRIED, len(changes))):
        write_tampered(path, *parts)
        try:
            estimator = pgm_bma.load(path)
        except ValueError as error:
            refused += 1
            assert "changed.pgm is damaged" in str(error)
            continue
        got = answers(name, estimator)
        assert got.shape == want.shape and np.isfinite(got).all(), what
        if KIND[name] in ("classifier", "clusterer"):
            np.testing.assert_allclose(got.sum(axis=1), 1, err_msg=what)
    assert refused > min(N_TRIED, len(changes)) / 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "where", "value", "words"),
    [
        ("TANClassifier", "_result.parents", 10**6, "parents holds 1000000"),
        ("OrderAveragedClassifier", "_average.states", 5, "states holds 5"),
        ("FixedOrderClassifier", "_average.training.codes", 9, "codes holds 9"),
        ("LatentClassClusterer", "_result.state_start", 3, "state_start does not fit the states"),
        ("NaiveBayesClassifier", "_result.tables", 0.9, "tables holds probabilities that do not sum to one"),
        ("KikuchiBayesClassifier", "_result.terms.layout.offsets", 4, "offsets does not fit the sets"),
        ("ForestAveragedClassifier", "_result.cardinalities", 7, "cardinalities does not fit the states"),
        ("AdditiveBayesClassifier", "_result.0.terms.columns", 4, "columns holds 4"),
        ("EMEstimator", "parameters_.0", np.nan, "the table of 'k' holds nan"),
    ],
)
def test_the_error_names_the_array(name, where, value, words, tmp_path):
    estimator, path = fitted(name), tmp_path / "changed.pgm"
    target = estimator
    for part in where.split("."):
        target = target[int(part)] if part.isdigit() else getattr(target, part)
    array = target.values if hasattr(target, "values") else target
    array.flat[0] = value
    pgm_bma.save(estimator, path)
    with pytest.raises(ValueError, match=f"changed.pgm is damaged: .*{words}"):
        pgm_bma.load(path)
