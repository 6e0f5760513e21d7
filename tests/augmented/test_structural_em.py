"""StructuralEMClusterer: vectors, literal twin, acceptance on the paper's data, and everything the face promises."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import pgm_bma
from benchmarks._random_models import random_augmented_naive_bayes
from pgm_bma import StructuralEMClusterer, load_dataset, simulate
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.structural_em import StructuralEMSettings, run_structural_em
from pgm_bma.augmented.structures import COMPLETIONS, AugmentedModel
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.objects import bayesian_network
from tests.augmented.test_bound_collapse import columns, data_of, network_of
from tests.oracles import structural_em as oracle

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "structural_em.json").read_text())["cases"]
vectors = pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
SEEDS = st.integers(0, 2**32 - 1)
LOG10 = math.log(10)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs on purpose


def arcs_between_columns(clusterer):
    return {arc for arc in clusterer.causal_graph_.edges if clusterer.cluster_name not in arc}


def clustered(n_rows=300, seed=0, missing=0.0):
    """Two clusters in columns a to e, and a last column g that copies f, whatever the cluster."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n_rows)
    noisy = np.where(rng.random((n_rows, 5)) < 0.85, z[:, None], 1 - z[:, None])
    first = rng.integers(0, 3, n_rows)
    copy = np.where(rng.random(n_rows) < 0.9, first, rng.integers(0, 3, n_rows))
    frame = pd.DataFrame(np.column_stack([noisy, first, copy]), columns=list("abcdefg")).astype("Int64")
    return frame.mask(rng.random(frame.shape) < missing), z


# ------------------------------------------------------------------------------------------------ vectors

RUNS = {
    "bsem": {"preset": "paper"},
    "bsbcem_released": {"preset": "paper", "parameters": "bound_collapse"},
    "bsbcem_alternating": {"preset": "paper", "parameters": "bound_collapse_alternating"},
    "bsem_soft_score_branching": {"convergence": "log_likelihood", "n_init": 1},
}


@vectors
@pytest.mark.parametrize("run", RUNS)
def test_structural_runs_of_the_vectors(case, run):
    expected = case[run]
    start = network_of(case, case["initial_naive"], [-1] * len(case["cardinalities"]))
    X = data_of(case)
    clusterer = StructuralEMClusterer(case["clusters"], init=start, **RUNS[run]).fit(X)
    names = columns(case)
    arcs = {(names[p], names[i]) for i, p in enumerate(expected["parents"]) if p >= 0}
    assert arcs_between_columns(clusterer) == arcs
    assert clusterer.n_em_updates_ == expected["em_iterations"]
    assert clusterer.n_iter_ == expected["structure_rounds"] == len(clusterer.score_path_) - 1
    network = network_of(case, expected["model"], expected["parents"])
    for cpd in clusterer.model_.cpds:
        np.testing.assert_allclose(cpd.values, network.get_cpds(cpd.variable).values, atol=1e-9)
    assert clusterer.completed_score(X) / LOG10 == pytest.approx(expected["sc_final_log10"], abs=1e-9)
    assert clusterer.cheeseman_stutz_ / LOG10 == pytest.approx(expected["cs_log10"], abs=1e-9)
    assert clusterer.log_likelihood_ / LOG10 == pytest.approx(expected["obs_log10"], abs=1e-9)
    assert len(set(clusterer.labels_)) == expected["clusters_used_by_hard_completion"]
    if "preset" in RUNS[run]:
        ends = expected["sc_initial_log10"], expected["sc_final_log10"]
        np.testing.assert_allclose(clusterer.score_path_[[0, -1]] / LOG10, ends, atol=1e-9)


@vectors
def test_family_scores_of_the_vectors(case):
    start = network_of(case, case["initial"])
    X = data_of(case)
    clusterer = StructuralEMClusterer(case["clusters"], init=start, n_init=1, max_iter=1).fit(X)
    wanted = case["structure_soft_posterior_initial"]["family_scores"]
    wanted = np.array([[np.nan if v is None else v for v in line] for line in wanted])
    np.testing.assert_allclose(clusterer.family_scores(X, case["posterior_initial"]), wanted, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(["em", "released", "alternating"]), st.sampled_from(["most_probable", "expected"]))
