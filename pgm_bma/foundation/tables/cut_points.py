"""Cut points of a column of numbers: class entropy with the MDL rule, equal frequency, equal width.

Arrays in, rising cut points out. A bin is half open: a value equal to a cut belongs to the bin above it. Weights mean
repetition: an integer weight is the same as that many equal values.

Fayyad and Irani (1993), "Multi-interval discretization of continuous-valued attributes for classification learning".
"""

import math
import re
from itertools import pairwise

import numpy as np
from scipy.special import xlogy

MAX_BINS = 32  # elementary bins of a numeric column
CUT_PRIORS = (0.02, 0.1, 0.3)  # prior probabilities of a cut at a boundary, summed over where cuts are averaged

ONE_BIN = "all_values"


def mdl_cut_points(x, y, weights=None):
    """Cut points of one column by recursive minimum entropy with the MDL stopping rule.

    Parameters
    ----------
    x : (n_samples,) numbers; NaN rows are left out
    y : (n_samples,) class labels or codes
    weights : (n_samples,) or None

    Returns
    -------
    (n_cuts,) rising; each lies half way between two neighbouring values. Among cuts of equal entropy the lowest is taken.

    Examples
    --------
    >>> from pgm_bma.foundation.tables.cut_points import mdl_cut_points
    >>> mdl_cut_points([1, 2, 3, 4, 5, 6, 7, 8], list("aaaabbbb"))
    array([4.5])
    """
    x, weights, used = _known(x, weights)
    labels, classes = np.unique(np.asarray(y)[used], return_inverse=True)
    values, group = np.unique(x, return_inverse=True)
    if len(values) < 2 or len(labels) < 2:
        return np.empty(0)
    n_classes = len(labels)
    counts = np.bincount(group * n_classes + classes, weights, len(values) * n_classes).reshape(-1, n_classes)
    # the best cut never falls between two values of the same single class (Fayyad and Irani, theorem 1)
    only = np.where((counts > 0).sum(1) == 1, counts.argmax(1), -1)
    boundary = np.flatnonzero((only[1:] != only[:-1]) | (only[1:] < 0))
    ends = np.append(boundary, len(values) - 1)
    below = np.zeros((len(ends) + 1, n_classes))
    below[1:] = np.cumsum(counts, axis=0)[ends]

    accepted, segments = [], [(0, len(ends))]
    while segments:
        start, stop = segments.pop()
        cut = _best_mdl_cut(below[start : stop + 1] - below[start])
        if cut:
            accepted.append(start + cut - 1)
            segments += [(start, start + cut), (start + cut, stop)]
    left = boundary[np.sort(np.asarray(accepted, dtype=int))]
    return _midpoints(values[left], values[left + 1])


