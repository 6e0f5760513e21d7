"""The convex fit of the weights of averaged terms, and the record of what the search for their ridges starts from.

The fit is a softmax of terms with one weight and of columns with a weight per class.

A column x with a weight per class needs no separate contrasts: its scores are x w_c, w along `class_directions`, which saves
sums over rows a factor of the number of classes. Terms with one weight come as contrasts, other classes minus a row's own.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.softmax_ridge import minimise, ridge_fit
from pgm_bma.foundation.runtime.jobs import in_moments

RIDGED = ("single", "pair", "linear", "state", "gaussian", "cell")
KINDS = (*RIDGED, "forest", "tree")
OFF = 1e5  # a ridge at which a kind of term is held at its centre: it has no say


def class_directions(n_classes):
    """(n_classes, n_classes - 1) orthonormal directions of weights that sum to zero over the classes.

    A ridge keeps the sum of a column's weights at zero, so that these directions lose nothing.
    """
    helmert = np.zeros((n_classes, n_classes - 1))
    for k in range(1, n_classes):
        helmert[:k, k - 1], helmert[k, k - 1] = 1.0, -k
    return helmert / np.linalg.norm(helmert, axis=0)


def against_own(values, target):
    """(n, n_classes) -> (n, n_classes - 1): the other classes, in order, minus the row's own."""
    n, n_classes = values.shape
    other = np.arange(n_classes)[None, :] != target[:, None]
    return values[other].reshape(n, n_classes - 1) - values[np.arange(n), target][:, None]


def fit_weights(contrasts, rows, ridge, centre, start, tolerance=1e-10):
    """argmin of the log loss of the rows + sum of ridge (theta - centre)^2 / 2: (n_weights,)."""
    if contrasts.n_classes == 2:  # one contrast: columns are terms
        steps = against_own(np.tile(class_directions(2)[:, 0], (len(rows), 1)), contrasts.target)
        flat = np.concatenate([contrasts.values, (contrasts.design * steps)[:, None]], axis=2)
        return ridge_fit(flat, rows, centre, ridge, start, tolerance)
    return minimise(partial(sums, contrasts, own_zeros(contrasts), rows), centre, ridge, start, tolerance)


def own_zeros(contrasts):
    """Terms of all classes, zeros for a row's own: (n, n_classes, n_terms)."""
    wide = np.zeros((len(contrasts.target), contrasts.n_classes, contrasts.values.shape[2]))
    wide[np.arange(contrasts.n_classes)[None, :] != contrasts.target[:, None]] = contrasts.values.reshape(
        -1, wide.shape[2]
    )
    return wide


def sums(contrasts, wide, rows, theta, wanted):
    """Sums over rows as `softmax_ridge.minimise` wants them: see its `loss_sums`."""
    n, n_classes, n_terms = wide.shape
    x, directions = contrasts.design, class_directions(n_classes)
    scores = wide.reshape(n * n_classes, n_terms) @ theta[:n_terms]
    scores = scores.reshape(n, n_classes) + x @ (theta[n_terms:].reshape(x.shape[1], n_classes - 1) @ directions.T)
    top = scores.max(axis=1, keepdims=True)
    odds = np.exp(scores - top)
    total = odds.sum(axis=1, keepdims=True)
    own = scores[np.arange(n), contrasts.target]
    loss = rows @ (top[:, 0] + np.log(total[:, 0]) - own)
    probability = odds / total
    residual = probability * rows[:, None]
    mass = residual.copy()
    residual[np.arange(n), contrasts.target] -= rows
    slope = np.concatenate(
        [residual.ravel() @ wide.reshape(n * n_classes, n_terms), (x.T @ residual @ directions).ravel()]
    )
    if wanted == "gradient":
        return loss, slope
    curvature = _curvature_diagonal if wanted == "scale" else _curvature
    return loss, slope, curvature(wide, x, directions, probability, mass, rows)


