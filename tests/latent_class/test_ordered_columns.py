"""Ordered columns: the sum over runs of levels against all 2^(r - 1) merges, and what the estimator does with them."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import EMAClusterer
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings, log_joint
from tests.oracles import mixed as oracle

CARDINALITIES = np.array([5, 2, 4, 3])
ORDERED = PriorSettings(parameter_prior="consistent", ordered=(0, 2))


def ordered_table(seed=0, n=30, missing=0.0):
    """Codes (n, 4): column 0 and 1 depend on two clusters, 2 and 3 do not; 0 and 2 are ordered."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 2, n)
    codes = np.column_stack(
        [
            np.clip(np.round(rng.normal(1 + 2 * cluster, 1.0)), 0, 4),
            np.where(rng.random(n) < 0.2, 1 - cluster, cluster),
            rng.integers(0, 4, n),
            rng.integers(0, 3, n),
        ]
    ).astype(np.int64)
    codes[rng.random(codes.shape) < missing] = -1
    return codes, cluster


def draw_tables(n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n_clusters)), [rng.dirichlet(np.ones(r), n_clusters) for r in CARDINALITIES]


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("n_clusters", [2, 3])
def test_updates_and_bound_are_the_sum_over_merges(missing, n_clusters):
    codes, _ = ordered_table(1, missing=missing)
    rows = table_rows(codes, CARDINALITIES)
    settings = {
        "averaging": "variational",
        "priors": ORDERED,
        "n_init": 1,
        "init": draw_tables(n_clusters),
        "collapse": "ignore",
    }
    begin = fit_latent_class(rows, n_clusters, max_iter=0, **settings)
    log_p = log_joint(codes, begin.theta_c, begin.theta, begin.state_start)
    R = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1)[:, None]).tolist()
    kinds = ("ordered", "states", "ordered", "states")
    columns = [
        (kind, [None if c < 0 else int(c) for c in column], r)
        for kind, column, r in zip(kinds, codes.T, CARDINALITIES.tolist())
    ]
    assert begin.evidence_bound == pytest.approx(oracle.bound(columns, R), abs=1e-9)
    for n_updates in (1, 2, 3):
        fit = fit_latent_class(rows, n_clusters, max_iter=n_updates, tol=0, **settings)
        arcs, _ = oracle.structure_sum(columns, R)
        np.testing.assert_allclose(fit.arc_posterior, arcs, atol=1e-10)
        for i in (0, 2):  # posterior means of the tables that the last update built
            np.testing.assert_allclose(fit.tables[i], oracle.mean_table(columns[i], R, arcs[i]), atol=1e-10)
        R = oracle.update(columns, R)
        assert fit.evidence_bound == pytest.approx(oracle.bound(columns, R), abs=1e-9)


@pytest.mark.parametrize("averaging", ["linear", "variational"])
def test_two_levels_have_no_other_merge(averaging):
    codes, _ = ordered_table(2, n=80)
    rows = table_rows(codes, CARDINALITIES)
    how = {"averaging": averaging, "n_init": 4}
    plain, ordered = (
        fit_latent_class(rows, 2, priors=PriorSettings(ordered=kept), rng=np.random.default_rng(0), **how)
        for kept in ((), (1,))
    )
    np.testing.assert_array_equal(plain.theta, ordered.theta)


def test_the_bound_never_falls():
    for seed in range(30):
        codes, _ = ordered_table(seed, n=40, missing=0.1 * (seed % 2))
        rows = table_rows(codes, CARDINALITIES)
        fit = fit_latent_class(
            rows,
            3,
            averaging="variational",
            priors=ORDERED,
            n_init=4,
            accelerate=bool(seed % 3),
            tol=1e-9,
            rng=np.random.default_rng(seed),
        )
        for path in fit.starts.paths:
            assert (np.diff(path) > -1e-9 * np.abs(path[1:])).all()