def test_paper_mode_equals_the_literal_loop(seed, how, completion):
    rng = np.random.default_rng(seed)
    cards = [2, 3, 2]
    rows = np.column_stack([rng.integers(0, r, 20) for r in cards])
    parameters = anb.random_parameters(anb.make_layout([-1] * 3, cards), 2, rng)
    literal = parameters.class_probs.tolist(), [t.tolist() for t in np.split(parameters.table.T, [2, 5], axis=1)]
    literal = literal[0], [[[line] for line in t] for t in literal[1]]
    settings_ = StructuralEMSettings(
        parameters="em" if how == "em" else "bound_collapse",
        bound_collapse_loop="released" if how == "em" else how,
        search="hill_climb",
        completion=completion,
        convergence="completed_score",
    )
    run = run_structural_em(
        AugmentedModel.build(anb.make_cases(rows, cards), [-1] * 3, settings_.prior), parameters, settings_
    )
    model, parents, updates, scores = oracle.structural_em(
        literal, rows.tolist(), cards, parameters_by=how, completion=completion
    )
    assert run.parents.tolist() == parents and run.n_em_updates == updates
    np.testing.assert_allclose(run.scores[1:], scores, rtol=1e-10)
    np.testing.assert_allclose(run.parameters.class_probs, model[0], atol=1e-9)
    np.testing.assert_allclose(run.parameters.table, anb.pack_tables(model[1]), atol=1e-9)


# ------------------------------------------------------------------------------------------------ acceptance


@pytest.mark.parametrize(
    "parameters, mean, spread", [("em", -3941, 9), ("bound_collapse", -3927, 9)], ids=["BS-EM", "BS-BC+EM"]
)
def test_tic_tac_toe_in_paper_mode(parameters, mean, spread):
    """Mean of 20 runs inside the range of the reference runs, which themselves agree with the published table."""
    X = load_dataset("tic-tac-toe")[0].drop(columns="class")
    scores = [
        StructuralEMClusterer(2, preset="paper", parameters=parameters, random_state=seed).fit(X).score_path_[-1]
        for seed in range(20)
    ]
    assert abs(np.mean(scores) / LOG10 - mean) <= spread


@pytest.mark.parametrize("parameters, mean", [("em", -3941), ("bound_collapse", -3927)])
def test_tic_tac_toe_by_default(parameters, mean):
    X = load_dataset("tic-tac-toe")[0].drop(columns="class")
    found = [
        StructuralEMClusterer(2, parameters=parameters, random_state=seed).fit(X).completed_score(X) / LOG10
        for seed in range(3)
    ]
    assert np.median(found) >= mean


def test_one_cluster_beats_the_published_figures():
    """Nursery is a full factorial: there is nothing to cluster, and the number of clusters says so."""
    X = load_dataset("nursery")[0].drop(columns="class")
    clusterer = StructuralEMClusterer(range(1, 4), n_init=1, random_state=0).fit(X)
    assert clusterer.n_clusters_ == 1 and not arcs_between_columns(clusterer)
    assert clusterer.completed_score(X) / LOG10 == pytest.approx(-53334.0, abs=0.05)  # read to one digit
    assert clusterer.n_clusters_path_["n_clusters"].tolist() == [1, 2, 3]
    assert clusterer.n_clusters_path_["score"].is_monotonic_decreasing
    board = load_dataset("tic-tac-toe")[0].drop(columns="class")
    one = StructuralEMClusterer(1, random_state=0).fit(board)
    assert one.completed_score(board) / LOG10 == pytest.approx(-3933.7, abs=0.05)


# ------------------------------------------------------------------------------------------------ properties


