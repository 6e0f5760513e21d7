"""Base of the classifiers: one hook, ``_log_joint(codes)``, behind every prediction."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pgm_bma import table
from pgm_bma.estimators._base import DiscreteEstimator


class Training(NamedTuple):
    """What a classifier's room sees: codes of the features, codes of the class, weights (None = one each)."""

    schema: table.Schema
    codes: np.ndarray
    target: np.ndarray
    classes: tuple
    weights: np.ndarray | None


class ClassifierBase(ClassifierMixin, DiscreteEstimator):
    """A child implements ``_fit(training)``, ``_log_joint(codes)`` -> (n_samples, n_classes) and ``_build_model()``.

    Its parameters include `state_names`, `target_name` and `handle_unknown`.
    """

    def fit(self, X, y=None, sample_weight=None):
        """Learn from rows `X` with classes `y`.

        Parameters
        ----------
        X : table of discrete values; NaN and None are missing
        y : (n_samples,) classes, or the name of a column of X
        sample_weight : (n_samples,), optional; a weight is a repetition of the row

        Returns
        -------
        self
        """
        self._fit(self._read_training(X, y, sample_weight))
        return self

    def predict(self, X):
        """The most probable class of every row; ties go to the first class."""
        codes = self._encode(X)
        return self.classes_[np.argmax(self._log_joint(codes), axis=1)]

    def predict_log_proba(self, X):
        """Natural log of `predict_proba`."""
        log_joint = self._log_joint(self._encode(X))
        return log_joint - logsumexp(log_joint, axis=1, keepdims=True)

    def predict_proba(self, X):
        """P(class | row), columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def explain(self, row):
        """Log evidence per variable and class for one row; the column sums are the log joint."""
        codes = self._encode(single_row(row, self))
        return pd.DataFrame(self._evidence(codes), index=["(prior)", *self.schema_.names], columns=list(self.classes_))

    def _read_training(self, X, y, sample_weight):
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y, X, name = self._split_target(X, y)
        weights = table.check_weights(sample_weight, len(y))
        read = self._read_features(X, weights, name)
        n_rows = len(y)
        if weights is not None and (weights == 0).any():
            y = y[weights > 0]
        declared = None if self.state_names is None else self.state_names.get(name)
        target, classes = self._encode_target(y, name, declared)
        if len(target) != len(read.codes):
            raise ValueError(f"X and y have inconsistent lengths: {len(read.codes)} rows and {n_rows} targets")
        if name in read.schema.names:
            raise ValueError(
                f"target {name!r} is also a column of X; drop that column or pass target_name= another name"
            )
        if len(classes) < 2:
            raise ValueError(
                f"target {name!r} has one class only, {classes[0]!r}; a classifier needs at least two classes"
            )
        self.target_name_ = name
        self.classes_ = table.label_array(classes)
        self.target_states_ = classes
        return Training(read.schema, read.codes, target, classes, read.weights)

    def _split_target(self, X, y):
        """(y, X without the target column, name of the target node)."""
        if isinstance(y, str):
            names, columns, _ = table.read_columns(X)
            if not columns.named or y not in names:
                raise ValueError(f"y={y!r} is no column of X; the columns are {', '.join(map(repr, names[:6]))}")
            column, X = table.take_column(X, y)
            return column, X, self.target_name or y
        name = self.target_name or (getattr(y, "name", None) or "class")
        if not isinstance(y, pd.Series) and not (hasattr(y, "to_list") and hasattr(y, "dtype")):
            y = column_or_1d(y if hasattr(y, "shape") else table.as_column(y), warn=True)
        return y, X, name

    def _encode_target(self, y, name, declared):
        values = y.to_numpy() if isinstance(y, pd.Series) and y.dtype.kind == "f" else y
        if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isfinite(values).all() and len(values):
            check_classification_targets(values)
        return table.encode_target(y, name, declared)

    def _fitted_summary(self):
        return f", {self.target_name_!r} in {len(self.classes_)} classes"


def single_row(row, estimator):
    """One row in any form as a one-row table."""
    if isinstance(row, (pd.Series, dict)):
        return row
    if isinstance(row, (np.ndarray, list, tuple)) and np.ndim(np.asarray(row, dtype=object)) == 1:
        return pd.DataFrame([list(row)], columns=list(estimator.schema_.names))
    rows = table.read_columns(row)[2]
    if rows != 1:
        raise ValueError(f"explain wants one row, got {rows}; pass X.iloc[[0]] or X.iloc[0]")
    return row
