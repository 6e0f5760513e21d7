"""What hostile use once found and no other folder's tests hold: it hung, took all memory, or changed what a name means."""

import time

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.runtime.archive import read_archive, write_archive


@pytest.mark.parametrize(
    "open_text, n", [("property a ", 20_000), ("/* ", 40_000), ("// ", 40_000), ("{ ", 40_000), ('"', 40_000)]
)
def test_unclosed_things_of_a_network_file_are_read_in_linear_time(open_text, n, tmp_path):
    """Over 30 s each: the time was that of the square."""
    path = tmp_path / "x.bif"
    path.write_text("network n {\n}\nvariable a {\n  type discrete [ 2 ] { x, y };\n" + open_text * n)
    start = time.process_time()
    with pytest.raises(ValueError, match=r"x\.bif"):
        pgm_bma.read_bif(path)
    assert time.process_time() - start < 5, "a tenth of a second is usual"


@pytest.mark.parametrize("name", ["predict", "fit", "get_params", "__class__", "_log_joint", "model_"])
def test_a_file_cannot_put_its_own_thing_in_place_of_a_method(name, tmp_path):
    path = tmp_path / "file"
    pgm_bma.save(pgm_bma.TANClassifier(), path)
    saved = read_archive(path.read_bytes())
    key, fields = saved.document["estimator"]["v"]
    changed = {"t": "estimator", "v": [key, [*fields, [name, 3]]]}
    write_archive(path, saved.document | {"estimator": changed}, [])
    with pytest.raises(ValueError, match="file is damaged"):
        pgm_bma.load(path)


def test_a_column_of_ten_thousand_states_is_refused_by_size(recwarn):
    """Gigabytes for a dense product."""
    X = pd.DataFrame({"few": ["u", "v"] * 5000, "many": pd.Categorical(np.arange(10_000).astype(str))})
    y = pd.Series(np.arange(10_000) % 2, name="y")
    with pytest.raises(ValueError, match=r"10002 states and 2 classes make 2\.0e\+08 pair counts, more than 6\.7e\+07"):
        pgm_bma.TANClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"'many'.*10000.*merge rare states"):
        pgm_bma.StructuralEMClusterer(2).fit(X)


def test_thousands_of_columns_are_refused_before_the_work():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (20, 3000))).add_prefix("x")
    with pytest.raises(ValueError, match=r"X has 3000 columns; .* the limit is 1500: select columns first"):
        pgm_bma.ForestAveragedClassifier().fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(
    "kind", ["LatentClassClusterer", "EMAClusterer", "StructuralEMClusterer", "ForestAveragedClusterer"]
)
def test_the_cluster_must_have_a_name(kind):
    X = pd.DataFrame({"a": ["u", "v"] * 10, "b": ["x", "y", "y", "x"] * 5})
    with pytest.raises(ValueError, match="cluster_name=None"):
        getattr(pgm_bma, kind)(2, cluster_name=None).fit(X)


@pytest.mark.parametrize("kind", ["AveragedNaiveBayesClassifier", "KikuchiBayesClassifier", "AdditiveBayesClassifier"])
@pytest.mark.parametrize("columns", [pd.DataFrame({"a": [1]}), np.zeros((2, 2)), [[]], [([],)], 3, "a"], ids=repr)
def test_what_is_no_list_of_columns_is_refused(kind, columns):
    """A table was asked for its truth value, a list in a list for its hash."""
    X, y = pd.DataFrame({"a": [1, 2] * 10, "b": ["x", "y", "y", "x"] * 5}), ["p", "q"] * 10
    with pytest.raises(ValueError, match=r"numeric_columns (must be a list of columns|names .* which is not a column)"):
        getattr(pgm_bma, kind)(numeric_columns=columns).fit(X, y)


@pytest.mark.parametrize("name", ["MDLDiscretizer", "FrequencyDiscretizer", "WidthDiscretizer"])
def test_a_column_name_that_is_no_text_stays_as_it_is(name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=pd.Index(["\ud800", "b"], dtype=object))
    out = getattr(pgm_bma, name)().fit(X, rng.integers(0, 2, 60)).transform(X)
    assert list(out) == list(X) and isinstance(out["\ud800"].dtype, pd.CategoricalDtype)


def test_a_covariate_of_such_a_name_is_refused():
    rng = np.random.default_rng(0)
    known = rng.integers(0, 2, 200)
    X = pd.DataFrame(np.where(rng.random((200, 4)) < 0.9, known[:, None], 1 - known[:, None]), columns=list("abcd"))
    clusterer = pgm_bma.LatentClassClusterer(2, random_state=0).fit(X)
    given = pd.DataFrame(rng.normal(size=(200, 2)), columns=pd.Index(["\ud800", "b"], dtype=object))
    with pytest.raises(ValueError, match=r"ud800.*rename the column"):
        pgm_bma.three_step(clusterer, X, covariates=given)