CHOICES = st.fixed_dictionaries(
    {
        "parameters": st.sampled_from(["em", "bound_collapse", "bound_collapse_alternating"]),
        "search": st.sampled_from(["branching", "hill_climb"]),
        "completion": st.sampled_from(COMPLETIONS),
        "convergence": st.sampled_from(["log_posterior", "log_likelihood", "completed_score"]),
        "init": st.sampled_from(["naive_bayes", "tree"]),
        "alpha": st.sampled_from([1.0, 0.5, 0.0]),
    }
)


@settings(max_examples=30, deadline=None)
@given(SEEDS, CHOICES, st.sampled_from([0.0, 0.15]))
def test_the_loop_never_lowers_its_own_score(seed, choices, missing):
    X, _ = clustered(60, seed, missing)
    clusterer = StructuralEMClusterer(2, n_init=1, random_state=seed, **choices).fit(X)
    path = clusterer.score_path_
    assert len(path) == clusterer.n_iter_ + 1 and len(clusterer.structure_path_) == clusterer.n_iter_ - 1
    assert np.diff(path[1:]).min(initial=0.0) >= -1e-9 * abs(path[-1])  # rounding of sums over the rows
    weights = np.bincount(clusterer.labels_, minlength=2)
    assert clusterer.predict_proba(X).sum(axis=0) == pytest.approx(weights, abs=len(X))
    total = clusterer.score(X) * len(X)
    assert clusterer.log_likelihood_ == pytest.approx(total, rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.2]))
def test_structure_changes_add_up(seed, missing):
    X, _ = clustered(80, seed, missing)
    clusterer = StructuralEMClusterer(2, n_init=1, init="naive_bayes", random_state=seed).fit(X)
    arcs = set()
    for step in clusterer.structure_path_:
        arcs |= set(step["added"])
        arcs -= set(step["removed"])
        for parent, child in step["reversed"]:
            arcs.remove((parent, child))
            arcs.add((child, parent))
    assert arcs == arcs_between_columns(clusterer)


def test_it_finds_clusters_and_the_dependence_inside_them():
    X, z = clustered(500)
    clusterer = StructuralEMClusterer(2, n_init=4, random_state=0).fit(X)
    agreement = (clusterer.labels_ == z).mean()
    assert max(agreement, 1 - agreement) > 0.9
    assert {frozenset(arc) for arc in arcs_between_columns(clusterer)} == {frozenset("fg")}
    choice = StructuralEMClusterer(range(1, 5), n_init=4, random_state=0).fit(X)
    assert choice.n_clusters_ == 2 and choice.n_clusters_path_["score"].idxmax() == 1
    assert choice.cheeseman_stutz_ == choice.n_clusters_path_["score"].max()
    path = choice.n_clusters_path_
    gain = path["score"] - path["score"].max()  # equal weights of the numbers before the data
    assert list(path)[1:3] == ["score", "probability"]
    np.testing.assert_allclose(path["probability"], np.exp(gain) / np.exp(gain).sum(), rtol=1e-9)


def test_the_tree_start_helps_on_a_dense_truth():
    model = random_augmented_naive_bayes(15, 3, 14, cardinalities=[2] * 15, random_state=0)
    X = simulate(model, 1500, random_state=1).drop(columns=list(model.latents) or ["cluster"], errors="ignore")
    both = StructuralEMClusterer(3, n_init=6, random_state=0).fit(X)
    assert set(both.starts_["init"]) == {"naive_bayes", "tree"}
    best = both.starts_.groupby("init")["score"].max()
    assert best["tree"] >= best["naive_bayes"] - 1e-6


# ------------------------------------------------------------------------------------------------ starts and seeds


def test_start_i_does_not_depend_on_n_init_and_n_jobs():
    X, _ = clustered(100)
    few = StructuralEMClusterer(2, n_init=3, random_state=5).fit(X).starts_
    many = StructuralEMClusterer(2, n_init=6, random_state=5, n_jobs=2).fit(X).starts_
    pd.testing.assert_frame_equal(few.drop(columns="weight"), many.iloc[:3].drop(columns="weight"))
    assert many["weight"].sum() == 1 and many["score"].idxmax() == many["weight"].idxmax()


