"""Base of all scikit-learn estimators: rows in, the lazy network, saving, and a repr that shows the state.

An estimator stores its parameters unchanged, checks them in `fit`, encodes once, fits and keeps arrays. Everything that
predicts derives from one hook, ``_log_joint(codes)``; ``model_`` is built by ``_build_model()`` on first access.
"""

from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.validation import (
    Choice,
    Instance,
    Optional,
    ParameterRecord,
    Seed,
    check_parameters,
    plain_parameters,
    with_records,
)
from pgm_bma.foundation.rows.scan import NeedsRows, NotFolded, as_scan, is_scan
from pgm_bma.foundation.rows.scanned_rows import margin_table, scanned_rows
from pgm_bma.foundation.runtime.compiling import announcing
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.kinds import warn_of_kinds
from pgm_bma.foundation.tables.table import as_table, whole_batch


class DiscreteEstimator(BaseEstimator):
    """Base of the scikit-learn estimators; the target or cluster is added by its two children."""

    _rules: dict[str, Any] = {
        "state_names": Optional(Instance(dict, "a dict column -> states")),
        "handle_unknown": Choice("missing", "ignore", "error"),
        "random_state": Seed(),
    }
    # parameters that are needed before `_fit` checks all of them
    _read_first: tuple[str, ...] = ("state_names", "handle_unknown")
    _picture = "plot_network"  # the function of `plotting` that draws this estimator
    # parameters that hold a record of parameters -> the record that None stands for
    _default_records: dict[str, ParameterRecord] = {}
    # True: `model_` is the fitted distribution itself, so its exact queries equal predict_proba
    model_is_exact_ = True
    # True: rows matter by their counts of every column under every class only
    _margins_suffice = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``sampler__tol=0.1`` changes one field of the record `sampler`.

        Parameters
        ----------
        **params : dict
            Parameters and their new values.

        Returns
        -------
        self : object
            The estimator.
        """
        return super().set_params(**with_records(self, params, self._default_records))

    def __getattr__(self, name):
        """Only called where the ordinary lookup failed: what a fit would have set gets an error that says so."""
        learned = name.endswith("_") and not name.startswith("_")
        if learned and "schema_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit before reading {name}"
            )
        return object.__getattribute__(self, name)  # raises the error of that lookup again

    @property
    def model_(self) -> Any:
        """The fitted pgmpy network, built on first access."""
        check_is_fitted(self)
        if "_cached_model" not in self.__dict__:
            self._cached_model = self._build_model()
        return self._cached_model

    def to_networkx(self) -> Any:
        """The structure as a plain ``networkx.DiGraph``.

        Returns
        -------
        networkx.DiGraph
            Arcs of `model_`, with their `posterior` where the method has one.
        """
        from pgm_bma.networks.graphs import structure_graph

        return structure_graph(self.model_, self._arc_posteriors())

    def _arc_posteriors(self):
        return {}

    def save(self, path: Any) -> None:
        """Write the fitted estimator to one file (JSON and arrays, no pickle).

        Parameters
        ----------
        path : str or path
            The file, whole or not there at all.
        """
        from pgm_bma.files.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read an estimator written by `save`.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        estimator
            The fitted estimator; an error if the file holds another class.
        """
        from pgm_bma.files.storage import load

        estimator = load(path)
        if not isinstance(estimator, cls):
            raise TypeError(f"{path} holds a {type(estimator).__name__}, not a {cls.__name__}")
        return estimator

    # ------------------------------------------------------------------------------------------------ pictures

    def plot(self, **options: Any) -> Any:
        """The picture of what was learned, drawn by the function of `plotting` that suits the estimator.

        Parameters
        ----------
        **options : dict
            Passed on, such as `title` and `ax`.

        Returns
        -------
        matplotlib Axes
            The picture.
        """
        from pgm_bma.plotting.notebook import draw_estimator

        check_is_fitted(self)
        return draw_estimator(self, **options)

    def _repr_html_inner(self):
        return self._with_picture(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_picture(bundle["text/html"])
        return bundle

    def _with_picture(self, box):
        if "schema_" not in self.__dict__:
            return box
        from pgm_bma.plotting.notebook import estimator_html

        return f"{box}{estimator_html(self)}"

    # ------------------------------------------------------------------------------------------------ state

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if not name.startswith("_cached_")}

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        if "schema_" not in self.__dict__:
            return text
        return f"{text} fitted on {self.n_samples_} rows x {self.n_features_in_} columns{self._fitted_summary()}"

    def _fitted_summary(self):
        return ""

    # ------------------------------------------------------------------------------------------------ reading

    @contextmanager
    def _unchanged_by_failure(self):
        """A fit that fails leaves the estimator as it was: not half fitted, and not half refitted."""
        before = dict(self.__dict__)
        try:
            with plain_parameters(self), announcing(getattr(self, "verbose", False)):
                yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fold_scan(self, X, sample_weight, y=None):
        """(distinct rows, their weights) of a scan, which is remembered for `predict_to`; any other table as it is."""
        self.__dict__.pop("_cached_scan", None)
        if not is_scan(X):
            return whole_batch(X), sample_weight
        self._cached_scan = as_scan(X)
        try:
            frame, weights, self._cached_n_rows = self._folded(self._cached_scan, sample_weight, y)
        except NotFolded as refusal:
            if hasattr(type(self), "_fit_rows"):  # works in passes
                raise
            if self._margins_suffice and y is not None:
                return self._margin_table(sample_weight, y)
            raise NotFolded(f"{type(self).__name__} needs the distinct rows in memory, but {refusal}") from None
        return frame, weights

    @contextmanager
    def _in_passes(self, refusal):
        """Around a fit in passes because of `refusal`, which is raised where a choice needs the rows in memory after all."""
        if not hasattr(type(self), "_fit_rows"):
            raise refusal
        try:
            yield
        except NeedsRows as choice:
            raise NotFolded(f"{choice}, but {refusal}") from None

    def _margin_table(self, sample_weight, y):
        """(rows, weights) with the counts of the scan, for estimators that see nothing but counts of column and class."""
        scan = self._cached_scan
        check_target_column(y, scan.names)
        declared = {name: states for name, states in (self.state_names or {}).items() if name in scan.names}
        frame, weights, self._cached_n_rows = margin_table(scan, y, declared, sample_weight)
        refuse_missing_target(y, weights[frame[y].isna().to_numpy()].sum())
        return frame, weights

    def _folded(self, X, sample_weight, y=None):
        """(distinct rows, their weights, the number of rows they stand for) of a scan; any other table as it is."""
        if not is_scan(X):
            return X, sample_weight, None
        for name, value in (("sample_weight", sample_weight), ("y", y)):
            if not (value is None or np.isscalar(value)):
                raise ValueError(
                    f"the rows of a scan have no order that {name} could follow; pass {name}= the name of a column"
                )
        states = self.state_names if isinstance(self.state_names, dict) else None
        folded = as_scan(X).fold(sample_weight, states)
        if y in folded.frame.columns and not self._takes_missing_targets():
            refuse_missing_target(y, folded.weights[folded.frame[y].isna().to_numpy()].sum())
        return folded

    def _takes_missing_targets(self):
        """Return whether rows without a class are of use in fit."""
        return False

    def _read_rows(self, sample_weight, forbidden_name, target=None, numbers=()):
        """(`Rows` of the scan that did not fold, its `sample_rows`) for methods that work in passes.

        target : a column     numbers : columns that stay numbers
        """
        self.__dict__.pop("_cached_model", None)
        check_parameters(self, {name: getattr(self, name) for name in self._read_first})
        scan = self._cached_scan
        if target is not None:
            check_target_column(target, scan.names)
        elif forbidden_name in scan.names:
            raise ValueError(f"{forbidden_name!r} is also a column of X; choose another name for the cluster")
        empty = pd.DataFrame(columns=[name for name in scan.names if name != sample_weight])
        declared = self._feature_state_names(empty, forbidden_name)
        if target is not None and forbidden_name in (self.state_names or {}):
            declared = {**declared, target: self.state_names[forbidden_name]}
        rows = scanned_rows(scan, declared, sample_weight, numbers)
        self._set_columns(rows.schema, named=True)
        self.n_samples_ = rows.n_rows
        return rows, scan.sample_rows

    def _set_columns(self, schema, named):
        """Return the tags of scikit-learn."""
        self.n_features_in_ = len(schema.names)
        self.__dict__.pop("feature_names_in_", None)
        if named and all(isinstance(name, str) for name in schema.names):
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.schema_ = schema

    def _read_features(self, X, sample_weight, forbidden_name):
        """Encode X for fitting and set what scikit-learn wants to see; returns a `table.Table`."""
        self.__dict__.pop("_cached_model", None)
        check_parameters(self, {name: getattr(self, name) for name in self._read_first})
        X = as_table(X, self, fitting=True)
        declared = self._feature_state_names(X, forbidden_name)
        read = table.encode(X, declared, sample_weight)
        if table.is_named(X) and "_cached_n_rows" not in self.__dict__:
            settled = {*(declared or ()), *table.categoricals(X)}
            warn_of_kinds(read.schema.names, read.schema.states, read.codes, read.weights, settled)
        self._set_columns(read.schema, table.is_named(X))
        self.n_samples_ = self.__dict__.pop("_cached_n_rows", len(read.codes))
        return read

    def _feature_state_names(self, X, forbidden_name):
        if self.state_names is None:
            return None
        names = set(table.column_names(X))
        unknown = [name for name in self.state_names if name not in names and name != forbidden_name]
        if unknown:
            raise ValueError(
                f"state_names declares {unknown[0]!r}, which is not a column of X (nor {forbidden_name!r})"
            )
        return {name: states for name, states in self.state_names.items() if name in names}

    def _encode(self, X):
        """Codes of new rows; arrays by position, tables by name."""
        check_is_fitted(self)
        if is_scan(X):
            raise TypeError("the rows of a scan stay where they are; write predictions with predict_to(path, X)")
        X = as_table(X, self)
        fitted_names = self._fitted_names
        by_position = not table.is_named(X)
        if by_position and hasattr(self, "feature_names_in_"):
            warn(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names")
        if not by_position and not hasattr(self, "feature_names_in_"):
            unnamed_fit = fitted_names == tuple(table.default_names(len(fitted_names)))
            if unnamed_fit and not set(fitted_names) <= set(table.column_names(X)):
                warn(f"X has feature names, but {type(self).__name__} was fitted without feature names")
                by_position = True
        if by_position:
            width = len(table.column_names(X))
            if width != self.n_features_in_:
                raise ValueError(
                    f"X has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
                )
        return self._codes_of(X, self.handle_unknown, by_position)

    @property
    def _fitted_names(self):
        """Columns that fit saw, in the order of the table."""
        return self.schema_.names

    def _codes_of(self, X, handle_unknown, by_position=False, quiet=False):
        """Codes of a table that was checked."""
        return table.encode_like(X, self.schema_, handle_unknown, by_position=by_position, quiet=quiet)


def check_target_column(y, names):
    """An error unless the target is a column of a scan."""
    if y not in names:
        raise ValueError(f"y={y!r} is not a column of X; its columns are {', '.join(map(repr, names[:6]))}")


def refuse_missing_target(y, n_missing):
    """The error of `encode_target` with the number of rows, which distinct rows do not tell."""
    if int(n_missing):
        values = "value" if int(n_missing) == 1 else "values"
        raise ValueError(f"target {y!r} has {int(n_missing)} missing {values} (NaN); drop those rows")
