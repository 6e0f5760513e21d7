"""LatentClassClusterer, EMAClusterer and EMAEstimator: what a user reads off them, their warnings, errors and networks."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import adjusted_rand_score

from pgm_bma import EMAClusterer, EMAEstimator, EMEstimator, LatentClassClusterer, Starts, read_bif, write_bif
from pgm_bma.networks.objects import augmented_network

IGNORE = Starts(collapse="ignore")

BOTH = pytest.mark.parametrize("build", [LatentClassClusterer, EMAClusterer])


def table(n_rows=200, seed=0, n_noise=2):
    """Two clusters seen in three columns, and columns of noise."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n_rows)
    frame = pd.DataFrame(
        {
            "colour": np.where(rng.random(n_rows) < 0.85, z, 1 - z),
            "shape": np.where(rng.random(n_rows) < 0.8, z, rng.integers(0, 3, n_rows)),
            "size": np.where(rng.random(n_rows) < 0.85, z, 1 - z),
        }
    )
    for i in range(n_noise):
        frame[f"noise{i}"] = rng.integers(0, 2 + i, n_rows)
    frame = frame.replace({"shape": {0: "disc", 1: "ring", 2: "star"}})
    return frame, z


def start_network(names=("a", "b"), cards=(2, 3), n_clusters=2, cluster="cluster", seed=0):
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(r), size=n_clusters) for r in cards]
    sizes = rng.dirichlet(np.ones(n_clusters))
    return augmented_network(cluster, range(n_clusters), sizes, names, [range(r) for r in cards], tables, latent=True)


# ---------------------------------------------------------------------------------------------------- results


@BOTH
def test_clusters_and_relevance_are_found(build):
    X, z = table()
    model = build(n_clusters=2, n_init=10, random_state=0).fit(X)
    agreement = (model.labels_ == z).mean()
    assert max(agreement, 1 - agreement) > 0.85
    assert model.arc_posterior_.index.tolist() == list(X)
    assert model.arc_posterior_[["colour", "shape", "size"]].min() > 0.99
    assert model.arc_posterior_[["noise0", "noise1"]].max() < 0.5
    assert model.cluster_dependence_[["colour", "shape", "size"]].min() > model.cluster_dependence_["noise0"]
    sizes = model.model_.get_cpds("cluster").values
    assert (np.diff(sizes) <= 0).all()  # numbered by falling probability


@BOTH
def test_what_is_learned_fits_together(build):
    X, _ = table()
    model = build(n_clusters=2, n_init=6, starts=Starts(n_final=5), random_state=0).fit(X)
    assert model.score_samples(X).sum() == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert len(model.score_path_) == model.n_iter_ + 1 and model.converged_
    starts = model.starts_
    scores = [
        "start",
        "stage",
        "score",
        "log_likelihood",
        "evidence_bound",
        "collapsed",
        "converged",
        "n_iter",
        "weight",
    ]
    assert list(starts) == [*scores, *(f"I_P[{column}]" for column in X)]
    assert starts["stage"].tolist().count(2) == 5 and (starts.loc[starts["stage"] == 1, "weight"] == 0).all()
    assert len(starts) == 6 and starts["weight"].sum() == pytest.approx(1.0)
    evidence = model.explain(X.iloc[0])
    np.testing.assert_allclose(evidence.sum(), model._log_joint(model._encode(X.iloc[[0]]))[0], rtol=1e-12)
    described = model.describe(2)
    assert len(described) == 4 and (described["lift"] > 1).all()
    n_parameters = 1 + 2 * (1 + 2 + 1 + 1 + 2)
    assert model.bic(X) == pytest.approx(-2 * model.log_likelihood_ + n_parameters * np.log(200), rel=1e-12)
    network = model.start_model(3)
    assert network.check_model() and network.latents == {"cluster"}


