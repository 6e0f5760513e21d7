"""Scores of families that come from files or leave in them: the posterior is the same."""

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import GibbsSampler, OrderPosterior, SwapSampler, load_network, read_scores, simulate, write_scores


@pytest.fixture(scope="module")
def asia():
    return simulate(load_network("asia"), 300, random_state=0)


@pytest.mark.parametrize("weighting", ["order", "dag"])
def test_scores_written_and_read_give_the_same_posterior(asia, weighting, tmp_path):
    posterior = OrderPosterior(structure_weighting=weighting).fit(asia)
    path = write_scores(posterior, tmp_path / "asia.jkl")
    again = OrderPosterior(structure_weighting=weighting).fit_scores(path)
    assert again.method_ == "exact"
    np.testing.assert_allclose(
        again.edge_posterior_, posterior.edge_posterior_, atol=1e-12
    )  # scores are written in full
    assert again.log_evidence_ == pytest.approx(posterior.log_evidence_, abs=1e-9)
    assert set(again.causal_graph_.edges) == set(posterior.causal_graph_.edges)
    assert again.consensus("data").edges == posterior.consensus("data").edges
    np.testing.assert_allclose(again.ancestor_posterior_, posterior.ancestor_posterior_, atol=0.1)  # 1000 draws each


def test_the_file_is_what_other_programs_read(tmp_path):
    scores = pd.DataFrame({"child": ["x", "x", "y"], "parents": [(), ("y",), ()], "log_score": [-3.5, -2.25, -1.0]})
    path = write_scores(scores, tmp_path / "two.jkl")
    assert path.read_text() == "2\nx 2\n-3.5 0\n-2.25 1 y\ny 1\n-1.0 0\n"
    assert read_scores(path).equals(scores)


def test_only_listed_families_are_possible():
    scores = pd.DataFrame(
        {"child": list("aabbc"), "parents": [(), ("b",), (), ("a",), ()], "log_score": [0.0, 1.0, 0.0, 1.0, 0.0]}
    )
    for run in (
        {},
        {"method": "mcmc", "sampler": GibbsSampler(tol=0.02)},
        {"method": "mcmc", "sampler": SwapSampler(n_orders=4000, burn_in=10, thin=3)},
    ):
        found = OrderPosterior(random_state=0, **run).fit_scores(scores).edge_posterior_
        want = 0.5 * np.e / (1 + np.e)  # half of the orders have a first, whatever the place of c
        assert found.loc["c"].sum() == found["c"].sum() == 0.0
        assert found.loc["a", "b"] == pytest.approx(want, abs=1e-9 if not run else 0.03)


def test_lists_beyond_exact_reach():
    X = simulate(load_network("insurance"), 200, random_state=0)
    short = GibbsSampler(max_sweeps=512)
    posterior = OrderPosterior(sampler=short, max_indegree=2, random_state=0).fit(X)
    again = OrderPosterior(sampler=short, random_state=0).fit_scores(posterior)
    assert again.method_ == "mcmc"
    off = np.abs(again.edge_posterior_.to_numpy() - posterior.edge_posterior_.to_numpy()).max()
    assert off < 0.15  # two runs, each within .05 by its own estimate


def test_what_needs_rows_raises_an_error(asia, tmp_path):
    posterior = OrderPosterior(random_state=0).fit_scores(OrderPosterior().fit(asia))
    for call in (lambda: posterior.model_, lambda: posterior.sample_dags(1), lambda: posterior.score(asia)):
        with pytest.raises(ValueError, match="fit_scores has scores of families and no rows"):
            call()
    pgm_bma.save(posterior, tmp_path / "posterior.pgm")
    again = pgm_bma.load(tmp_path / "posterior.pgm")
    assert again.edge_posterior_.equals(posterior.edge_posterior_) and again.compelled_posterior_.shape == (8, 8)


def test_messages(tmp_path):
    def scores(**changes):
        return pd.DataFrame({"child": ["a", "b"], "parents": [(), ("a",)], "log_score": [0.0, 1.0], **changes})

    with pytest.raises(ValueError, match="'b' has no score without parents"):
        OrderPosterior().fit_scores(scores())
    with pytest.raises(ValueError, match="stands twice"):
        OrderPosterior().fit_scores(scores(child=["a", "a"], parents=[(), ()]))
    with pytest.raises(ValueError, match="hold 'c'"):
        OrderPosterior().fit_scores(scores(parents=[(), ("c",)]))
    with pytest.raises(ValueError, match="a finite number"):
        OrderPosterior().fit_scores(scores(log_score=[0.0, np.nan]))
    with pytest.raises(ValueError, match="no column 'log_score'"):
        OrderPosterior().fit_scores(scores().drop(columns="log_score"))
    with pytest.raises(ValueError, match="required_arcs changes nothing"):
        OrderPosterior(required_arcs=[("a", "b")]).fit_scores(scores())
    with pytest.raises(ValueError, match="holds a blank"):
        write_scores(scores(child=["a", "a b"]), tmp_path / "a.jkl")
    for text, wrong in (("", "near its end"), ("1\na 2\n-1 0\n", "near"), ("1\na 1\n-1 1\n", "1 parents are announced"),
                        ("1\na 1\n-1 0\nb 1\n", "more lines")):  # fmt: skip
        (tmp_path / "bad.jkl").write_text(text)
        with pytest.raises(ValueError, match=wrong):
            read_scores(tmp_path / "bad.jkl")


def test_effects_need_rows(asia):
    again = OrderPosterior().fit_scores(OrderPosterior(equivalent_sample_size=1).fit(asia))
    asked = [
        again.effects,
        lambda: again.effect("smoke", "lung"),
        lambda: again.effect("smoke", "lung", adjust_for="parents"),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=r"no rows: effects need the tables of fit\(X\)"):
            ask()
