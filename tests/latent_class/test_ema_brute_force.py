"""The references behind Figs. 3-4: annealed importance sampling and the Candidate method against exact marginal likelihoods."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.oracles import ema as oracle

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference(request):
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import _brute_force
    finally:
        sys.path.remove(str(ROOT))
    return _brute_force


def case():
    cases = json.loads((Path(__file__).parents[1] / "vectors" / "ema.json").read_text())["cases"]
    return next(c for c in cases if c["name"] == "poster_example")


def dependent_part(case, structure):
    X = np.array(case["X"], dtype=np.int8)
    inside = [i for i, arc in enumerate(structure) if arc == "1"]
    rest = [i for i in range(case["n"]) if i not in inside]
    alone = sum(oracle.log_dirichlet_multinomial(np.bincount(X[:, i], minlength=2).tolist(), 1.0) for i in rest)
    return np.ascontiguousarray(X[:, inside]), np.full(len(inside), 2), alone


def test_annealed_importance_sampling_is_unbiased(reference):
    rng = np.random.default_rng(0)
    for structure, want in case()["exact_log_p_D_given_S"].items():
        codes, cards, alone = dependent_part(case(), structure)
        found, error = reference.annealed(codes, cards, 2, rng, n_temperatures=40, n_runs=60)
        assert found + alone == pytest.approx(want, abs=4 * error + 1e-9)  # four standard errors, 16 structures


def test_candidate_method_needs_all_label_permutations(reference):
    rng = np.random.default_rng(0)
    codes, cards, alone = dependent_part(case(), "1111")
    want = case()["exact_log_p_D_given_S"]["1111"]
    found, _ = reference.candidate(codes, cards, 2, rng, n_sweeps=600, n_runs=4)
    assert found + alone == pytest.approx(want, abs=0.15)  # 1200 label samples


def test_brute_force_weights_are_the_exact_posterior_of_structures(reference):
    exact = case()["exact_log_p_D_given_S"]
    X = np.array(case()["X"], dtype=np.int8)
    found = reference.brute_force(X, np.full(4, 2), 2, np.random.default_rng(1), 5, 60, 60)
    weights = np.exp(np.array(list(exact.values())))
    weights /= weights.sum()
    for structure, want in zip(exact, weights):
        # relative errors of the annealed estimates are about 1 to 2 % here
        assert found["posterior"][tuple(int(arc) for arc in structure)] == pytest.approx(want, rel=0.1)
    assert found["joint"].sum() == pytest.approx(1.0, rel=1e-9)


def test_divergence_of_a_model_from_itself_is_zero_under_any_labels(reference):
    rng = np.random.default_rng(3)
    sizes, tables = rng.dirichlet(np.ones(2)), [rng.dirichlet(np.ones(2), size=2) for _ in range(3)]
    states = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, -1).T
    joint = np.exp(reference.joint_log(states, sizes, tables)).T
    swapped = [table[::-1] for table in tables]
    assert reference.divergence_bits(joint, states, sizes[::-1], swapped) == pytest.approx(0.0, abs=1e-12)
    other = [rng.dirichlet(np.ones(2), size=2) for _ in range(3)]
    direct = (joint * (np.log2(joint) - np.log2(np.exp(reference.joint_log(states, sizes, other)).T))).sum()
    crossed = (joint * (np.log2(joint) - np.log2(np.exp(reference.joint_log(states, sizes, other)).T[::-1]))).sum()
    found = reference.divergence_bits(joint, states, sizes, other)
    assert found == pytest.approx(min(direct, crossed), rel=1e-9)