def test_clusters_are_numbered_by_probability_unless_a_network_orders_them():
    X, _ = clustered(200)
    clusterer = StructuralEMClusterer(3, n_init=2, random_state=0).fit(X)
    sizes = clusterer.model_.get_cpds("cluster").values
    assert (np.diff(sizes) <= 0).all()
    arrays = pgm_bma.networks.objects.network_arrays(clusterer.model_)
    order = [2, 0, 1]
    turned = [arrays.cpts[0][:, order]]
    for cpt, ps in zip(arrays.cpts[1:], arrays.parents[1:]):
        assert ps[0] == 0
        turned.append(cpt.reshape(3, -1, cpt.shape[1])[order].reshape(cpt.shape))
    init = bayesian_network(arrays.names, arrays.states, arrays.parents, turned, latents=["cluster"])
    again = StructuralEMClusterer(3, init=init, n_init=1).fit(X)
    assert again.starts_["init"].tolist() == ["network"]
    np.testing.assert_allclose(again.model_.get_cpds("cluster").values, sizes[order], atol=0.02)  # a few more updates
    assert list(again.model_.get_cpds("cluster").state_names["cluster"]) == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_init_networks_that_do_not_fit_name_the_arc():
    X = pd.DataFrame({"a": [0, 1, 0, 1], "b": [0, 1, 1, 0], "c": [1, 1, 0, 0]})
    half, two = [[0.5, 0.5]], [(0, 1)] * 4

    def init(parents):
        tables = [np.repeat(half, 2 ** len(ps), axis=0) for ps in parents]
        return bayesian_network(["h", "a", "b", "c"], two, parents, tables, latents=["h"])

    for parents, message in (
        ([(), (0,), (0,), ()], "'cluster' -> 'c' is missing"),
        ([(), (0,), (0, 1), (0, 1, 2)], "'b' -> 'c' is one too many"),
        ([(1,), (), (0,), (0,)], "'a' -> 'cluster' is not augmented"),
    ):
        with pytest.raises(ValueError, match=message):
            StructuralEMClusterer(2, init=init(parents)).fit(X)
    with pytest.raises(ValueError, match="2 states of 'h', but n_clusters=3"):
        StructuralEMClusterer(3, init=init([(), (0,), (0,), (0,)])).fit(X)
    with pytest.raises(ValueError, match="init has no conditional probabilities for 'd'"):
        StructuralEMClusterer(2, init=init([(), (0,), (0,), (0,)])).fit(X.assign(d=0))
    general = StructuralEMClusterer(2, init=init([(), (0,), (0, 1), (0, 1, 2)]), structures="general", n_init=1)
    assert general.fit(X).n_clusters_ == 2


def test_presets_and_parameters_are_checked():
    X, _ = clustered(30)
    with pytest.raises(
        ValueError, match=r"preset='paper' sets completion='most_probable'.*completion='expected'|drop one"
    ):
        StructuralEMClusterer(2, preset="paper", n_init=3).fit(X)
    for name, value in {
        "parameters": "gradient",
        "search": "tabu",
        "completion": "hard",
        "convergence": "never",
        "init": "forest",
        "structures": "trees",
        "n_clusters": None,
        "alpha": -1.0,
        "max_indegree": 0,
        "n_init": 0,
        "tol": -1.0,
    }.items():
        with pytest.raises(ValueError, match=name):
            StructuralEMClusterer(**{"n_clusters": 2, name: value}).fit(X)
    with pytest.raises(ValueError, match="names no number"):
        StructuralEMClusterer(range(2, 2)).fit(X)


def test_cut_short_runs_warn():
    X, _ = clustered(100)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        clusterer = StructuralEMClusterer(2, n_init=1, max_iter=2, random_state=0).fit(X)
    assert not clusterer.converged_


@pytest.mark.filterwarnings("error")
def test_all_updates_on_purpose_is_no_warning():
    X, _ = clustered(100)
    StructuralEMClusterer(2, n_init=1, max_iter=2, tol=0, random_state=0).fit(X)


