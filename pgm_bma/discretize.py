"""Numbers to bins: cut points by class entropy (Fayyad-Irani MDL), equal frequency or equal width.

Scikit-learn transformers for a pipeline in front of the discrete estimators. Bins are half open: a value equal to a cut
belongs to the bin above it. Labels such as ``lt_2_45``, ``from_2_45_to_4_75``, ``ge_4_75`` are legal BIF names; they are
rounded for reading, `cut_points_` holds the exact numbers. Missing cells stay missing, columns that hold no numbers
pass unchanged. A DataFrame comes back as a DataFrame of ordered categoricals that declare every bin, also the empty
ones; an array comes back as an object array of labels.

Fayyad and Irani (1993), "Multi-interval discretization of continuous-valued attributes for classification learning".
"""

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import (
    Choice,
    Integer,
    bounded,
    check_parameters,
    is_hashable,
    reading,
    with_plain_parameters,
)
from pgm_bma.foundation.tables.cut_points import (
    bin_labels,
    frequency_cut_points,
    mdl_cut_points,
    width_cut_points,
)
from pgm_bma.foundation.tables.table import check_weights, missing_cells

MAX_BINS = 1000  # every bin is a state of every table behind it, with its own label: more is a mistake


def _class_codes(y, n_rows):
    """Class labels as 0..k-1; missing and continuous targets are refused."""
    with reading("y", y, "one class for each row"):
        y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} labels, X has {n_rows} rows")
    n_missing = int(missing_cells("y", y).sum())
    if n_missing:
        raise ValueError(f"y holds {n_missing} missing labels; drop those rows before fit")
    if y.dtype.kind == "f":  # objects of any type are classes, as in the estimators behind the pipeline
        with np.errstate(invalid="ignore"):  # it tries whether numbers of any size are integers
            check_classification_targets(y)
    return pd.factorize(y)[0]


def _columns(X):
    """Columns of a frame or array by name; unnamed ones are x0, x1, ..."""
    if isinstance(X, np.ndarray):
        return {f"x{j}": X[:, j] for j in range(X.shape[1])}
    if isinstance(X, pd.DataFrame):
        return dict(X.items())
    frame = nw.from_native(X, eager_only=True)
    return {name: frame[name] for name in frame.columns}


def _select(X, names):
    """The columns seen in fit, in their order; extra ones are left out, as in the estimators behind the pipeline."""
    frame = nw.from_native(X, eager_only=True)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise ValueError(f"X lacks columns {absent[:6]} that fit saw; add them, filled with NaN if unknown")
    return X if list(frame.columns) == names else frame.select(names).to_native()


def _numbers(name, column):
    """The column as floats, NaN = missing, or None if it holds anything but numbers (bools and categories are none)."""
    if isinstance(column, nw.Series):
        return column.cast(nw.Float64).to_numpy().astype(float) if column.dtype.is_numeric() else None
    if column.dtype == object:
        if pd.api.types.infer_dtype(column, skipna=True) not in (
            "integer",
            "floating",
            "mixed-integer-float",
            "decimal",
        ):
            return None
        missing_cells(name, column)
        return pd.to_numeric(pd.Series(column)).to_numpy(dtype=float, na_value=np.nan)
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return None
    return column.astype(float) if isinstance(column, np.ndarray) else column.to_numpy(dtype=float, na_value=np.nan)


def _rebuild(X, columns, codes, labels, encode, container):
    """The input with its binned columns replaced.

    codes : dict column -> (n_rows,) bin numbers, -1 = missing     labels : dict column -> list of names
    container : "array", "pandas" or "native" (whatever frame X is)
    """
    if container == "array":
        plain = encode == "ordinal" and len(codes) == len(columns)
        out = np.empty(X.shape, dtype=float if plain else object)
        for j, (name, column) in enumerate(columns.items()):
            names = np.array([*labels[name], np.nan], dtype=object) if name in codes else None  # code -1 takes the last
            out[:, j] = (
                column if names is None else _ordinal(codes[name]) if encode == "ordinal" else names[codes[name]]
            )
        return out
    if container == "pandas":
        parts = {name: c.to_numpy() if isinstance(c, nw.Series) else c for name, c in columns.items()}
        dtypes = {}  # one dtype for equal bins: building thousands of them is slow
        for name, bins in codes.items():
            if encode == "ordinal":
                parts[name] = _ordinal(bins)
                continue
            key = tuple(labels[name])
            if key not in dtypes:
                dtypes[key] = pd.CategoricalDtype(labels[name], ordered=True)
            parts[name] = pd.Categorical.from_codes(bins, dtype=dtypes[key])
        is_frame = isinstance(X, pd.DataFrame)
        frame = pd.DataFrame(dict(enumerate(parts.values())), index=X.index if is_frame else None, copy=False)
        frame.columns = (
            X.columns if is_frame else list(parts)
        )  # as they are: an index of them made anew may fail for strange ones
        return frame
    frame = nw.from_native(X, eager_only=True)
    new = []
    for name, bins in codes.items():
        if encode == "ordinal":
            series = nw.new_series(name, _ordinal(bins).tolist(), nw.Float64(), backend=frame.implementation)
        else:
            texts = [None if b < 0 else labels[name][b] for b in bins]
            dtype = nw.Enum(labels[name]) if frame.implementation.is_polars() else nw.String()
            series = nw.new_series(name, texts, dtype, backend=frame.implementation)
        new.append(series)
    return frame.with_columns(*new).to_native()


