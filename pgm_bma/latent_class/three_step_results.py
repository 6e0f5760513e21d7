"""Covariates and outcomes of clusters: `three_step`, the tables of `pgm_bma.latent_class.three_step`."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import erfc, ndtri

from pgm_bma.foundation.faces.validation import (
    as_numbers,
    check_choice,
    check_number,
    is_unicode,
    reading,
)
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import as_column, column_names, default_names, is_named, take_column
from pgm_bma.latent_class import three_step as steps
from pgm_bma.latent_class.profiles import MAX_PARAMETERS, cluster_scores, intervals, parameter_covariance
from pgm_bma.latent_class.results import LatentClassResults, is_sampling, weighted_rows

MAX_STATES = 50  # of a categorical covariate or outcome


class ThreeStep(NamedTuple):
    """Result of `three_step`.

    Parameters
    ----------
    estimates : DataFrame
        Covariates: a line per cluster (but the reference) and term, with `estimate` (log odds against the reference), standard
        error, z, p-value, interval and odds ratio. Outcome: a line per cluster (and state) with its mean or probability, standard
        error and interval.
    tests : DataFrame
        Wald tests: of every covariate over all clusters; of all clusters having one mean (or one table), and of every two.
    classification : DataFrame
        P(given cluster | cluster): how sure the assignment is. Rows are the clusters.
    correction : str
        "ml", "bch" or "none".
    n_samples : int
        Rows that were used.
    n_left_out : int
        Rows without a value of some covariate, or of the outcome.
    converged : bool
        True if the equations were solved.
    """

    estimates: pd.DataFrame
    tests: pd.DataFrame
    classification: pd.DataFrame
    correction: str
    n_samples: int
    n_left_out: int
    converged: bool

    def __repr__(self) -> str:
        left = f", {self.n_left_out} left out" if self.n_left_out else ""
        said = f"ThreeStep(correction={self.correction!r}, {self.n_samples} rows{left}, converged={self.converged})"
        return f"{said}\n{self.estimates.to_string(float_format='{:.3f}'.format)}"


class _Rows(NamedTuple):
    """Shared input of step three: step two, weights and their squares, step one's uncertainty."""

    assigned: steps.Assigned
    weights: np.ndarray
    squared: np.ndarray | None
    first_step: tuple | None

    def of(self, used):
        squared = None if self.squared is None else self.squared[used]
        assigned = self.assigned._replace(labels=self.assigned.labels[used])
        return assigned, self.weights[used], squared, self.first_step


def three_step(
    clusterer: Any,
    X: Any,
    *,
    covariates: Any = None,
    outcome: Any = None,
    correction: str = "auto",
    sample_weight: Any = None,
    reference: int = 0,
    level: float = 0.95,
) -> ThreeStep:
    """Regress membership on covariates, or compare an outcome between clusters, with the error of classification corrected.

    Rows are given their most probable cluster; because some of them belong elsewhere, plain comparisons of the given clusters are
    drawn towards each other. Both corrections undo that. Standard errors are those of the sandwich, with the uncertainty of the
    clusters in them where the clusterer is a latent-class model.

    Parameters
    ----------
    clusterer : fitted clusterer
        Any clusterer of the package.
    X : table of discrete values
        The rows that it was fitted to; further columns do not matter.
    covariates : table, Series, or names of columns of X, optional
        Columns that may predict membership; numbers as they are, other values as one term per state but the first.
    outcome : Series, array, or name of a column of X, optional
        The column that is compared between clusters: numbers by their means, other values (and booleans) by their probabilities.
    correction : {"auto", "ml", "bch", "none"}, default="auto"
        Maximum likelihood; Bolck-Croon-Hagenaars; or none, for comparison. "auto" is "bch" for a numeric outcome, because "ml" then
        takes it as normal inside the clusters, and "ml" otherwise.
    sample_weight : array-like (n_samples,), optional
        Weights of the rows, as in `fit`.
    reference : int, default=0
        The cluster that the others are compared with in the regression; 0 is the largest.
    level : float, default=0.95
        Of the intervals.

    Returns
    -------
    ThreeStep
        The fields are estimates, tests, classification, correction, n_samples, n_left_out and converged.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer, three_step
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(40, 10, 1000)
    >>> z = (rng.random(1000) < 1 / (1 + np.exp(-(age - 45) / 5))).astype(int)
    >>> X = pd.DataFrame({name: np.where(rng.random(1000) < 0.85, z, 1 - z) for name in "abcde"})
    >>> clusterer = LatentClassClusterer(2, n_init=4, random_state=0).fit(X)
    >>> found = three_step(clusterer, X, covariates=pd.Series(age, name="age"))
    >>> found.estimates["term"].tolist(), bool(abs(found.estimates["estimate"][1] - 0.2) < 0.05)
    (['(intercept)', 'age'], True)
    >>> found = three_step(clusterer, X, outcome=pd.Series(age, name="age"))
    >>> found.correction, bool(found.tests["p_value"][0] < 0.001)
    ('bch', True)
    """
    if (covariates is None) == (outcome is None):
        raise ValueError(
            "pass covariates= (what predicts membership) or outcome= (what follows from it), one of the two"
        )
    check_choice("correction", correction, ("auto", *steps.CORRECTIONS))
    check_number("level", level, 0, 1)
    rows = _second_step(clusterer, X, sample_weight)
    k = len(rows.assigned.sizes)
    check_number("reference", reference, 0, k - 1, integer=True)
    if k < 2:
        raise ValueError("the clusterer has one cluster: there is no membership to explain; fit with more n_clusters")
    n_rows = len(rows.weights)
    if covariates is not None:
        columns = _columns(covariates, X, n_rows)
        correction = "ml" if correction == "auto" else correction
        found = _regression(columns, rows, correction, reference, level)
    else:
        name, values = _outcome(outcome, X, n_rows)
        found = _comparison(name, values, rows, correction, level, k)
    if not found.converged:
        warn(
            f"correction={found.correction!r} found no finite solution: clusters are (nearly) told apart by a value, or are too "
            "alike for the correction; leave out that covariate, or take fewer clusters or another correction"
        )
    return found


