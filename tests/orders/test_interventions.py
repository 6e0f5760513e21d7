"""Rows of experiments: a row in which a variable was set does not count in that variable's own family."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgm_bma import FixedOrderClassifier, GibbsSampler, OrderAveragedClassifier, OrderPosterior, SwapSampler, load, save
from pgm_bma.orders.families.family_table import family_table, grow_lists, prune_table
from pgm_bma.orders.gaps import augment
from tests.oracles.causal import Experiment

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "causal.json").read_text())["cases"]
FREE = {"max_indegree": 3, "structure_prior": "uniform", "parameter_prior": "paper", "random_state": 0}
NAMES = list("abcd")
each_weighting = pytest.mark.parametrize("weighting", ["order", "dag"])


def frame_of(codes, cards):
    return pd.DataFrame(
        {name: pd.Categorical(codes[:, k], categories=range(card)) for k, (name, card) in enumerate(zip(NAMES, cards))}
    )


def experiment(seed=0, n_rows=50, cards=(2, 3, 2, 2)):
    """Rows of a chain a -> b -> c, d alone; a third with one or two variables set."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, card, n_rows) for card in cards])
    for v in (1, 2):
        codes[:, v] = np.where(rng.random(n_rows) < 0.7, codes[:, v - 1] % cards[v], codes[:, v])
    targets = [None] * n_rows
    for row in range(0, n_rows, 3):
        chosen = rng.choice(4, size=1 + row % 2, replace=False)
        targets[row] = NAMES[chosen[0]] if len(chosen) == 1 else [NAMES[v] for v in chosen]
        codes[row, chosen] = [rng.integers(0, cards[v]) for v in chosen]
    return codes, cards, targets


def numbers(targets):
    listed = [() if t is None else (t,) if isinstance(t, str) else t for t in targets]
    return [tuple(NAMES.index(name) for name in t) for t in listed]


@each_weighting
@pytest.mark.parametrize("case", VECTORS, ids=lambda case: f"seed{case['seed']}")
def test_vectors(case, weighting):
    X = frame_of(np.array(case["X"]), case["cards"])
    targets = [None if t < 0 else NAMES[t] for t in case["target"]]
    settings = {**FREE, "equivalent_sample_size": case["ess"], "structure_weighting": weighting}
    posterior = OrderPosterior(**settings).fit(X, interventions=targets)
    np.testing.assert_allclose(posterior.edge_posterior_, case[weighting]["arcs"], atol=1e-9)


@each_weighting
@pytest.mark.parametrize("ess", [None, 2.0])
@pytest.mark.parametrize("is_set", [False, True, "soft"])
def test_arcs_equal_enumeration(weighting, ess, is_set):
    codes, cards, targets = experiment()
    targets = targets if is_set else [None] * len(codes)
    kind = "soft" if is_set == "soft" else "perfect"
    truth = Experiment(codes.tolist(), cards, numbers(targets), weighting, ess=ess, soft=kind == "soft")
    settings = {**FREE, "equivalent_sample_size": ess, "structure_weighting": weighting}
    posterior = OrderPosterior(**settings).fit(
        frame_of(codes, cards), intervention_targets=targets, intervention_type=kind
    )
    np.testing.assert_allclose(posterior.edge_posterior_, truth.arcs(), atol=1e-9)
    if not is_set:
        plain = OrderPosterior(**settings).fit(frame_of(codes, cards))
        np.testing.assert_array_equal(posterior.edge_posterior_, plain.edge_posterior_)