def test_samples_follow_the_model():
    X, _ = table()
    model = EMAClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    rows, labels = model.sample(20_000, random_state=1)
    sizes, tables = model._profiles()
    # four standard errors of a share at 20,000 rows
    assert (labels == 0).mean() == pytest.approx(sizes[0], abs=0.015)
    assert (rows["shape"][labels == 1] == "ring").mean() == pytest.approx(tables[1][1, 1], abs=0.02)


@BOTH
def test_bif_keeps_the_latent_cluster(build, tmp_path):
    X, _ = table()
    model = build(n_clusters=2, n_init=2, random_state=0).fit(X).model_
    write_bif(model, tmp_path / "model.bif")
    back = read_bif(tmp_path / "model.bif")
    assert back.latents == {"cluster"} and set(back.edges) == set(model.edges)
    for cpd in model.cpds:
        np.testing.assert_allclose(back.get_cpds(cpd.variable).values, cpd.values, atol=1e-12)


def test_top_structures_equal_enumeration():
    X, _ = table(60, n_noise=2)
    model = EMAClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    posterior = model.arc_posterior_
    every = {}
    for arcs in itertools.product((False, True), repeat=len(posterior)):
        every[tuple(posterior.index[list(arcs)])] = np.prod(np.where(arcs, posterior, 1 - posterior))
    top = model.top_structures(7)
    want = sorted(every.values(), reverse=True)[:7]
    np.testing.assert_allclose(top["probability"], want, rtol=1e-9)
    for probability, dependent in zip(top["probability"], top["dependent"]):
        assert every[dependent] == pytest.approx(probability, rel=1e-9)
    assert len(model.top_structures(1000)) == 2 ** len(posterior)


def test_unsupervised_feature_selection():
    X, _ = table()
    X = X.replace({"shape": {"disc": 0, "ring": 1, "star": 2}})
    model = EMAClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    assert model.get_support().tolist() == [True, True, True, False, False]
    assert model.get_support(indices=True).tolist() == [0, 1, 2]
    selector = SelectFromModel(EMAClusterer(n_clusters=2, n_init=4, random_state=0), threshold=0.5).fit(X)
    assert selector.get_feature_names_out().tolist() == ["colour", "shape", "size"]


@pytest.mark.parametrize("n_clusters", [range(1, 5), [1, 2, 3]])
@BOTH
def test_number_of_clusters(build, n_clusters):
    X, _ = table(400)
    model = build(n_clusters=n_clusters, n_init=5, random_state=0).fit(X)
    assert model.n_clusters_ == 2 and model.predict_proba(X).shape == (400, 2)
    path = model.n_clusters_path_
    assert path.loc[path["score"].idxmax(), "n_clusters"] == 2
    fixed = build(n_clusters=2, n_init=5, random_state=0).fit(X)
    assert not hasattr(fixed, "n_clusters_path_")


def test_the_paper_preset_spells_out_the_paper():
    X, _ = table(100)
    starts = Starts(n_final=None, accelerate=False, collapse="ignore")
    spelled = {"starts": starts, "parameter_prior": "paper", "init": "random"}
    for build, more in (
        (LatentClassClusterer, {"combine_starts": "best"}),
        (EMAClusterer, {"combine_starts": "likelihood", "averaging": "linear"}),
    ):
        short = build(3, preset="paper", n_init=7, random_state=0).fit(X)
        long = build(3, n_init=7, random_state=0, **spelled, **more).fit(X)
        pd.testing.assert_frame_equal(short.starts_, long.starts_)
        np.testing.assert_array_equal(short.predict_proba(X), long.predict_proba(X))
        assert (short.starts_["stage"] == 2).all() and short.get_params()["starts"] is None
    network = DiscreteBayesianNetwork([("cluster", column) for column in X], latents={"cluster"})
    face = EMAEstimator(latent_card={"cluster": 3}, preset="paper", n_init=7, seed=0).fit(network, X)
    assert face.log_likelihood_ == short.log_likelihood_


