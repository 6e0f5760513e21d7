"""Evidence of the columns of a row for each class or cluster: one row or many, as log evidence or as log odds of two classes.

An estimator implements ``_evidence(codes)`` of one encoded row -> (n_terms, n_classes), whose column sums are the log joint, and
``_evidence_labels()`` where the terms are not "(prior)" and the columns; `_rows_of_evidence` is there for estimators whose encoded
rows are no plain codes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.table import as_table


def evidence_in_order(log_joint, order, row):
    """Evidence of the columns of a row by the chain rule, so that the lines add up to the log joint.

    log_joint : function of codes (n, n_columns), -1 where a cell is not shown     order : columns in an order that follows the arcs
    """
    shown = np.full((len(order) + 1, len(order)), -1)
    for step, column in enumerate(order):
        shown[step + 1 :, column] = row[column]
    gained = log_joint(shown)
    evidence = np.zeros_like(gained)
    evidence[0] = gained[0]
    with np.errstate(invalid="ignore"):
        evidence[1 + np.array(order)] = np.where(gained[1:] == -np.inf, -np.inf, np.diff(gained, axis=0))
    return evidence


class Explains:
    """Mixin of the classifiers and clusterers."""

    schema_: table.Schema
    _fitted_names: Any
    _encode: Callable
    _evidence: Callable

    def explain(self, X: Any, log_odds: tuple[Any, Any] | None = None) -> Any:
        """Explain predictions: the evidence of every column for each class or cluster, in nats, in one row or in many.

        Parameters
        ----------
        X : mapping, Series, sequence, or table
            One row by column, or a table of rows (DataFrame of any library or 2-D array). A table of one row is one row.
        log_odds : (a, b), optional
            Two classes or clusters: what speaks for a against b, instead of the evidence for each.

        Returns
        -------
        DataFrame or Series
            One row: a line per column and "(prior)" (and what the method adds), a column per class, whose sums are the log
            joint. Many rows: the same with two levels of lines, row and term. With `log_odds` one number a term: a Series for
            one row, a DataFrame rows x terms for many; its sums are log P(a | row) - log P(b | row).
        """
        check_is_fitted(self)
        rows, names, is_one = _read(X, self)
        evidence = np.array(list(self._rows_of_evidence(rows)))
        labels, classes = self._evidence_labels(), self._evidence_classes()
        evidence = evidence.reshape(len(names), len(labels), len(classes))
        if log_odds is not None:
            return _odds(evidence, labels, classes, log_odds, names, is_one)
        columns = pd.Index(classes, tupleize_cols=False)
        if is_one:
            return pd.DataFrame(evidence[0], index=labels, columns=columns)
        terms, given = (pd.Index(each, tupleize_cols=False) for each in (labels, names))
        index = pd.MultiIndex.from_arrays(
            [given.repeat(len(terms)), terms.take(np.tile(np.arange(len(terms)), len(given)))], names=["row", "term"]
        )
        return pd.DataFrame(evidence.reshape(-1, len(classes)), index=index, columns=columns)

    def _rows_of_evidence(self, X):
        """(n_terms, n_classes) of every row of a table."""
        codes = self._encode(X)
        return (self._evidence(codes[i : i + 1]) for i in range(len(codes)))

    def _evidence_labels(self):
        return ["(prior)", *self._fitted_names]

    def _evidence_classes(self):
        raise NotImplementedError


def _read(X, estimator):
    """(table, names of its rows, whether it is one row)."""
    names = list(estimator._fitted_names)
    if isinstance(X, (pd.Series, dict)):
        return X, [getattr(X, "name", None)], True
    if isinstance(X, (np.ndarray, list, tuple)) and np.ndim(np.asarray(X, dtype=object)) == 1 and not _is_rows(X):
        if len(X) != len(names):
            raise ValueError(f"the row has {len(X)} values for the {len(names)} columns of {type(estimator).__name__}")
        return table.made_frame([dict(zip(names, X))]), [0], True
    if isinstance(X, (list, tuple)):
        X = table.made_frame(X) if _is_rows(X) and isinstance(X[0], (dict, pd.Series)) else np.asarray(X, dtype=object)
    X = as_table(X, estimator)
    n_rows = table.read_columns(X)[2]
    rows = list(X.index) if isinstance(X, pd.DataFrame) else list(range(n_rows))
    return X, rows, n_rows == 1


def _is_rows(X):
    return len(X) > 0 and all(isinstance(row, (dict, pd.Series)) for row in X)


def _odds(evidence, labels, classes, log_odds, names, is_one):
    pair = list(log_odds) if isinstance(log_odds, (tuple, list)) else [log_odds]
    if len(pair) != 2:
        raise ValueError(f"log_odds={log_odds!r}; name two of the classes {', '.join(map(repr, classes[:6]))}")
    places = []
    for name in pair:
        if name not in classes:
            raise ValueError(
                f"log_odds names {name!r}, which is not one of the classes {', '.join(map(repr, classes[:6]))}"
            )
        places.append(classes.index(name))
    for_a, for_b = (evidence[:, :, place] for place in places)
    both = np.isneginf(for_a) & np.isneginf(for_b)  # impossible under both
    with np.errstate(invalid="ignore"):
        odds = np.where(both, 0.0, for_a - for_b)
    terms = pd.Index(labels, tupleize_cols=False)
    if is_one:
        return pd.Series(odds[0], index=terms, name=f"log odds of {pair[0]} against {pair[1]}")
    return pd.DataFrame(odds, index=pd.Index(names, tupleize_cols=False), columns=terms)
