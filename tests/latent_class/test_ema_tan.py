"""EMA with one attribute parent: the averaging step against the literal sum over all structures of an order."""

import numpy as np
import pytest
from scipy.special import logsumexp

from benchmarks._ema_tan import entropy, fit_ema_tan
from pgm_bma.metrics import clustering_accuracy
from tests.oracles import ema_tan as oracle


@pytest.mark.parametrize("seed, cards", [(0, (2, 3)), (1, (2, 2, 3)), (2, (2, 2, 2, 2)), (3, (3, 2, 1, 2))])
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_step_is_the_literal_sum_over_structures(seed, cards, n_clusters):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, r, 9) for r in cards])
    R = rng.dirichlet(np.ones(n_clusters), size=9)
    order = rng.permutation(len(cards))
    fit = fit_ema_tan(codes, cards, n_clusters, order=order, responsibilities=R, alpha=0.7, max_iter=0)
    want, total = oracle.averaged_log_joint(codes.tolist(), R.tolist(), list(cards), order.tolist(), alpha=0.7)
    np.testing.assert_allclose(fit.log_joint, want, atol=1e-9)  # sums of a few hundred products
    assert fit.evidence_bound == pytest.approx(total + entropy(R), abs=1e-9)
    assert fit.log_likelihood == pytest.approx(logsumexp(want, axis=1).sum(), abs=1e-9)
    np.testing.assert_allclose(fit.family_weights.sum(axis=(1, 2)), 1.0, atol=1e-12)


def test_variational_bound_never_falls():
    rng = np.random.default_rng(5)
    codes = np.column_stack([rng.integers(0, r, 60) for r in (2, 3, 2, 4)])
    for seed in range(5):
        R = np.random.default_rng(seed).dirichlet(np.ones(3), size=60)
        fit = fit_ema_tan(codes, (2, 3, 2, 4), 3, averaging="variational", responsibilities=R, max_iter=50)
        assert (np.diff(fit.score_path) >= -1e-9 * abs(fit.score_path[0])).all()  # rounding of a sum


def test_dependences_inside_clusters_do_not_fool_it():
    """Four columns copy each other; the clusters are in the others. Plain EM takes the copies for clusters."""
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 400)
    copies = np.repeat(rng.integers(0, 2, (400, 1)), 4, axis=1)
    copies = np.where(rng.random(copies.shape) < 0.05, 1 - copies, copies)
    signal = (rng.random((400, 5)) < np.where(z[:, None] == 0, 0.2, 0.8)).astype(int)
    codes = np.column_stack([copies, signal])
    fit = fit_ema_tan(codes, np.full(9, 2), 2, rng=np.random.default_rng(0), n_init=10)
    assert clustering_accuracy(z, fit.log_joint.argmax(axis=1)) > 0.85
    assert fit.cluster_arc_posterior[4:].min() > 0.99


def test_missing_cells_are_refused():
    with pytest.raises(ValueError, match="complete rows"):
        fit_ema_tan(np.array([[0, -1]]), (2, 2), 2)
