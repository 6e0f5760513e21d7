"""What once came back in the words of another library: each cause, at the smallest call that shows it."""

import decimal
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy.sparse import csr_matrix

import pgm_bma
from pgm_bma import evaluation, plotting
from pgm_bma.foundation.runtime.atomic import file_path
from tests.hostile.callables import SMALL, fitted, network, table, target

HALF = "\ud800"  # of a pair of UTF-16
SIGNALLING = pd.DataFrame({"a": [decimal.Decimal("sNaN"), decimal.Decimal(1)] * 6, "b": ["u", "v"] * 6}, dtype=object)


@pytest.mark.parametrize("read", [pgm_bma.load, pgm_bma.read_bif])
@pytest.mark.parametrize(
    "path, words",
    [(HALF, "this system cannot write"), ("a\0b", "zero byte"), (b"a", "a text or a Path"), (3, "path=3")],
)
def test_names_that_no_file_can_have(read, path, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write = {pgm_bma.load: lambda: pgm_bma.save(fitted("NaiveBayesClassifier"), path)}
    for call in (lambda: read(path), write.get(read, lambda: pgm_bma.write_bif(network(), path))):
        with pytest.raises((ValueError, TypeError), match=words) as caught:
            call()
        assert not isinstance(caught.value, UnicodeError)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")
def test_names_of_files_that_are_not_utf_8_stay_good(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    pgm_bma.save(fitted("NaiveBayesClassifier"), path)
    assert pgm_bma.load(str(path)).classes_.tolist() == ["x", "y"]
    assert file_path(path) == path


@pytest.mark.parametrize("name", SMALL)
def test_a_text_that_is_none_is_refused_before_the_fit(name):
    """A fit went well, and its tables, explanations and pictures could not be made."""
    kind, y = getattr(pgm_bma, name), target()
    named, cells = table(), table().astype(object)
    named.columns = pd.Index(["a", HALF, "c"], dtype=object)
    cells["b"] = pd.Series([HALF, "v"] * 6, dtype=object)
    for X, words in (
        (named, r"column '\\ud800' has a name .*rename"),
        (cells, r"column 'b' holds '\\ud800'.*set it to NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            kind(**SMALL[name]).fit(X, y) if "Classifier" in name else kind(**SMALL[name]).fit(X)
    if "Classifier" not in name:
        return
    classes = pd.Series([HALF, "v"] * 6, dtype=object, name="t")
    for labels, words in ((classes, r"column 't' holds '\\ud800'"), (y.rename(HALF), r"column '\\ud800' has a name")):
        with pytest.raises(ValueError, match=words):
            kind(**SMALL[name]).fit(table(), labels)


@pytest.mark.parametrize("cells", [[HALF, "v"] * 6, np.array([HALF, "v"] * 6)], ids=["list", "array"])
def test_nor_does_it_pass_in_lists_and_arrays(cells):
    with pytest.raises(ValueError, match=r"'\\ud800', half a pair of UTF-16"):
        pgm_bma.NaiveBayesClassifier().fit([[cell, "a"] for cell in cells], target())
    with pytest.raises(ValueError, match=r"'\\ud800', half a pair of UTF-16"):
        pgm_bma.NaiveBayesClassifier().fit(table(), cells)
    with pytest.raises(ValueError, match=r"'\\ud800', half a pair of UTF-16"):
        fitted("NaiveBayesClassifier").predict({"a": HALF, "b": "0", "c": "0"})


def test_a_cluster_is_not_named_so_either():
    with pytest.raises(ValueError, match=r"cluster_name='\\ud800' must be the name of a node"):
        pgm_bma.EMAClusterer(2, cluster_name=HALF).fit(table())


@pytest.mark.parametrize("name", ["MDLDiscretizer", "FrequencyDiscretizer", "WidthDiscretizer"])
def test_a_signalling_nan_is_no_number(name):
    with pytest.raises(ValueError, match=r"column 'a' holds Decimal\('sNaN'\).*NaN"):
        getattr(pgm_bma, name)().fit(SIGNALLING, target()).transform(SIGNALLING)


def test_a_signalling_nan_is_no_class_and_no_covariate():
    clusterer = fitted("LatentClassClusterer")
    with pytest.raises(ValueError, match=r"'class' holds Decimal\('sNaN'\)"):
        pgm_bma.NaiveBayesClassifier().fit(table(), SIGNALLING["a"].to_numpy())
    with pytest.raises(ValueError, match=r"'a' holds Decimal\('sNaN'\)"):
        pgm_bma.three_step(clusterer, table(), covariates=SIGNALLING)
    with pytest.raises(ValueError, match=r"'a' holds Decimal\('sNaN'\)"):
        pgm_bma.three_step(clusterer, table(), outcome=SIGNALLING["a"])


def test_a_table_that_cannot_be_shown_is_refused_all_the_same():
    """The message itself raised: pandas compares the cells it prints."""
    for call in (
        lambda: pgm_bma.EMEstimator(show_progress=False).fit(SIGNALLING, table()),
        lambda: pgm_bma.effective_markov_blanket(SIGNALLING, "a"),
        lambda: plotting.plot_network(network(), highlight=SIGNALLING),
        lambda: plotting.plot_relevance(SIGNALLING),
    ):
        with pytest.raises((ValueError, TypeError), match="DataFrame"):
            call()


def test_complex_numbers_are_not_cut():
    proba, numbers = np.full((12, 2), 0.5 + 0j), pd.Series(np.arange(12) * (1 + 1j), name="z")
    with pytest.raises(ValueError, match=r"proba=.* must be an array of numbers"):
        evaluation.capped_log_loss(list(target()), proba, ["x", "y"])
    with pytest.raises(ValueError, match=r"proba=1000.* must be an array of numbers"):
        evaluation.capped_log_loss(list(target()), 10**400, ["x", "y"])
    for given in ({"covariates": numbers}, {"outcome": numbers}):
        with pytest.raises(ValueError, match=r"'z'=.* must be real numbers"):
            pgm_bma.three_step(fitted("LatentClassClusterer"), table(), **given)


@pytest.mark.parametrize("number", [np.inf, 1e300])
def test_numbers_that_are_no_classes(number):
    X, y = pd.DataFrame({"a": np.arange(40.0)}), np.repeat([number, -number], 20)
    with np.errstate(all="raise"), pytest.raises(ValueError, match=r"Unknown label type|infinity"):
        pgm_bma.MDLDiscretizer().fit(X, y)


def test_statistics_of_no_rows():
    clusterer, none = fitted("LatentClassClusterer"), table().iloc[:0]
    for call in (
        lambda: pgm_bma.three_step(clusterer, none, covariates=pd.Series([], dtype=float)),
        lambda: pgm_bma.goodness_of_fit(clusterer, none, n_bootstrap=2),
        lambda: pgm_bma.bivariate_residuals(clusterer, none),
        lambda: clusterer.score(none),
        lambda: fitted("TANClassifier").score(none, target()[:0]),
    ):
        with pytest.raises(ValueError, match="X has no rows"):
            call()


@pytest.mark.parametrize("name", [pd.NA, csr_matrix(np.eye(2)), [1], None, 3], ids=repr)
def test_what_names_no_column_or_node(name, tmp_path):
    with pytest.raises(ValueError, match=r"variables names .*not a node"):
        pgm_bma.predict_proba(network(), table().drop(columns="a"), [name])
    table().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"no column .*the columns are 'a'"):
        pgm_bma.scan_csv(tmp_path / "a.csv", columns=[name])


@pytest.mark.parametrize(
    "probabilities, words",
    [
        ([0.1, np.nan, 0.3], "hold nan in row 1"),
        ([0.1, 0.2, 1.5], "hold 1.5 in row 2"),
        ([[0.5, 0.5], [0.5, 0.5], [-1, 2]], "hold -1.0 in row 2"),
        ([0.1, 0.2], r"shape \(2,\); y_true has 3 rows"),
        (0.5, r"shape \(\)"),
        ({}, "nothing to judge"),
    ],
)
def test_pictures_of_what_are_no_probabilities(probabilities, words):
    with pytest.raises(ValueError, match=words):
        plotting.plot_calibration([0, 1, 1], probabilities)


def test_pictures_of_nothing():
    for empty in (pd.DataFrame({"a": [], "b": []}), pd.DataFrame(index=["a"])):
        with pytest.raises(ValueError, match="there is no arc to show"):
            plotting.plot_arc_posteriors(empty)
    with pytest.raises(ValueError, match="the relevance of 'a' is nan"):
        plotting.plot_interactions({("a", "b"): 0.4}, relevance={"a": np.nan})
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    ax = plotting.plot_arc_posteriors(pd.DataFrame([[0.0, 0.9], [0.1, 0.0]], pairs, pairs))
    assert [text.get_text() for text in ax.texts] == ["0.90", "0.10"]


def test_tuples_are_names_and_states():
    """Two header lines make tuples of the names; pandas makes several levels of a list of tuples."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (40, 3)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]))
    posterior = pgm_bma.OrderPosterior(random_state=0).fit(X)
    assert (posterior.edge_posterior_ + posterior.arc_spread_).equals(posterior.edge_posterior_)
    assert "OrderPosterior" in posterior._repr_html_()
    X = pd.DataFrame({"a": [("u", 1), ("v", 2)] * 20, "b": ["p", "q"] * 20})
    network = pgm_bma.LatentClassClusterer(n_clusters=2, n_init=4, random_state=0).fit(X).model_
    found = pgm_bma.predict_proba(network, X[["b"]], "a")
    assert list(found.columns) == [("u", 1), ("v", 2)] and found.columns.name == "a"
    np.testing.assert_allclose(found.to_numpy(), pgm_bma.predict_proba(network, X[["b"]], ["a"]).to_numpy(), rtol=1e-12)


@pytest.mark.parametrize("path", [b"", b"a.png", HALF + ".png", "no_folder/a.png", "a.nothing"], ids=repr)
def test_a_picture_that_cannot_be_written_leaves_nothing(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60)})
    model = pgm_bma.AdditiveBayesClassifier(random_state=0).fit(X, np.where(X["x"] > 0, "u", "v"))
    with pytest.raises((ValueError, TypeError, OSError), match=r"path=|could not be written in"):
        model.plot_terms(path=path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", [np.nan, pd.NaT, pd.NA, None], ids=repr)
def test_names_that_are_missing_values(missing):
    """The fit was done, then no node was found by such a name."""
    X = table().set_axis(pd.Index(["a", missing, "c"], dtype=object), axis=1)
    with pytest.raises(ValueError, match=r"a column has the name .*give it a text or a number"):
        pgm_bma.NaiveBayesClassifier().fit(X, target())
    if missing is not None:
        with pytest.raises(ValueError, match=r"a column has the name .*give it a text or a number"):
            pgm_bma.NaiveBayesClassifier().fit(table(), target().rename(missing))


@pytest.mark.parametrize(
    "cells, kind",
    [([[1], [2]], pyarrow.list_(pyarrow.int64())), ([{"q": 1}, {"q": 2}], pyarrow.struct({"q": "int64"}))],
)
def test_lists_in_arrow_columns_are_no_states(cells, kind):
    X = table().assign(b=pd.array(cells * 6, dtype=pd.ArrowDtype(kind)))
    for fit in (
        lambda: pgm_bma.EMAClusterer(2).fit(X),
        lambda: pgm_bma.TANClassifier().fit(table(), X["b"].rename("t")),
    ):
        with pytest.raises(ValueError, match=r"column .(b|t). holds .*cannot be a state"):
            fit()


@pytest.mark.filterwarnings("ignore:numbers of column 'a' were cut")
def test_decimals_of_arrow_with_missing_cells_are_numbers():
    """Half of the column was lost."""
    half = [decimal.Decimal("1.5"), None, decimal.Decimal("2.5"), None] * 30
    X = pd.DataFrame({"a": pd.array(half, dtype=pd.ArrowDtype(pyarrow.decimal128(5, 2)))})
    y = np.array(["p", "q", "q", "p"] * 30)
    found = pgm_bma.NaiveBayesClassifier().fit(X, y).predict_proba(X)
    plain = pgm_bma.NaiveBayesClassifier().fit(X.astype(float), y).predict_proba(X.astype(float))
    np.testing.assert_array_equal(found, plain)


def test_a_column_of_complex_numbers_is_named():
    with pytest.raises(ValueError, match="column 'b' holds complex numbers"):
        pgm_bma.TANClassifier().fit(table().assign(b=np.arange(12) * 1j), target())


@pytest.mark.parametrize("name", ["EMAClusterer", "LatentClassClusterer"])
@pytest.mark.parametrize(
    "size", [{"n_clusters": 10**8}, {"n_clusters": range(2, 10**7, 10**6), "n_init": 10}, {"n_init": 10**9}]
)
def test_tables_that_fit_no_memory_are_refused(name, size):
    """A million clusters took 9 GB."""
    with pytest.raises(
        ValueError,
        match=r"(probabilities, more than 2\.68e\+08; lower n_clusters or n_init|n_init=1000000000 must be at most)",
    ):
        getattr(pgm_bma, name)(**{"n_clusters": 2, "random_state": 0, **size}).fit(table())


def test_draws_that_fit_no_memory_are_refused():
    clusterer, weights = fitted("LatentClassClusterer"), np.full(12, 5e9)
    for test in (pgm_bma.goodness_of_fit, pgm_bma.bivariate_residuals, pgm_bma.likelihood_ratio_test):
        with pytest.raises(ValueError, match=r"tables of 6e\+10 rows .*divide the weights"):
            test(clusterer, table(), sample_weight=weights, n_bootstrap=2)
    for name in ("EMAClusterer", "StructuralEMClusterer", "ForestAveragedClusterer"):
        with pytest.raises(ValueError, match=r"n_samples=.* at most 333333333"):
            fitted(name).sample(10**11)
    assert np.isfinite(pgm_bma.bivariate_residuals(clusterer, table(), sample_weight=weights)["x2"]).all()


def test_a_root_whose_probabilities_do_not_sum_to_one_has_no_empty_row(tmp_path):
    path = tmp_path / "x.bif"
    path.write_text(
        "network n {\n}\nvariable a {\n  type discrete [ 2 ] { x, y };\n}\nprobability ( a ) {\n  table 0.5, 0.4;\n}\n"
    )
    with pytest.raises(
        ValueError, match=r"the table of 'a' is not a probability distribution: \[0\.5, 0\.4\] sums to 0\.9"
    ):
        pgm_bma.read_bif(path)
