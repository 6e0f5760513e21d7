"""Chains of swaps over orders: their law against enumeration, no drift, and runs that survive a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import combinations, permutations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pgm_bma import OrderPosterior, SwapSampler
from pgm_bma.foundation.runtime.jobs import MOMENT
from pgm_bma.orders.chains import _swap_kernels, order_mcmc
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.families.family_table import family_table
from pgm_bma.orders.structure_average import WEIGHTINGS, state_edges, swapped_average
from pgm_bma.orders.sums import exact_orders
from tests.oracles.orders import Problem, log_sum


def chain_data(n_rows, n=5, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n_rows, n))
    for v in range(1, n):
        codes[:, v] = np.where(rng.random(n_rows) > noise, codes[:, v - 1], codes[:, v])
    return codes


def families_of(codes, **keywords):
    table = family_table(codes, [2] * codes.shape[1], **keywords)
    return table, order_mcmc.prepare(table)


def generators(n, seed=0):
    return [np.random.default_rng([seed, k]) for k in range(n)]


# ------------------------------------------------------------------------------------------------ one order


@pytest.mark.parametrize("max_indegree", [0, 1, 2, 3, 4, 5])
def test_scores_and_arcs_of_an_order_equal_the_formula(max_indegree):
    codes = chain_data(30, n=6)
    table, families = families_of(codes, max_indegree=max_indegree, forbidden=[(0, 5)])

    def allowed(child, parents):
        return not (child == 5 and 0 in parents)

    truth = Problem(codes.tolist(), [2] * 6, max_indegree, allowed=allowed)
    for order in ([0, 1, 2, 3, 4, 5], [3, 5, 0, 2, 1, 4]):
        assert order_mcmc.order_log_score(families, order) == pytest.approx(truth.order_log_score(order), abs=1e-9)
        edges = state_edges(table, WEIGHTINGS["order"], [order])[0]
        np.testing.assert_allclose(edges, truth.order_edges(order), atol=1e-9)


def test_sums_that_underflow_are_done_in_logs():
    codes = chain_data(5000, n=4, noise=0.01)
    table, families = families_of(codes)
    truth = Problem(codes.tolist(), [2] * 4, 3)
    worst = 0.0
    for order in permutations(range(4)):
        linear, logs = np.zeros(4), np.zeros(4)
        total = _swap_kernels.score_order(np.array(order), families, linear, logs)
        worst = min(worst, (logs - families.tops).min())
        assert total == pytest.approx(truth.order_log_score(order), abs=1e-8)  # scores near 1e4
        edges = state_edges(table, WEIGHTINGS["order"], [order])[0]
        np.testing.assert_allclose(edges, truth.order_edges(order), atol=1e-8)
    assert worst < -745  # exp would be zero


# ------------------------------------------------------------------------------------------------ the law of the chains


def test_orders_of_five_variables_total_variation():
    codes = chain_data(12, noise=0.6)
    _, families = families_of(codes, max_indegree=2)
    truth = Problem(codes.tolist(), [2] * 5, 2)
    orders = truth.all_orders()
    scores = np.array([truth.order_log_score(order) for order in orders])
    expected = np.exp(scores - log_sum(scores))
    n_chains, n_kept = 4, 50_000
    run = order_mcmc.sample_orders(
        families, [np.arange(5)] * n_chains, generators(n_chains), n_kept=n_kept, burn_in=1000, thin=10
    )
    place = {order: k for k, order in enumerate(orders)}
    codes_of = [[place[tuple(order)] for order in chain] for chain in run.states.tolist()]
    shares = np.array([np.bincount(chain, minlength=120) / n_kept for chain in codes_of])
    distance = 0.5 * np.abs(shares.mean(0) - expected).sum()
    # 200,000 draws over 120 orders: independent draws would lie near sqrt(120 / (2 pi 200,000)) = 0.01
    assert distance < 0.02
    noise = shares.std(0, ddof=1) / np.sqrt(n_chains)
    assert (np.abs(shares.mean(0) - expected) < 8 * noise + 1e-3).all()  # eight standard errors from four chains
    np.testing.assert_allclose(run.log_scores[0, -1], truth.order_log_score(run.states[0, -1]), atol=1e-9)


def test_arcs_within_monte_carlo_error():
    codes = chain_data(60, n=6, noise=0.5, seed=2)
    table, families = families_of(codes)
    exact = exact_orders.edge_posterior(exact_orders.sum_over_orders(table))
    n_chains = 8
    run = order_mcmc.sample_orders(
        families, [np.arange(6)] * n_chains, generators(n_chains), n_kept=2000, burn_in=1000, thin=20
    )
    per_chain = state_edges(table, WEIGHTINGS["order"], run.states.reshape(-1, 6)).reshape(n_chains, -1, 6, 6).mean(1)
    error = per_chain.std(0, ddof=1) / np.sqrt(n_chains)
    assert (np.abs(per_chain.mean(0) - exact) < 6 * error + 1e-3).all()  # six standard errors from eight chains


def test_detailed_balance_of_the_swap_kernel():
    """The transition matrix over the 24 orders of four variables, built from the acceptance rule, leaves the posterior alone,
    and the compiled chain's transitions follow it."""
    codes = chain_data(10, n=4, noise=0.5)
    _, families = families_of(codes)
    truth = Problem(codes.tolist(), [2] * 4, 3)
    orders = truth.all_orders()
    place = {order: k for k, order in enumerate(orders)}
    scores = np.array([truth.order_log_score(order) for order in orders])
    posterior = np.exp(scores - log_sum(scores))
    transition = np.zeros((24, 24))
    for order in orders:
        for i, j in combinations(range(4), 2):
            other = list(order)
            other[i], other[j] = other[j], other[i]
            accept = min(1.0, np.exp(scores[place[tuple(other)]] - scores[place[order]]))
            transition[place[order], place[tuple(other)]] += accept / 6
    transition += np.diag(1 - transition.sum(1))
    flow = posterior[:, None] * transition
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    n_steps = 400_000
    kept, kept_scores = np.zeros((n_steps, 4), dtype=np.int64), np.zeros(n_steps)
    _swap_kernels.run_swaps(np.random.default_rng(0), np.arange(4), families, n_steps, 1, 0, 1, kept, kept_scores)
    index = np.array([place[tuple(order)] for order in kept.tolist()])
    counts = np.zeros((24, 24))
    np.add.at(counts, (index[:-1], index[1:]), 1)
    visits = counts.sum(1, keepdims=True)
    error = np.sqrt(transition * (1 - transition) / np.maximum(visits, 1))
    # 24 x 7 comparisons: five standard errors, and nothing where the kernel forbids a step
    assert (np.abs(counts / visits - transition) < 5 * error + 1e-12)[visits[:, 0] > 200].all()