@pytest.mark.parametrize("averaging", [None, "linear", "variational"])
def test_noise_of_many_states_is_not_relevant(averaging):
    """Issue of the prior: with alpha in every cell a column of noise with 200 states is given an arc."""
    X, _ = table(300, seed=2)
    noisy = X.assign(noise=np.random.default_rng(102).integers(0, 200, len(X)).astype(str))
    kind = {} if averaging is None else {"averaging": averaging}
    build = LatentClassClusterer if averaging is None else EMAClusterer
    paper, sound = (
        build(2, parameter_prior=prior, n_init=10, random_state=0, **kind).fit(noisy)
        for prior in ("paper", "consistent")
    )
    assert paper.arc_posterior_["noise"] > 0.9  # the case is one
    assert sound.arc_posterior_["noise"] <= 0.3
    assert sound.arc_posterior_[["colour", "shape", "size"]].min() > 0.99
    if averaging is not None:  # EM leaves every arc in
        without = build(2, n_init=10, random_state=0, **kind).fit(X)
        assert adjusted_rand_score(without.labels_, sound.labels_) >= 0.95
        assert adjusted_rand_score(without.labels_, paper.labels_) < adjusted_rand_score(without.labels_, sound.labels_)
        literal = build(2, alpha={"dependent": 1.0, "independent": 1.0}, n_init=10, random_state=0, **kind).fit(noisy)
        assert (
            literal.log_likelihood_ == paper.log_likelihood_
        )  # pseudo-counts that are spelled out are taken as they are


# --------------------------------------------------------------------------------------------- hard tables


def test_every_start_collapsed_is_said_openly():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (40, 4)))
    with pytest.warns(UserWarning, match="starts collapsed.*one-cluster model is returned"):
        model = EMAClusterer(n_clusters=3, averaging="linear", n_init=5, random_state=0).fit(X)
    assert model.n_clusters_ == 1 and (model.labels_ == 0).all() and model.predict_proba(X).shape == (40, 1)
    assert model.model_.get_cpds("cluster").values.tolist() == [1.0]
    assert model.starts_["collapsed"].all() and (model.starts_["weight"] == 0).all()
    as_is = EMAClusterer(n_clusters=3, averaging="linear", n_init=5, random_state=0, starts=IGNORE).fit(X)
    assert as_is.n_clusters_ == 3 and as_is.predict_proba(X).shape == (40, 3)


@BOTH
def test_more_clusters_than_distinct_rows(build):
    X = pd.DataFrame({"a": [0, 0, 1, 1] * 9, "b": [0, 0, 1, 1] * 9})
    with pytest.warns(UserWarning, match="n_clusters=5 exceeds the 2 distinct rows"):
        model = build(n_clusters=5, n_init=3, random_state=0).fit(X)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@BOTH
def test_one_row_constant_columns_and_columns_that_are_all_missing(build):
    one = build(n_clusters=2, n_init=2, random_state=0).fit(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    np.testing.assert_allclose(one.predict_proba(pd.DataFrame({"a": ["x"], "b": ["y"]})).sum(axis=1), 1.0)
    X, _ = table()
    silent = X.assign(same="s", empty=None)
    declared = build(n_clusters=2, n_init=4, random_state=0, state_names={"empty": ["u", "v"]}).fit(silent)
    assert declared.n_clusters_ == 2
    assert declared.cluster_dependence_[["same", "empty"]].max() == 0.0
    assert (declared.cluster_dependence_[["colour", "size"]] > 0.1).all()


@BOTH
def test_ten_thousand_columns(build):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 30)
    codes = (rng.random((30, 10_000)) < np.where(z[:, None] == 0, 0.35, 0.65)).astype(int)
    model = build(n_clusters=2, n_init=2, tol=1e-3, random_state=0).fit(codes)
    assert max((model.labels_ == z).mean(), (model.labels_ != z).mean()) == 1.0
    assert np.isfinite(model.log_likelihood_) and len(model.arc_posterior_) == 10_000


