"""Gibbs moves over orders and layers, and tempering: their laws against enumeration, no drift, bit-equal runs."""

from itertools import permutations

import numpy as np
import pytest
from scipy.special import erfc, erfcinv

from pgm_bma.orders.chains import _layer_kernels, _relocation_kernels, gibbs
from pgm_bma.orders.chains._pair_kernels import alone
from pgm_bma.orders.chains.gibbs import prepare_lists
from pgm_bma.orders.chains.runner import expected_error, new_window
from pgm_bma.orders.families.family_table import FamilyLists, family_table, prune_table
from pgm_bma.orders.sums import exact_orders
from tests.oracles.orders import Problem, layers_of, log_sum, ordered_partitions
from tests.orders.test_order_mcmc import chain_data

ALL = 1e-300  # an eps that drops nothing


def lists_of(codes, eps=ALL, **keywords):
    return prepare_lists(prune_table(family_table(codes, [2] * codes.shape[1], **keywords), eps))


def softmax(values):
    weights = np.exp(np.array(values) - max(values))
    return weights / weights.sum()


@pytest.mark.parametrize("beta", [1.0, 0.4])
@pytest.mark.parametrize(("n_rows", "noise"), [(30, 0.3), (3000, 0.01)])  # the second: sums over several levels
def test_a_node_is_put_back_with_the_probabilities_of_all_its_places(n_rows, noise, beta):
    codes = chain_data(n_rows, n=4, noise=noise)
    f, truth = lists_of(codes), Problem(codes.tolist(), [2] * 4, 3)
    scores = {order: truth.order_log_score(order) for order in permutations(range(4))}
    work = _relocation_kernels.new_work(4)
    for order in scores:
        for v in range(4):
            rest = [w for w in order if w != v]
            places = [(*rest[:q], v, *rest[q:]) for q in range(4)]
            shares = np.cumsum(softmax([beta * scores[p] for p in places]))
            for q in range(4):
                low = shares[q - 1] if q else 0.0
                if shares[q] - low < 1e-6:  # too narrow to aim at
                    continue
                for uniform in (low + 1e-8, shares[q] - 1e-8):  # both ends of the interval of this place
                    one = _relocation_kernels.new_replica(np.array(order), f)
                    _relocation_kernels.relocate(v, uniform, beta, one, f, work, np.zeros((0, 0)))
                    assert tuple(one.order) == places[q]
                    assert one.logs.sum() == pytest.approx(scores[places[q]], abs=1e-8)


@pytest.mark.parametrize(("n_rows", "noise"), [(30, 0.3), (3000, 0.01)])
def test_a_move_expects_the_arcs_of_its_node_over_all_places(n_rows, noise):
    """Half of the arcs into and out of the node; the other half comes from the moves of their other ends."""
    codes = chain_data(n_rows, n=4, noise=noise)
    f, truth = lists_of(codes), Problem(codes.tolist(), [2] * 4, 3)
    orders = list(permutations(range(4)))
    scores = {order: truth.order_log_score(order) for order in orders}
    arcs = {order: np.array(truth.order_edges(order)) for order in orders}
    work = _relocation_kernels.new_work(4)
    for order in orders:
        for v in range(4):
            rest = [w for w in order if w != v]
            places = [(*rest[:q], v, *rest[q:]) for q in range(4)]
            expected = sum(p * arcs[place] for p, place in zip(softmax([scores[p] for p in places]), places))
            one, edges = _relocation_kernels.new_replica(np.array(order), f), np.zeros((4, 4))
            _relocation_kernels.relocate(v, 0.5, 1.0, one, f, work, edges)
            ends = np.arange(4) == v
            mask = ends[:, None] ^ ends[None, :]
            np.testing.assert_allclose(
                edges.T, np.where(mask, expected, 0.0) / 2, atol=3e-6
            )  # places below 1e-6 may be left out


def numbers_of(layers, n):
    numbers = np.full(n + 1, -1, dtype=np.int32)
    for level, nodes in enumerate(layers):
        numbers[list(nodes)] = level
    return numbers