def test_no_drift_in_a_million_swaps():
    """Dependences so strong that gaps reach 700 nats: the incremental score equals a full rescoring."""
    rng = np.random.default_rng(0)
    codes = chain_data(1000, n=12, noise=0.02)
    codes[:, 6:] = np.where(rng.random((1000, 6)) < 0.5, codes[:, :6], codes[:, 6:])
    _, families = families_of(codes)
    order = rng.permutation(12)
    kept, scores = np.zeros((500, 12), dtype=np.int64), np.zeros(500)
    accepted, score, *_ = _swap_kernels.run_swaps(rng, order, families, 1_000_000, 1, 0, 2000, kept, scores)
    assert accepted > 1000
    assert abs(score - order_mcmc.order_log_score(families, order)) < 1e-9
    full = [order_mcmc.order_log_score(families, order) for order in kept]
    np.testing.assert_allclose(scores, full, rtol=0, atol=1e-9)  # all along the way


def test_required_arcs_are_never_left():
    codes = chain_data(30)
    required = [(4, 0), (0, 2)]
    _, families = families_of(codes, required=required)
    start = random_order(5, np.random.default_rng(0), required)
    run = order_mcmc.sample_orders(families, [start], generators(1), n_kept=500, burn_in=0, thin=1)
    position = np.argsort(run.states[0], axis=1)
    assert (position[:, 4] < position[:, 0]).all() and (position[:, 0] < position[:, 2]).all()
    assert len(np.unique(run.states[0], axis=0)) > 10
    layers = WEIGHTINGS["dag"].start(5, None, required)
    assert layers[4] < layers[0] < layers[2]
    with pytest.raises(ValueError, match="cycle"):
        random_order(3, np.random.default_rng(0), [(0, 1), (1, 0)])


