"""Rooms of Kikuchi-Bayes against literal definitions: tables, terms, losses, selection, weights; kernels against plain twins."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from pgm_bma.foundation.numbers import softmax_ridge
from pgm_bma.foundation.numbers.folds import deal, row_colours
from pgm_bma.foundation.numbers.pairs import conditional_mutual_information, indicators, pair_counts
from pgm_bma.kikuchi import criteria as kikuchi_criteria
from pgm_bma.kikuchi import selection as kikuchi_selection
from pgm_bma.kikuchi import terms as room
from pgm_bma.kikuchi import tuning as kikuchi_tuning
from pgm_bma.kikuchi import weights as kikuchi_weights
from pgm_bma.kikuchi.fit import (
    KikuchiOptions,
    choose_regions,
    fit_kikuchi,
    information_gains,
    interaction_information,
    tan_regions,
)
from tests.oracles import kikuchi as oracle

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "kikuchi.json").read_text())
MODELS = {model["name"]: model for model in VECTORS["models"]}
CARDS = (3, 2, 2, 4)  # the class is column 1 of the literal tables


def make(n_rows=60, seed=0, missing=0.0):
    """Rows (a, class, b, d) with dependences, as lists for the oracle and as ClassData."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, CARDS[1], n_rows)
    a = (c + rng.integers(0, 2, n_rows)) % CARDS[0]
    b = np.where(rng.random(n_rows) < 0.7, a % 2, c)
    d = rng.integers(0, CARDS[3], n_rows)
    codes = np.column_stack([a, b, d])
    codes[rng.random(codes.shape) < missing] = -1
    rows = [[int(x[0]), int(k), int(x[1]), int(x[2])] for x, k in zip(codes, c)]
    return rows, room.class_data(codes, c, [CARDS[0], CARDS[2], CARDS[3]], CARDS[1])


COLUMN = {0: 0, 1: 2, 2: 3}  # attribute number -> column of the literal table


def literal(sets):
    return [frozenset([1, *(COLUMN[a] for a in s)]) for s in sets]


REGIONS = [
    [()],
    [(0,), (1,), (2,)],
    [(0, 1), (1, 2)],
    [(0, 1), (0, 2), (1, 2)],
    [(0, 1, 2)],
    [(0, 1), (2,)],
]


# ------------------------------------------------------------------------------------------------ terms


@pytest.mark.parametrize("prior", ["laplace", "consistent", "marginal"])
@pytest.mark.parametrize("regions", REGIONS, ids=str)
def test_terms_sum_to_the_potential(regions, prior):
    rows, data = make()
    terms = room.interaction_terms(data, room.downward_closure(regions), prior, 2.0)
    queries = np.array(list(itertools.product(range(3), range(2), range(4))))
    scores = room.log_scores(terms, queries)
    for x, found in zip(queries, scores):
        row = [int(v) for v in x]
        expected = oracle.log_scores(rows, CARDS, literal(regions), 1, row, prior=prior, strength=2.0)
        np.testing.assert_allclose(found, expected, atol=1e-10)  # a dozen logs
    evidence = room.term_evidence(terms, queries[5])
    np.testing.assert_allclose(evidence.sum(axis=0), scores[5], atol=1e-12)


def test_a_missing_attribute_takes_out_its_terms():
    _, data = make()
    pairs = room.downward_closure([(0, 1), (0, 2), (1, 2)])
    terms = room.interaction_terms(data, pairs)
    rest = room.interaction_terms(data, room.downward_closure([(0, 2)]))
    np.testing.assert_allclose(
        room.log_scores(terms, np.array([[2, -1, 3]])), room.log_scores(rest, np.array([[2, 0, 3]])), atol=1e-12
    )


def test_missing_cells_are_left_out_of_the_tables_that_need_them():
    rows, data = make(missing=0.3)
    terms = room.interaction_terms(data, room.downward_closure([(0, 1)]), "laplace")
    complete = [row for row in rows if row[0] >= 0 and row[2] >= 0]
    t = terms.layout.sets.index((0, 1))
    assert terms.totals[t] == len(complete)
    table = room.flat_table(terms.counts, terms.layout, t)
    assert table[2, 1, 1] == oracle.count(rows, [0, 1, 2], [2, 1, 1])


