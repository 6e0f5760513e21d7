"""Moves of one DAG: new parents for a node and arcs turned round, against the enumeration of all DAGs."""

import numpy as np
import pytest

from pgm_bma.orders.chains import _layer_kernels
from pgm_bma.orders.chains.gibbs import prepare_lists
from pgm_bma.orders.families.family_table import family_table, prune_table
from tests.oracles.orders import Problem, layers_of
from tests.orders.test_order_mcmc import chain_data
from tests.orders.test_relocation import ALL, lists_of, softmax


def families_of(f):
    """(child, parents) -> number of the family."""
    n, place = len(f.tops), {}
    for child in range(n):
        for k in range(f.offsets[child], f.offsets[child + 1]):
            place[child, tuple(sorted(int(p) for p in f.sets[:, k] if p < n))] = k
    return place


def dag_of(dag, place):
    one = _layer_kernels.new_dag(len(dag))
    one.chosen[:] = [place[child, z] for child, z in enumerate(dag)]
    one.order[:] = [node for layer in layers_of(dag) for node in layer]
    one.place[one.order] = np.arange(len(dag))
    return one


def stands_in_order(one, f):
    n = len(f.tops)
    assert sorted(one.order) == list(range(n)) and one.order[one.place].tolist() == list(range(n))
    for child in range(n):
        parents = f.sets[:, one.chosen[child]]
        assert (one.place[parents[parents < n]] < one.place[child]).all()


@pytest.mark.parametrize(("n_rows", "noise"), [(30, 0.3), (3000, 0.01)])  # the second: sums over several levels
def test_new_parents_come_with_their_probabilities_given_all_other_families(n_rows, noise):
    codes = chain_data(n_rows, n=4, noise=noise)
    f, truth = lists_of(codes), Problem(codes.tolist(), [2] * 4, 3)
    place = families_of(f)
    dags = truth.dags()
    others = {}  # a node and the families of the others -> all parents that close no cycle, by falling score
    for dag in dags:
        for v in range(4):
            others.setdefault((v, dag[:v], dag[v + 1 :]), []).append((truth.dag_log_score(dag), dag[v]))
    for before in dags:
        for v in range(4):
            scores, sets = zip(*sorted(others[v, before[:v], before[v + 1 :]], reverse=True))
            shares = softmax(scores)
            expected = np.zeros(4)
            for share, z in zip(shares, sets):
                expected[list(z)] += share
            ends = np.cumsum(shares)
            for q, z in enumerate(sets):
                if shares[q] < 1e-6:  # too narrow to aim at
                    continue
                one, edges = dag_of(before, place), np.zeros((4, 4))
                _layer_kernels.renew_parents(v, ends[q] - shares[q] / 2, one, f, edges)
                if all(abs(shares[q] - share) > 1e-9 for share in np.delete(shares, q)):  # ties may stand either way
                    assert one.chosen[v] == place[v, z]
                assert [one.chosen[w] == place[w, before[w]] for w in range(4) if w != v] == [True] * 3
                stands_in_order(one, f)
            np.testing.assert_allclose(edges[v], expected, atol=2e-9)  # sets below 1e-9 are not looked at
            assert not np.delete(edges, v, axis=0).any()


def test_turning_arcs_round_leaves_the_posterior_of_dags_as_it_is():
    """DAGs drawn from the exact posterior, one reversal each: frequencies stay; five nodes, every DAG of at most two parents."""
    codes = chain_data(15, n=5)
    table = family_table(codes, [2] * 5, max_indegree=2)
    f, truth = prepare_lists(prune_table(table, ALL)), Problem(codes.tolist(), [2] * 5, 2)
    dags = truth.dags()
    shares = softmax([truth.dag_log_score(dag) for dag in dags])
    place = families_of(f)
    name = {k: z for (_, z), k in place.items()}
    rng = np.random.default_rng(0)
    n_draws = 40_000
    turned, one, starts = 0, _layer_kernels.new_dag(5), [dag_of(dag, place) for dag in dags]
    after = np.zeros((5, 5))
    both = np.zeros((5, 5))
    for k in rng.choice(len(dags), size=n_draws, p=shares):
        for array, start in zip(one, starts[k]):
            array[:] = start
        turned += _layer_kernels.reverse(rng, one, f)
        arcs = np.zeros((5, 5))
        for child in range(5):
            arcs[list(name[one.chosen[child]]), child] = 1
        stands_in_order(one, f)
        after += arcs
        both += arcs * (arcs.sum() > 4)
    exact = np.zeros((5, 5))
    exact_both = np.zeros((5, 5))
    for dag, share in zip(dags, shares):
        arcs = np.zeros((5, 5))
        for child, z in enumerate(dag):
            arcs[list(z), child] = 1
        exact += share * arcs
        exact_both += share * arcs * (arcs.sum() > 4)
    assert turned > n_draws / 20
    for counts, truth_share in ((after, exact), (both, exact_both)):
        error = np.sqrt(truth_share * (1 - truth_share) / n_draws)
        assert (np.abs(counts / n_draws - truth_share) < 5 * error + 1e-9).all()  # five standard errors