def impossible_start(X):
    """Naive Bayes over X in which column a is always 0."""
    names, states = list(X), [sorted(set(X[name])) for name in X]
    tables = [np.full((2, len(s)), 1 / len(s)) for s in states]
    tables[0] = np.array([[1.0, 0.0], [1.0, 0.0]])
    sizes = np.array([[0.5, 0.5]])
    return bayesian_network(["h", *names], [range(2), *states], [(), *[(0,)] * len(names)], [sizes, *tables], ["h"])


def test_a_start_that_finds_a_row_impossible():
    X, _ = clustered(50)
    X = X.astype(int).sort_values("a", ascending=False, ignore_index=True)
    start = impossible_start(X)
    clusterer = StructuralEMClusterer(2, init=start, n_init=1).fit(X)
    assert clusterer.score_path_[0] == -np.inf and np.isfinite(clusterer.score_path_[1:]).all()
    with pytest.raises(ImpossibleEvidence) as caught:
        StructuralEMClusterer(2, init=start, n_init=1, structures="general").fit(X)
    assert X.loc[caught.value.row, "a"] == 1  # named as it stands in the data


def test_a_cluster_far_behind_keeps_its_log_probability():
    n = 900
    far = np.array([[0.999, 0.001], [0.001, 0.999]]).reshape(2, 1, 2)
    parameters = anb.Parameters(np.array([0.5, 0.5]), anb.pack_tables([far] * n))
    codes = np.zeros((2, n), dtype=int)
    codes[1, 0] = -1
    found = anb.log_joint(codes, np.full(n, 2), np.full(n, -1), parameters)
    seen = np.array([[n], [n - 1]])
    np.testing.assert_allclose(found, np.log(0.5) + seen * np.log([0.999, 0.001]), rtol=1e-12)


# ------------------------------------------------------------------------------------------------ results


@pytest.mark.parametrize("structures", ["augmented", "general"])
def test_results_hang_together(structures):
    X, _ = clustered(150, missing=0.1)
    how = {"n_init": 2, "random_state": 0, "structures": structures, "max_indegree": 2}
    clusterer = StructuralEMClusterer(2, **how).fit(X)
    joint = clusterer._log_joint(clusterer._encode(X))
    for i in (0, 1, 7):
        evidence = clusterer.explain(X.iloc[i])
        np.testing.assert_allclose(evidence.sum(), joint[i], atol=1e-9)
        assert (evidence.loc[[c for c in X.columns if pd.isna(X.iloc[i][c])]].abs() < 1e-12).all().all()
    cpds = clusterer.model_.cpds
    assert clusterer._n_parameters() == sum((len(c.values) - 1) * c.values[0].size for c in cpds)
    expected = -2 * clusterer.score(X) * len(X) + clusterer._n_parameters() * np.log(len(X))
    assert clusterer.bic(X) == pytest.approx(expected)
    sizes, tables = clusterer._profiles()
    np.testing.assert_allclose([t.sum(axis=1) for t in tables], 1.0, atol=1e-9)
    rows, labels = clusterer.sample(40000, random_state=0)
    np.testing.assert_allclose(np.bincount(labels, minlength=2) / 40000, sizes, atol=0.02)  # 8 standard errors
    overall = rows["f"].value_counts(normalize=True).sort_index().to_numpy()
    np.testing.assert_allclose(overall, sizes @ tables[5], atol=0.02)
    assert set(clusterer.describe()["cluster"]) == {0, 1}
    assert type(clusterer.causal_graph_).__name__ == "DAG" and clusterer.causal_graph_.latents == {"cluster"}
    for completion in COMPLETIONS[: 2 if structures == "general" else 3]:  # X has missing cells
        assert clusterer.completed_score(X, completion) < clusterer.cheeseman_stutz_ + 1e-6
    weights = np.arange(len(X)) % 3
    repeated = X.iloc[np.repeat(np.arange(len(X)), weights)]
    assert clusterer.completed_score(X, sample_weight=weights) == pytest.approx(clusterer.completed_score(repeated))