def _curvature_diagonal(wide, x, directions, probability, mass, rows):
    """The diagonal of `_curvature`."""
    spread = wide - np.matmul(probability[:, None, :], wide)
    along = mass @ directions**2 - rows[:, None] * (probability @ directions) ** 2
    return np.concatenate([np.einsum("rc,rct,rct->t", mass, spread, spread), ((x * x).T @ along).ravel()])


def _curvature(wide, x, directions, probability, mass, rows):
    """sum_r rows_r J_r' (diag(p) - p p') J_r, by blocks: terms, terms with columns, columns."""
    n, n_classes, n_terms = wide.shape
    k, m = n_classes - 1, x.shape[1]
    matrix = np.empty((n_terms + m * k, n_terms + m * k))
    mean = np.matmul(probability[:, None, :], wide)[:, 0]
    spread = wide - mean[:, None, :]
    rooted = (spread * np.sqrt(mass)[:, :, None]).reshape(n * n_classes, n_terms)
    matrix[:n_terms, :n_terms] = 0.0
    for part in in_moments(len(rooted), n_terms**2 / 20):  # a processor multiplies faster than it counts
        matrix[:n_terms, :n_terms] += rooted[part].T @ rooted[part]
    if not m:
        return matrix
    along = np.matmul((spread * mass[:, :, None]).transpose(0, 2, 1), directions)  # (n, n_terms, k)
    block = (x.T @ along.reshape(n, n_terms * k)).reshape(m, n_terms, k).transpose(1, 0, 2).reshape(n_terms, m * k)
    matrix[:n_terms, n_terms:], matrix[n_terms:, :n_terms] = block, block.T
    centred = probability @ directions
    corner = np.empty((m, k, m, k))
    for a in range(k):
        for b in range(a + 1):
            weight = mass @ (directions[:, a] * directions[:, b]) - rows * centred[:, a] * centred[:, b]
            corner[:, a, :, b] = corner[:, b, :, a] = (x * weight[:, None]).T @ x
    matrix[n_terms:, n_terms:] = corner.reshape(m * k, m * k)
    return matrix


class Contrasts(NamedTuple):
    """Training rows, each left out of its own terms: values (n, n_classes - 1, n_terms) of terms with one weight, other classes
    minus the own; design (n, n_columns) of columns with a weight per direction of `class_directions`; target (n,).

    term_kinds, column_kinds : of the terms and of the columns. Weights are those of the terms, then n_classes - 1 per column.
    """

    values: np.ndarray
    design: np.ndarray
    target: np.ndarray
    n_classes: int
    term_kinds: list
    column_kinds: list

    @property
    def kinds(self):
        """Kinds of all weights."""
        return [*self.term_kinds, *(kind for kind in self.column_kinds for _ in range(self.n_classes - 1))]

    def scores(self, theta):
        """(n, n_classes - 1) other classes minus the own."""
        n_terms = len(self.term_kinds)
        slopes = (
            theta[n_terms:].reshape(len(self.column_kinds), self.n_classes - 1) @ class_directions(self.n_classes).T
        )
        return self.values @ theta[:n_terms] + against_own(self.design @ slopes, self.target)

    def take(self, kinds):
        """Without the kinds that are not named."""
        terms = [k in kinds for k in self.term_kinds]
        columns = [k in kinds for k in self.column_kinds]
        if all(terms) and all(columns):
            return self
        return self._replace(
            values=self.values[:, :, terms],
            design=self.design[:, columns],
            term_kinds=[k for k in self.term_kinds if k in kinds],
            column_kinds=[k for k in self.column_kinds if k in kinds],
        )


def _of_kinds(*ridges):
    return dict(zip(RIDGED, ridges))


