"""The forest clusterer: its bound never falls, equals what it claims to be, and finds clusters with arcs."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import pgm_bma
from benchmarks._random_models import random_augmented_naive_bayes
from pgm_bma import ForestAveragedClusterer
from pgm_bma.forests import clustering
from pgm_bma.forests.average import ForestPrior
from pgm_bma.forests.clustering import ForestLoop, affordable_updates, run_start
from pgm_bma.forests.rows import expect_complete, hold_rows
from pgm_bma.foundation.numbers import pairs as pair_groups
from pgm_bma.foundation.numbers.pairs import grouped_pair_counts, indicators, make_pair_groups, pair_counts
from tests.oracles.forests import forests
from tests.oracles.naive_bayes import prequential_log_probability


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.25]), st.integers(1, 3))
def test_the_bound_never_falls(seed, missing, n_clusters):
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 4)
    codes = np.column_stack([rng.integers(0, r, 30) for r in cards])
    codes[:, 1] = np.where(rng.random(30) < 0.7, codes[:, 0] % cards[1], codes[:, 1])
    codes[rng.random(codes.shape) < missing] = -1
    rows = hold_rows(codes, cards, rng.integers(1, 4, 30).astype(float))
    run = run_start(rows, rng.dirichlet(np.ones(n_clusters), 30), ForestLoop(max_iter=60, tol=0.0))
    gains = np.diff(run.bounds)
    assert (gains >= -1e-8 * np.abs(run.bounds[:-1]) - run.pruned_loss * 30).all()  # rounding, and the stated loss


@pytest.mark.parametrize("parameter_prior", ["consistent", "paper"])
def test_the_bound_of_certain_clusters_is_the_log_evidence(parameter_prior):
    """With q(z) all on one labelling the bound is log p(X, z), structures and tables summed out: enumerate it."""
    rng = np.random.default_rng(2)
    cards = np.array([2, 3, 2])
    codes = np.column_stack([rng.integers(0, r, 12) for r in cards])
    z = rng.integers(0, 2, 12)
    prior = ForestPrior(parameter_prior=parameter_prior, structure_prior="uniform")
    run = run_start(hold_rows(codes, cards, np.ones(12)), np.eye(2)[z], ForestLoop(prior, max_iter=1))
    logs = []
    for forest in forests(3):
        value = prequential_log_probability(z.tolist(), [0] * 12, 2, 1.0)
        for i, parent in enumerate(forest):
            above = [(int(c), int(codes[r, parent]) if parent >= 0 else 0) for r, c in enumerate(z)]
            # consistent: a table of a column holds 2 x (2 clusters) x r in sum, whatever its parents
            alpha = 1.0 if parameter_prior == "paper" else 2.0 / (cards[parent] if parent >= 0 else 1)
            value += prequential_log_probability(codes[:, i].tolist(), above, int(cards[i]), alpha)
        logs.append(value)
    assert run.bounds[0] == pytest.approx(np.logaddexp.reduce(logs) - np.log(len(logs)), abs=1e-9)


def test_the_bound_stays_below_the_evidence():
    """Log evidence of a tiny table by summing over every labelling of its rows."""
    rng = np.random.default_rng(3)
    cards, n = np.array([2, 2]), 6
    codes = np.column_stack([rng.integers(0, r, n) for r in cards])
    rows = hold_rows(codes, cards, np.ones(n))
    once = ForestLoop(max_iter=1)
    evidence = np.logaddexp.reduce(
        [run_start(rows, np.eye(2)[list(z)], once).bounds[0] for z in product([0, 1], repeat=n)]
    )
    run = run_start(rows, rng.dirichlet(np.ones(2), n), ForestLoop())
    assert run.bounds[-1] <= evidence + 1e-9


def test_hidden_cells_are_worth_their_entropy():
    """A cell that is missing everywhere it could matter changes no cluster: one lonely missing cell, one cluster."""
    codes = np.array([[0, 1], [1, 0], [0, -1]])
    run = run_start(hold_rows(codes, np.array([2, 2]), np.ones(3)), np.ones((3, 1)), ForestLoop(tol=0.0, max_iter=50))
    complete = [
        run_start(
            hold_rows(np.array([[0, 1], [1, 0], [0, v]]), np.array([2, 2]), np.ones(3)), np.ones((3, 1)), ForestLoop()
        )
        for v in (0, 1)
    ]
    evidence = np.logaddexp(complete[0].bounds[-1], complete[1].bounds[-1])
    assert max(r.bounds[-1] for r in complete) < run.bounds[-1] <= evidence + 1e-12


def test_it_finds_clusters_that_naive_bayes_blurs():
    model = random_augmented_naive_bayes(10, 3, 9, cardinalities=[2] * 10, random_state=5)
    frame = pgm_bma.simulate(model, 1500, random_state=0, include_latents=True)
    truth, X = frame["cluster"], frame.drop(columns="cluster")
    forest = ForestAveragedClusterer(3, n_init=6, random_state=0).fit(X)
    naive = pgm_bma.LatentClassClusterer(3, n_init=6, random_state=0).fit(X)
    assert adjusted_rand_score(truth, forest.labels_) > adjusted_rand_score(truth, naive.labels_) + 0.05
    arcs = {frozenset(arc) for arc in model.edges() if "cluster" not in arc}
    strength = forest.edge_posterior_ + forest.edge_posterior_.T
    found = {frozenset((a, b)) for a in X for b in X if a < b and strength.loc[a, b] > 0.5}
    assert len(arcs & found) >= 0.7 * len(arcs)
    assert forest.causal_graph_.latents == {"cluster"} and forest.model_.check_model()
    assert (np.diff(forest.model_.get_cpds("cluster").values) <= 0).all()  # numbered by falling probability


def test_the_number_of_clusters_by_the_bound():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300)
    X = pd.DataFrame({f"c{i}": (rng.random(300) < np.where(z, 0.9, 0.1)).astype(int) for i in range(6)})
    clusterer = ForestAveragedClusterer(range(1, 5), n_init=4, random_state=0).fit(X)
    assert clusterer.n_clusters_ == 2
    path = clusterer.n_clusters_path_
    assert path["n_clusters"].tolist() == [1, 2, 3, 4] and list(path)[1:3] == ["score", "probability"]
    gain = path["score"] - path["score"].max()  # equal weights of the numbers before the data
    np.testing.assert_allclose(path["probability"], np.exp(gain) / np.exp(gain).sum(), rtol=1e-9)


def test_missing_cells_in_fit_and_predict():
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 400)
    X = pd.DataFrame({f"c{i}": np.where(rng.random(400) < 0.85, z, 1 - z) for i in range(6)}).astype(object)
    X = X.mask(rng.random(X.shape) < 0.2)
    clusterer = ForestAveragedClusterer(2, n_init=4, random_state=0).fit(X)
    assert adjusted_rand_score(z, clusterer.labels_) > 0.7


@pytest.mark.parametrize(
    "bad",
    [{"init": "kmeans"}, {"n_clusters": 0}, {"n_clusters": []}, {"n_clusters": None}, {"combine_starts": "uniform"}],
)
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        ForestAveragedClusterer(**bad).fit(pd.DataFrame({"a": [0, 1], "b": [0, 1]}))


def test_sampled_rows_follow_the_average():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 2, 60), "b": rng.integers(0, 3, 60)})
    clusterer = ForestAveragedClusterer(2, n_init=2, random_state=0).fit(X)
    drawn, labels = clusterer.sample(40_000, random_state=1)
    grid = pd.DataFrame(list(product(range(2), range(3))), columns=["a", "b"])
    expected = np.exp(clusterer.score_samples(grid))
    for row, p in zip(grid.to_numpy(), expected):
        # five standard errors of the rows, and of the 100 structures that they share
        assert abs(np.mean((drawn.to_numpy() == row).all(1)) - p) <= 5 * np.sqrt(p / 40_000) + 0.02
    share = np.bincount(labels, minlength=2) / len(labels)
    np.testing.assert_allclose(share, clusterer._result.class_probability, atol=5 * np.sqrt(0.25 / 40_000))


def test_columns_of_many_states_stand_alone_in_their_super_column():
    rng = np.random.default_rng(0)
    cards = np.array([40, 2, 2, 3, 50, 2, 2])
    codes = np.column_stack([rng.integers(0, r, 80) for r in cards])
    rows = hold_rows(codes, cards, np.ones(80))
    assert len(rows.groups.flags) == 4
    q = rng.dirichlet(np.ones(3), 80)
    expected = pair_counts(indicators(codes, cards), q)
    np.testing.assert_allclose(grouped_pair_counts(rows.groups, q), expected, atol=1e-12)
    # all in one super-column or each alone: the same bounds
    few = np.array([2, 2, 3])
    whole = hold_rows(codes[:, 1:4], few, np.ones(80))
    split = whole._replace(groups=split_groups(codes[:, 1:4], few))
    one, other = (run_start(rows, q, ForestLoop(max_iter=9)) for rows in (whole, split))
    for a, b in zip((*one.state, *one[1:]), (*other.state, *other[1:])):
        np.testing.assert_allclose(a, b, atol=1e-9)


def split_groups(codes, cards):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_groups, "_GROUP_STATES", 1)
        return pair_groups.make_pair_groups(codes, cards)


@pytest.mark.parametrize("arcs", [0.0, 0.3, 1.0])
def test_rows_by_super_columns_are_the_plain_sums(arcs):
    """The compiled sweep over joined columns, which skips pairs that no arc joins, against products of indicators."""
    rng = np.random.default_rng(0)
    cards = np.array([2, 3, 1, 40, 2, 2, 5, 4])
    codes = np.column_stack([rng.integers(0, card, 50) for card in cards])
    column = np.repeat(np.arange(len(cards)), cards)
    joined = np.triu(rng.random((len(cards), len(cards))) < arcs, 1)
    both = rng.normal(size=(3, len(column), len(column))) * (joined | joined.T)[np.ix_(column, column)]
    both += both.swapaxes(1, 2)
    log_cluster, single = rng.normal(size=3), rng.normal(size=(3, len(column)))
    flags = indicators(codes, cards)
    logs = log_cluster + flags @ single.T + 0.5 * np.einsum("ns,kst,nt->nk", flags, both, flags)
    wanted, q = softmax(logs, axis=1), np.empty((50, 3))
    entropy = expect_complete(make_pair_groups(codes, cards), log_cluster, single, both, q)
    np.testing.assert_allclose(q, wanted, rtol=1e-11)  # exponentials of sums of some 40 numbers
    np.testing.assert_allclose(entropy, entr(wanted).sum(1), atol=1e-14)  # a difference of two logarithms


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_too_many_columns_are_refused_before_the_work():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (10, 2000)))
    X.columns = [f"c{i}" for i in range(2000)]
    with pytest.raises(ValueError, match=r"X has 2000 columns; .* the limit is 500: select columns first"):
        ForestAveragedClusterer(2).fit(X)
    with pytest.raises(ValueError, match="the limit is 1500"):
        pgm_bma.ForestAveragedClassifier().fit(X, [0, 1] * 5)


def test_starts_in_two_stages():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.integers(0, 3, (150, 6)), columns=list("abcdef"))
    X.loc[rng.random(150) < 0.2, "a"] = None
    fit = {"init": "random", "random_state": 0, "tol": 1e-5}  # more than ten updates, and not hundreds
    every = ForestAveragedClusterer(3, n_init=6, n_final=None, **fit).fit(X).starts_
    some = ForestAveragedClusterer(3, n_init=6, n_final=2, **fit).fit(X).starts_
    assert (every["stage"] == 2).all() and every.columns.tolist()[-3:] == ["converged", "n_iter", "weight"]
    stopped = some["stage"] == 1
    assert stopped.sum() == 4 and (some.loc[stopped, "weight"] == 0).all() and (some.loc[stopped, "n_iter"] == 10).all()
    # going on is as if the run had not been stopped
    np.testing.assert_allclose(some.loc[~stopped, "score"], every.loc[~stopped, "score"], rtol=1e-12)
    np.testing.assert_array_equal(some.loc[~stopped, "n_iter"], every.loc[~stopped, "n_iter"])
    paper = ForestAveragedClusterer(3, n_init=6, preset="paper", **fit).fit(X)
    assert (paper.starts_["stage"] == 2).all()


def test_wide_tables_make_fewer_updates_unless_max_iter_is_given(monkeypatch):
    """500 binary columns took ten minutes; the limit is by size, not by the clock."""
    assert affordable_updates(sizes(1000, 20, 3), 2, 10, 3) == (10, 500)
    short, final = affordable_updates(sizes(1000, 500, 2), 2, 10, 3)
    assert 1 <= short < 10 <= final < 100
    with pytest.raises(ValueError, match=r"takes about \d+ CPU seconds for 100,000 rows of 500 columns.*lower n_init"):
        affordable_updates(sizes(100_000, 500, 10), 2, 10, 3)
    with pytest.raises(ValueError, match="about 3 CPU seconds for 10,000 rows of 500 columns, and there are 10 starts"):
        affordable_updates(sizes(10_000, 500, 2), 2, 10, 3)  # took 161 CPU seconds
    codes = np.random.default_rng(0).integers(0, 3, (80, 5))
    usual = ForestAveragedClusterer(random_state=0).fit(codes)
    limited = ForestAveragedClusterer(random_state=0, max_iter=500).fit(codes)
    np.testing.assert_array_equal(usual.score_path_, limited.score_path_)
    monkeypatch.setattr(clustering, "BY_DEFAULT", 30 * (3 * 5**3 + 3 * 80 * 5**2 + 300 * 2 * 15**2))
    with pytest.warns(ConvergenceWarning, match="did not converge in 10 updates; raise max_iter"):
        few = ForestAveragedClusterer(random_state=0, tol=0.0).fit(codes)
    assert few.starts_.n_iter.tolist().count(1) >= 5 and few.n_iter_ == 10  # one update before the best are chosen


def sizes(n_rows, n_columns, n_states):
    groups = SimpleNamespace(members=range(-(-n_columns // 5)))  # five binary columns make a super-column
    return SimpleNamespace(codes=range(n_rows), cardinalities=np.full(n_columns, n_states), groups=groups)