def test_threads_do_not_change_the_fit():
    codes, _ = ordered_table(3, n=300)
    rows = table_rows(codes, CARDINALITIES)
    one, two = (
        fit_latent_class(
            rows, 2, averaging="variational", priors=ORDERED, n_init=24, n_jobs=n_jobs, rng=np.random.default_rng(0)
        )
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.theta, two.theta)


# ------------------------------------------------------------------------------------------------ the estimator


def frame_of(codes):
    frame = pd.DataFrame(codes, columns=["item", "flag", "mood", "place"])
    return frame.assign(place=frame["place"].map({0: "a", 1: "b", 2: "c"}))


def test_which_columns_are_ordered():
    codes, _ = ordered_table(4, n=200)
    frame = frame_of(codes)
    assert EMAClusterer(random_state=0).fit(frame).ordered_columns_ == []
    named = EMAClusterer(ordered_columns=["item", "mood"], random_state=0).fit(frame)
    assert named.ordered_columns_ == ["item", "mood"]
    categories = frame.assign(item=pd.Categorical(frame["item"], ordered=True))
    assert EMAClusterer(random_state=0).fit(categories).ordered_columns_ == ["item"]
    off = EMAClusterer(categorical_columns=["item"], random_state=0).fit(categories)
    assert off.ordered_columns_ == []
    assert EMAClusterer(preset="paper", n_init=2, random_state=0).fit(categories).ordered_columns_ == []
    declared = EMAClusterer(ordered_columns=["place"], state_names={"place": ["c", "a", "b"]}, random_state=0).fit(
        frame
    )
    assert declared.ordered_columns_ == ["place"] and declared.schema_.states[3] == ("c", "a", "b")


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"ordered_columns": ["place"]}, r"'place' is named in ordered_columns and holds texts.*state_names"),
        ({"ordered_columns": ["item"], "numeric_columns": ["item"]}, "'item' is named as ordered and as numeric"),
        ({"ordered_columns": ["item"], "categorical_columns": ["item"]}, "as ordered and as categorical"),
        ({"ordered_columns": ["nothing"]}, "ordered_columns names 'nothing'"),
    ],
)
def test_errors(parameters, words):
    with pytest.raises(ValueError, match=words):
        EMAClusterer(**parameters).fit(frame_of(ordered_table()[0]))


def test_relabelling_the_levels_upside_down_changes_nothing():
    codes, _ = ordered_table(5, n=150)
    frame = frame_of(codes)
    turned = frame.assign(item=4 - frame["item"])
    one, two = (EMAClusterer(ordered_columns=["item"], random_state=0).fit(X) for X in (frame, turned))
    # the starts draw other tables; the best of 30 is the same optimum
    assert one.evidence_bound_ == pytest.approx(two.evidence_bound_, abs=1e-5)


def test_whole_numbers_named_as_ordered_are_levels():
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 2, 300)
    frame = pd.DataFrame({"age": 30 + 20 * cluster + rng.integers(0, 15, 300), "b": cluster, "c": cluster})
    assert EMAClusterer(random_state=0).fit(frame).numeric_columns_ == ["age"]
    model = EMAClusterer(ordered_columns=["age"], random_state=0).fit(frame)
    assert model.numeric_columns_ == [] and model.ordered_columns_ == ["age"]
    assert model.arc_posterior_["age"] > 0.99
    assert (pd.crosstab(model.labels_, cluster).max(axis=1).sum()) > 295


def test_copies_and_files_keep_the_order(tmp_path):
    codes, _ = ordered_table(6, n=150)
    frame = frame_of(codes)
    model = EMAClusterer(ordered_columns=["item"], random_state=0).fit(frame)
    model.save(tmp_path / "m.json")
    again = EMAClusterer.load(tmp_path / "m.json")
    assert again.ordered_columns_ == ["item"]
    np.testing.assert_array_equal(model.predict_proba(frame), again.predict_proba(frame))
    pd.testing.assert_series_equal(model.fit_statistics_, again.fit_statistics_)
    assert not model.profiles_.isna().drop(columns=["column", "state"]).any().any()
