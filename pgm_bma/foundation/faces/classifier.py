"""Base of the classifiers: one hook, ``_log_joint(codes)``, behind every prediction."""

from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from pgm_bma.foundation.faces.explanation import Explains
from pgm_bma.foundation.faces.face import DiscreteEstimator, refuse_missing_target
from pgm_bma.foundation.faces.validation import NAME, Optional, refuse_no_rows
from pgm_bma.foundation.numbers.families import log_probabilities, most_probable, state_offsets
from pgm_bma.foundation.rows.blocks import split_target
from pgm_bma.foundation.rows.predict import PredictsToFiles
from pgm_bma.foundation.rows.scan import NeedsRows, NotFolded, is_scan
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import order_states
from pgm_bma.foundation.tables.cut_points import ONE_BIN
from pgm_bma.foundation.tables.kinds import (
    as_frame,
    cut_frame,
    find_cuts,
    numeric_names,
    warn_of_cuts,
    warn_of_named_numbers,
    without_uncut_wholes,
)
from pgm_bma.foundation.tables.table import as_table


class LabelledRows(NamedTuple):
    """Training data as a classifier's algorithm sees them: codes of the features, codes of the class, weights (None = one each).

    Rows that are visited in passes stand in `codes`, as `Rows` of `ClassBlock`; then `target` is None.
    """

    schema: table.Schema
    codes: Any
    target: np.ndarray | None
    classes: tuple
    weights: np.ndarray | None


