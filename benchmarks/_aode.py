"""Averaged one-dependence estimators (Webb, Boughton, Wang 2005), plain numpy: a peer for the classifiers."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.pairs import indicators, pair_counts
from pgm_bma.foundation.tables.table import encode, encode_like, encode_target


class AODE(ClassifierMixin, BaseEstimator):
    """Mean over super-parents seen at least `minimum` times; Laplace estimates; a missing cell is left out."""

    def __init__(self, minimum=1, alpha=1.0):
        self.minimum = minimum
        self.alpha = alpha

    def fit(self, X, y):
        table = encode(X)
        self.schema_ = table.schema
        target, classes = encode_target(y, "class")
        self.classes_ = np.array(classes)
        cards = table.schema.cardinalities
        pairs = pair_counts(indicators(table.codes, cards), np.eye(len(classes))[target])
        self.log_class_ = np.log(np.bincount(target, minlength=len(classes)) + self.alpha)
        column = np.repeat(np.arange(len(cards)), cards)
        single = np.diagonal(pairs, axis1=1, axis2=2)
        cells = len(classes) * cards[column]
        self.log_parent_ = np.log((single + self.alpha) / (len(target) + self.alpha * cells))
        totals = np.add.reduceat(pairs, state_offsets(cards)[:-1], axis=2)[:, :, column]
        self.log_child_ = np.log((pairs + self.alpha) / (totals + self.alpha * cards[column]))
        self.usable_ = single.sum(0) >= self.minimum
        return self

    def predict_proba(self, X):
        codes = encode_like(X, self.schema_, "missing").astype(np.int64)
        offsets = state_offsets(self.schema_.cardinalities)[:-1]
        result = np.empty((len(codes), len(self.classes_)))
        for row, values in enumerate(codes):
            states = (values + offsets)[values >= 0]
            if not len(states):
                result[row] = self.log_class_
                continue
            parents = states[self.usable_[states]]
            if not len(parents):
                parents = states
            child = self.log_child_[:, parents][:, :, states]
            own = parents[:, None] == states[None, :]
            joint = self.log_parent_[:, parents] + np.where(own, 0.0, child).sum(2)
            result[row] = np.logaddexp.reduce(joint, axis=1)
        result -= np.logaddexp.reduce(result, axis=1, keepdims=True)
        return np.exp(result)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]
