"""Kikuchi-Bayes with many rows or many classes: the cheaper ways give the answers of the plain ones."""

import itertools

import numpy as np
import pytest

from pgm_bma.foundation.numbers import softmax_ridge
from pgm_bma.foundation.numbers.folds import some_rows
from pgm_bma.kikuchi import fit
from pgm_bma.kikuchi import terms as room
from pgm_bma.kikuchi import weights as kikuchi_weights

from .test_algorithms import make


@pytest.mark.parametrize("n_classes", [2, 1], ids=["classes", "blind"])
def test_tables_read_off_all_pairs_are_those_of_each_set(n_classes, monkeypatch):
    rng = np.random.default_rng(4)
    _, data = make(300, missing=0.2)
    # two columns more: one is in no set
    data = room.class_data(
        np.column_stack([data.codes, rng.integers(-1, 3, (300, 2))]), data.target, [*data.cardinalities, 3, 3], 2
    )
    layout = room.make_layout([(), (0,), (1,), (4,), (0, 1), (0, 2), (1, 4), (2, 4)], data.cardinalities, n_classes)
    for weights in (np.ones(300), rng.random(300)):
        weighted = data._replace(weights=weights)
        want = room.count_tables(weighted, layout)
        with monkeypatch.context() as patch:
            patch.setattr(room, "counts_all_pairs", lambda *_: True)
            got = room.count_tables(weighted, layout)
        for found, expected in zip(got, want):
            # whole weights are counted exactly, others in another order
            np.testing.assert_allclose(found, expected, rtol=0 if (weights == 1).all() else 1e-13)


def test_all_pairs_are_counted_together_where_rows_are_many():
    pairs = list(itertools.combinations(range(30), 2))
    assert room.counts_all_pairs(pairs, [3] * 30, 3, 1_000_000)
    assert not room.counts_all_pairs(pairs, [3] * 30, 3, 500)
    assert not room.counts_all_pairs(pairs[:2], [3] * 30, 3, 1_000_000)
    assert not room.counts_all_pairs([*pairs, (0, 1, 2)], [3] * 30, 3, 1_000_000)
    assert not room.counts_all_pairs(pairs, [3000] * 30, 3, 1_000_000)


def test_terms_read_from_tables_sum_as_contrasts_do(monkeypatch):
    """Loss, slope and curvature of many classes, gaps and weights, and the weights that are learned."""
    rng = np.random.default_rng(5)
    codes, target = rng.integers(-1, 3, (120, 4)), rng.integers(0, 9, 120)
    data = room.class_data(codes, target, [3] * 4, 9, rng.integers(1, 4, 120))
    sets = room.downward_closure([(0, 1, 2), (1, 3), (2, 3)])
    terms = room.interaction_terms(data, sets, "consistent", 5.0, leave_one_out=True)
    contrasts, tables = kikuchi_weights.dense_contrasts(data, terms), kikuchi_weights.table_contrasts(data, terms)
    theta = rng.normal(size=len(sets))
    probability = softmax_ridge.other_classes(contrasts.reshape(-1, len(sets)) @ theta, data.weights, 8)[1]
    want = [*softmax_ridge.loss_sums(contrasts, data.weights, theta, "gradient")]
    want.append(np.diag(softmax_ridge.curvature_matrix(contrasts, data.weights, probability, 0.0)))
    for sums, each in ((softmax_ridge.loss_sums, contrasts), (kikuchi_weights.table_sums, tables)):
        for found, expected in zip(sums(each, data.weights, theta, "scale"), want):
            np.testing.assert_allclose(found, expected, rtol=1e-11)  # sums of a thousand numbers
    newton = kikuchi_weights.learned_weights(data, terms, 5.0).weights
    monkeypatch.setattr(softmax_ridge, "NEWTON_TERMS", 0)
    assert isinstance(kikuchi_weights.leave_one_out_contrasts(data, terms), kikuchi_weights.TableContrasts)
    found = kikuchi_weights.learned_weights(data, terms, 5.0).weights
    losses = [
        softmax_ridge.loss_sums(contrasts, data.weights, weights, "gradient")[0]
        + 2.5 * np.sum((weights - kikuchi_weights.naive_weights(sets)) ** 2)
        for weights in (found, newton)
    ]
    # L-BFGS ends where a step gains 1e-11 of the loss; weights are near by the root of that
    np.testing.assert_allclose(*losses, rtol=1e-9)
    np.testing.assert_allclose(found, newton, atol=1e-4)


def test_weights_learned_in_parts_are_those_of_all_contrasts_at_once(monkeypatch):
    _, data = make(300, missing=0.1)
    options = fit.KikuchiOptions(significance_level=1.0, ridge=2.0, strength=3.0)
    want = fit.fit_kikuchi(data, options)
    monkeypatch.setattr(kikuchi_weights, "MAX_CONTRASTS", 1000)
    monkeypatch.setattr(kikuchi_weights, "_CONTRASTS_AT_ONCE", 200)
    # Newton steps from another start end where they promise 1e-10 of the loss, and the last one squares what is left
    np.testing.assert_allclose(fit.fit_kikuchi(data, options).weights, want.weights, atol=1e-8)
    monkeypatch.setattr(kikuchi_weights, "SOME_ROWS", 60)
    tuned = fit.fit_kikuchi(data, options._replace(ridge="cv", strength=None))
    assert tuned.tuning and np.isfinite(tuned.weights).all()
    monkeypatch.setattr(kikuchi_weights, "MOST_CONTRASTS", 100)
    with pytest.raises(ValueError, match=r"300 rows x 1 contrasts x 7 regions = 2.1e[+]03 numbers"):
        fit.fit_kikuchi(data, options)


def test_some_rows_are_the_same_under_other_orders_and_names():
    rng = np.random.default_rng(6)
    _, data = make(300, missing=0.1)
    data = data._replace(weights=rng.integers(1, 4, 300).astype(float))
    order, columns, states = rng.permutation(300), [2, 0, 1], rng.permutation(4)
    codes = data.codes[order][:, columns]
    codes[:, 0] = np.where(codes[:, 0] >= 0, states[codes[:, 0]], -1)
    other = room.class_data(codes, 1 - data.target[order], data.cardinalities[columns], 2, data.weights[order])
    few, same = (
        room.class_data(d.codes[chosen], d.target[chosen], d.cardinalities, 2, d.weights[chosen])
        for d in (data, other)
        for chosen in [some_rows(d.codes, d.target, d.weights, 50)]
    )
    assert len(few.codes) == len(same.codes) == 50
    back = np.column_stack([same.codes[:, [1, 2, 0]], 1 - same.target, same.weights]).astype(int)
    back[:, 2] = np.where(back[:, 2] >= 0, np.argsort(states)[back[:, 2]], -1)
    rows = np.column_stack([few.codes, few.target, few.weights]).astype(int)
    keys = [sorted(map(tuple, each.tolist())) for each in (rows, back)]
    # rows of one hash that straddle the edge of the sample may be exchanged: at most a few
    assert len(set(keys[0]) & set(keys[1])) >= len(set(keys[0])) - 2
    assert len(some_rows(data.codes, data.target, data.weights, 1000)) == len(data.codes)