def test_a_node_is_put_into_layers_and_gaps_with_their_probabilities():
    codes = chain_data(30, n=4)
    f, truth = lists_of(codes), Problem(codes.tolist(), [2] * 4, 3)
    weights = {}
    for dag in truth.dags():
        weights.setdefault(layers_of(dag), []).append(truth.dag_log_score(dag))
    scores = {layers: log_sum(values) for layers, values in weights.items()}
    sums, others = np.zeros((6, 7)), np.zeros((4, 5))
    for layers in ordered_partitions(range(4)):
        for v in range(4):
            rest = [tuple(w for w in layer if w != v) for layer in layers]
            rest = [layer for layer in rest if layer]
            places = []
            for j in range(len(rest) + 1):
                places.append((*rest[:j], (v,), *rest[j:]))
                if j < len(rest):
                    places.append((*rest[:j], tuple(sorted((*rest[j], v))), *rest[j + 1 :]))
            shares = np.cumsum(softmax([scores[p] for p in places]))
            for q, place in enumerate(places):
                low = shares[q - 1] if q else 0.0
                for uniform in (low + 1e-9, shares[q] - 1e-9):
                    numbers, logs = numbers_of(layers, 4), np.zeros(4)
                    _layer_kernels.start_logs(numbers, f, logs)
                    assert logs.sum() == pytest.approx(scores[layers], abs=1e-9)
                    _layer_kernels.relocate(v, uniform, numbers, logs, f, sums, others)
                    assert numbers.tolist() == numbers_of(place, 4).tolist()
                    assert logs.sum() == pytest.approx(scores[place], abs=1e-9)


@pytest.mark.parametrize("eps", [ALL, 1e-3])
def test_no_drift_in_a_quarter_of_a_million_moves(eps):
    rng = np.random.default_rng(0)
    codes = chain_data(1000, n=12, noise=0.02)
    codes[:, 6:] = np.where(rng.random((1000, 6)) < 0.5, codes[:, :6], codes[:, 6:])
    f = lists_of(codes, eps)
    assert f.levels.max() > 0
    orders, n_sweeps = rng.permutation(12)[None].copy(), 21_000  # 252,000 moves, sums recomputed only where guards ask
    out, scores = np.zeros((n_sweeps, 12), dtype=np.int64), np.zeros(n_sweeps)
    sums, squares, best = np.zeros((12, 12)), np.zeros((12, 12)), np.array([-np.inf])
    _relocation_kernels.run_orders(rng, orders, alone(), f, n_sweeps, out, scores, sums, squares, best)
    for k in (*range(0, n_sweeps, 1000), n_sweeps - 1):
        full = _relocation_kernels.new_replica(out[k].copy(), f).logs.sum()
        assert abs(scores[k] - full) < 2.5e-9


def run(f, seed=0, n_chains=3, **more):
    rngs = [np.random.default_rng([seed, k]) for k in range(n_chains)]
    n = len(f.tops)
    return gibbs.run_gibbs(
        _relocation_kernels.run_orders, f, [np.arange(n)] * n_chains, rngs, **{"n_kept": 10, "max_sweeps": 256, **more}
    )


def test_tempered_chains_have_the_exact_arcs_and_a_ladder_that_exchanges():
    codes = chain_data(60, n=8, noise=0.2)
    table = family_table(codes, [2] * 8)
    f = prepare_lists(prune_table(table, ALL))
    # three would reach the flattest power allowed
    found = run(f, n_chains=8, max_sweeps=4096, tol=1e-9, n_temperatures=2)
    exact = exact_orders.edge_posterior(exact_orders.sum_over_orders(table))
    error = found.chains.means.std(0, ddof=1) / np.sqrt(8)
    assert (
        np.abs(found.chains.means.mean(0) - exact) < 6 * error + 1e-3
    ).all()  # six standard errors from eight chains
    rates = found.chains.exchange_rates.mean(0)
    assert (np.abs(rates - gibbs.RATE) < 0.1).all()
    assert (found.chains.betas == found.chains.betas[0]).all()  # one ladder
    assert not found.chains.converged and found.chains.n_sweeps == 4096  # nobody agrees to 1e-9
    easy = run(f, n_chains=2, max_sweeps=4096, tol=0.2)
    assert easy.chains.converged and easy.chains.n_sweeps < 4096 and easy.chains.difference < 0.2


