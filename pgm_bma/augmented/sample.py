"""Draw rows from an augmented naive Bayes model."""

import numpy as np

from pgm_bma.augmented.model import make_layout


def sample_codes(parents, cardinalities, parameters, n_samples, rng):
    """Rows and their classes: codes (n_samples, n_columns), classes (n_samples,).

    parents : (n_columns,), -1 = the class alone     parameters : augmented_naive_bayes.Parameters
    """
    layout = make_layout(parents, cardinalities)
    classes = _draw(np.broadcast_to(parameters.class_probs, (n_samples, len(parameters.class_probs))), rng)
    codes = np.zeros((n_samples, len(layout.parents)), dtype=np.int64, order="F")
    for column in layout.order:
        own, parent = layout.cardinalities[column], layout.parents[column]
        first = layout.offsets[column] + (codes[:, parent] * own if parent >= 0 else 0)
        cells = np.reshape(first, (-1, 1)) + np.arange(own)
        codes[:, column] = _draw(parameters.table[cells, classes[:, None]], rng)
    return codes, classes


def _draw(probabilities, rng):
    """One state per row of a table of probabilities."""
    steps = np.cumsum(probabilities, axis=1)[:, :-1]
    return (rng.random(len(probabilities))[:, None] >= steps).sum(axis=1).astype(np.int64)