class ClassifierBase(ClassifierMixin, Explains, PredictsToFiles, DiscreteEstimator):
    """A child implements ``_fit(training)``, ``_log_joint(codes)`` -> (n_samples, n_classes) and ``_build_model()``.

    Its parameters include `state_names`, `target_name`, `handle_unknown`, `numeric_columns` and `categorical_columns`.
    """

    _rules = {"target_name": Optional(NAME)}
    _read_first = ("state_names", "handle_unknown", "target_name")
    _missing_target_cure = "drop those rows"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows `X` with classes `y`.

        Parameters
        ----------
        X : table
            Discrete values: DataFrame of any library, 2-D array, or a scan; NaN and None are missing.
        y : array-like of shape (n_samples,), or name of a column of X
            Classes of the rows.
        sample_weight : array-like of shape (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        estimator
            The estimator itself.
        """
        with self._unchanged_by_failure():
            try:
                X, sample_weight = self._fold_scan(X, sample_weight, y)
            except NotFolded as refusal:
                with self._in_passes(refusal):
                    self._fit_rows(self._read_training_rows(y, sample_weight))
                return self
            self._fit(self._read_training(X, y, sample_weight))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row; ties go to the first class.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples,)
            Class labels.
        """
        chosen = most_probable(self._log_joint(self._encode(X)))  # first: it asks whether this is fitted
        return self.classes_[chosen]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Natural log of `predict_proba`.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples, n_classes)
            log P(class | row), columns in the order of ``classes_``.
        """
        return log_probabilities(self._log_joint(self._encode(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class | row).

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities, columns in the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.
        y : array-like of shape (n_samples,), or name of a column of X
            The true classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            The (weighted) share of rows whose class is predicted.
        """
        check_is_fitted(self)
        X, sample_weight, _ = self._folded(X, sample_weight, y)
        y, X, name = self._split_target(X, y)
        target, _ = table.encode_target(y, name, list(self.target_states_), unknown="missing")
        codes = self._encode(X)
        _check_lengths(len(codes), len(target))
        refuse_no_rows(codes)
        hits = most_probable(self._log_joint(codes)) == target
        return float(np.average(hits, weights=table.check_weights(sample_weight, len(hits))))

    def _evidence_classes(self):
        return list(self.target_states_)

    def _read_training(self, X, y, sample_weight):
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y, X, name = self._split_target(as_table(X, self, fitting=True), y)
        n_rows = len(X)
        _check_lengths(n_rows, len(y))
        named = table.is_named(X)
        cut = self._cut_numbers(X, y, name, sample_weight)
        read = self._read_features(cut, sample_weight, name)
        if not named and cut is not X:
            self.__dict__.pop("feature_names_in_", None)
        if len(read.codes) < n_rows:
            y = y[table.check_weights(sample_weight, n_rows) > 0]
        self._refuse_clash(name, read.schema.names)
        if isinstance(y, np.ndarray) and y.dtype.kind == "f" and np.isfinite(y).all() and len(y):
            with np.errstate(invalid="ignore"):  # it tries whether numbers of any size are integers
                check_classification_targets(y)
        declared, keep = (self.state_names or {}).get(name), self._takes_missing_targets()
        target, states = table.encode_target(y, name, declared, keep_missing=keep, cure=self._missing_target_cure)
        target = np.where(target < 0, target, self._set_classes(name, states)[target])
        return LabelledRows(read.schema, read.codes, target, self.target_states_, read.weights)

    def _refuse_clash(self, name, columns):
        if name in columns:
            raise ValueError(
                f"target {name!r} is also a column of X; drop that column or pass target_name= another name"
            )

    def _set_classes(self, name, states):
        """Keep the classes, sorted; returns the place of every state among them, in the type of the codes."""
        if len(states) < 2:
            raise ValueError(
                f"target {name!r} has one class only, {states[0]!r}; a classifier needs at least two classes"
            )
        self.target_name_ = name
        self.target_states_ = tuple(order_states(states))
        self.classes_ = table.label_array(self.target_states_)
        place = {state: i for i, state in enumerate(self.target_states_)}
        return np.array([place[state] for state in states], dtype=np.int32)

    def _read_training_rows(self, y, sample_weight):
        """A `LabelledRows` whose rows are visited in passes, of the scan that did not fold; `y` is a column of it."""
        if self.numeric_columns is not None:
            raise NeedsRows("numeric_columns", "columns that are cut already")
        name = self._target_node(y)
        rows, self._cached_sample_rows = self._read_rows(sample_weight, name, y)
        position = rows.schema.index(y)
        offsets = state_offsets(rows.schema.cardinalities)
        own = slice(offsets[position], offsets[position + 1])
        if rows.has_missing[position]:
            refuse_missing_target(y, rows.total_weight - rows.state_counts[own].sum())
        places = self._set_classes(name, rows.schema.states[position])
        names, states = rows.schema.names, rows.schema.states
        names, states = (part[:position] + part[position + 1 :] for part in (names, states))
        self._refuse_clash(name, names)
        profile = rows.profile._replace(
            schema=table.Schema(names, states),
            state_counts=np.delete(rows.state_counts, np.arange(own.start, own.stop)),
            has_missing=np.delete(rows.has_missing, position),
        )
        self._set_columns(profile.schema, named=True)
        viewed = rows.viewed(split_target, position, places, profile=profile)
        return LabelledRows(profile.schema, viewed, None, self.target_states_, None)

    def _cut_numbers(self, X, y, name, sample_weight):
        """X with intervals in place of numbers that are no states; `_cuts` are kept where there are such columns."""
        self.__dict__.pop("_cuts", None)
        weights = table.check_weights(sample_weight, len(X))
        kept = None if weights is None or (weights > 0).all() else weights > 0
        numeric, how = self._numeric_plan(X if kept is None else as_frame(X)[kept])  # a row of weight 0 is absent
        numeric = [column for column in numeric if column not in (self.state_names or {})]
        if not numeric:
            return X
        frame = as_frame(X)
        if not frame.columns.is_unique:
            return X  # the error comes with the states
        kept = slice(None) if kept is None else kept
        target, _ = table.encode_target(y, name, (self.state_names or {}).get(name))
        cuts = find_cuts(frame[kept], numeric, how, target[kept], None if weights is None else weights[kept])
        if how == "auto":
            named = [] if self.numeric_columns is None else list(self.numeric_columns)
            cuts = without_uncut_wholes(cuts, frame, named)
            guessed = [column for column in cuts.names if column not in named]
            if guessed:
                self._cached_uncut = [v for v, edges in zip(cuts.names, cuts.edges) if v in guessed and not len(edges)]
                warn_of_cuts(guessed, self._cached_uncut)
        if not cuts.names:
            return X
        if table.is_named(X):
            settled = [] if self.numeric_columns is None else list(self.numeric_columns)
            settled += getattr(self, "monotone", None) or ()  # a direction says that it is a number
            warn_of_named_numbers(frame[kept], [column for column in cuts.names if column not in settled])
        self._cuts = cuts
        return cut_frame(frame, cuts)

    def _feature_state_names(self, X, forbidden_name):
        """Declared states; numbers without a cut have one interval, of which the warning about cuts has spoken."""
        uncut = {name: [ONE_BIN] for name in self.__dict__.pop("_cached_uncut", ())}
        return {**(super()._feature_state_names(X, forbidden_name) or {}), **uncut}

    def _numeric_plan(self, X):
        """(columns to be cut, "mdl", "average" or "auto"): by default numbers that are hardly states, by MDL, with a warning."""
        return self._numeric_names(X), "auto"

    def _numeric_names(self, X):
        """Columns of numbers that are no states, or named in `numeric_columns`."""
        frame = as_frame(X)
        if not frame.columns.is_unique:
            return []  # the error comes with the states
        many = getattr(self, "preset", None) is None  # papers have states
        found = numeric_names(frame, self.numeric_columns, self.categorical_columns, many)
        return [name for name in found if name not in (self.state_names or {})]

    def _encode(self, X):
        cuts = self.__dict__.get("_cuts")
        if cuts is not None and not is_scan(X):
            X = cut_frame(as_frame(as_table(X, self), self.schema_.names), cuts)
        return super()._encode(X)

    def _split_target(self, X, y):
        """(y as an array, X without the target column, name of the target node)."""
        names = table.column_names(X) if table.is_named(X) and (np.isscalar(y) or isinstance(y, tuple)) else []
        if np.isscalar(y) and y not in names:
            raise ValueError(f"y={y!r} is not a column of X; {_listed(names)}")
        if names and y in names:  # a tuple can be the name of a column, and a row of classes
            column, X = table.take_column(X, y)
            return column, X, self._target_node(y)
        if hasattr(y, "columns") and len(y.columns) == 1:
            (name,) = table.column_names(y)
            return table.take_column(y, name)[0], X, self._target_node(name)
        name = getattr(y, "name", None)
        y = table.as_column(y)
        return column_or_1d(y, warn=True) if np.ndim(y) != 1 else y, X, self._target_node(name)

    def _target_node(self, name):
        if self.target_name is not None:
            return self.target_name
        if name is None or (isinstance(name, str) and not name):
            return "class"
        table.refuse_broken_texts(name, ())
        return name

    def _fitted_summary(self):
        return f", {self.target_name_!r} in {len(self.classes_)} classes"


def _listed(names):
    return f"its columns are {', '.join(map(repr, names[:6]))}" if names else "its columns have no names"


def _check_lengths(n_rows, n_targets):
    if n_rows != n_targets:
        raise ValueError(f"X and y have inconsistent lengths: {n_rows} rows and {n_targets} targets")


def interaction_frame(lines):
    """The attribute `interactions_`: one line per pair of columns with importance, low and high."""
    types = {"first": object, "second": object, "importance": float, "low": float, "high": float}
    return pd.DataFrame(lines, columns=list(types)).astype(types)