def frequency_cut_points(x, n_bins, weights=None):
    """Cut points that give bins of nearly equal weight.

    Cut k lies between the two neighbouring values where the share to its left is nearest to k / n_bins (the lower place
    of two equals). Equal values are never parted, so heavy ties give fewer bins.

    Examples
    --------
    >>> from pgm_bma.foundation.tables.cut_points import frequency_cut_points
    >>> frequency_cut_points([1, 2, 3, 4, 5, 6], 3)
    array([2.5, 4.5])
    >>> frequency_cut_points([0, 0, 0, 0, 0, 7], 3)
    array([3.5])
    """
    x, weights, _ = _known(x, weights)
    values, group = np.unique(x, return_inverse=True)
    if len(values) < 2:
        return np.empty(0)
    below = np.cumsum(np.bincount(group, weights))
    # in units of 1 / n_bins of the total: exact for integer weights, so that equals are equal
    targets = below[-1] * np.arange(1, n_bins)
    places = n_bins * below[:-1]
    right = np.minimum(np.searchsorted(places, targets), len(places) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.unique(np.where(np.abs(targets - places[left]) <= np.abs(places[right] - targets), left, right))
    return _midpoints(values[nearest], values[nearest + 1])


def width_cut_points(x, n_bins, weights=None):
    """Cut points that part the range of the values (of weight above 0) into bins of equal width.

    Examples
    --------
    >>> from pgm_bma.foundation.tables.cut_points import width_cut_points
    >>> width_cut_points([0.0, 1.0, 9.0, 10.0], 4)
    array([2.5, 5. , 7.5])
    """
    x, _, _ = _known(x, weights)
    if len(x) == 0:
        return np.empty(0)
    low, high = x.min(), x.max()
    share = np.arange(1, n_bins) / n_bins
    cuts = np.unique(low * (1 - share) + high * share)  # high - low could overflow
    return cuts[(cuts > low) & (cuts <= high)]


def bin_labels(cuts, low=None, high=None):
    """Readable names of the bins between `cuts`, legal in BIF; `low` and `high` (the data's range) help to choose digits.

    A cut is rounded by at most 0.5 % of the narrowest bin, so labels always differ.

    Examples
    --------
    >>> from pgm_bma.foundation.tables.cut_points import bin_labels
    >>> bin_labels([2.45, 4.75])
    ['lt_2_45', 'from_2_45_to_4_75', 'ge_4_75']
    >>> bin_labels([-1.5])
    ['lt_neg1_5', 'ge_neg1_5']
    >>> bin_labels([])
    ['all_values']
    """
    cuts = [float(cut) for cut in cuts]
    if not cuts:
        return [ONE_BIN]
    ends = [cuts[0] if low is None else low, *cuts, cuts[-1] if high is None else high]
    tolerance = 0.005 * min((b - a for a, b in pairwise(ends) if b > a), default=0.0)
    tokens = [_number_token(cut, tolerance) for cut in cuts]
    return [f"lt_{tokens[0]}", *(f"from_{a}_to_{b}" for a, b in pairwise(tokens)), f"ge_{tokens[-1]}"]


_NUMBER = r"((?:neg)?\d+(?:_\d+)?(?:e(?:neg)?\d+)?)"
_BIN = re.compile(f"lt_{_NUMBER}|from_{_NUMBER}_to_{_NUMBER}|ge_{_NUMBER}")


def state_text(state):
    """A state as people read it: a name of `bin_labels` in numbers, all else as it is.

    Examples
    --------
    >>> from pgm_bma.foundation.tables.cut_points import state_text
    >>> [state_text(label) for label in ("lt_neg1_5", "from_2_45_to_4_75", "ge_1e20", "ge_nius", 3)]
    ['below -1.5', '2.45 to 4.75', '1e20 or more', 'ge_nius', '3']
    """
    text = str(state)
    found = _BIN.fullmatch(text)
    if not found:
        return text
    below, low, high, above = (number and number.replace("neg", "-").replace("_", ".") for number in found.groups())
    return f"below {below}" if below else f"{low} to {high}" if low else f"{above} or more"


def _best_mdl_cut(below):
    """Position of the accepted cut inside a segment, or 0 if there is none.

    below : (n_groups + 1, n_classes) class weights left of each boundary, from nothing to the whole segment.
    """
    whole = below[-1]
    total = whole.sum()
    present = whole > 0
    if len(below) < 3 or present.sum() < 2 or total < 2:
        return 0
    left = below[1:-1, present]
    right = whole[present] - left
    bits_left, bits_right = _total_entropy(left), _total_entropy(right)
    bits = bits_left + bits_right
    cut = int(np.argmax(bits <= bits.min() + 1e-10 * total))  # the lowest among equals, whatever the rounding
    entropy = _total_entropy(whole[None, present])[0] / total
    gain = entropy - bits[cut] / total
    k, k_left, k_right = present.sum(), (left[cut] > 0).sum(), (right[cut] > 0).sum()
    spread = k * entropy - k_left * bits_left[cut] / left[cut].sum() - k_right * bits_right[cut] / right[cut].sum()
    delta = k * math.log2(3) + math.log2(1 - 2 * 3.0**-k) - spread  # log2(3^k - 2) without overflow
    return cut + 1 if gain > (math.log2(total - 1) + delta) / total else 0


def _total_entropy(counts):
    """Class entropy in bits times the weight, per row.   counts : (n_rows, n_classes)   returns (n_rows,)"""
    totals = counts.sum(1)
    return (xlogy(totals, totals) - xlogy(counts, counts).sum(1)) / math.log(2)


def _known(x, weights):
    """Values and weights of the rows that count, and the mask of those rows."""
    x = np.asarray(x, dtype=float)
    used = ~np.isnan(x)
    if weights is not None:
        weights = np.asarray(weights, dtype=float)
        used &= weights > 0
        weights = weights[used]
    return x[used], weights, used


def _midpoints(low, high):
    with np.errstate(over="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle > low, middle, high)  # neighbouring floats have no number between them


def _number_token(number, tolerance):
    """Shortest decimal within `tolerance` of the number, in characters that BIF allows."""
    shorter = (f"{number:.{digits}g}" for digits in range(1, 18))
    value = next((float(text) for text in shorter if abs(float(text) - number) <= tolerance), number)
    plain = value == 0 or 1e-5 <= abs(value) < 1e16
    text = np.format_float_positional(value, trim="-") if plain else repr(value)
    mantissa, _, exponent = text.partition("e")
    token = "0" if value == 0 else mantissa.replace(".", "_").replace("-", "neg")
    return token + (f"e{int(exponent)}".replace("-", "neg") if exponent else "")


# ---------------------------------------------------------------------------------------------- elementary bins


def elementary_edges(values, max_bins=MAX_BINS, weights=None):
    """Rising edges of at most `max_bins` bins of nearly equal weight; bin = number of edges that are <= value.

    An edge is a value of the column, so that a rising transformation of the column changes no bin. NaN is left out.
    """
    kept = ~np.isnan(values)
    distinct, inverse = np.unique(values[kept], return_inverse=True)
    if len(distinct) <= max_bins:
        return distinct[1:]
    mass = np.bincount(inverse, None if weights is None else weights[kept])
    before = np.concatenate([[0.0], np.cumsum(mass)[:-1]]) / mass.sum()  # share of the rows below each value
    group = np.minimum((before * max_bins).astype(np.int64), max_bins - 1)
    return distinct[1:][np.diff(group) > 0]


def bin_values(values, edges):
    """Bin of every value, -1 where it is missing: (n_samples,) int32."""
    bins = np.searchsorted(edges, values, side="right").astype(np.int32)
    bins[np.isnan(values)] = -1
    return bins
