"""Region selection by cross-validation instead of divergence: choose by the measure that will be judged (KIK section 6).

Every row is left out of the tables that predict it, which needs no folds: with one row less in its own cells, the loss
of all rows of a cell is known from the counts. A focus is first judged locally, its own table against the approximation
by the chosen regions; the paired differences over rows give z and p. Those below `significance_level` are then added to
the whole model, best first, and stay only if the left-out loss of the whole model falls: that is what the local test of
the paper cannot see.
"""

import numpy as np
from scipy.special import ndtr

from pgm_bma.kikuchi.selection import FocusTests, focus_tables, z_scores
from pgm_bma.kikuchi.terms import downward_closure, flat_table, interaction_terms


def cross_validated_tests(data, chosen, candidates, options, criterion, progress=None):
    """Tests of every focus by left-out "log_loss" or "error"; `taken` is decided here.

    In the answer `loss` is the left-out loss of the local approximation, `mean` that of the focus' own table, and sd the standard
    error of their difference.
    """
    n = len(candidates)
    loss, mean, sd = np.zeros(n), np.zeros(n), np.zeros(n)
    for foci in focus_tables(data, chosen, candidates, options, leave_one_out=True):
        layout = foci.layout
        for t in np.flatnonzero(foci.totals > 0):
            k = foci.part.start + t
            share = _rows(foci.counts, layout, t) / foci.totals[t]
            approximate = cell_losses(_rows(foci.local, layout, t), _rows(foci.local_reduced, layout, t), criterion)
            own = cell_losses(_rows(foci.smoothed, layout, t), _rows(foci.smoothed_reduced, layout, t), criterion)
            loss[k], mean[k] = np.sum(share * approximate), np.sum(share * own)
            variance = np.sum(share * (approximate - own) ** 2) - (loss[k] - mean[k]) ** 2
            sd[k] = np.sqrt(max(variance, 0.0) / foci.totals[t])
        if progress is not None:
            progress(foci.part.stop - foci.part.start)
    gain = loss - mean
    z = z_scores(loss, mean, sd)
    p = ndtr(-z)
    result = FocusTests(candidates, loss, mean, sd, p, z, np.zeros(n, dtype=bool), None)
    gated = np.flatnonzero(p < options.significance_level)
    order = gated[np.lexsort((-gain[gated], p[gated]))]
    return result._replace(taken=improving_subset(data, chosen, candidates, order, options, criterion))


def improving_subset(data, chosen, candidates, order, options, criterion):
    """Mask of the candidates that lower the left-out loss of the whole model, tried in the given order."""
    taken = np.zeros(len(candidates), dtype=bool)
    present = set(downward_closure(chosen))
    scores = left_out_scores(data, sorted(present, key=lambda s: (len(s), s)), options)
    best = row_loss(scores, data.target, data.weights, criterion)
    for k in order:
        fresh = [s for s in downward_closure([candidates[k]]) if s not in present]
        if options.prior == "marginal":  # a region changes the tables of its neighbours: count all again
            trial = left_out_scores(data, [*present, *fresh], options)
        else:
            trial = scores + left_out_scores(data, fresh, options)
        value = row_loss(trial, data.target, data.weights, criterion)
        if value < best:
            best, scores = value, trial
            present.update(fresh)
            taken[k] = True
    return taken


def left_out_scores(data, sets, options):
    """Sum of the terms of `sets` at every training row, that row left out of its own class: (n_samples, n_classes).

    Subsets that are not asked for are counted too, because a term is made of all of them.
    """
    wanted = set(sets)
    terms = interaction_terms(data, downward_closure(sets), options.prior, options.strength, leave_one_out=True)
    layout = terms.layout
    scores = np.zeros((len(data.codes), data.n_classes))
    codes = data.codes
    rows = np.arange(len(codes))
    for t, s in enumerate(layout.sets):
        if s not in wanted:
            continue
        seen = np.all(codes[:, list(s)] >= 0, axis=1)
        cell = (codes[:, list(s)] * layout.strides[t, : len(s)]).sum(axis=1) if s else np.zeros(len(codes), np.int64)
        cell = np.where(seen, cell, 0)
        full, reduced = _rows(terms.values, layout, t), _rows(terms.reduced, layout, t)
        values = full[cell]
        values[rows, data.target] = reduced[cell, data.target]
        scores += np.where(seen[:, None], values, 0.0)
    return scores


def row_loss(scores, target, weights, criterion):
    """Weighted mean loss of log scores; equal errors are told apart by a trace of log loss."""
    own = scores[np.arange(len(target)), target]
    log_loss = np.average(np.logaddexp.reduce(scores, axis=1) - own, weights=weights)
    if criterion == "log_loss":
        return log_loss
    return np.average(np.argmax(scores, axis=1) != target, weights=weights) + 1e-9 * log_loss


def cell_losses(full, reduced, criterion):
    """Left-out loss of a row in every cell: (cells, n_classes); the row's own class has `reduced`, the others `full`."""
    n_classes = full.shape[1]
    losses = np.empty_like(full)
    for c in range(n_classes):
        scores = full.copy()
        scores[:, c] = reduced[:, c]
        if criterion == "log_loss":
            losses[:, c] = np.logaddexp.reduce(scores, axis=1) - scores[:, c]
        else:
            losses[:, c] = np.argmax(scores, axis=1) != c
    return losses


def _rows(values, layout, t):
    return flat_table(values, layout, t).reshape(-1, layout.n_classes)