def test_rows_are_judged_by_tables_without_the_rows_in_which_a_variable_was_set():
    codes, cards, targets = experiment()
    posterior = OrderPosterior(**FREE).fit(frame_of(codes, cards), interventions=targets)
    truth = Experiment(codes.tolist(), cards, numbers(targets), "order")
    rows = codes[:4]
    expected = np.zeros(4)
    for share, dag in zip(truth.shares, truth.all_dags):
        tables = [truth.table(v, z) for v, z in enumerate(dag)]
        expected += share * np.array([np.prod([table(row) for table in tables]) for row in rows])
    np.testing.assert_allclose(posterior.log_joint(frame_of(rows, cards)), np.log(expected), atol=1e-9)
    cpd = posterior.model_.get_cpds("b")
    parents = tuple(sorted(NAMES.index(p) for p in posterior.model_.get_parents("b")))
    means = truth.table(1, parents)
    states = [{**dict(zip(parents, row)), 1: k} for row in np.ndindex(*(cards[p] for p in parents)) for k in range(3)]
    order = [NAMES.index(name) for name in cpd.variables]
    values = [cpd.values[tuple(state[v] for v in order)] for state in states]
    np.testing.assert_allclose(values, [means(state) for state in states], atol=1e-9)


def test_weights_are_repetitions_and_a_column_names_the_variables():
    codes, cards, targets = experiment(1)
    weights = np.arange(len(codes)) % 3
    X = frame_of(codes, cards)
    weighted = OrderPosterior(**FREE).fit(X, sample_weight=weights, interventions=targets)
    again = np.repeat(np.arange(len(codes)), weights)
    single = [targets[row] for row in again]
    repeated = OrderPosterior(**FREE).fit(X.iloc[again], interventions=single)
    np.testing.assert_array_equal(weighted.edge_posterior_, repeated.edge_posterior_)
    halves = OrderPosterior(**FREE).fit(
        pd.concat([X, X]), sample_weight=np.r_[weights, weights] / 2, interventions=targets * 2
    )
    np.testing.assert_allclose(halves.edge_posterior_, weighted.edge_posterior_, atol=1e-9)
    named = X.assign(experiment=pd.Series(targets, dtype=object))
    column = OrderPosterior(**FREE).fit(named, sample_weight=weights, interventions="experiment")
    np.testing.assert_array_equal(weighted.edge_posterior_, column.edge_posterior_)
    assert list(column.feature_names_in_) == NAMES


@pytest.mark.parametrize(
    "sampler", [GibbsSampler(tol=0.02), SwapSampler(n_chains=2, n_orders=400, burn_in=500, thin=5)]
)
def test_chains_agree_with_exact_sums(sampler):
    codes, cards, targets = experiment(2)
    exact = OrderPosterior(**FREE).fit(frame_of(codes, cards), interventions=targets)
    chains = OrderPosterior(**FREE, method="mcmc", sampler=sampler).fit(frame_of(codes, cards), interventions=targets)
    np.testing.assert_allclose(chains.edge_posterior_, exact.edge_posterior_, atol=0.04)


def test_chains_over_dags_agree_with_exact_sums():
    codes, cards, targets = experiment(2)
    both = [
        OrderPosterior(**FREE, structure_weighting="dag", method=method, sampler=GibbsSampler(tol=0.02)).fit(
            frame_of(codes, cards), interventions=targets
        )
        for method in ("exact", "mcmc")
    ]
    np.testing.assert_allclose(both[1].edge_posterior_, both[0].edge_posterior_, atol=0.04)


def test_grown_lists_have_the_scores_of_the_full_table():
    codes, cards, targets = experiment(3)
    held = np.zeros((len(codes), 4), dtype=bool)
    for row, some in enumerate(numbers(targets)):
        held[row, list(some)] = True
    full = prune_table(family_table(codes, cards, None, held=held), 1e-9)
    grown = grow_lists(codes, cards, None, held=held, eps=1e-9)
    as_dict = [
        {
            (child, tuple(sorted(lists.sets[k]))): lists.log_scores[k]
            for child in range(4)
            for k in range(lists.offsets[child], lists.offsets[child + 1])
        }
        for lists in (full, grown)
    ]
    assert as_dict[0].keys() == as_dict[1].keys()
    np.testing.assert_allclose([as_dict[1][key] for key in as_dict[0]], list(as_dict[0].values()), atol=1e-9)


