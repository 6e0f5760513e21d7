"""Windows of chains, and what they say about convergence: differences, split R-hat and effective sizes of every arc.

A window adds up the arc posteriors of the steps from `first` to `end`, in batches, and keeps some of the states, evenly spaced.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

BATCHES = 8  # of a window, for R-hat and effective sizes
SETTLED = (0.02, 0.98)  # arcs outside need no R-hat: they hardly vary
R_HAT, R_HAT_SHARE = 1.1, 0.9
APART = 0.2  # chains whose means of an arc differ by more are in different modes


@dataclass
class Window:
    """What the steps `first` .. `end` of one chain added up to."""

    first: int
    end: int
    sums: np.ndarray  # (BATCHES or, pooled, 3 BATCHES / 2, n, n) of arc posteriors
    squares: np.ndarray  # (4, n, n) by quarters; pooled, (2, n, n) by halves
    counts: np.ndarray  # steps of the batches
    kept: dict[str, np.ndarray]  # name -> (n_kept, ...), "state", "score" and what else moves keep
    has: np.ndarray  # (n_kept,) which of them are there
    tried: np.ndarray  # (n_temperatures - 1,) exchanges
    taken: np.ndarray

    @property
    def length(self):
        """Steps that are in it."""
        return int(self.counts.sum())

    @property
    def mean(self):
        """(n, n) arc posteriors."""
        return self.sums.sum(0) / max(self.length, 1)

    def batch(self, step):
        """(batch, quarter) that the step behind `step` belongs to."""
        number = (step - self.first) * BATCHES // (self.end - self.first)
        return number, number * 4 // BATCHES

    def place(self, step):
        """Place among the kept of what a chain has after `step`, or -1; short windows keep fewer."""
        k, length = step - self.first, self.end - self.first
        place = k * len(self.has) // length
        return place - 1 if place > (k - 1) * len(self.has) // length else -1

    def keep(self, place, **values):
        """Keep values by name."""
        for name, value in values.items():
            self.kept[name][place] = value
        self.has[place] = True


def new_window(first, end, n, kept, n_pairs=0):
    """A window still without steps; kept : name -> array to be filled"""
    return Window(
        first, end, np.zeros((BATCHES, n, n)), np.zeros((4, n, n)), np.zeros(BATCHES, dtype=np.int64), kept,
        np.zeros(len(kept["state"]) if kept else 0, dtype=bool), np.zeros(n_pairs), np.zeros(n_pairs),
    )  # fmt: skip


def no_window():
    """The window before the first: empty."""
    return new_window(0, 0, 0, {})


def cut_short(chains, stopped):
    """Whether chains were stopped when they had hardly begun a window, so that the one before counts."""
    now, last = (min(getattr(chain, name).length for chain in chains) for name in ("now", "last"))
    return stopped is not None and now < last


def all_kept(windows, name):
    """(n_chains, n_kept, ...) what all chains have kept under a name."""
    has = np.logical_and.reduce([window.has for window in windows])
    return np.stack([window.kept[name][has] for window in windows])


def difference(windows):
    """Largest difference of an arc posterior between two chains; of one chain alone, between its two halves."""
    return float(differences(windows).max(initial=0.0))


def differences(windows):
    """(n, n) the same of every arc."""
    means = np.array([w.mean for w in windows])
    return np.ptp(means if len(means) > 1 else halves(windows)[0], axis=0)


def halves(windows):
    """(means, variances), each (2 n_chains, n, n), and the length of a half."""
    means, variances, lengths = [], [], []
    for window in windows:
        middle, parts = len(window.counts) // 2, len(window.squares) // 2
        for half in range(2):
            batches = slice(half * middle, (half + 1) * middle)
            length = int(window.counts[batches].sum())
            mean = window.sums[batches].sum(0) / max(length, 1)
            squares = window.squares[half * parts : (half + 1) * parts].sum(0)
            means.append(mean)
            variances.append(np.maximum(squares / max(length, 1) - mean**2, 0.0))
            lengths.append(length)
    return np.array(means), np.array(variances), min(lengths)


def split_r_hat(windows):
    """(n, n) split R-hat of every arc posterior; NaN where it does not vary."""
    means, variances, length = halves(windows)
    within, between = variances.mean(0), means.var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((within * (length - 1) / max(length, 1) + between) / within)
    still = (within <= 1e-20) & (between <= 1e-20)
    return np.where(still | (length < 2), np.nan, r_hat)


def r_hat_holds(windows):
    """Whether most arcs that are neither certain nor impossible have an R-hat near 1."""
    mean, r_hat = np.mean([w.mean for w in windows], axis=0), split_r_hat(windows)
    open_ones = (mean > SETTLED[0]) & (mean < SETTLED[1]) & ~np.isnan(r_hat)
    return not open_ones.any() or bool(np.quantile(r_hat[open_ones], R_HAT_SHARE) < R_HAT)


def effective_size(windows):
    """(n, n) number of independent states that the windows are worth, from the spread of batch means."""
    counts = np.concatenate([w.counts for w in windows])
    full = counts > 0
    means = np.concatenate([w.sums / np.maximum(w.counts, 1)[:, None, None] for w in windows])[full]
    if len(means) < 2:  # one batch says nothing of their spread
        return np.full(means.shape[1:], np.nan)
    variance = np.mean(halves(windows)[1], axis=0) + means.var(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = variance / means.var(0, ddof=1) * full.sum()
    return np.where(np.isfinite(size), np.minimum(size, counts.sum()), np.nan)


class ChainRecord(NamedTuple):
    """What chains tell about their arcs."""

    means: np.ndarray  # (n_chains, n, n) arc posteriors
    r_hat: np.ndarray  # (n, n) split R-hat
    effective_size: np.ndarray  # (n, n)
    difference: float  # largest of any arc between two chains
    n_apart: int  # arcs whose chains differ by more than APART
    n_sweeps: int
    betas: np.ndarray  # (n_chains, n_temperatures)
    exchange_rates: np.ndarray  # (n_chains, n_temperatures - 1)
    converged: bool
