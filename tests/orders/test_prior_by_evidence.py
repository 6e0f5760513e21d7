"""The default prior of `OrderPosterior`: BDeu with the total of most evidence."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from pgm_bma import GibbsSampler, OrderAveragedClassifier, OrderPosterior, load
from pgm_bma.orders import search
from pgm_bma.orders.families.family_table import family_table
from tests.oracles.orders import Problem

SIZES = (1.0, 3.0, 10.0)
CARDS = (2, 3, 2, 3)


def rows(seed, n_rows=40):
    """Codes of four columns, a chain of arcs; the rarer a state, the smaller the total of most evidence."""
    rng = np.random.default_rng(seed)
    strength = (0.05, 0.3, 5.0)[seed % 3]
    codes = np.zeros((n_rows, 4), dtype=int)
    for v, r in enumerate(CARDS):
        lines = codes[:, v - 1] if v else np.zeros(n_rows, dtype=int)
        tables = rng.dirichlet(np.full(r, strength), size=4)
        codes[:, v] = (rng.random(n_rows)[:, None] > tables[lines].cumsum(1)[:, :-1]).sum(1)
    return codes


def frame(codes):
    X = pd.DataFrame(codes, columns=list("abcd"))
    return X.apply(lambda column: pd.Categorical(column, categories=range(CARDS["abcd".index(column.name)])))


def test_evidence_and_choice_equal_enumeration():
    chosen = set()
    for seed in range(6):
        codes = rows(seed)
        truths = [Problem(codes.tolist(), CARDS, 3, ess=size) for size in SIZES]
        tables = [family_table(codes, CARDS, max_indegree=3, equivalent_sample_size=size) for size in SIZES]
        evidence = [truth.evidence("order") for truth in truths]
        np.testing.assert_allclose(search.log_evidences(tables, ()), evidence, atol=1e-9)
        best = int(np.argmax(evidence))
        for weighting in ("order", "dag"):
            posterior = OrderPosterior(structure_weighting=weighting).fit(frame(codes))
            assert posterior.equivalent_sample_size_ == SIZES[best]
            np.testing.assert_allclose(posterior.edge_posterior_, truths[best].edges(weighting), atol=1e-9)
        chosen.add(SIZES[best])
    assert len(chosen) >= 3  # else a constant would pass


def test_equivalent_dags_have_equal_scores():
    codes = rows(1)
    dags = Problem(codes.tolist(), CARDS, 3).dags()
    classes: dict = {}
    for dag in dags:
        classes.setdefault(pattern(dag), []).append(dag)
    assert len(dags) == 543 and len(classes) == 185  # of four nodes, as published

    def spread(**prior):
        scores = OrderPosterior(**prior).fit(frame(codes)).family_scores_
        score = {
            ("abcd".index(child), tuple("abcd".index(p) for p in parents)): value
            for child, parents, value in zip(scores["child"], scores["parents"], scores["log_marginal_likelihood"])
        }
        return max(
            np.ptp([sum(score[family] for family in enumerate(dag)) for dag in some]) for some in classes.values()
        )

    assert spread() < 1e-9
    assert spread(parameter_prior="consistent") > 0.5


def pattern(dag):
    """Edges and the arcs that meet without an edge between them: the same for equivalent DAGs, and for no others."""
    edges = {frozenset((u, v)) for v, parents in enumerate(dag) for u in parents}
    meetings = {
        (u, v, w)
        for v, parents in enumerate(dag)
        for u, w in combinations(sorted(parents), 2)
        if frozenset((u, w)) not in edges
    }
    return frozenset(edges), frozenset(meetings)


@pytest.mark.parametrize("what", ["weights", "experiments", "soft", "arcs"])
def test_choice_is_the_one_of_most_evidence_in_every_fit(what):
    codes = rows(4, 60)
    X, fit, parameters = frame(codes), {}, {}
    if what == "weights":
        fit = {"sample_weight": np.arange(60) % 4 + 0.5}
    elif what in ("experiments", "soft"):
        kind = "soft" if what == "soft" else "perfect"
        fit = {"interventions": np.array(["b", None, "c"], dtype=object)[np.arange(60) % 3], "intervention_type": kind}
    else:
        parameters = {"required_arcs": [("d", "a")], "forbidden_arcs": [("b", "c")], "arc_prior": 0.2}
    fits = [OrderPosterior(equivalent_sample_size=size, **parameters).fit(X, **fit) for size in SIZES]
    best = int(np.argmax([each.log_evidence_ for each in fits]))
    posterior = OrderPosterior(**parameters).fit(X, **fit)
    assert posterior.equivalent_sample_size_ == SIZES[best]
    np.testing.assert_array_equal(posterior.edge_posterior_, fits[best].edge_posterior_)


def test_beyond_sums_good_orders_choose_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    chosen = set()
    for strength in (0.05, 0.2, 0.3, 8.0):
        codes = np.zeros((300, 9), dtype=int)
        for v in range(9):
            parents = rng.choice(v, min(v, 2), replace=False)
            tables = rng.dirichlet(np.full(3, strength), size=9)
            line = codes[:, parents] @ 3 ** np.arange(len(parents))
            codes[:, v] = (rng.random(300)[:, None] > tables[line.astype(int)].cumsum(1)[:, :-1]).sum(1)
        X = pd.DataFrame(codes[:, rng.permutation(9)]).add_prefix("x").astype("category")
        summed = OrderPosterior().fit(X).equivalent_sample_size_
        with monkeypatch.context() as changed:
            changed.setattr(search, "EXACT", 0)
            assert OrderPosterior(random_state=0).fit(X).equivalent_sample_size_ == summed
        chosen.add(summed)
    assert len(chosen) >= 3


def test_what_is_given_takes_the_place_of_evidence():
    X = frame(rows(2))
    plain = OrderPosterior(parameter_prior="consistent").fit(X)
    for given in ({"alpha": 1.0}, {"alpha": 1.0, "parameter_prior": "evidence"}):
        np.testing.assert_array_equal(OrderPosterior(**given).fit(X).edge_posterior_, plain.edge_posterior_)
    assert plain.equivalent_sample_size_ is None
    assert OrderPosterior(equivalent_sample_size=7).fit(X).equivalent_sample_size_ == 7
    paper = OrderPosterior(preset="paper", random_state=0).fit(X)
    assert paper.equivalent_sample_size_ is None and paper._average.training.prior == (1.0, None, None)
    with pytest.raises(ValueError, match="alpha=2 and equivalent_sample_size=3 exclude each other"):
        OrderPosterior(alpha=2, equivalent_sample_size=3).fit(X)
    with pytest.raises(ValueError, match="parameter_prior='evidence' is not one of 'consistent', 'paper'"):
        OrderAveragedClassifier(parameter_prior="evidence").fit(X[["a", "b"]], X["c"])


@pytest.mark.filterwarnings("ignore:.*chains have not converged")  # short runs
def test_the_chosen_number_is_used_everywhere(tmp_path):
    """A fit is equal to the last bit to one that was given the number: arcs, tables, effects, completions, files."""
    codes = rows(1, 80)
    X = frame(codes)
    holes = X.mask(np.random.default_rng(1).random(X.shape) < 0.15)
    run = {"random_state": 3, "sampler": GibbsSampler(max_sweeps=40, n_chains=2, n_orders=5)}
    for table, more in ((X, {}), (X, {"method": "mcmc", "structure_weighting": "dag"}), (holes, {})):
        posterior = OrderPosterior(**run, **more).fit(table)
        size = posterior.equivalent_sample_size_
        assert size in SIZES and posterior.get_params()["equivalent_sample_size"] is None
        given = OrderPosterior(**run, **more, equivalent_sample_size=size).fit(table)
        posterior.save(tmp_path / "fit.pgm")
        for each in (posterior, load(tmp_path / "fit.pgm"), clone(posterior).fit(table)):
            assert each.equivalent_sample_size_ == size
            np.testing.assert_array_equal(each.edge_posterior_, given.edge_posterior_)
            np.testing.assert_array_equal(each.log_joint(X), given.log_joint(X))
            assert each.effect("a", "b").equals(given.effect("a", "b"))
            assert each.complete(holes, 2)[1].equals(given.complete(holes, 2)[1])
    scores = OrderPosterior().fit_scores(posterior)
    assert scores.equivalent_sample_size_ is None


@pytest.mark.filterwarnings("ignore:.*chains have not converged")  # short runs
def test_a_run_goes_on_from_its_file(tmp_path):
    X = frame(rows(0, 80))
    holes = X.mask(np.random.default_rng(1).random(X.shape) < 0.15)
    for table, name in ((X, "complete"), (holes, "holes")):
        run = {"method": "mcmc" if name == "complete" else "auto", "random_state": 0}
        plain = OrderPosterior(sampler=GibbsSampler(max_sweeps=40), **run).fit(table)
        kept = GibbsSampler(max_sweeps=40, checkpoint=tmp_path / name, checkpoint_every=1)
        for _ in range(2):
            again = OrderPosterior(sampler=kept, **run).fit(table)
            np.testing.assert_array_equal(again.edge_posterior_, plain.edge_posterior_)


@pytest.mark.parametrize("n", [1, 2])
def test_columns_without_information(n):
    X = pd.DataFrame({name: ["same"] * 5 for name in "ab"[:n]})
    with pytest.warns(UserWarning, match="one value only"):
        assert OrderPosterior().fit(X).equivalent_sample_size_ == 1.0