def test_experiments_settle_the_direction():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    b = np.where(rng.random(300) < 0.8, a, 1 - a)
    set_b = np.arange(300) < 100
    b[set_b] = rng.integers(0, 2, 100)
    X = pd.DataFrame({"a": a, "b": b})
    seen = OrderPosterior(equivalent_sample_size=1).fit(X[~set_b])
    assert seen.edge_posterior_.loc["a", "b"] == pytest.approx(0.5, abs=0.01)
    posterior = OrderPosterior(equivalent_sample_size=1).fit(X, interventions=np.where(set_b, "b", None))
    assert posterior.edge_posterior_.loc["a", "b"] > 0.99


@each_weighting
@pytest.mark.parametrize("kind", ["perfect", "soft"])
def test_classifiers_learn_from_experiments(weighting, kind):
    codes, cards, targets = experiment()
    X = frame_of(codes, cards)
    truth = Experiment(codes.tolist(), cards, numbers(targets), weighting, soft=kind == "soft")
    settings = {**FREE, "structure_weighting": weighting}
    classifier = OrderAveragedClassifier(**settings).fit(X, "d", interventions=targets, intervention_type=kind)
    np.testing.assert_allclose(classifier.edge_posterior_, truth.arcs(), atol=1e-9)
    named = X.assign(experiment=pd.Series(targets, dtype=object))
    again = OrderAveragedClassifier(**settings).fit(
        named, "d", sample_weight=np.ones(len(X)), intervention_targets="experiment", intervention_type=kind
    )
    np.testing.assert_array_equal(again.predict_proba(X[:5]), classifier.predict_proba(X[:5]))
    np.testing.assert_allclose(classifier.effect("a", "c")["mean"], np.ravel(truth.effect(0, 2)), atol=1e-9)
    rows = np.repeat(codes[:3], 2, axis=0)
    rows[:, 3] = np.tile([0, 1], 3)
    expected = np.zeros(6)
    for share, dag in zip(truth.shares, truth.all_dags):
        tables = [truth.table(v, z) for v, z in enumerate(dag)]
        expected += share * np.array([np.prod([table(row) for table in tables]) for row in rows])
    expected = expected.reshape(3, 2) / expected.reshape(3, 2).sum(1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(X[:3]), expected, atol=1e-9)


@each_weighting
@pytest.mark.parametrize("kind", ["perfect", "soft"])
def test_the_default_prior_has_most_evidence_of_the_rows_with_experiments(weighting, kind):
    codes, cards, targets = experiment()
    posterior = OrderPosterior(structure_weighting=weighting)
    posterior.fit(frame_of(codes, cards), interventions=targets, intervention_type=kind)
    settings = {"structure_prior": "mdl", "soft": kind == "soft"}
    sizes = {
        size: Experiment(codes.tolist(), cards, numbers(targets), weighting, ess=size, **settings)
        for size in (1, 3, 10)
    }
    best = max(sizes, key=lambda size: sizes[size].log_evidence)
    assert posterior.equivalent_sample_size_ == best
    np.testing.assert_allclose(posterior.edge_posterior_, sizes[best].arcs(), atol=1e-9)
    np.testing.assert_allclose(posterior.effect("a", "c")["mean"], np.ravel(sizes[best].effect(0, 2)), atol=1e-9)


def test_effects_given_one_order():
    codes, cards, targets = experiment()
    order = [3, 1, 0, 2]
    truth = Experiment(codes.tolist(), cards, numbers(targets), "dag")
    fits = [all(order.index(p) < order.index(v) for v, z in enumerate(dag) for p in z) for dag in truth.all_dags]
    truth.shares = [share * yes for share, yes in zip(truth.shares, fits)]
    truth.shares = [share / sum(truth.shares) for share in truth.shares]
    classifier = FixedOrderClassifier([NAMES[v] for v in order], **FREE)
    classifier.fit(frame_of(codes, cards), "d", interventions=targets)
    np.testing.assert_allclose(classifier.edge_posterior_, truth.arcs(), atol=1e-9)
    np.testing.assert_allclose(classifier.ancestor_posterior_, truth.ancestors(), atol=1e-9)
    np.testing.assert_allclose(classifier.effect("b", "c")["mean"], np.ravel(truth.effect(1, 2)), atol=1e-9)
    with pytest.raises(ValueError, match="49 entries, X has 50 rows"):
        classifier.fit(frame_of(codes, cards), "d", interventions=targets[1:])
    assert not any("experiments" in name for name in vars(classifier))