# --------------------------------------------------------------------------------------------------- step two


def _second_step(clusterer, X, sample_weight):
    codes, weights = weighted_rows(clusterer, X, sample_weight)
    weights = np.ones(len(codes)) if weights is None else weights
    responsibilities = clusterer.predict_proba(X)
    squared = weights**2 if is_sampling(clusterer) else None
    first_step = None
    if isinstance(clusterer, LatentClassResults):
        first_step = _first_step(clusterer, codes, weights, squared)
    return _Rows(steps.assign(responsibilities, weights), weights, squared, first_step)


def _first_step(clusterer, codes, weights, squared):
    """Covariance of the logits of the clusterer, and what they do to the error matrix; None where there is none."""
    fit = clusterer._result
    if fit.theta_c.size * (1 + len(fit.theta)) > MAX_PARAMETERS:
        return None
    present = weights > 0
    read = table.Table(clusterer.schema_, codes[present], weights[present])
    encoded, folded, inverse = clusterer._fold(read)
    squared = None if squared is None else np.bincount(inverse, squared[present])
    codes, values = clusterer._split(encoded)
    numbers = None if values is None else clusterer._numbers.standardised(values)
    rows = table_rows(codes, clusterer.schema_.cardinalities, folded, numbers, fit.log_scale)
    covariance = parameter_covariance(rows.blocks[0], fit, clusterer._priors(rows), squared)
    if np.isnan(covariance).all():
        return None
    log_p = clusterer._log_joint(encoded)
    responsibilities = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1)[:, None])
    scores = [cluster_scores(codes, numbers, fit, c) for c in range(len(fit.theta_c))]
    return covariance, steps.error_slopes(scores, folded, responsibilities)


# ------------------------------------------------------------------------------------------------- covariates