@dataclass(frozen=True)
class RidgeSearch:
    """Ridges by kind of term. The reasons stand above the values; all were chosen on the development tables."""

    # Not searched: the class shares belong to weight 1, and a level per class is hardly held back. A monotone curve has its
    # weights already.
    fixed: dict = field(default_factory=lambda: {"prior": 5.0, "level": 0.1, "curve": 1000.0})
    # Steps of about three, from "free" to "off". Single terms below zero are drawn to weight 0 instead of 1: with a stiff ridge
    # that leaves them out, and what is left is a logistic regression.
    grids: dict = field(
        default_factory=lambda: {
            "single": (-OFF, -30.0, -5.0, 1.0, 5.0, 25.0, 100.0),
            "pair": (0.1, 0.3, 1.0, 5.0, 30.0, 200.0, 1000.0, OFF),
            "linear": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, OFF),
            "state": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, OFF),
            "gaussian": (1.0, 5.0, 30.0, 200.0, 1000.0, OFF),
            "cell": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, OFF),
        }
    )
    # One walk from one start ends in the nearest valley: the starts are models that are known to be good on some tables.
    starts: tuple = (
        _of_kinds(5.0, 30.0, 10.0, 30.0, 30.0, OFF),  # a little of everything
        _of_kinds(5.0, OFF, OFF, OFF, OFF, OFF),  # weighted naive Bayes
        _of_kinds(-OFF, OFF, 0.3, 1.0, OFF, OFF),  # logistic regression
        _of_kinds(-5.0, 200.0, 1.0, 3.0, 30.0, OFF),  # logistic regression with curves and pairs
        _of_kinds(25.0, 30.0, OFF, OFF, OFF, OFF),  # naive Bayes with pairs
        _of_kinds(5.0, OFF, 3.0, 10.0, 1.0, OFF),  # discriminant analysis with curves
        _of_kinds(-30.0, OFF, 0.03, 0.3, OFF, OFF),  # logistic regression that is hardly held back
    )
    # Of wide tables in addition: logistic regression that is strongly held back, and the shares of the classes.
    wide_starts: tuple = (_of_kinds(-OFF, OFF, 100.0, 100.0, OFF, OFF), _of_kinds(-OFF, OFF, OFF, OFF, OFF, OFF))
    # Cells have many weights, so they are asked for after all else, from a logistic regression with cells.
    cells: dict = field(default_factory=lambda: _of_kinds(-30.0, OFF, 0.3, 1.0, OFF, 1.0))
    # Ridges of the fit that shows what pairs and cells could explain: those of the first start.
    screening: dict = field(
        default_factory=lambda: {
            "prior": 5.0, "level": 0.1, "single": 5.0, "linear": 10.0, "state": 30.0, "gaussian": 30.0,
        }
    )  # fmt: skip
    # Paired standard errors that a step must gain: the best of many points is too often the luckiest.
    sure: float = 1.5
    # Nats of held-out loss by which the share of a point in the average falls by e, and how many points may have one.
    spread: float = 5.0
    most_points: int = 8
    smallest_share: float = 0.02  # of a point: smaller ones cost a fit and change nothing
    # Below ten rows nothing can be held out. From 1000 on two folds judge as well as four; 3000 rows tell ridges apart.
    fewest_rows: int = 10
    many_rows: int = 1000
    enough_rows: int = 3000
    n_folds: tuple = (4, 2)  # below and from `many_rows`
    # One fold of 100 rows shows which starts are far off; three go on to all folds.
    telling_rows: int = 100
    n_final_starts: int = 3
    # A rough optimum is enough to compare ridges; a gain below rounding is none.
    rough: float = 1e-3
    rounding: float = 1e-6


SEARCH = RidgeSearch()


@dataclass(frozen=True)
class TreeStage:
    """The last stage, chosen on generated tables: sines of sums, signs of products, clusters, oblique boundaries."""

    fewest_rows: int = 1000  # below, trees never gained
    fewest_numbers: int = 3
    depth: int = 5
    rate: float = 0.2
    ridge: float = 5.0
    most: int = 200
    patience: int = 20  # trees without a gain for held-out rows
    n_parts: int = 3  # of the rows one is held out


TREES = TreeStage()