def _ordinal(bins):
    return np.where(bins < 0, np.nan, bins)


class _BinTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of all discretisers: reading columns, choosing those to bin, writing labels or codes."""

    _rules: dict = {"encode": Choice("label", "ordinal")}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _read(self, X, *, reset):
        check_parameters(self)
        if not nw.dependencies.is_into_dataframe(X):
            with reading("X", X, "a table: as many cells in each row"):
                X = np.asarray(X) if isinstance(X, list | tuple) else X
            X = check_array(
                bounded("X", X), dtype=None, ensure_all_finite=False, estimator=self, ensure_min_samples=int(reset)
            )
        elif isinstance(X, pd.DataFrame) and not X.columns.is_unique:
            raise ValueError(f"column {X.columns[X.columns.duplicated()][0]!r} occurs twice; rename one of the two")
        if not reset and hasattr(self, "feature_names_in_") and not isinstance(X, np.ndarray):
            X = _select(X, list(self.feature_names_in_))
        if X.shape[1] == 0 or (reset and X.shape[0] == 0):
            raise ValueError(f"found {X.shape[0]} rows and {X.shape[1]} columns; at least one of each is needed")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X, _columns(X)

    def _choose(self, columns):
        """The columns to bin: dict name -> (n_rows,) floats."""
        if self.columns is None:
            numbers = {name: _numbers(name, column) for name, column in columns.items()}
            return {name: values for name, values in numbers.items() if values is not None}
        if not isinstance(self.columns, str | Integral | Iterable):
            raise ValueError(f"columns={self.columns!r} must be the name of a column, a list of names, or None for all")
        wanted = [self.columns] if isinstance(self.columns, str | Integral) else list(bounded("columns", self.columns))
        chosen = {}
        for entry in wanted:
            name = f"x{entry}" if isinstance(entry, Integral) and entry not in columns else entry
            if not is_hashable(name) or name not in columns:
                raise ValueError(
                    f"columns= names {entry!r}, which X does not have; its columns are {list(columns)[:20]}"
                )
            chosen[name] = self._numbers(columns, name)
        return chosen

    def _numbers(self, columns, name):
        values = _numbers(name, columns[name])
        if values is None:
            known = [v for v in columns[name] if not pd.isna(v) and (isinstance(v, bool) or not isinstance(v, Real))]
            if not known and all(pd.isna(v) for v in columns[name]):
                return np.full(len(columns[name]), np.nan)  # nothing but missing cells fits any column
            raise ValueError(
                f"column {name!r} holds {known[0] if known else 'categories'!r}, which is not a number; convert it, "
                f"or leave the column out of columns= before fit so that it passes unchanged"
            )
        return values

    def _write(self, X, columns, codes, labels):
        if _get_output_config("transform", self)["dense"] != "default":
            container = "pandas"  # scikit-learn turns it into what set_output asked for
        else:
            container = "array" if isinstance(X, np.ndarray) else "pandas" if isinstance(X, pd.DataFrame) else "native"
        return _rebuild(X, columns, codes, labels, self.encode, container)


class _Discretizer(_BinTransformer):
    """Bins between cut points found column by column; subclasses say how (`_cuts`)."""

    def _fit(self, X, y, sample_weight):
        X, columns = self._read(X, reset=True)
        if y is not None:
            y = _class_codes(y, len(X))
        weights = check_weights(sample_weight, len(X))
        self.cut_points_, self.bin_labels_ = {}, {}
        for name, values in self._choose(columns).items():
            if np.isinf(values).any():
                raise ValueError(
                    f"column {name!r} holds infinite values; replace them by NaN (missing) or a finite bound before fit"
                )
            used = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
            known = values[used]
            cuts = self._cuts(known, None if y is None else y[used], None if weights is None else weights[used])
            self.cut_points_[name] = cuts
            self.bin_labels_[name] = bin_labels(cuts, *((known.min(), known.max()) if len(known) else ()))
        return self

    def transform(self, X: Any) -> Any:
        """Replace every binned column by its bins; infinite values fall into the first or last bin.

        Parameters
        ----------
        X : (n_samples, n_features) DataFrame or array
            Rows; columns that hold no numbers pass unchanged.
            Rows with the columns seen in fit.

        Returns
        -------
        DataFrame or array
            Ordered categorical columns for a DataFrame, an object array of labels for an array (with
            ``encode="ordinal"``: bin numbers as floats, NaN where missing).
        """
        check_is_fitted(self)
        X, columns = self._read(X, reset=False)
        codes = {}
        for name, cuts in self.cut_points_.items():
            values = self._numbers(columns, name)
            codes[name] = np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="right"))
        return self._write(X, columns, codes, self.bin_labels_)


BINS = """columns : list of column names, or of positions for an array, optional
        Columns to bin; None takes all that hold numbers.
    encode : {"label", "ordinal"}, default="label"
        Names of the bins, or their numbers 0, 1, ... as floats.

    Attributes
    ----------
    cut_points_ : dict column -> (n_cuts,) array
        Rising; unnamed columns are x0, x1, ...
    bin_labels_ : dict column -> list of str
        Labels in bin order; the form of the estimators' `state_names`.
    feature_names_in_, n_features_in_ : array and int
        Columns seen in fit."""


@fill(bins=BINS)
class MDLDiscretizer(_Discretizer):
    """Supervised bins by Fayyad and Irani's minimum description length rule.

    Each column is cut where the class entropy of the two sides is lowest, and again inside the sides, as long as the
    gain in information pays for the description of the cut. A column that tells nothing about the class becomes one bin,
    ``all_values``. Fit it inside the folds of a cross-validation (a Pipeline does): cut points see the class.

    Parameters
    ----------
    {bins}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import MDLDiscretizer
    >>> frame = pd.DataFrame({"size": [1.0, 1.2, 1.4, 1.6, 3.1, 3.3, 3.4, None], "colour": list("rgbrgbrg")})
    >>> discretizer = MDLDiscretizer().fit(frame, y=list("aaaabbbb"))
    >>> discretizer.cut_points_
    {'size': array([2.35])}
    >>> discretizer.transform(frame).iloc[[0, 4, 7]]
          size colour
    0  lt_2_35      r
    4  ge_2_35      g
    7      NaN      g
    """

    def __init__(self, columns: Sequence | None = None, encode: str = "label"):
        self.columns = columns
        self.encode = encode

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @with_plain_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the cut points.

        Parameters
        ----------
        X : (n_samples, n_features) DataFrame or array
            Rows; columns that hold no numbers pass unchanged.
        y : (n_samples,) array
            Class labels.
        sample_weight : (n_samples,) array, optional
            A weight means that many equal rows.

        Returns
        -------
        Self
            The fitted discretiser.
        """
        if y is None:
            raise ValueError(
                "MDLDiscretizer requires y to be passed, but the target y is None: its cuts follow the class. "
                "Without a class use FrequencyDiscretizer or WidthDiscretizer"
            )
        return self._fit(X, y, sample_weight)

    def _cuts(self, values, y, weights):
        return mdl_cut_points(values, y, weights)