@BOTH
def test_weights_and_holes_equal_repeated_rows(build):
    X, _ = table(60)
    X = X.mask(np.random.default_rng(3).random(X.shape) < 0.2)
    weights = np.random.default_rng(4).integers(0, 4, 60)
    kept = X.iloc[np.repeat(np.arange(60), weights)]
    names = {column: sorted(X[column].dropna().unique()) for column in X}
    weighted = build(n_clusters=2, n_init=3, random_state=0, state_names=names).fit(X, sample_weight=weights)
    repeated = build(n_clusters=2, n_init=3, random_state=0, state_names=names).fit(kept)
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.log_likelihood_ == repeated.log_likelihood_
    half = build(n_clusters=2, n_init=3, random_state=0, state_names=names).fit(X, sample_weight=weights + 0.5)
    assert np.isfinite(half.log_likelihood_) and half.log_likelihood_ < weighted.log_likelihood_


# ------------------------------------------------------------------------------------------------ networks


def test_both_faces_give_the_same_tables():
    X, _ = table(120)
    X = X.mask(np.random.default_rng(3).random(X.shape) < 0.1)
    structure = DiscreteBayesianNetwork([("cluster", column) for column in X], latents={"cluster"})
    for averaging in ("linear", "variational"):
        one = EMAClusterer(n_clusters=3, averaging=averaging, n_init=9, random_state=5).fit(X)
        other = EMAEstimator(latent_card={"cluster": 3}, averaging=averaging, n_init=9, seed=5).fit(structure, X)
        for cpd in other.parameters_:
            np.testing.assert_array_equal(cpd.values, one.model_.get_cpds(cpd.variable).values)
        assert other.log_likelihood_ == one.log_likelihood_
        pd.testing.assert_series_equal(other.arc_posterior_, one.arc_posterior_)
    complete, _ = table(120)
    structure = DiscreteBayesianNetwork([("cluster", column) for column in complete], latents={"cluster"})
    em = LatentClassClusterer(
        n_clusters=3, n_init=9, starts=Starts(n_final=None, accelerate=False), random_state=5
    ).fit(complete)
    for cpd in EMEstimator(latent_card={"cluster": 3}, n_init=9, seed=5).fit(structure, complete).parameters_:
        np.testing.assert_allclose(cpd.values, em.model_.get_cpds(cpd.variable).values, atol=1e-12)


def test_the_call_of_the_documentation():
    X, _ = table(100)
    model = DiscreteBayesianNetwork([("cluster", column) for column in X], latents={"cluster"})
    fitted = model.fit(X, estimator=EMAEstimator(latent_card={"cluster": 3}, seed=0))
    assert fitted.check_model() and fitted.get_cpds("cluster").cardinality[0] == 3


