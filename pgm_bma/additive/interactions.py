"""How much the pairs of columns of a fit say: their share of the explained log odds, with an interval from the curvature.

The term of a pair is all that its one weight and its cells add to the scores. Its importance is the variance of that over the rows
(summed over the classes, each score less its mean over them), as a share of the same variance of the whole score. The interval is
that of a factor on the term: its standard error follows from the curvature of the penalised likelihood of left-out rows, given
factors on all other pairs and on the rest.
"""

import numpy as np
import pandas as pd

from pgm_bma.additive.results import design_owners, explained, line_sets
from pgm_bma.foundation.numbers.softmax_ridge import curvature_matrix, other_classes

_BLOCK = 4096  # rows at a time
SURE = 1.96  # standard errors on either side
COLUMNS = ["first", "second", "importance", "low", "high"]


def factor_errors(contrasts, rows, theta, stiffness, terms):
    """Standard error of a factor on the term of each pair that is in the model: {pair: error}.

    rows : (n,) weights     theta, stiffness : (n_weights,) the fitted weights and their ridges
    """
    parts = {pair: part for pair, part in _pair_weights(contrasts, terms).items() if np.any(theta[part])}
    if not parts:
        return {}
    total = contrasts.scores(theta)
    features = [contrasts.scores(np.where(part, theta, 0.0)) for part in parts.values()]
    stacked = np.stack([*features, total - sum(features)], axis=2)
    _, probability = other_classes(total.ravel(), rows, total.shape[1])
    penalty = [float(stiffness[part] @ theta[part] ** 2) for part in parts.values()]
    curvature = curvature_matrix(stacked, rows, probability, np.array([*penalty, 0.0]))
    errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(curvature, hermitian=True)), 0.0))
    return dict(zip(parts, errors.tolist()))


def _pair_weights(contrasts, terms):
    """{pair: (n_weights,) which weights are its own}."""
    n_flat = contrasts.values.shape[2]
    n_directions = contrasts.n_classes - 1
    size = n_flat + contrasts.design.shape[1] * n_directions
    found = {}
    for k, members in enumerate(terms.sets):
        if len(members) == 2:
            found[members] = np.arange(size) == k
    for members, kind, columns in design_owners(terms):
        if kind == "cell":
            first, stop = (n_flat + place * n_directions for place in (columns.start, columns.stop))
            own = (np.arange(size) >= first) & (np.arange(size) < stop)
            found[members] = found.get(members, False) | own
    return found


def interaction_table(fit, data, names):
    """DataFrame of the pairs in the model: first, second, importance, low, high, by falling importance."""
    places = {members: k for k, members in enumerate(line_sets(fit.terms)) if members in fit.pair_errors}
    if not places:
        return pd.DataFrame({name: pd.Series(dtype=object if name in COLUMNS[:2] else float) for name in COLUMNS})
    weights = data.weights / data.weights.sum()
    means, squares = (np.zeros((len(places) + 1, len(fit.terms.shares))) for _ in range(2))
    for start in range(0, len(data.codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        lines = explained(fit, data.codes[block], data.values[block])
        lines = np.concatenate([lines[:, list(places.values())], lines.sum(axis=1, keepdims=True)], axis=1)
        lines -= lines.mean(axis=2, keepdims=True)
        means += np.tensordot(weights[block], lines, axes=1)
        squares += np.tensordot(weights[block], lines**2, axes=1)
    spread = np.maximum(squares - np.square(means), 0.0).sum(axis=1)
    shares = spread[:-1] / spread[-1] if spread[-1] > 0 else np.zeros(len(places))
    lines = []
    for (i, j), share in zip(places, shares.tolist()):
        reach = SURE * fit.pair_errors[i, j]
        lines.append((names[i], names[j], share, share * max(1.0 - reach, 0.0) ** 2, share * (1.0 + reach) ** 2))
    lines.sort(key=lambda line: -line[2])
    return pd.DataFrame(lines, columns=COLUMNS)