def places_of_holes(targets):
    """A cell in each of five rows, three of them with experiments, that was not set."""
    rows = {0: 3, 3: 0, 6: 2, 7: 1, 8: 2}
    return [
        (row, next(v % 4 for v in range(first, 9) if v % 4 not in numbers(targets)[row])) for row, first in rows.items()
    ]


@pytest.mark.parametrize("kind", ["perfect", "soft"])
@each_weighting
def test_missing_cells_are_sampled_with_experiments(weighting, kind):
    """Five missing cells, some in rows of experiments: all completions, each with its own sum over all DAGs."""
    codes, _, targets = experiment(4, n_rows=24, cards=(2, 2, 2, 2))
    cards, soft = (2, 2, 2, 2), kind == "soft"
    holes = places_of_holes(targets)
    arcs, logs, effect = [], [], []
    for values in product([0, 1], repeat=len(holes)):
        full = codes.copy()
        full[tuple(zip(*holes))] = values
        truth = Experiment(full.tolist(), cards, numbers(targets), weighting, soft=soft)
        logs.append(truth.log_evidence)
        arcs.append(truth.arcs())
        effect.append(np.ravel(truth.effect(0, 2)))
    shares = np.exp(np.array(logs) - np.max(logs))
    shares /= shares.sum()
    X = frame_of(codes, cards).astype(object)
    for row, column in holes:
        X.iloc[row, column] = None
    X = X.astype({name: pd.CategoricalDtype([0, 1]) for name in NAMES})
    sampler = GibbsSampler(max_sweeps=1280, n_orders=100)
    settings = {**FREE, "structure_weighting": weighting, "sampler": sampler}
    posterior = OrderPosterior(**settings).fit(X, interventions=targets, intervention_type=kind)
    assert posterior.gaps_.attrs["treatment"] == "augment"
    # arcs are averaged over at least 640 sweeps of four chains; the table with the largest spread has a standard error of .01
    np.testing.assert_allclose(posterior.edge_posterior_, np.tensordot(shares, arcs, axes=1), atol=0.04)
    np.testing.assert_allclose(posterior.effect("a", "c")["mean"], shares @ np.array(effect), atol=0.05)


def test_a_parent_of_a_set_variable_is_drawn_without_it():
    """a -> b with b observed: where b was set it says nothing of a, or under soft interventions what its other table says."""
    codes = np.tile([[-1, 1]], (6000, 1)).astype(np.int32)
    held = np.column_stack([np.zeros(6000, dtype=bool), np.arange(6000) < 3000])
    gaps = augment.GapTable(codes, np.ones(6000), np.array([2, 2]), (1.0, None, None), held)
    theta = np.array([0.3, 0.7, 0.9, 0.1, 0.4, 0.6])
    other = np.array([0.2, 0.8, 0.5, 0.5])
    nature = 0.7 * 0.6 / (0.3 * 0.1 + 0.7 * 0.6)
    for switched, when_set in (({}, 0.7), ({1: other}, 0.7 * 0.5 / (0.3 * 0.8 + 0.7 * 0.5))):
        rng = np.random.default_rng(0)
        filled, _ = augment.draw_cells(gaps, np.maximum(codes, 0), [(), (0,)], theta, rng, switched)
        # 3000 draws: four standard errors are .037
        np.testing.assert_allclose([filled[:3000].mean(), filled[3000:].mean()], [when_set, nature], atol=0.037)