def test_a_network_as_start_is_matched_by_names_and_keeps_its_order():
    start = start_network(("a", "b"), (2, 3), cluster="kind")
    X = pd.DataFrame({"b": [2, 0, 1, 2, 2], "a": [0, 1, 0, 0, 1]})  # another order than the network's
    model = EMAClusterer(n_clusters=2, init=start, n_init=1, max_iter=0, starts=IGNORE).fit(X)
    for name in ("a", "b"):
        # given tables are normalised to the last digit
        np.testing.assert_allclose(model.model_.get_cpds(name).values, start.get_cpds(name).values, rtol=1e-14)
    np.testing.assert_allclose(model.model_.get_cpds("cluster").values, start.get_cpds("kind").values)
    further = EMAClusterer(
        n_clusters=2, averaging="linear", init=start, n_init=3, max_iter=1, tol=0, starts=IGNORE, random_state=0
    ).fit(X)
    alone = EMAClusterer(n_clusters=2, averaging="linear", init=start, n_init=1, max_iter=1, tol=0, starts=IGNORE).fit(
        X
    )
    assert further.starts_["log_likelihood"][0] == alone.starts_["log_likelihood"][0]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer at least 1"),
        ({"n_clusters": "many"}, "n_clusters='many' must be an integer at least 1"),
        ({"n_clusters": range(0)}, "names no number"),
        ({"n_clusters": None}, "n_clusters=None must be an integer"),
        ({"n_init": 0}, "n_init=0 must be an integer at least 1"),
        ({"combine_starts": "mean"}, "combine_starts='mean' is not one of"),
        ({"starts": Starts(collapse="no")}, "collapse='no' is not one of 'stop', 'ignore'"),
        ({"init": "kmeans"}, "init='kmeans' is not one of"),
        ({"init": 3}, "init=3 is not one of 'auto', 'random', 'em', or a pgmpy network with its CPDs"),
        ({"starts": Starts(n_final=0)}, "n_final=0 must be an integer at least 1, or None"),
        ({"parameter_prior": "flat"}, "parameter_prior='flat' is not one of 'consistent', 'paper'"),
        ({"starts": Starts(accelerate=2)}, "accelerate=2 must be True or False"),
        ({"preset": "book"}, "preset='book' is not one of 'paper'"),
        (
            {"preset": "paper", "starts": Starts(n_final=3)},
            r"preset='paper' sets starts=.*but starts=Starts\(n_final=3\) was",
        ),
        ({"alpha": -1}, "alpha=-1 must be a number"),
        ({"tol": -1}, "tol=-1 must be a number at least 0"),
        ({"equivalent_sample_size": 2.0, "alpha": 0.5}, "exclude each other"),
        ({"init": start_network(n_clusters=3)}, "init has 3 states of 'cluster', but n_clusters=2"),
        ({"init": start_network(("a",), (2,))}, "init has no conditional probabilities for 'b'"),
        ({"n_clusters": range(1, 3), "init": start_network()}, "fixes the number of clusters"),
    ],
)
@BOTH
def test_errors_name_the_parameter(build, parameters, message):
    X = pd.DataFrame({"a": [0, 1, 0, 1], "b": [2, 0, 1, 2]})
    with pytest.raises(ValueError, match=message):
        build(**parameters).fit(X)


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_errors_of_one_class_only():
    X = pd.DataFrame({"a": [0, 1, 0, 1], "b": [2, 0, 1, 2]})
    with pytest.raises(ValueError, match="averaging='mean' is not one of 'linear', 'variational'"):
        EMAClusterer(averaging="mean").fit(X)
    with pytest.raises(ValueError, match="arc_prior names 'z', which is not a column"):
        EMAClusterer(arc_prior={"z": 0.1}).fit(X)
    with pytest.raises(ValueError, match="alpha=0 must be a number greater than 0"):
        EMAClusterer(alpha=0).fit(X)
    with pytest.raises(ValueError, match="a key of alpha='class' is not one of"):
        EMAClusterer(alpha={"class": 1.0}).fit(X)
    with pytest.raises(ValueError, match="init_cpds has no table for 'cluster'"):
        EMAEstimator(init_cpds={}).fit(DiscreteBayesianNetwork([("cluster", "a")], latents={"cluster"}), X)
    with pytest.raises(ValueError, match="alpha=0 leaves no evidence"):
        LatentClassClusterer(n_clusters=range(1, 3), alpha=0).fit(X)
    tree = start_network()
    tree.add_edge("a", "b")
    with pytest.raises(ValueError, match="the arc 'a' -> 'b' is not naive Bayes below 'cluster'"):
        EMAClusterer(n_clusters=2, init=tree).fit(X)
    with pytest.raises(ValueError, match="the arc 'a' -> 'b' is not naive Bayes below 'cluster'"):
        EMAEstimator().fit(DiscreteBayesianNetwork([("cluster", "a"), ("a", "b")], latents={"cluster"}), X)
    with pytest.raises(ValueError, match="'cluster' is also a column of X"):
        LatentClassClusterer().fit(X.assign(cluster=1))