def _regression(columns, rows, correction, reference, level):
    used = np.logical_and.reduce([~table.missing_cells(name, values) for name, values in columns.items()])
    used &= rows.weights > 0
    if not used.any():
        raise ValueError(f"no row has all of the covariates {list(columns)}; leave out the one that is missing most")
    assigned, weights, squared, first_step = rows.of(used)
    k = len(assigned.sizes)
    terms, parts = ["(intercept)"], [np.ones(int(used.sum()))]
    blocks = {}
    for name, values in columns.items():
        new, names = _terms(name, values[used])
        blocks[name] = range(len(terms), len(terms) + len(names))
        terms, parts = [*terms, *names], [*parts, *new.T]
    design = np.column_stack(parts)
    if np.linalg.matrix_rank(design / np.maximum(np.abs(design).max(axis=0), 1e-300)) < len(terms):
        raise ValueError(
            f"covariates {list(columns)} are redundant (one follows from the others, or is constant over the "
            f"{len(design)} rows that have all of them); leave one out"
        )
    order = [reference, *(c for c in range(k) if c != reference)]  # the reference comes first in step three
    assigned, first_step = _permuted(assigned, first_step, order)
    found = steps.regress_membership(design, assigned, weights, correction, squared, first_step)
    errors = np.sqrt(np.maximum(np.diag(found.covariance), 0.0))
    reach = ndtri(0.5 + level / 2) * errors
    z = np.divide(found.estimates, errors, out=np.full(errors.shape, np.nan), where=errors != 0)  # 0: not identified
    estimates = pd.DataFrame(
        {
            "cluster": np.repeat(order[1:], len(terms)),
            "term": terms * (k - 1),
            "estimate": found.estimates,
            "standard_error": errors,
            "z": z,
            "p_value": erfc(np.abs(z) / np.sqrt(2)),
            "low": found.estimates - reach,
            "high": found.estimates + reach,
            "odds_ratio": np.exp(found.estimates),
        }
    )
    tests = []
    for name, block in blocks.items():
        places = [c * len(terms) + t for c in range(k - 1) for t in block]
        picked = np.eye(len(found.estimates))[places]
        tests.append((name, *steps.wald_test(picked, found.estimates, found.covariance)))
    return _result(estimates, tests, rows, correction, used, found.converged)


def _terms(name, values):
    """((n_rows, n_terms), names): a number as it is, other values as one term per state but the first."""
    if _is_numeric(values):
        return _finite(f"covariate {name!r}", values)[:, None], [name]
    codes, states = _coded(name, values, "covariate")
    return np.eye(len(states))[codes][:, 1:], [f"{name}={state}" for state in states[1:]]


def _permuted(assigned, first_step, order):
    """Step two with the clusters in another order."""
    k = len(order)
    place = np.argsort(order)
    moved = steps.Assigned(place[assigned.labels], assigned.error[np.ix_(order, order)], assigned.sizes[order])
    if first_step is None:
        return moved, None
    cells = np.arange(k * k).reshape(k, k)[np.ix_(order, order)].ravel()
    return moved, (first_step[0], first_step[1][:, [*cells, *(k * k + np.array(order))]])


# --------------------------------------------------------------------------------------------------- outcomes


def _comparison(name, values, rows, correction, level, k):
    used = ~table.missing_cells(name, values) & (rows.weights > 0)
    if not used.any():
        raise ValueError(f"outcome {name!r} has no values")
    assigned, weights, squared, first_step = rows.of(used)
    values, states = values[used], None
    if _is_numeric(values):
        correction = "bch" if correction == "auto" else correction
        numbers = _finite(f"outcome {name!r}", values)
        found = steps.compare_means(numbers, assigned, weights, correction, squared, first_step)
        kept = np.arange(k)
    else:
        correction = "ml" if correction == "auto" else correction
        codes, states = _coded(name, values, "outcome")
        found = steps.compare_states(codes, len(states), assigned, weights, correction, squared, first_step)
        kept = np.arange(k * len(states))
    means, covariance = found.estimates[kept], found.covariance[np.ix_(kept, kept)]
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    reach = ndtri(0.5 + level / 2) * errors
    low, high = means - reach, means + reach
    n_states = 1 if states is None else len(states)
    if states is not None:  # inside 0 and 1, and from the posterior of the counts at the boundary
        total = np.repeat(assigned.sizes, n_states) * weights.sum()
        inside = (means > 0) & (means < 1)
        counts = np.clip(means, 0, 1) * total
        low, high = intervals(np.clip(means, 0, 1), np.where(inside, errors, np.nan), counts, total, level)
    estimates = pd.DataFrame(
        {
            "cluster": np.repeat(np.arange(k), n_states),
            "outcome": name,
            **({} if states is None else {"state": list(states) * k}),
            "estimate": means,
            "standard_error": errors,
            "low": low,
            "high": high,
        }
    )
    tests = []
    for label, pairs in _contrasts(k):
        # the last state follows from the others
        lines = [
            np.eye(k * n_states)[a * n_states + s] - np.eye(k * n_states)[b * n_states + s]
            for a, b in pairs
            for s in range(max(n_states - 1, 1))
        ]
        tests.append((label, *steps.wald_test(np.array(lines), means, covariance)))
    return _result(estimates, tests, rows, correction, used, found.converged)