def test_missing_cells_drawn_in_blocks_with_experiments(monkeypatch):
    codes, cards, targets = experiment(4, n_rows=24, cards=(2, 2, 2, 2))
    X = frame_of(codes, cards).astype(object)
    for row, column in places_of_holes(targets):
        X.iloc[row, column] = None
    X.iloc[next(row for row, found in enumerate(numbers(targets)) if not found), :3] = None
    X = X.astype({name: pd.CategoricalDtype([0, 1]) for name in NAMES})
    found = []
    for limit in (augment.BLOCK, 2):
        monkeypatch.setattr(augment, "BLOCK", limit)
        sampler = GibbsSampler(max_sweeps=1280, n_orders=100)
        posterior = OrderPosterior(**FREE, sampler=sampler).fit(X, interventions=targets, intervention_type="soft")
        found.append(posterior)
    assert found[1].gaps_.attrs["by_cells"] > found[0].gaps_.attrs["by_cells"]
    np.testing.assert_allclose(found[1].edge_posterior_, found[0].edge_posterior_, atol=0.04)


def test_classifiers_with_experiments_and_missing_cells(tmp_path):
    codes, cards, targets = experiment(5, n_rows=60)
    X = frame_of(codes, cards).astype(object)
    X.iloc[1, 0] = X.iloc[4, 2] = None
    sampler = GibbsSampler(max_sweeps=80, n_orders=10)
    for classifier in (
        OrderAveragedClassifier(**FREE, sampler=sampler),
        FixedOrderClassifier("greedy", sampler=sampler),
    ):
        classifier.fit(X, "d", interventions=targets)
        save(classifier, tmp_path / "model")
        again = load(tmp_path / "model")
        np.testing.assert_allclose(again.predict_proba(X), classifier.predict_proba(X), atol=1e-12)
        np.testing.assert_array_equal(again.effect("a", "b")["mean"], classifier.effect("a", "b")["mean"])


def test_saved_and_loaded_with_its_experiments(tmp_path):
    codes, cards, targets = experiment()
    posterior = OrderPosterior(**FREE).fit(frame_of(codes, cards), interventions=targets)
    save(posterior, tmp_path / "posterior")
    again = load(tmp_path / "posterior")
    X = frame_of(codes, cards)
    np.testing.assert_array_equal(again.log_joint(X), posterior.log_joint(X))


def test_a_checkpoint_of_other_experiments_is_another_run(tmp_path):
    codes, cards, targets = experiment()
    sampler = GibbsSampler(checkpoint=tmp_path / "run", max_sweeps=64, tol=0.5)
    settings = {**FREE, "method": "mcmc", "sampler": sampler}
    OrderPosterior(**settings).fit(frame_of(codes, cards), interventions=targets)
    with pytest.raises(ValueError, match="data"):
        OrderPosterior(**settings).fit(frame_of(codes, cards))


def test_errors_name_the_cure():
    codes, cards, targets = experiment()
    X = frame_of(codes, cards)
    fit = OrderPosterior(**FREE).fit
    with pytest.raises(ValueError, match=r"'z' in row 1, which is not a variable.*None"):
        fit(X, interventions=[None, "z", *targets[2:]])
    with pytest.raises(ValueError, match="49 entries, X has 50 rows"):
        fit(X, interventions=targets[1:])
    with pytest.raises(ValueError, match="'experiment' is not a column of X"):
        fit(X, interventions="experiment")
    with pytest.raises(ValueError, match="intervention_type='soft' says nothing without interventions"):
        fit(X, intervention_type="soft")
    holes = X.astype(object)
    holes.loc[1, "d"] = None
    with pytest.warns(UserWarning, match="left out"):
        dropped = OrderPosterior(**FREE, missing="drop").fit(holes, interventions=targets)
    rest = fit(holes.drop(index=1), interventions=[targets[0], *targets[2:]])
    np.testing.assert_array_equal(dropped.edge_posterior_, rest.edge_posterior_)
    holes.loc[0, targets[0]] = None
    with pytest.raises(ValueError, match=f"{targets[0]!r} was set in 1 rows where its value is missing"):
        OrderPosterior(**FREE, missing="drop").fit(holes, interventions=targets)