def test_arc_prior_by_column_and_alpha_by_role():
    X, _ = table()
    free = EMAClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    tied = EMAClusterer(n_clusters=2, arc_prior={"colour": 0.0, "noise0": 1.0}, n_init=4, random_state=0).fit(X)
    assert tied.arc_posterior_["colour"] == 0.0 and tied.arc_posterior_["noise0"] == 1.0
    assert tied.cluster_dependence_["colour"] < 1e-12 < free.cluster_dependence_["colour"]
    spread = EMAClusterer(n_clusters=2, alpha={"dependent": 5.0}, n_init=4, random_state=0).fit(X)
    assert spread.cluster_dependence_["colour"] < free.cluster_dependence_["colour"]  # a stronger prior pulls together


@BOTH
def test_until_replicated_and_progress(build, capsys, monkeypatch):
    monkeypatch.setattr("pgm_bma.foundation.runtime.jobs.DELAY", 0)
    X, _ = table()
    model = build(n_clusters=2, n_init="until-replicated", random_state=0, verbose=1).fit(X)
    assert 2 <= len(model.starts_) <= 200
    assert "starts" in capsys.readouterr().err


@BOTH
def test_questions_are_checked(build):
    X, _ = table(60)
    model = build(n_init=2, random_state=0).fit(X)
    for ask, message in (
        (lambda: model.start_model(2), "start=2 must be an integer at least 0 and at most 1"),
        (lambda: model.get_support(None), "threshold=None must be a number"),
        (lambda: model.describe(-1), "n_states=-1 must be an integer at least 0"),
        (lambda: model.score(X.iloc[:0]), "X has no rows"),
        (lambda: model.bic(X.iloc[:0]), "X has no rows"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_without_a_prior_the_columns_have_no_ranking():
    X, _ = table(60)
    model = LatentClassClusterer(alpha=0, n_init=2, random_state=0).fit(X)
    assert model.arc_posterior_.isna().all()
    for ask in (model.get_support, model.top_structures, lambda: model.feature_importances_):
        with pytest.raises(ValueError, match="alpha=0 leaves the arcs without a posterior"):
            ask()


def test_impossible_rows_get_the_sizes_of_the_clusters():
    X = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]})
    states = [range(2), range(2)]
    tables = [np.eye(2), np.eye(2)]
    init = augmented_network("cluster", range(2), [0.3, 0.7], ("a", "b"), states, tables, latent=True)
    model = LatentClassClusterer(alpha=0, init=init, n_init=1, max_iter=0).fit(X)
    rows = pd.DataFrame({"a": [0, 0], "b": [0, 1]})
    np.testing.assert_allclose(model.predict_proba(rows), [[1, 0], [0.3, 0.7]])
    assert model.predict(rows).tolist() == [0, 1]
    assert model.score_samples(rows)[1] == -np.inf
    # a row of weight 0 is absent, impossible or not
    assert model.score(rows, sample_weight=[1, 0]) == pytest.approx(np.log(0.3))


def test_a_start_that_finds_the_data_impossible_has_score_minus_infinity():
    X = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]})
    tables = [np.array([[1.0, 0.0], [1.0, 0.0]]), np.full((2, 2), 0.5)]
    init = augmented_network("cluster", range(2), [0.3, 0.7], ("a", "b"), [range(2)] * 2, tables, latent=True)
    for averaging in ("linear", "variational"):
        model = EMAClusterer(averaging=averaging, init=init, n_init=1, starts=IGNORE).fit(X)
        assert model.score_path_[0] == -np.inf and np.isfinite(model.score_path_[1:]).all()


