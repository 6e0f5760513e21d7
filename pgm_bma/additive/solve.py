"""The convex fit of the weights of averaged terms: a softmax of terms with one weight and of columns with a weight per class.

A column x with a weight per class needs no contrasts of its own: its scores are x w_c, w along `class_directions`, which saves
sums over rows a factor of the number of classes. Terms with one weight come as contrasts, other classes minus a row's own.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.softmax_ridge import minimise, ridge_fit


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
    matrix[:n_terms, :n_terms] = rooted.T @ rooted
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