def _contrasts(k):
    yield "all clusters are equal", [(0, c) for c in range(1, k)]
    if k > 2:
        for a, b in combinations(range(k), 2):
            yield f"{a} = {b}", [(a, b)]


def _result(estimates, tests, rows, correction, used, converged):
    k = len(rows.assigned.sizes)
    names = pd.RangeIndex(k, name="cluster")
    return ThreeStep(
        estimates,
        pd.DataFrame(tests, columns=["test", "wald", "df", "p_value"]),
        pd.DataFrame(rows.assigned.error, index=names, columns=[f"given {c}" for c in range(k)]),
        correction,
        int(used.sum()),
        int((rows.weights > 0).sum() - used.sum()),
        converged,
    )


# ----------------------------------------------------------------------------------------------------- reading


def _columns(covariates, X, n_rows):
    """Covariates by name, as arrays."""
    if isinstance(covariates, str) or _are_names(covariates, X):
        names = [covariates] if isinstance(covariates, str) else list(covariates)
        return {name: _named(name, X, "covariates") for name in names}
    if isinstance(covariates, Mapping) and not hasattr(covariates, "columns"):
        found = {name: as_column(values) for name, values in covariates.items()}
    elif is_named(covariates) and not isinstance(covariates, pd.Series):
        found = {name: take_column(covariates, name)[0] for name in column_names(covariates)}
    elif isinstance(covariates, pd.Series) or _is_column(covariates):
        found = {_name(covariates, "covariate"): as_column(covariates)}
    else:
        with reading("covariates", covariates, "a table, a column, or names of columns of X"):
            array = np.asarray(covariates)
            found = dict(zip(default_names(array.shape[1]), array.T))
    if not found:
        raise ValueError("covariates names no column; pass a table, or names of columns of X")
    for name in found:
        if not is_unicode(name):
            raise ValueError(
                f"the name {name!a} of a covariate is not a text that a table of results can show; rename the column"
            )
    for name, values in found.items():
        _check_length("covariate", name, values, n_rows)
    return found


def _outcome(outcome, X, n_rows):
    if isinstance(outcome, str):
        return outcome, _named(outcome, X, "outcome")
    if hasattr(outcome, "columns") and len(column_names(outcome)) == 1:
        return column_names(outcome)[0], take_column(outcome, column_names(outcome)[0])[0]
    if np.ndim(outcome) != 1:
        raise ValueError("outcome is one column: a Series, an array, or the name of a column of X")
    name, values = _name(outcome, "outcome"), as_column(outcome)
    _check_length("outcome", name, values, n_rows)
    return name, values


def _is_column(values):
    with reading("covariates", values, "a table, a column, or names of columns of X"):
        return np.ndim(values) == 1


def _are_names(covariates, X):
    is_list = isinstance(covariates, (list, tuple)) and len(covariates) > 0
    return is_list and all(isinstance(name, str) for name in covariates) and is_named(X)


def _named(name, X, parameter):
    if not is_named(X) or name not in column_names(X):
        raise ValueError(f"{parameter}={name!r} is not a column of X; pass the column itself, or an X that holds it")
    return take_column(X, name)[0]


def _name(column, default):
    name = getattr(column, "name", None)
    return default if name is None else name


def _check_length(what, name, values, n_rows):
    if len(values) != n_rows:
        raise ValueError(f"{what} {name!r} has {len(values)} values for {n_rows} rows of X")


def _is_numeric(values):
    dtype: Any = getattr(values, "dtype", None)
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return True
    return pd.api.types.is_object_dtype(dtype) and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values
    )


def _finite(what, values):
    numbers = as_numbers(what, values, "real numbers, or states as texts")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what} holds infinite numbers; correct them, or make them missing")
    return numbers


def _coded(name, values, what):
    codes, states = table.encode_target(values, name)
    present = np.unique(codes)
    codes, states = np.searchsorted(present, codes), [states[i] for i in present]
    if len(states) > MAX_STATES:
        raise ValueError(
            f"{what} {name!r} holds {len(states)} different values, the limit is {MAX_STATES}; make it numbers, or join values"
        )
    return codes, states