def test_em_estimator_takes_collapsed_starts_when_told_to_ignore_collapse():
    X, _ = table(n_noise=0)
    X = X.drop(columns="shape")
    equal = augmented_network(
        "cluster", range(2), [0.5, 0.5], list(X), [range(2)] * 2, [np.full((2, 2), 0.5)] * 2, latent=True
    )
    network = DiscreteBayesianNetwork([("cluster", name) for name in X], latents={"cluster"})
    options = {"n_init": 3, "combine_starts": "uniform"}
    for collapse, weight in (("stop", 0.0), ("ignore", 1 / 3)):
        face = EMEstimator(collapse=collapse, seed=2, init_cpds=equal, **options).fit(network, X)
        twin = LatentClassClusterer(starts=Starts(collapse=collapse), random_state=2, init=equal, **options).fit(X)
        np.testing.assert_array_equal(face.starts_["weight"], twin.starts_["weight"])
        assert face.starts_["weight"][0] == pytest.approx(weight)


def test_ema_estimator_warns_when_cut_short_and_takes_none_for_auto():
    X, _ = table(60)
    network = DiscreteBayesianNetwork([("cluster", name) for name in X], latents={"cluster"})
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        EMAEstimator(latent_card={"cluster": 2}, n_init=2, max_iter=1, seed=0).fit(network, X)
    with pytest.raises(ValueError, match="latent_card does not say how many clusters"):
        EMAEstimator(n_init=2, seed=0).fit(network, X)
    settings = {"latent_card": {"cluster": 2}, "n_init": 2, "seed": 0}
    none, auto = (EMAEstimator(**settings, init_cpds=init).fit(network, X) for init in (None, "auto"))
    assert none.log_likelihood_ == auto.log_likelihood_


@BOTH
def test_a_large_table_has_fewer_starts(build, monkeypatch):
    X, _ = table(600)
    named = build(n_init=8, random_state=0).fit(X)
    monkeypatch.setattr("pgm_bma.latent_class.loop.ALL_STARTS_CELLS", 1)
    with pytest.warns(UserWarning, match="8 of the 12 starts are run"):
        few = build(n_init=12, random_state=0).fit(X)
    assert len(few.starts_) == 8 and few.log_likelihood_ == named.log_likelihood_  # start i is the same
    assert len(build(n_init=12, starts=Starts(n_final=None), random_state=0).fit(X).starts_) == 12
    assert len(build(n_clusters=range(1, 4), n_init=8, random_state=0).fit(X).n_clusters_path_) == 3


def warned(fit):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in seen if "the table is large" in str(one.message)]


@BOTH
def test_a_scan_says_that_it_has_fewer_starts_whatever_number_is_chosen(build, monkeypatch):
    """The starts that splits and merges add are not among those asked for; and the largest number has the fewest."""
    X, _ = table(600)
    rows = X.drop_duplicates()
    monkeypatch.setattr("pgm_bma.latent_class.cluster_number.MOST_CELLS", 0)
    monkeypatch.setattr("pgm_bma.latent_class.loop.ALL_STARTS_CELLS", 1)
    asked = {"random_state": 0, "n_init": 12}
    (message,) = warned(lambda: build(n_clusters=range(1, 5), **asked).fit(rows))
    assert "with 4 clusters, 8 of the 12 starts are run. n_init=8 asks for no more" in message
    assert not warned(lambda: build(n_clusters=range(1, 5), n_init=8, random_state=0).fit(rows))
    assert not warned(lambda: build(n_clusters=[2, 4], starts=Starts(n_final=None), **asked).fit(rows))
    monkeypatch.setattr("pgm_bma.latent_class.cluster_number.MOST_CELLS", 10**6)  # more starts than asked for
    assert not warned(lambda: build(n_clusters=[1, 2], **asked).fit(rows))


def test_ema_estimator_says_that_it_has_fewer_starts(monkeypatch):
    X, _ = table(60)
    network = DiscreteBayesianNetwork([("cluster", name) for name in X], latents={"cluster"})
    monkeypatch.setattr("pgm_bma.latent_class.loop.ALL_STARTS_CELLS", 1)
    with pytest.warns(UserWarning, match="8 of the 12 starts are run"):
        found = EMAEstimator(latent_card={"cluster": 2}, n_init=12, seed=0).fit(network, X)
    assert len(found.starts_) == 8
