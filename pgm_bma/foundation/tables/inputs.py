"""Tables as a user gives them, checked before they are read."""

import numpy as np
from sklearn.utils.validation import check_array

from pgm_bma.foundation.tables import table


def as_table(X, estimator, fitting=False):
    """X in a form that `table` reads, or a clear error; arrays go through scikit-learn's checks."""
    if fitting and table.is_one_row(X):
        raise ValueError(f"a {type(X).__name__} is one row; fit wants a table, pass a DataFrame or 2D array")
    if X is None or isinstance(X, (str, bytes)) or np.isscalar(X):
        raise ValueError(
            f"{type(estimator).__name__} wants a table of discrete values, got {X!r}; pass a DataFrame or 2D array"
        )
    if np.ma.isMaskedArray(X) or (getattr(getattr(X, "dtype", None), "kind", "O") in "US" and np.ndim(X) == 2):
        return table.unmasked(X)  # check_array drops the mask, and refuses bytes
    if hasattr(X, "tocsr") or isinstance(X, np.ndarray) or (hasattr(X, "__array__") and not table.is_named(X)):
        return check_array(
            X, dtype=None, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=1, estimator=estimator
        )
    if not hasattr(X, "__len__"):
        raise TypeError(f"cannot read a table from {type(X).__name__}; pass a DataFrame or 2D array")
    return X