def test_every_member_of_many_variables_finds_its_families():
    n, rng = 400, np.random.default_rng(0)
    sets = [
        np.sort(rng.permutation(np.delete(np.arange(n), child))[: 3 * 40].reshape(40, 3), axis=1) for child in range(n)
    ]
    numbers = np.zeros(40 * n)
    lists = FamilyLists(
        np.full(n, 2), 3, 40 * np.arange(n + 1), np.concatenate(sets).astype(np.int32), numbers, numbers, np.zeros(n), 0
    )
    f = prepare_lists(lists)
    for v in range(n):
        runs = range(f.held_offsets[v], f.held_offsets[v + 1])
        found = [k for run in runs for k in f.held_family[f.held_starts[run] : f.held_starts[run + 1]]]
        assert sorted(found) == np.flatnonzero((f.sets == v).any(0)).tolist()
        assert [f.held_child[run] for run in runs] == sorted(np.searchsorted(f.offsets, np.unique(found), "right") - 1)


@pytest.mark.parametrize("hardness", [2.0, 6.0])
def test_a_ladder_comes_from_the_rates_seen(hardness):
    """Exchanges as between normal laws, erfc of the distance along a curve that is steeper at low powers: a few rounds find it."""

    def along(depth):
        return hardness * (1 - np.exp(-0.5 * depth))

    gaps, wanted = np.full(3, 0.4), erfcinv(gibbs.RATE)
    for _ in range(8):
        depth = np.append(0.0, np.cumsum(gaps))
        gaps = gibbs.ladder(gaps, erfc(np.diff(along(depth))), True, gibbs.FLATTEST)
    needed = along(-np.log(gibbs.FLATTEST)) / wanted
    assert len(gaps) == max(2, np.ceil(needed))
    depth = np.append(0.0, np.cumsum(gaps))
    rates = erfc(np.diff(along(depth)))
    assert (np.abs(rates - gibbs.RATE) < 0.05).all()  # the curve bends within a step
    fixed = gibbs.ladder(np.full(2, 0.4), np.array([0.9, 0.9]), False, gibbs.FLATTEST)
    assert len(fixed) == 2 and fixed.sum() == pytest.approx(1.6)  # at most twice as deep at once
    assert len(gibbs.ladder(np.full(3, 0.4), np.full(3, 0.05), True, gibbs.FLATTEST)) == 6  # and at most twice as long
    flat = gibbs.ladder(np.full(15, 0.25), np.full(15, 0.98), True, gibbs.FLATTEST)
    assert len(flat) == 2  # where everything is exchanged, three are enough
    gaps = np.full(3, 0.4)
    for _ in range(8):
        gaps = gibbs.ladder(gaps, np.full(len(gaps), 0.7), True, 1e-4)
    # where log scores are flat, however many rows there are
    assert 0.99e-4 * gibbs.COLDEST <= np.exp(-gaps.sum()) <= 1e-4


def test_replicas_come_and_go_with_the_ladder():
    f = lists_of(chain_data(200, n=8))
    chains = [gibbs.new_chain(np.arange(8), np.random.default_rng(0), 4) for _ in range(2)]
    moves = gibbs.TemperedMoves(
        _relocation_kernels.run_orders, f, n_kept=5, tol=0.05, max_sweeps=4, free=True, flattest=0.1
    )
    for chain in chains:
        moves.advance(chain, 4, 0, 4)
    for rate, n_now in ((0.05, 7), (0.98, 3)):
        before = chains[0].states[chains[0].at]
        for chain in chains:
            chain.now.tried, chain.now.taken = np.ones(len(chain.gaps)), np.full(len(chain.gaps), rate)
        moves.adapt(chains, map)
        for chain in chains:
            assert (
                chain.states.shape == (n_now, 8)
                and sorted(chain.at) == list(range(n_now))
                and len(chain.betas) == n_now
            )
        after = chains[0].states[chains[0].at]
        shared = min(len(before), n_now)
        np.testing.assert_array_equal(after[:shared], before[:shared])  # a temperature keeps its order
        np.testing.assert_array_equal(after[shared:], np.repeat(before[-1:], n_now - shared, axis=0))


