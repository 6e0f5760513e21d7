"""Rubin's rules: one estimate from those of several completed copies of a table (Rubin 1987; Barnard and Rubin 1999)."""

import numpy as np
import pandas as pd
from scipy.stats import t


def as_estimates(found, words):
    """(estimates (Series), variances (array), degrees of freedom of complete rows or inf) of what an analysis returned.

    found : (estimates, variances), (estimates, variances, degrees of freedom), or an object with `params` and `bse`, as the
    results of statsmodels; words : what the error says that it must be
    """
    if hasattr(found, "params") and hasattr(found, "bse"):
        found = found.params, np.square(np.asarray(found.bse, dtype=float)), getattr(found, "df_resid", np.inf)
    try:
        estimates, variances, *df = found
        if np.ndim(estimates) == 0 and not isinstance(estimates, dict):
            estimates, variances = [estimates], [variances]
        if isinstance(estimates, dict):
            variances = [variances[name] for name in estimates] if isinstance(variances, dict) else variances
        values = pd.Series(estimates, dtype=float)
        variances = np.asarray(variances, dtype=float)
        df = float(df[0]) if df else np.inf
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise ValueError(f"{words} ({error})") from None
    good = len(values) and variances.shape == values.shape and np.isfinite(values).all() and (variances >= 0).all()
    if not good or not df > 0:
        raise ValueError(f"{words}; the estimates are {values.tolist()}, their variances {variances.tolist()}")
    return values, variances, df


def pool(found, level):
    """DataFrame by estimate: the pooled ones with their standard errors and intervals; found : [`as_estimates`] of at least 2."""
    values, within = np.array([each[0] for each in found]), np.mean([each[1] for each in found], axis=0)
    n, complete = len(found), found[0][2]
    mean, between = values.mean(0), values.var(0, ddof=1) * (1 + 1 / n)
    total = within + between
    share = np.divide(
        between, total, out=np.zeros_like(total), where=total > 0
    )  # of the variance that is due to missing cells
    with np.errstate(divide="ignore"):
        df = (n - 1) / share**2
        if np.isfinite(complete):
            seen = (complete + 1) / (complete + 3) * complete * (1 - share)
            df = 1 / (1 / df + 1 / seen)
    half = t.ppf(0.5 + level / 2, df) * np.sqrt(total)
    return pd.DataFrame(
        {
            "estimate": mean,
            "std_error": np.sqrt(total),
            "df": df,
            "low": mean - half,
            "high": mean + half,
            "missing_information": share + (1 - share) * 2 / (df + 3),
        },
        index=found[0][0].index,
    )