def test_family_scores_and_missing_cells():
    X, _ = clustered(120, missing=0.1)
    clusterer = StructuralEMClusterer(2, n_init=1, random_state=0).fit(X)
    scores = clusterer.family_scores(X)
    assert scores.shape == (7, 8) and np.isnan(scores[np.arange(7), np.arange(7) + 1]).all()
    assert scores[6, 6] > scores[6, 0]  # column g below the cluster and f
    with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
        clusterer.family_scores(X, np.ones((3, 2)))
    with pytest.raises(ValueError, match="negative, infinite or NaN"):
        clusterer.family_scores(X, np.full((120, 2), np.nan))
    general = StructuralEMClusterer(2, n_init=1, random_state=0, structures="general").fit(X)
    with pytest.raises(ValueError, match="'a' has missing cells"):
        general.family_scores(X)
    complete = X.dropna()
    np.testing.assert_allclose(
        general.family_scores(complete, clusterer.predict_proba(complete)),
        clusterer.family_scores(complete),
        rtol=1e-10,
    )


def test_a_general_structure_may_have_two_parents_between_columns():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 600))
    both = (a ^ b) ^ (rng.random(600) < 0.05)
    z = rng.integers(0, 2, 600)
    noisy = np.where(rng.random((600, 5)) < 0.9, z[:, None], 1 - z[:, None])
    X = pd.DataFrame(np.column_stack([a, b, both, noisy]), columns=list("abcvwxyz"))
    start = StructuralEMClusterer(2, structures="general", n_init=2, random_state=0).fit(X)
    widest = max(len(list(start.causal_graph_.predecessors(node))) for node in X.columns)
    assert widest <= 3 and np.diff(start.score_path_[1:]).min(initial=0) >= -1e-9
    limited = StructuralEMClusterer(2, structures="general", max_indegree=1, n_init=1, random_state=0).fit(X)
    assert max(len(list(limited.causal_graph_.predecessors(node))) for node in limited.model_.nodes()) == 1
    labels = start.labels_
    agreement = (labels == z).mean()
    assert max(agreement, 1 - agreement) > 0.9


def test_equivalent_sample_size_and_declared_states():
    X, _ = clustered(100)
    clusterer = StructuralEMClusterer(
        2, equivalent_sample_size=2.0, n_init=2, random_state=0, state_names={"f": [0, 1, 2, 9]}
    ).fit(X)
    assert clusterer.predict_proba({**X.iloc[0], "f": 9}).sum() == pytest.approx(1)
    assert clusterer.model_.check_model()
    with pytest.raises(ValueError, match="exclude each other"):
        StructuralEMClusterer(2, alpha=0.5, equivalent_sample_size=2.0).fit(X)