def test_climbing_never_loses_and_finds_a_local_best():
    _, families = families_of(chain_data(100, n=6))
    start = np.arange(6)[::-1]
    order = order_mcmc.climb(families, start)
    score = order_mcmc.order_log_score(families, order)
    assert score >= order_mcmc.order_log_score(families, start)
    for node, place in product(range(6), range(6)):
        rest = [v for v in order if v != node]
        assert order_mcmc.order_log_score(families, [*rest[:place], node, *rest[place:]]) <= score + 1e-9


# ------------------------------------------------------------------------------------------------ long runs


def settings(**more):
    return {"n_kept": 20, "burn_in": 500, "thin": 100, "checkpoint_every": 300, **more}


def test_with_without_and_after_a_checkpoint_are_bit_equal(tmp_path):
    _, families = families_of(chain_data(200, n=8))
    start, file = [np.arange(8)] * 2, tmp_path / "run"
    plain = order_mcmc.sample_orders(families, start, generators(2), **settings())
    kept = order_mcmc.sample_orders(families, start, generators(2), **settings(checkpoint=file))
    again = order_mcmc.sample_orders(
        families, start, generators(2, seed=9), **settings(checkpoint=file)
    )  # from the file
    threads = order_mcmc.sample_orders(families, start, generators(2), **settings(n_jobs=2))
    for other in (kept, again, threads):
        np.testing.assert_array_equal(plain.states, other.states)
        np.testing.assert_array_equal(plain.log_scores, other.log_scores)
        np.testing.assert_array_equal(plain.acceptance, other.acceptance)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # no temporary file is left


class Interrupting:
    """Raises KeyboardInterrupt at a given call, as Ctrl-C would between two compiled calls."""

    def __init__(self, at):
        self.calls, self.at = 0, at

    def __call__(self, steps):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_its_samples_and_can_go_on(tmp_path):
    _, families = families_of(chain_data(200, n=8))
    start, file = [np.arange(8)], tmp_path / "run"
    plain = order_mcmc.sample_orders(families, start, generators(1), **settings())
    some = order_mcmc.sample_orders(
        families, start, generators(1), **settings(checkpoint=file, progress=Interrupting(4))
    )
    assert not some.finished and 0 < some.states.shape[1] < 20
    np.testing.assert_array_equal(some.states[0], plain.states[0, : some.states.shape[1]])
    rest = order_mcmc.sample_orders(families, start, generators(1, seed=5), **settings(checkpoint=file))
    np.testing.assert_array_equal(rest.states, plain.states)
    with pytest.raises(KeyboardInterrupt, match="before the first kept"):
        order_mcmc.sample_orders(families, start, generators(1), **settings(progress=Interrupting(1)))


