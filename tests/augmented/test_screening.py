"""Structural EM on large tables: the starts of the best first fits are run to the end; or an error with a cure."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from pgm_bma import StructuralEMClusterer
from pgm_bma.augmented import structural_em as loops
from pgm_bma.augmented.structural_em import AUGMENTED, GENERAL, ClusterTable, affordable_starts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def mixed(n_rows, seed=0):
    """Three clusters of eight columns, two of which copy their neighbour."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 3, n_rows)
    shares = rng.dirichlet(np.ones(3), (8, 3)).cumsum(axis=2)
    codes = np.column_stack([(rng.random(n_rows)[:, None] > each[cluster, :-1]).sum(axis=1) for each in shares])
    for i in (1, 3):
        codes[:, i] = np.where(rng.random(n_rows) < 0.5, codes[:, i - 1], codes[:, i])
    return pd.DataFrame(codes).add_prefix("c")


def fits(monkeypatch, X, limit, **choices):
    """A fit whose starts are all run to the end where it takes `limit` steps at most."""
    with monkeypatch.context() as limited:
        limited.setattr(loops, "_ALL_STARTS", limit)
        return StructuralEMClusterer(**{"n_clusters": 3, "n_init": 12, "random_state": 0, **choices}).fit(X)


@pytest.mark.parametrize(
    "choices", [{}, {"parameters": "bound_collapse"}, {"init": "tree"}, {"n_clusters": [2, 3], "alpha": 0.5}]
)
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_the_starts_that_are_finished_end_where_they_would_have(choices, missing, monkeypatch):
    X = mixed(2000)
    X = X.mask(np.random.default_rng(1).random(X.shape) < missing)
    screened, whole = fits(monkeypatch, X, 0.0, **choices), fits(monkeypatch, X, np.inf, **choices)
    starts, every = screened.starts_, whole.starts_
    assert (every["stage"] == 2).all() and 1 <= (starts["stage"] == 2).sum() <= loops.FEWEST_STARTS
    pd.testing.assert_frame_equal(
        starts[starts["stage"] == 2].drop(columns="weight"), every[starts["stage"] == 2].drop(columns="weight")
    )
    short = starts["stage"] == 1
    assert (starts.loc[short, "n_iter"] == 1).all() and not starts.loc[short, "converged"].any()
    assert (starts.loc[short, "em_updates"] <= every.loc[short, "em_updates"]).all()
    best = starts["weight"].idxmax()
    assert starts.loc[best, "stage"] == 2 and screened.completed_score(X) == pytest.approx(starts.loc[best, "score"])
    # the starts end in optima of several scores; what is kept is not below their better half
    assert every["score"].max() - every["score"].min() > 5
    assert starts.loc[best, "score"] >= every["score"].median() - 1e-6 * abs(every["score"].median())


def test_first_fits_are_compared_within_a_structure():
    """The best tree explains more before there are arcs to find; the starts without arcs may end above it."""
    scores = [-50.0, -10.0, -40.0, -20.0, -40.0, -30.0, -60.0, -10.0]
    inits = ["network", "tree", *["naive_bayes", "tree"] * 3]

    class Run:
        def __init__(self, score):
            self.scores = [-1000.0, score]

    runs = [Run(score) for score in scores]
    assert loops.best_first_fits(runs, inits, 2).tolist() == [0, 1, 2]
    # a second start in the same optimum would be run in vain: 4 repeats 2, and 7 repeats 1
    assert loops.best_first_fits(runs, inits, 6).tolist() == [0, 1, 2, 3, 6]


def test_the_network_that_is_given_is_always_finished(monkeypatch):
    X = mixed(600)
    given = fits(monkeypatch, X, np.inf, n_init=2)
    starts = fits(monkeypatch, X, 0.0, init=given.model_).starts_
    assert starts.loc[0, ["init", "stage"]].tolist() == ["network", 2] and (starts["stage"] == 2).sum() == 3


@pytest.mark.parametrize("choices", [{}, {"init": "tree"}, {"n_init": 3}, {"n_clusters": [2, 3]}, {"init": "network"}])
def test_the_progress_bar_counts_what_is_run(choices, monkeypatch):
    seen = {}

    @contextmanager
    def counted(show, unit, *, total):
        seen.update(total=total, done=0)
        yield lambda number: seen.update(done=seen["done"] + number)

    X = mixed(300)
    if choices.get("init") == "network":
        choices = {"init": fits(monkeypatch, X, np.inf, n_init=2).model_}
    monkeypatch.setattr("pgm_bma.augmented.clusterer.progress", counted)
    fits(monkeypatch, X, 0.0, **choices)
    assert seen["done"] == seen["total"]


def test_few_starts_and_tables_of_ordinary_size_are_run_as_a_whole():
    rows = ClusterTable(np.zeros((5000, 8), dtype=np.int32), np.ones(5000), np.full(8, 3))
    assert affordable_starts(AUGMENTED, rows, range(1, 9), 20) == 20
    large = ClusterTable(np.zeros((100_000, 500), dtype=np.int8), np.ones(100_000), np.full(500, 2))
    assert affordable_starts(AUGMENTED, large, [2], 20) == loops.FEWEST_STARTS
    assert affordable_starts(AUGMENTED, large, [2], 1) == 1
    assert affordable_starts(GENERAL, large, [2], 20) == 20  # other work, of which the limits know nothing
    shorter = [
        affordable_starts(AUGMENTED, large._replace(codes=large.codes[:n]), [2], 20) for n in (5000, 20_000, 40_000)
    ]
    assert 20 == shorter[0] > shorter[1] > shorter[2] > loops.FEWEST_STARTS  # it begins by leaving out few


def test_too_much_work_is_an_error_with_the_size_and_the_cure(monkeypatch):
    """Before any work; sizes are all that counts, so a table of zeros will do."""
    rows = ClusterTable(np.zeros((100_000, 500), dtype=np.int8), np.ones(100_000), np.full(500, 10))
    with pytest.raises(
        ValueError, match=r"20 starts can take \d+ CPU s.*100,000 distinct rows of 500 .*5000 states: drop"
    ):
        affordable_starts(AUGMENTED, rows, [2], 20)
    assert affordable_starts(AUGMENTED, rows, [2], 2) == 2
    monkeypatch.setattr(loops, "_AFFORDABLE", 0.0)
    with pytest.raises(ValueError, match="take a sample of the rows; n_init=2 takes the time that it needs"):
        fits(monkeypatch, mixed(100), 0.0)
