"""Classifier averaged exactly over all forest-augmented naive Bayes structures."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.forests.augment import KEPT, N_CHAINS, SWEEPS, augmented_forests
from pgm_bma.forests.average import ForestPrior, fit_forest_average
from pgm_bma.forests.results import MAX_CELLS, ForestResults
from pgm_bma.foundation.faces.classifier import ClassifierBase
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import Choice, brief, check_choice
from pgm_bma.foundation.numbers.families import arc_prior_array
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.foundation.runtime.messages import warn

MAX_COLUMNS = 100  # with missing="augment": networks of any shape are sampled over them, in about a minute


@fill(names=NAMES, classes=CLASSES)
class ForestAveragedClassifier(ForestResults, ClassifierBase):
    """Classifier averaged exactly over every structure in which each column has the class as a parent and at most one
    other column, without cycles. The sum over all of them is a determinant (directed matrix-tree theorem).

    Parameters
    ----------
    class_arcs : {"all", "selective"}, default="all"
        The class is a parent of every column, or each column may go without it.
    arc_prior : float or dict, default=0.5
        Prior of an arc class -> column under "selective", the same for all or by column.
    structure_prior : {"arc_cost", "friedman_koller", "uniform"}, default="arc_cost"
        Every arc between columns costs log n, log(n - 1), or nothing.
    forbidden_arcs : list of pairs or "all", optional
        Pairs (parent, child) of columns that no structure may have.
    alpha : float, default=1.0
        Pseudo-count of a cell (K2 when 1), as `parameter_prior` spreads it.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha` and `parameter_prior`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        "consistent": all tables of a column hold the same pseudo-counts in sum, so that no arc gains from a larger table:
        alpha in a cell below the class and a parent of two states, 2 alpha below the class alone, n_classes times that
        without the class. "paper": alpha in every cell, under which arcs into a column of very many states, noise or not,
        look certain.
    missing : {"auto", "augment"}, default="auto"
        What a missing cell of the training rows is. "auto": an arc is judged on the rows that have both its cells. "augment":
        missing cells and networks over all columns are sampled together (`OrderPosterior`), and the exact averages over all
        forests on 16 completed tables are averaged; fits take seconds to minutes, predictions 16 times as long.
        Without a missing cell both are the same.
    max_completions : int, default=64
        Rows with missing cells are summed out exactly up to this many completions.
    n_forests : int, default=200
        Forests sampled for rows past that; the standard error is in `predict_proba_with_error`.
    preset : {"paper"}, optional
        alpha = 1 in every cell.
    random_state : int, Generator, RandomState or None, default=None
        Seeds those samples, and the chains of missing="augment".
    {names}

    Attributes
    ----------
    edge_posterior_ : DataFrame
        Parent x child, P(parent -> child | data) between columns.
    class_arc_posterior_ : Series
        P(class -> column | data); 1 under class_arcs="all".
    feature_importances_ : array of shape (n_features_in_,)
        Expected information of every column about the class, nats.
    edge_graph_ : networkx DiGraph
        All arcs with their `posterior`.
    log_evidence_ : float
        log p(data), structures and parameters summed out; nan where missing cells were sampled.
    model_ : DiscreteBayesianNetwork
        The most probable structure with posterior-mean tables; not the average (`model_is_exact_` is False).
    causal_graph_ : pgmpy DAG
        Its structure.
    {classes}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import ForestAveragedClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = ["even", "odd", "odd", "even"] * 6
    >>> classifier = ForestAveragedClassifier().fit(X, y)
    >>> classifier.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    >>> round(float(classifier.edge_posterior_.loc["a", "b"]), 2)
    0.5
    """

    _max_columns = 1500  # about a minute
    _rules = {"class_arcs": Choice("all", "selective"), "missing": Choice("auto", "augment")}

    def __init__(
        self,
        *,
        class_arcs: str = "all",
        arc_prior: float | dict = 0.5,
        structure_prior: str = "arc_cost",
        forbidden_arcs: Iterable | str | None = None,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        missing: str = "auto",
        max_completions: int = 64,
        n_forests: int = 200,
        preset: str | None = None,
        random_state: Any = None,
        state_names: dict | None = None,
        target_name: str | None = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ):
        self.class_arcs = class_arcs
        self.arc_prior = arc_prior
        self.structure_prior = structure_prior
        self.forbidden_arcs = forbidden_arcs
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.missing = missing
        self.max_completions = max_completions
        self.n_forests = n_forests
        self.preset = preset
        self.random_state = random_state
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns

    def _fit(self, training):
        values = self._checked_values(training.schema, len(training.classes))
        names, cardinalities = list(training.schema.names), training.schema.cardinalities
        class_arc_prior = arc_prior_array(self.arc_prior, names)
        prior = ForestPrior(
            values["alpha"],
            values["equivalent_sample_size"],
            values["parameter_prior"],
            self.structure_prior,
            class_arc_prior if self.class_arcs == "selective" else None,
            forbidden_matrix(self.forbidden_arcs, names),
        )
        rng = random_generator(self.random_state)
        rows = training.codes, cardinalities, training.target, len(training.classes), training.weights
        self._tables = ()
        if self._has_gaps_to_fill(training):
            found = augmented_forests([*names, self.target_name_], *rows, prior, rng)
            self._result, self._tables = found.average, found.tables
            if found.n_apart:
                warn(
                    f"with the missing cells, chains over networks differ on {found.n_apart} arcs by more than 0.2 after {SWEEPS} "
                    "sweeps: edge_posterior_ is rough; OrderPosterior runs until its chains agree, and complete() gives its tables",
                    ConvergenceWarning,
                )
        else:
            self._result = fit_forest_average(*rows, prior)
        self._read_result(rng)
        self.log_evidence_ = self._result.log_evidence

    def _fit_rows(self, training):  # `fit_forest_average` counts rows that are visited in passes
        if self.missing == "augment" and training.codes.has_missing.any():
            raise NeedsRows("missing='augment'", "missing='auto'")
        self._fit(training)

    def _has_gaps_to_fill(self, training):
        if self.missing != "augment" or training.target is None:
            return False
        cards, n_classes = training.schema.cardinalities, len(training.classes)
        if not (training.codes[:, cards > 1] < 0).any():  # a cell with one possible value is never missing
            return False
        if len(cards) > MAX_COLUMNS:
            raise ValueError(
                f"X has {len(cards)} columns; missing='augment' samples networks over all of them and takes at most {MAX_COLUMNS}: "
                "select columns first, or pass missing='auto'"
            )
        size = N_CHAINS * KEPT * n_classes * int(cards.sum()) ** 2
        if size > MAX_CELLS:
            raise ValueError(
                f"missing='augment' keeps {N_CHAINS * KEPT} completed tables, whose pairs of states under {n_classes} classes have "
                f"{size:.3g} cells, more than {MAX_CELLS:.3g}; pass missing='auto', drop columns or merge rare states"
            )
        return True

    def _averages(self):
        return self._tables or (self._result,)

    def _class_node(self):
        return self.target_name_, self.target_states_, False


def forbidden_matrix(forbidden_arcs, names):
    """(n, n) bool [child, parent], or None."""
    if forbidden_arcs is None:
        return None
    forbidden = np.zeros((len(names), len(names)), dtype=bool)
    if isinstance(forbidden_arcs, str):
        check_choice("forbidden_arcs", forbidden_arcs, ("all",))
        forbidden[:] = True
        return forbidden
    if not hasattr(forbidden_arcs, "__iter__") or hasattr(forbidden_arcs, "tocsr"):
        raise ValueError(f"forbidden_arcs={brief(forbidden_arcs)} must be a list of pairs (parent, child), or 'all'")
    for arc in forbidden_arcs:
        if isinstance(arc, str) or not hasattr(arc, "__len__") or len(arc) != 2:
            raise ValueError(f"forbidden_arcs holds {arc!r}, which is not a pair (parent, child) of columns")
        parent, child = arc
        for name in (parent, child):
            if name not in names:
                raise ValueError(f"forbidden_arcs names {name!r}, which is not a column of X")
        forbidden[names.index(child), names.index(parent)] = True
    return forbidden