def test_runs_with_without_and_after_a_checkpoint_and_on_threads_are_bit_equal(tmp_path):
    f = lists_of(chain_data(200, n=8))
    plain = run(f, tol=1e-9)
    file = tmp_path / "run"
    stop = Stop(9)
    some = run(f, tol=1e-9, checkpoint=file, checkpoint_every=1, tell=stop)
    assert not some.finished and some.chains.n_sweeps < 256 and 0 < some.states.shape[1]
    again = run(f, seed=5, tol=1e-9, checkpoint=file)  # from the file
    for other in (
        again,
        run(f, tol=1e-9, n_jobs=2),
        run(f, tol=1e-9, checkpoint=tmp_path / "other", checkpoint_every=1),
    ):
        for a, b in zip((*plain[:3], *plain.chains), (*other[:3], *other.chains)):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="belongs to another run: data was None, now it is x"):
        run(f, checkpoint=file, fingerprint={"data": "x"})
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot be read"):
        run(f, checkpoint=file)


class Stop:
    """Ctrl-C at a given call."""

    def __init__(self, at):
        self.calls, self.at = 0, at

    def __call__(self, *numbers):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def test_chains_far_below_the_best_scores_have_not_converged_and_go_on_from_the_best():
    f = lists_of(chain_data(200, n=8))
    chains = [gibbs.new_chain(np.arange(8), np.random.default_rng(seed), 2) for seed in range(3)]
    moves = gibbs.TemperedMoves(
        _relocation_kernels.run_orders, f, n_kept=5, tol=1.0, max_sweeps=512, free=False, flattest=0.1
    )
    for chain in chains:
        chain.now = new_window(128, 256, 8, {"state": np.zeros((5, 8), dtype=np.int64), "score": np.zeros(5)}, 1)
        chain.now.counts[:], chain.now.has[:] = 16, True
        chain.now.kept["score"][:] = [-80.0, -81.0, -80.0, -79.0, -80.0]
        chain.top_score = -79.0
    assert moves.settled(chains, 256)  # all arcs are alike, and all scores
    assert not moves.settled(chains, 128)  # but that early eight columns have made too few moves
    chains[1].top_score = 0.0  # and here there once was a far better score
    assert not moves.settled(chains, 256)
    chains[1].now.kept["score"][:] = [-1.0, -2.0, 0.0, -1.0, -2.0]
    chains[1].states[:] = np.arange(8)[::-1]
    moves.adapt(chains, map)
    for chain in chains:
        np.testing.assert_array_equal(chain.states[chain.at[0]], np.arange(8)[::-1])
        assert chain.now.length == 0  # what was before does not count


def test_the_expected_error_covers_the_error():
    """Batches that are independent, or chains that stay where they began: the error of the pooled mean is rarely above it."""
    rng, above = np.random.default_rng(0), {0.0: 0, 1.0: 0}
    for stays in above:
        for _ in range(200):
            windows = [new_window(0, 64, 1, {"state": np.zeros((1, 1))}) for _ in range(4)]
            for window in windows:
                window.counts[:] = 8
                window.sums[:, 0, 0] = 8 * (stays * rng.normal() + (1 - stays) * rng.normal(size=8))
            error = abs(np.mean([window.mean for window in windows]))
            above[stays] += error > expected_error(windows)
    assert above[0.0] <= 8  # 2.5 standard errors or more: 1.2 % of 200, and 8 are beyond 99.9 %
    assert above[1.0] <= 45  # two from four values: 14 % of 200, and 45 are beyond 99.9 %