def test_too_many_cells_are_refused():
    with pytest.raises(ValueError, match="of column 0, column 1, column 2 and column 3, has"):
        room.make_layout([(0, 1, 2, 3)], [200] * 4, 2)


# ------------------------------------------------------------------------------------------------ plain twins of the kernels


def test_counting_kernel_equals_its_plain_twin():
    rng = np.random.default_rng(3)
    _, data = make(missing=0.2)
    data = data._replace(weights=rng.random(len(data.codes)))
    layout = room.make_layout([(), (0,), (1, 2), (0, 1, 2)], data.cardinalities, data.n_classes)
    counts, totals = room.count_tables(data, layout)
    for t, s in enumerate(layout.sets):
        seen = (data.codes[:, list(s)] >= 0).all(axis=1)
        table = np.zeros(room.flat_table(counts, layout, t).shape)
        np.add.at(table, (*data.codes[seen][:, list(s)].T, data.target[seen]), data.weights[seen])
        np.testing.assert_allclose(room.flat_table(counts, layout, t), table, rtol=1e-12)
        assert math.isclose(totals[t], data.weights[seen].sum(), rel_tol=1e-12)


def test_term_kernel_equals_its_plain_twin():
    """Alternating sums over all subsets, by broadcasting."""
    _, data = make()
    sets = room.downward_closure([(0, 1, 2)])
    terms = room.interaction_terms(data, sets, "laplace")
    logs = room.log_tables(terms.counts, terms.totals, terms.layout, "laplace", 0.0)
    for t, s in enumerate(sets):
        expected = np.zeros([*(CARDS[COLUMN[a]] for a in s), 2])
        for size in range(len(s) + 1):
            for part in itertools.combinations(s, size):
                table = room.flat_table(logs, terms.layout, sets.index(part))
                shape = [CARDS[COLUMN[a]] if a in part else 1 for a in s] + [2]
                expected += (-1) ** (len(s) - size) * table.reshape(shape)
        np.testing.assert_allclose(room.term_table(terms, t), expected, atol=1e-12)


def test_score_and_contrast_kernels_equal_their_plain_twins():
    _, data = make(missing=0.2)
    sets = room.downward_closure([(0, 1), (1, 2)])
    terms = room.interaction_terms(data, sets, "consistent", 3.0, leave_one_out=True)
    weights = np.linspace(-1, 2, len(sets))
    scores, contrasts = np.zeros((len(data.codes), 2)), np.zeros((len(data.codes), 1, len(sets)))
    for r, x in enumerate(data.codes):
        for t, s in enumerate(sets):
            if all(x[a] >= 0 for a in s):
                cell = tuple(x[a] for a in s)
                values = room.term_table(terms, t)[cell]
                reduced = room.flat_table(terms.reduced, terms.layout, t)[cell]
                scores[r] += weights[t] * values
                c = data.target[r]
                contrasts[r, 0, t] = values[1 - c] - reduced[c]
    np.testing.assert_allclose(room.log_scores(terms, data.codes, weights), scores, atol=1e-12)
    np.testing.assert_allclose(kikuchi_weights.dense_contrasts(data, terms), contrasts, atol=1e-12)


# ------------------------------------------------------------------------------------------------ losses and selection


@pytest.mark.parametrize("case", VECTORS["divergences"], ids=lambda c: f"{c['data']}-{c['initial']}-{c['focus']}")
def test_divergence_vectors(case):
    model = MODELS[case["data"]]
    rows, target = np.array(model["rows"]), model["class_column"]
    data = room.class_data(np.delete(rows, target, 1), rows[:, target], model["card"][:target], model["card"][target])
    regions = [tuple(v for v in region if v != target) for region in case["initial"]]
    focus = [v for v in case["focus"] if v != target]
    options = kikuchi_selection.SelectionOptions("laplace", n_resamples=1000)
    loss = kikuchi_selection.region_loss(data, regions, focus, options, np.random.default_rng(0))
    draws = loss.self_losses
    bootstrap = case["bootstrap"]
    assert math.isclose(loss, case["loss_empirical"], abs_tol=1e-9)
    tolerance = bootstrap["p_tolerance_1000_draws"]
    assert abs(kikuchi_selection.tail_share(draws, loss) - bootstrap["p_value"]) <= tolerance
    # four standard errors of a mean of 1000 draws
    assert abs(draws.mean() - bootstrap["self_loss_mean"]) <= 4 * bootstrap["self_loss_sd"] / math.sqrt(1000) + 1e-12