class _CountedBins(_Discretizer):
    """A number of bins is asked for; the class is not looked at."""

    _rules = {"n_bins": Integer(1, MAX_BINS)}

    def __init__(self, n_bins: int = 3, columns: Sequence | None = None, encode: str = "label"):
        self.n_bins = n_bins
        self.columns = columns
        self.encode = encode

    @with_plain_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the cut points.

        Parameters
        ----------
        X : (n_samples, n_features) DataFrame or array
            Rows; columns that hold no numbers pass unchanged.
        y : None
            Ignored.
        sample_weight : (n_samples,) array, optional
            A weight means that many equal rows; the width of bins only asks whether it is 0.

        Returns
        -------
        Self
            The fitted discretiser.
        """
        return self._fit(X, None, sample_weight)


@fill(bins=BINS)
class FrequencyDiscretizer(_CountedBins):
    """Bins that hold nearly the same number of rows (the same weight).

    A cut lies half way between two neighbouring values, where the share to its left is nearest to k / `n_bins`; equal
    values are never parted, so a column with heavy ties gets fewer bins.

    Parameters
    ----------
    n_bins : int, default=3
        Number of bins wanted, at most 1000.
    {bins}

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma import FrequencyDiscretizer
    >>> FrequencyDiscretizer(n_bins=3).fit_transform(np.array([[1.0], [2.0], [3.0], [4.0], [50.0], [60.0]])).ravel()
    array(['lt_2_5', 'lt_2_5', 'from_2_5_to_27', 'from_2_5_to_27', 'ge_27',
           'ge_27'], dtype=object)
    """

    def _cuts(self, values, y, weights):
        return frequency_cut_points(values, self.n_bins, weights)


@fill(bins=BINS)
class WidthDiscretizer(_CountedBins):
    """Bins of equal width between the smallest and the largest value.

    Parameters
    ----------
    n_bins : int, default=3
        Number of bins, at most 1000; a constant column keeps one.
    {bins}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import WidthDiscretizer
    >>> out = WidthDiscretizer(n_bins=4).fit_transform(pd.DataFrame({"age": [20, 25, 30, 60]}))
    >>> out["age"].tolist()
    ['lt_30', 'lt_30', 'from_30_to_40', 'ge_50']
    >>> out["age"].cat.categories.tolist()
    ['lt_30', 'from_30_to_40', 'from_40_to_50', 'ge_50']
    """

    def _cuts(self, values, y, weights):
        return width_cut_points(values, self.n_bins, weights)