def test_a_column_of_many_states_with_gaps_does_not_square_all_others():
    """It took (columns x states of the widest)^2 cells: 46 GB here."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (60, 150)).astype(float)).rename(columns=str)
    X["id"] = np.arange(60)
    X = X.mask(rng.random(X.shape) < 0.01)
    states = {"id": range(500)}
    clusterer = StructuralEMClusterer(1, n_init=1, init="naive_bayes", max_iter=2, state_names=states).fit(X)
    assert np.isfinite(clusterer.log_likelihood_)


def test_too_many_states_are_refused_before_the_memory_is_taken():
    X = pd.DataFrame(np.zeros((2, 10_000), dtype=int)).rename(columns=str)
    with pytest.raises(ValueError, match=r"10000 columns have 20000 states.*in 3 clusters.*select columns first"):
        StructuralEMClusterer(range(1, 4), state_names={name: [0, 1] for name in X}).fit(X)


def test_wide_tables_are_scored_some_columns_at_a_time(monkeypatch):
    """The same scores, structures and clusters, with blocks of one to three columns; rows with gaps are counted at once."""
    X, _ = clustered()
    whole = StructuralEMClusterer(2, n_init=3, random_state=0).fit(X)
    monkeypatch.setattr("pgm_bma.augmented.search.WIDE", 5)
    monkeypatch.setattr("pgm_bma.foundation.numbers.pairs._BLOCK_CELLS", 120)
    blocks = StructuralEMClusterer(2, n_init=3, random_state=0).fit(X)
    np.testing.assert_allclose(blocks.family_scores(X), whole.family_scores(X), rtol=1e-12)  # rounding of sums
    np.testing.assert_allclose(blocks.starts_["score"], whole.starts_["score"], rtol=1e-10)
    assert blocks.causal_graph_.edges == whole.causal_graph_.edges
    np.testing.assert_allclose(blocks.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    gaps = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
    assert np.isfinite(StructuralEMClusterer(2, n_init=2, random_state=0).fit(gaps).log_likelihood_)


@pytest.mark.parametrize("choices", [{}, {"search": "hill_climb", "completion": "most_probable"}])
def test_starts_that_meet_share_their_work(monkeypatch, choices):
    """On clear clusters most starts come by the same completion; each ends where it would have ended alone."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    X = pd.DataFrame(np.where(rng.random((60, 80)) < 0.9, labels[:, None], 1 - labels[:, None])).rename(columns=str)
    X["79"] = X["78"]
    asked, plain = [], AugmentedModel.family_scores

    def counted(self, parameters, responsibilities, completion):
        asked.append(1)
        return plain(self, parameters, responsibilities, completion)

    monkeypatch.setattr(AugmentedModel, "family_scores", counted)
    together = StructuralEMClusterer(2, n_init=6, random_state=0, **choices).fit(X)
    n_shared = len(asked)
    monkeypatch.setattr(AugmentedModel, "_is_shared", lambda self, n_clusters: False)
    alone = StructuralEMClusterer(2, n_init=6, random_state=0, **choices).fit(X)
    assert n_shared < (len(asked) - n_shared) / 2
    # responsibilities are rounded to 2^-48 before pairs are counted
    np.testing.assert_allclose(together.starts_["score"], alone.starts_["score"], rtol=1e-12)
    assert together.structure_path_ == alone.structure_path_
    np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=1e-12)


def test_a_tiny_prior_sees_every_count():
    """Rounded to 2^-48, counts near nothing would be worth hundreds of nats: then starts share nothing."""
    X, _ = clustered()
    for prior in ({"alpha": 1e-9}, {"equivalent_sample_size": 1e-6}):
        start = StructuralEMClusterer(2, n_init=1, random_state=0, **prior).fit(X)
        model = start._model_of(start._encode(X), None)
        assert not model._is_shared(2)
        parameters = model.random_parameters(2, np.random.default_rng(0))
        model.next_structure(parameters, model.responsibilities(parameters), "branching", "expected")
        assert not model.known.structures


@pytest.mark.filterwarnings("ignore:column 'id' names the rows")  # expected of this table
def test_columns_of_very_many_states_are_refused_by_name():
    X = pd.DataFrame({"few": [0, 1] * 5000, "id": range(10_000)})
    with pytest.raises(ValueError, match=r"10002 states together, 'id' alone 10000; .* and the limit is 67,108,864"):
        StructuralEMClusterer(2).fit(X)


def test_starts_relevance_and_structure_are_told_alike():
    X, _ = clustered()
    clusterer = StructuralEMClusterer(2, n_init=3, random_state=0).fit(X)
    common = ["start", "stage", "score", "log_likelihood", "cheeseman_stutz", "converged", "n_iter", "weight"]
    assert clusterer.starts_.columns[:8].tolist() == common and clusterer.starts_["weight"].sum() == 1
    relevance = clusterer.feature_importances_
    assert relevance[:5].min() > 10 * relevance[5:].max()  # f and g do not depend on the cluster
    general = StructuralEMClusterer(2, n_init=2, structures="general", random_state=0).fit(X)
    assert general.feature_importances_.shape == (7,)