@pytest.mark.parametrize("prior", ["laplace", "consistent", "marginal"])
@pytest.mark.parametrize("regions, focus", [([()], (0,)), ([(0,), (1,)], (0, 1)), ([(0, 1), (1, 2)], (0, 1, 2))])
def test_losses_are_the_literal_ones(regions, focus, prior):
    rows, data = make()
    options = kikuchi_selection.SelectionOptions(prior, 2.0, n_resamples=1)
    expected = oracle.loss(
        rows,
        CARDS,
        literal(regions),
        literal([focus])[0],
        1,
        prior=prior,
        **({"strength": 2.0} if prior == "consistent" else {}),
    )
    loss = kikuchi_selection.region_loss(data, regions, focus, options, np.random.default_rng(0))
    assert math.isclose(loss, expected, abs_tol=1e-12)
    test = kikuchi_selection.divergence_tests(data, regions, [focus], options)
    assert math.isclose(test.loss[0], expected, abs_tol=1e-12)


class Replay:
    """A generator whose multinomial draws are given."""

    def __init__(self, resample):
        self.resample = resample

    def multinomial(self, n, p, size):
        return np.array([self.resample] * size)


def test_self_loss_is_the_literal_one():
    rows, data = make(40)
    layout = room.make_layout([(0, 1)], data.cardinalities, 2)
    counts, totals = room.count_tables(data, layout)
    smoothed = room.log_tables(counts, totals, layout, "laplace", 0.0)
    table = room.flat_table(counts, layout, 0)
    rng = np.random.default_rng(1)
    filled = np.argwhere(table > 0)
    drawn = rng.multinomial(40, table[table > 0] / 40)
    resample = [[int(a), int(c), int(b), 0] for (a, b, c), n in zip(filled, drawn) for _ in range(n)]
    expected = oracle.self_loss(resample, rows, CARDS, [0, 1, 2], 1)
    found = kikuchi_selection.self_losses(table, room.flat_table(smoothed, layout, 0), 3, Replay(drawn))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_screen_decides_as_resamples_do():
    """On dependent data with sparse tables the chi-square tail may stand in for 400 resamples away from the threshold."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 200)
    codes = (target[:, None] * rng.integers(0, 2, 8) + rng.integers(0, 4, (200, 8))) % 4
    data = room.class_data(codes, target, [4] * 8, 3)
    candidates = list(itertools.combinations(range(8), 2))
    chosen = [(a,) for a in range(8)]
    plain = kikuchi_selection.SelectionOptions("laplace", n_resamples=400, screen=False)
    resampled = kikuchi_selection.divergence_tests(data, chosen, candidates, plain)
    screened = kikuchi_selection.divergence_tests(data, chosen, candidates, plain._replace(screen=True))
    assert resampled.resampled.all() and not screened.resampled.all()
    clear = ~screened.resampled
    np.testing.assert_array_equal(screened.p[clear] < 0.1, resampled.p[clear] < 0.1)
    # the mean of the chi-square approximation: within 15 % in tables of 48 cells and 200 rows
    np.testing.assert_allclose(screened.mean[clear], resampled.mean[clear], rtol=0.15)


@pytest.mark.parametrize("case", VECTORS["selection"], ids=lambda case: case["method"])
def test_selection_vectors(case):
    grid = np.array(list(itertools.product(range(3), range(3), range(2), range(3), range(4), range(2))))
    target = ((grid[:, 0] == grid[:, 1]) | (grid[:, 4] == 0)).astype(int)
    data = room.class_data(grid, target, [3, 3, 2, 3, 4, 2], 2)
    options = KikuchiOptions(level=int(case["method"][1]), prior="laplace", significance_level=case["gamma"])
    regions, tests = choose_regions(data, options)
    assert sorted([*r, 6] for r in regions) == sorted(case["initial_regions"])
    found = [(list(s), p, loss) for test in tests for s, p, loss in zip(test.sets, test.p, test.loss)]
    for (s, p, loss), (attributes, p_expected, loss_expected) in zip(found, case["tests"], strict=True):
        assert s == attributes
        assert math.isclose(loss, loss_expected, abs_tol=1e-9)
        assert abs(p - p_expected) < 0.01  # both are 0 or 1 but for resampling noise


def parity(n_attributes, n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n_rows, n_attributes + 2))
    return room.class_data(codes, codes[:, :n_attributes].sum(axis=1) % 2, [2] * (n_attributes + 2), 2)


@pytest.mark.parametrize("criterion", ["divergence", "log_loss", "error"])
@pytest.mark.parametrize("n_attributes", [2, 3])
def test_every_criterion_finds_a_parity(criterion, n_attributes):
    options = KikuchiOptions(level=3, criterion=criterion, significance_level=0.01)
    regions, _ = choose_regions(parity(n_attributes), options)
    assert tuple(range(n_attributes)) in regions


def test_the_whole_model_judges_regions_by_left_out_loss():
    """Copies: each pair passes its own test, but in the whole model all of them together only repeat the evidence."""
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, 300)
    noisy = np.where(rng.random(300) < 0.8, target, 1 - target)
    data = room.class_data(np.column_stack([noisy] * 6), target, [2] * 6, 2)
    counting = KikuchiOptions(weights="counting", prior="laplace")
    by_divergence, _ = choose_regions(data, counting)
    by_loss, _ = choose_regions(data, counting._replace(criterion="log_loss"))
    losses = []
    for regions in (by_divergence, by_loss):
        fit = fit_kikuchi(data, counting, regions)
        scores = room.log_scores(fit.terms, data.codes)
        losses.append(kikuchi_criteria.row_loss(scores, data.target, data.weights, "log_loss"))
    assert losses[0] > 1.0 > losses[1]  # a coin has 0.69, the copied attribute alone 0.50


def test_left_out_scores_equal_tables_without_the_row():
    rows, data = make(30)
    options = kikuchi_selection.SelectionOptions("consistent", 2.0)
    sets = room.downward_closure([(0, 1), (2,)])
    scores = kikuchi_criteria.left_out_scores(data, sets, options)
    named = [tuple(COLUMN[a] for a in s) for s in sets]
    for r in (0, 7, 29):
        expected = oracle.leave_one_out_log_scores(rows, CARDS, named, np.ones(len(sets)), 1, r, 2.0)
        assert math.isclose(scores[r, 0] - scores[r, 1], expected[0] - expected[1], abs_tol=1e-10)


def test_cycles_are_skipped():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, 400)
    codes = np.column_stack([np.where(rng.random(400) < 0.85, base, 1 - base) for _ in range(5)])
    target = (rng.random(400) < 0.3 + 0.4 * base).astype(int)
    data = room.class_data(codes, target, [2] * 5, 2)
    for level in (2, 3):
        for cycles in ("gated", "table"):
            options = KikuchiOptions(level=level, cycles=cycles, prior="laplace")
            regions, _ = choose_regions(data, options)
            pairs = [r for r in regions if len(r) > 1]
            assert oracle_acyclic(pairs)
            if cycles == "table" and level == 2:
                assert len(pairs) == 4  # a spanning tree
    allowed, _ = choose_regions(data, KikuchiOptions(prior="laplace"))
    assert not oracle_acyclic(allowed)


def oracle_acyclic(regions):
    """Take away attributes of one region only, and regions inside others: what remains is a cycle."""
    regions = [set(r) for r in regions if r]
    while regions:
        counts = {v: sum(v in r for r in regions) for r in regions for v in r}
        fewer = [{v for v in r if counts[v] > 1} for r in regions]
        fewer = [
            r for i, r in enumerate(fewer) if r and not any(r < s or (r == s and j < i) for j, s in enumerate(fewer))
        ]
        if fewer == regions:
            return False
        regions = fewer
    return True


def test_tan_is_the_best_tree():
    _, data = make(200)
    regions = tan_regions(data)
    assert len(regions) == 2
    information = {}
    for i, j in itertools.combinations(range(3), 2):
        table = np.zeros([data.cardinalities[i], data.cardinalities[j], 2])
        np.add.at(table, (data.codes[:, i], data.codes[:, j], data.target), 1 / len(data.codes))
        within = table.sum((0, 1)) * table / (table.sum(1, keepdims=True) * table.sum(0, keepdims=True) + 1e-300)
        information[i, j] = np.sum(table[table > 0] * np.log(within[table > 0]))
    worst = min(information, key=information.get)
    assert set(regions) == set(information) - {worst}
    both = interaction_information(data)
    gains = information_gains(data)
    np.testing.assert_array_equal(np.diag(both), gains)
    i, j = 0, 1
    joint = np.zeros([3, 2, 2])
    np.add.at(joint, (data.codes[:, i], data.codes[:, j], data.target), 1 / len(data.codes))
    filled = joint > 0
    independent = joint.sum(2, keepdims=True) * joint.sum((0, 1))
    pair = np.sum(joint[filled] * np.log(joint[filled] / independent[filled]))
    # I(XY; C) = I(X; C) + I(Y; C) + I(X; Y; C)
    assert math.isclose(pair, gains[i] + gains[j] + both[i, j], abs_tol=1e-12)


# ------------------------------------------------------------------------------------------------ weights


@pytest.mark.parametrize("case", VECTORS["remedies"]["spanning_edge_probability"], ids=lambda case: case["name"])
def test_spanning_edge_vectors(case):
    found = kikuchi_weights.spanning_edge_probability(case["nodes"], case["edges"])
    np.testing.assert_allclose(found, case["rho"], atol=1e-9)


def test_spanning_edge_probability_equals_enumeration():
    edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4), (1, 4)]
    expected = oracle.spanning_tree_probabilities(5, edges)
    np.testing.assert_allclose(kikuchi_weights.spanning_edge_probability(5, edges), expected, atol=1e-12)
    # a second component leaves the first alone
    apart = kikuchi_weights.spanning_edge_probability(8, [*edges, (5, 6), (6, 7), (5, 7)])
    np.testing.assert_allclose(apart, [*expected, *[2 / 3] * 3], atol=1e-12)


def test_copies_are_found_up_to_renaming():
    _, data = make(50)
    codes = np.column_stack([data.codes, 2 - data.codes[:, 0], data.codes[:, 1]])
    wide = room.class_data(codes, data.target, [3, 2, 4, 3, 2], 2)
    assert kikuchi_weights.find_copies(wide) == [(0, 3), (1, 4)]


def learned_case():
    case = VECTORS["remedies"]["posteriors"][0]
    rows = np.array(MODELS["xor"]["rows"])
    data = room.class_data(rows[:, :3], rows[:, 3], [2] * 3, 2)
    terms = room.interaction_terms(data, [tuple(s) for s in case["sets"]], "consistent", 2.0, leave_one_out=True)
    return case, data, terms


def test_learned_weight_vector():
    case, data, terms = learned_case()
    learned = kikuchi_weights.learned_weights(data, terms, 5.0)
    np.testing.assert_allclose(learned.weights, case["learned_weights_ess2_ridge5"], atol=case["learned_tolerance"])
    assert learned.ridge == {1: 5.0, 2: 5.0}


def test_learned_weights_maximise_the_literal_leave_one_out_likelihood():
    _, data, terms = learned_case()
    rows = [list(map(int, row)) for row in MODELS["xor"]["rows"]]
    sets = terms.layout.sets
    theta = kikuchi_weights.learned_weights(data, terms, 5.0).weights

    def objective(weights):
        total = -2.5 * np.sum((weights - kikuchi_weights.naive_weights(sets)) ** 2)
        for r, row in enumerate(rows):
            scores = oracle.leave_one_out_log_scores(rows, [2] * 4, sets, weights, 3, r)
            total += math.log(oracle.normalise(scores)[row[3]])
        return total

    best = objective(theta)
    for k in range(len(sets)):
        for step in (-0.01, 0.01):
            moved = theta.copy()
            moved[k] += step
            assert objective(moved) < best


def random_contrasts(n=80, k=2, p=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k, p)) - 0.3, rng.integers(1, 4, n).astype(float)


def test_newton_and_gradient_fits_agree(monkeypatch):
    contrasts, rows = random_contrasts()
    centre, ridge = np.array([1.0, 1, 0, 0, 0, 0]), np.array([1.0, 1, 5, 5, 9, 9])
    newton = kikuchi_weights.fit_contrasts(contrasts, rows, centre, ridge, centre)
    slope = softmax_ridge.loss_sums(contrasts, rows, newton, "gradient")[1] + ridge * (newton - centre)
    assert abs(slope).max() < 1e-9  # the last step, below 1e-10 of the loss, is taken: it squares the error
    monkeypatch.setattr(softmax_ridge, "NEWTON_TERMS", 0)
    gradient = kikuchi_weights.fit_contrasts(contrasts, rows, centre, ridge, centre)
    np.testing.assert_allclose(gradient, newton, atol=1e-4)

    def objective(theta):
        loss = softmax_ridge.loss_sums(contrasts, rows, theta, "gradient")[0]
        return loss + 0.5 * np.sum(ridge * (theta - centre) ** 2)

    # L-BFGS ends where a step gains 1e-11 of the objective; its weights are near by the root of that
    np.testing.assert_allclose(objective(gradient), objective(newton), rtol=1e-9)


@pytest.mark.parametrize("p", [6, 70], ids=["primal", "dual"])
def test_approximate_leave_one_out_is_close_to_refitting(p):
    contrasts, _ = random_contrasts(30, 2, p)
    contrasts /= math.sqrt(p / 6)
    rows, centre, ridge = np.ones(30), np.zeros(p), np.full(p, 5.0)
    theta = kikuchi_weights.fit_contrasts(contrasts, rows, centre, ridge, centre)
    found = kikuchi_weights.leave_one_out_loss(contrasts, rows, theta, ridge)
    losses = []
    for r in range(30):
        without = kikuchi_weights.fit_contrasts(contrasts, (np.arange(30) != r) * 1.0, centre, ridge, theta)
        losses.append(np.logaddexp(0, np.logaddexp.reduce(contrasts[r] @ without)))
    trained = np.logaddexp(0, np.logaddexp.reduce(contrasts @ theta, axis=1)).mean()
    gap = np.mean(losses) - trained
    assert abs(found - np.mean(losses)) < 0.1 * gap  # one Newton step finds nine tenths of the optimism


def test_deal_gives_every_unit_to_one_fold():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 50)
    weights = rng.integers(1, 9, 50) + np.where(rng.random(50) < 0.3, 0.25, 0.0)
    parts = deal(target, weights, 3, rng.integers(2**63, size=50).astype(np.uint64))
    np.testing.assert_allclose(parts.sum(axis=0), weights)
    whole = np.floor(parts)
    for c in range(3):
        sizes = whole[:, target == c].sum(axis=1)
        assert sizes.max() - sizes.min() <= 1  # whole units go round


def test_tuning_shrinks_noise_and_keeps_parity():
    pairs = room.downward_closure(list(itertools.combinations(range(6), 2)))
    chosen = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise = room.class_data(rng.integers(0, 3, (150, 6)), rng.integers(0, 2, 150), [3] * 6, 2)
        chosen.append(kikuchi_tuning.tune_weights(noise, pairs, "consistent", None).ridge[2])
    assert np.median(chosen) >= 30  # held-out losses of noise hardly differ, so that single tables may end anywhere
    clean = parity(2)
    pairs = room.downward_closure(list(itertools.combinations(range(4), 2)))
    kept = kikuchi_tuning.tune_weights(clean, pairs, "consistent", 2.0)
    assert kept.ridge[2] <= 5 and kept.strength == 2.0
    assert min(point["log_loss"] for point in kept.path) < 0.1  # a coin has 0.69


def test_fractional_weights_are_dealt_round_the_folds():
    target = np.repeat([0, 1], 30)
    for weight in (0.5, 1.5):
        parts = deal(target, np.full(60, weight), 3, np.arange(60, dtype=np.uint64))
        for c in (0, 1):
            np.testing.assert_allclose(parts[:, target == c].sum(axis=1), 10 * weight)


@pytest.mark.parametrize("total", [0.2, 3e9, 1e30])
def test_self_losses_of_any_weight(total):
    counts = total * np.array([[0.5, 0.2], [0.2, 0.1]])
    draws = kikuchi_selection.self_losses(counts, np.log(counts / total), 50, np.random.default_rng(0))
    # chi-square with two degrees of freedom: mean 1 / total; one row alone is far off
    assert np.isfinite(draws).all() and (draws.mean() > 0.3 if total < 1 else draws.max() < 1e-8)


def test_a_focus_larger_than_all_regions():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (50, 4))
    data = room.class_data(codes, rng.integers(0, 2, 50), [2] * 4, 2)
    options = kikuchi_selection.SelectionOptions("laplace", n_resamples=1)
    rows = [[*map(int, x), int(c)] for x, c in zip(data.codes, data.target)]
    regions = [(0, 1), (2,)]
    loss = kikuchi_selection.region_loss(data, regions, (0, 1, 2, 3), options, rng)
    literal_regions = [frozenset([4, *r]) for r in regions]
    expected = oracle.loss(rows, [2] * 5, literal_regions, frozenset(range(5)), 4, prior="laplace")
    assert math.isclose(loss, expected, abs_tol=1e-12)


def test_interactions_equal_those_of_all_pair_tables():
    """Plain twin: matrix products of indicator columns."""
    rng = np.random.default_rng(0)
    cards = [3, 40, 2, 1, 5]
    codes = np.column_stack([rng.integers(0, r, 200) for r in cards])
    codes[rng.random(codes.shape) < 0.1] = -1
    data = room.class_data(codes, rng.integers(0, 3, 200), cards, 3, rng.random(200))
    pairs = pair_counts(indicators(codes, cards), np.eye(3)[data.target] * data.weights[:, None])
    expected = conditional_mutual_information(pairs, cards)
    expected -= conditional_mutual_information(pairs.sum(axis=0, keepdims=True), cards)
    np.fill_diagonal(expected, information_gains(data))
    np.testing.assert_allclose(interaction_information(data), expected, atol=1e-12)


def test_colours_tell_rows_apart_by_content_only():
    rng = np.random.default_rng(0)
    codes, target = rng.integers(-1, 3, (200, 5)), rng.integers(0, 2, 200)
    colours = row_colours(codes, target, np.ones(200))
    assert len(set(colours.tolist())) == len(np.unique(np.column_stack([codes, target]), axis=0))
    order = rng.permutation(200)
    relabelled = np.where(codes < 0, -1, (codes + 1) % 3)[order][:, [3, 1, 4, 0, 2]]
    np.testing.assert_array_equal(row_colours(relabelled, 1 - target[order], np.ones(200)), colours[order])
    weighted = row_colours(codes, target, 1.0 + (np.arange(200) == 7))
    assert weighted[7] != colours[7]


def test_resampling_order_forgets_the_order_of_cells_and_classes():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, (12, 3)).astype(float)
    values = np.log(counts + 0.5)
    found = kikuchi_selection.resampling_order(counts, values)
    again = kikuchi_selection.resampling_order(counts[rng.permutation(12)][:, [2, 0, 1]], values)[0]
    np.testing.assert_array_equal(again, found[0])
    np.testing.assert_array_equal(np.log(found[0] + 0.5), found[1])  # entries stay together
    assert kikuchi_selection.content_generator(found[0]).random() == kikuchi_selection.content_generator(again).random()
    assert (
        kikuchi_selection.content_generator(found[0]).random() != kikuchi_selection.content_generator(counts).random()
    )