def test_after_ctrl_c_no_more_orders_are_averaged_than_in_a_moment(monkeypatch):
    _, families = families_of(chain_data(200, n=8))
    starts = [np.arange(8)] * 2

    def interrupted(at):
        return order_mcmc.sample_orders(families, starts, generators(2), **settings(progress=Interrupting(at)))

    usual = interrupted(4)  # at step 1200
    assert usual.states.shape[1] > 5
    monkeypatch.setattr(
        order_mcmc, "MOMENT", 2 * 2 * 3.5 * len(families.weights)
    )  # two steps, two chains, three orders
    few = interrupted(12)  # the same step, as calls of a hundred steps are a moment now
    last = usual.states.shape[1] - 1
    np.testing.assert_array_equal(few.states, usual.states[:, [0, last // 2, last]])
    whole = order_mcmc.sample_orders(families, starts, generators(2), **settings())
    assert whole.states.shape[1] == 20


def test_a_foreign_or_broken_checkpoint_is_refused(tmp_path):
    _, families = families_of(chain_data(50))
    file, start = tmp_path / "run", [np.arange(5)]
    order_mcmc.sample_orders(
        families, start, generators(1), **settings(checkpoint=file, fingerprint={"data": "abc", "thin": "100"})
    )
    with pytest.raises(ValueError, match="belongs to another run: data was abc, now it is xyz"):
        order_mcmc.sample_orders(
            families, start, generators(1), **settings(checkpoint=file, fingerprint={"data": "xyz", "thin": "100"})
        )
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read"):
        order_mcmc.sample_orders(families, start, generators(1), **settings(checkpoint=file))


@pytest.mark.parametrize("n_families", [100, 10**6])
def test_blocks_end_at_multiples(n_families):
    families = SimpleNamespace(weights=np.ones(n_families), tops=np.zeros(20))
    for every in (300, 25_000, 70_000):
        moves = order_mcmc.SwapMoves(families, 1, 150_000, 1, every)
        step, ends = 0, []
        while step < 150_000:
            step += moves.block(step)
            ends.append(step)
        assert set(range(every, 150_000, every)) <= set(ends)
        longest = max(np.diff([0, *ends]))
        # a step of many families takes longer: Ctrl-C is heard between two calls
        assert longest <= order_mcmc.BLOCK and (longest * n_families <= MOMENT or longest == 100)


def test_swaps_under_the_weighting_of_dags_are_an_error():
    table, _ = families_of(chain_data(30))
    with pytest.raises(ValueError, match="structure_weighting='dag'; use Gibbs moves"):
        swapped_average(table, None, "dag", [np.arange(5)], generators(1))


LONG = SwapSampler(n_orders=40, burn_in=50_000, thin=4000, n_chains=2, checkpoint_every=5000)
KILLED = """
import json, sys
sys.path.insert(0, {root!r})
import pandas as pd
from pgm_bma import OrderPosterior
from tests.orders.test_order_mcmc import LONG
sampler = LONG.set_params(checkpoint=sys.argv[2])
posterior = OrderPosterior(method="mcmc", sampler=sampler, random_state=7).fit(pd.read_json(sys.argv[1]))
print(json.dumps(posterior.orders_))
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL on Windows")
def test_a_run_killed_again_and_again_ends_with_the_same_orders(tmp_path, request):
    """Real SIGKILL, twice, in the middle of the run, each time after the file has moved on."""
    X = pd.DataFrame(chain_data(100, n=10), columns=[f"v{k}" for k in range(10)])
    X.to_json(tmp_path / "X.json")
    file = tmp_path / "killed"
    code = KILLED.format(root=str(request.config.rootpath))

    def start():
        command = [sys.executable, "-c", code, str(tmp_path / "X.json"), str(file)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    kills = 0
    for _ in range(2):
        run, seen = start(), file.stat().st_mtime_ns if file.exists() else None
        deadline = time.monotonic() + 120
        while run.poll() is None and time.monotonic() < deadline:
            if file.exists() and file.stat().st_mtime_ns != seen:
                os.kill(run.pid, signal.SIGKILL)
                kills += run.wait() == -signal.SIGKILL
                break
            time.sleep(0.001)
        run.stdout.close()
        run.wait()
    assert kills == 2
    last = start()
    expected = OrderPosterior(method="mcmc", sampler=LONG, random_state=7).fit(X).orders_
    orders = json.loads(last.communicate(timeout=300)[0].splitlines()[-1])
    assert len(orders) == 80 and [tuple(order) for order in orders] == expected
