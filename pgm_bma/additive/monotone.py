"""Curves that only rise, or only fall: what `monotone` promises, for every row.

A score is a sum, so that it is monotone in a column if all that holds this column is. Pairs, cells, densities and trees with such
a column are not made (see `terms`, `choice`, `fit`). What it says alone, its averaged cuts and its slope with their fitted weights,
is one curve over its bins. Of each two neighbouring classes, the log odds of the later one are pooled to the nearest curve that
goes one way (isotonic regression, by the weight of the bins). Then P(this class or a later one | row) goes that way too: with
log odds s_c+1 - s_c that rise for every c, so does every ratio of a later to an earlier class. The other weights are fitted anew
next to the pooled curves.
"""

import numpy as np
from scipy.optimize import isotonic_regression

from pgm_bma.additive.model import column_curve
from pgm_bma.additive.solve import against_own
from pgm_bma.additive.terms import design_owners


def pooled(curve, mass, sign):
    """The nearest curve (n_bins, n_classes) in which later classes gain on earlier ones (sign 1) or lose; mass (n_bins,)."""
    weights = np.maximum(mass, 1e-9 * max(mass.sum(), 1e-300))  # a bin without rows goes with its neighbours
    steps = [isotonic_regression(step, weights=weights, increasing=sign > 0).x for step in np.diff(curve, axis=1).T]
    scores = np.cumsum([np.zeros(len(curve)), *steps], axis=0).T
    return scores - scores.mean(axis=1, keepdims=True)


def with_pooled_curves(data, terms, contrasts, model):
    """Terms and contrasts in which the curve of every monotone column is one term, of kind "curve", and its slope has no say.

    data : of the columns with terms     model : `AdditiveModel` of the same terms with fitted weights
    """
    middles = dict(zip(np.flatnonzero(data.numeric), data.bin_middles()))
    shares = data.bin_shares()
    singles, kinds = list(terms.singles), list(contrasts.term_kinds)
    values, design = contrasts.values.copy(), contrasts.design.copy()
    for j in np.flatnonzero(data.monotone):
        singles[j] = pooled(column_curve(model, j, middles[j]), shares[j], data.monotone[j])
        seen = data.codes[:, j] >= 0
        values[:, :, 1 + j] = against_own(np.where(seen[:, None], singles[j][data.codes[:, j]], 0.0), data.target)
        kinds[1 + j] = "curve"
        design[:, slopes_of(terms, j)] = 0.0
    return terms._replace(singles=singles), contrasts._replace(values=values, design=design, term_kinds=kinds)


def only_curves(data, terms, weights):
    """`TermWeights` in which a monotone column has its curve alone, never upside down."""
    sets, slopes = weights.sets.copy(), weights.slopes.copy()
    for j in np.flatnonzero(data.monotone):
        sets[1 + j] = max(sets[1 + j], 0.0)
        slopes[slopes_of(terms, j)] = 0.0
    return weights._replace(sets=sets, slopes=slopes)


def slopes_of(terms, j):
    """Places in the design that column `j` alone has."""
    return [k for members, _, place in design_owners(terms) if members == (j,) for k in range(place.start, place.stop)]
