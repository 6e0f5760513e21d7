"""The averaged additive classifier: what every column and pair of columns says of the class, weighed by held-out rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.additive.fit import fit_additive
from pgm_bma.additive.json_model import as_dict, check_content, from_dict, schema_of
from pgm_bma.additive.model import factors, line_sets, model_evidence, model_scores, set_labels
from pgm_bma.additive.results import AdditiveResults
from pgm_bma.additive.solve import KINDS
from pgm_bma.additive.terms import AdditiveRows, additive_data, check_terms, effective_weights
from pgm_bma.foundation.faces.classifier import ClassifierBase, LabelledRows
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import Choice, Instance, Integer, Optional, Verbose, brief, check_parameters
from pgm_bma.foundation.rows.scan import is_scan
from pgm_bma.foundation.runtime.jobs import progress
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.kinds import as_frame, nothing_cut, raw_values
from pgm_bma.foundation.tables.table import as_table


@fill(names=NAMES, classes=CLASSES)
class AdditiveBayesClassifier(AdditiveResults, ClassifierBase):
    """Classifier that adds up what columns and pairs of columns say about the class, averaged over all ways to cut them.

    A column says ln P(class | value) - ln P(class), averaged over all partitions of its values (of its states: told apart or not);
    pairs are averaged over recursive partitions of their rectangle. In addition there are slopes of numbers, weights of states and
    of cells, and one term that tells how all numbers vary together. One convex fit gives the weights; the ridge of each kind of
    term is chosen by held-out rows. What many columns decide together is left to a random forest, as one more term whose weight
    held-out rows give. Numbers are taken as they are: nothing is discretised once and for all.

    Parameters
    ----------
    terms : sequence of {"single", "pair", "linear", "state", "gaussian", "cell", "forest", "tree"}, default all eight
        Kinds of terms; "single" is always among them. "linear" has one coefficient per column of numbers and class (whole numbers
        that are states too), "state" one per state and class, "gaussian" tells how the numeric columns vary together in a class,
        "cell" has one coefficient per cell of two columns with states and class, "forest" is what a random forest of all columns
        says, "tree" adds trees over three or more numbers, of one fit of 1000 rows or more. Cells and trees are used where
        held-out rows gain by them beyond chance.
    n_bags : int, optional
        Number of further fits, each without one of so many parts of the rows. Scores are the mean of the fit of all rows and of
        the mean of the others, times `shrinkage_`. None: 8 below 500 rows, where one fit varies too much, else 1, which is no
        further fit. Where columns were screened (see Notes) there is none.
    weight_type : {"repetition", "sampling"}, default="repetition"
        What `sample_weight` means: how often a row was seen; or how many others it stands for. Of the latter, and of weights that
        are not whole numbers, only the proportions count: they are scaled to the effective number of rows,
        (sum w)^2 / sum of w^2.
    monotone : dict, optional
        Columns of numbers, each with 1 or -1: ``{{"age": 1}}`` keeps the probability of the second of two classes (`classes_`) from
        falling where only age rises, -1 from rising; for every row, exactly. Of more than two classes, which must be numbers, it is
        the probability of each class and those above it. Such a column has one curve and no part in pairs and other terms.
    {names}
    random_state : int, Generator, RandomState or None, default=None
        As every classifier has it. A fit does not depend on it: folds follow from the data, whatever the order and names of rows,
        columns and states.
    verbose : bool or int, default=0
        Name the numeric columns, and show a progress bar when a fit takes longer than two seconds.

    Attributes
    ----------
    term_weights_ : Series
        Weight of every term that is in the model; a kind whose ridge is "off" is not.
    pairs_ : list of tuples of names
        Pairs of columns that have a term or weights of cells.
    ridge_ : dict
        Ridge of every kind of term at the best point of the search (of the fit of all rows); 1e5 is "off".
    n_bags_ : int
        Number of further fits, each without a part of the rows; 1 where there is none.
    shrinkage_ : float
        Factor on the evidence of all fits, but for forest and trees, that held-out rows ask for, drawn to 1.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean over the rows of the spread over the classes of a column's terms, in nats.
    term_importances_ : DataFrame
        All that the score is the sum of, but for the prior: columns `term`, `importance`, `low`, `high`, falling. A term is a
        column (all that it says alone), a pair, "(gaussian)", how numbers vary together in a class, "(forest)", what the forest
        says of all columns, or "(trees)", what is left unexplained; the last three have no picture. Importance is the variance of
        the term over the rows as a share of that of the whole score, with a 95 % interval from the curvature of the fit and from
        how the fits without parts of the rows differ, whichever is wider; NaN where neither is known. Terms that say the same, or
        the opposite, make the sum of the shares differ from 1.
    interactions_ : DataFrame
        The pairs among them, columns `first`, `second`, `importance`, `low`, `high`. A pair whose `low` is 0 may be chance.
    repeats_ : {"none", "data", "copies"}
        How equal rows (same cells and class), or whole weights, were taken. "data": they count as so many rows. "copies": many more
        rows are equal than the frequencies of the columns would give, so repeats say nothing new; weights are scaled to the
        effective number of rows, and copies stay in one fold. A factor that all weights share is taken out before, so that a
        table copied as a whole, or one weight for all, is the table itself.
    numeric_columns_ : list of names
        Columns that were taken as numeric.
    cut_posterior_ : dict of Series
        For each numeric column, the probability that it is cut below the values in the index.
    model_ : pgmpy DiscreteMarkovNetwork
        Its factors are exp(weight x term) over states and elementary bins; on complete rows its normalised query equals
        `predict_proba`, while there is no forest. There is none (AttributeError) where numbers have linear or gaussian terms.
    model_is_exact_ : bool
        Whether `model_` is the fitted distribution itself. It lacks the forest, where there is one.
    {classes}

    Notes
    -----
    Of more than 50 columns, those have terms that say something alone beyond the chance of so many (log evidence above the
    logarithm of their number), or in a product with another, if held-out rows are better predicted then; and never more than the
    500 that say most, whose fit is then added to that of the former. Where rows x classes x terms pass 60 million numbers, terms
    and weights are those of a sample of the rows, with a warning.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import AdditiveBayesClassifier
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(x[:, 0] + x[:, 1] > 0, "high", "low")
    >>> model = AdditiveBayesClassifier().fit(pd.DataFrame(x, columns=["a", "b"]), y)
    >>> model.predict(pd.DataFrame({"a": [1.0, -1.0], "b": [0.5, -0.5]})).tolist()
    ['high', 'low']
    """

    _picture = "plot_interactions"
    _rules = {
        "n_bags": Optional(Integer(1)),
        "weight_type": Choice("repetition", "sampling"),
        "monotone": Optional(Instance(dict, "a dict such as {'age': 1}")),
        "verbose": Verbose(),
    }

    def __init__(
        self,
        *,
        terms: Any = KINDS,
        n_bags: int | None = None,
        weight_type: str = "repetition",
        monotone: dict | None = None,
        state_names: dict | None = None,
        target_name: str | None = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.terms = terms
        self.n_bags = n_bags
        self.weight_type = weight_type
        self.monotone = monotone
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from rows `X` with classes `y`.

        Parameters
        ----------
        X : table
            Numbers and discrete values: DataFrame of any library, 2-D array, or a scan; NaN and None are missing.
        y : array-like of shape (n_samples,), or name of a column of X
            Classes of the rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, see `weight_type`.
        groups : array-like of shape (n_samples,), optional
            Rows that belong together, such as those of one patient, or copies of one row: they are held out together wherever rows
            are held out. Equal rows of one group count as copies, equal rows of two groups as data (see `repeats_`).

        Returns
        -------
        estimator
            The estimator itself.
        """
        if groups is not None and is_scan(X):
            raise ValueError("groups needs the rows in memory, and X is a scan; pass a DataFrame, or leave groups out")
        self._cached_groups = groups
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_cached_groups", None)

    def log_scores(self, X: Any) -> np.ndarray:
        """Add up what all terms say for each class.

        Parameters
        ----------
        X : table
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Sums in nats, not normalised.
        """
        return self._log_joint(self._encode(X))

    def to_dict(self) -> dict:
        """Return the fitted model as plain lists, numbers and texts, which `json.dumps` takes: it can be scored without Python.

        The score of a class is the sum of ``prior``; of the line of each of ``tables`` at the bin or state of its column; of the
        cell of each of ``pairs`` at those of its two columns; of ``slopes``, weight x (value - mean) / spread, clipped at
        -``clip`` and ``clip``; of ``densities``; of ``forest``; and of a leaf of each of ``trees``. Probabilities are the softmax
        of the scores. A missing or unknown value takes out whatever holds its column, but for forest and trees.

        A column of ``kind`` "number" has ``edges``: its bin is the number of edges that are not above the value. One of kind
        "states" has ``states``. ``columns`` are counted from 0. A density turns each number into a normal score, that of the
        last of the ``values`` of its knots that is not above it (else the first); v is the scores less the means of a class. Each
        of its ``parts`` adds ``weight (constant - joint_power ln(1 + |inverse v|^2) + single_power sum ln(1 + (widths v)^2))`` to
        the score of its class. The leaf of a tree is a binary number: a digit for each of its ``columns``, 1 where the bin is above
        that of ``last_bins``; a missing value is below all.

        The forest adds ``weight x ln((mean + mixed x shares) / (1 + mixed))``, mean that of the leaves that a row reaches from
        each of ``roots``. Node n looks at ``columns[n]``. Its bin there is 0 where the value is missing, else 1 and the number of
        the state, or 1 and the number of ``edges`` of this column that are not above the value. Bits 0 to 30 of a mask are in
        ``masks[0][n]``, the others in ``masks[1][n]``: if the bit of the bin is 1, the row goes to node ``children[n]``, else to
        the node behind it. Where ``children[n]`` is below 0, it reaches leaf ``-1 - children[n]``.

        Returns
        -------
        dict
            Keys format, version, target, classes, columns, clip, prior, tables, slopes, pairs, densities, trees, forest.

        Examples
        --------
        >>> import json, numpy as np, pandas as pd
        >>> from pgm_bma import AdditiveBayesClassifier
        >>> x = np.random.default_rng(0).normal(size=100)
        >>> model = AdditiveBayesClassifier().fit(pd.DataFrame({"x": x}), np.where(x > 0, "high", "low"))
        >>> content = json.loads(json.dumps(model.to_dict()))
        >>> content["classes"], content["columns"][0]["kind"]
        (['high', 'low'], 'number')
        >>> AdditiveBayesClassifier.from_dict(content).predict(pd.DataFrame({"x": [2.0, -2.0]})).tolist()
        ['high', 'low']
        """
        check_is_fitted(self)
        edges = dict(zip(self._number_cuts.names, self._number_cuts.edges))
        return as_dict(self._terms, self.target_name_, self.target_states_, self.schema_, edges)

    @classmethod
    def from_dict(cls, content: dict) -> AdditiveBayesClassifier:
        """Make a classifier that predicts and explains from what `to_dict` returned.

        Parameters
        ----------
        content : dict
            What `to_dict` returned, or its JSON form read again.

        Returns
        -------
        AdditiveBayesClassifier
            With `predict`, `predict_proba`, `log_scores`, `explain` and `to_dict`. What needs the fits themselves, such as
            `term_curves` and `save`, it does not have.
        """
        check_content(content)
        model = cls()
        numbers = [column for column in content["columns"] if column["kind"] == "number"]
        if numbers:
            model._cuts = nothing_cut()._replace(
                names=tuple(column["name"] for column in numbers),
                edges=[np.array(column["edges"], dtype=float) for column in numbers],
            )
        model.schema_ = schema_of(content)
        model.target_name_, model.target_states_ = content["target"], tuple(content["classes"])
        model.classes_ = np.array(content["classes"])
        model.n_features_in_, model._cached_terms = len(content["columns"]), from_dict(content)
        return model

    # ---------------------------------------------------------------------------------------------------- hooks

    def _numeric_plan(self, X):
        numeric, columns = self._numeric_names(X), list(as_frame(X).columns)
        check_parameters(self, {"monotone": self.monotone})
        curves = check_monotone(self, as_frame(X)) if self.monotone else {}
        numeric = [name for name in columns if name in numeric or name in curves]
        if self.verbose:
            others = [str(c) for c in columns if c not in numeric]
            print(f"numeric: {', '.join(map(str, numeric)) or 'none'}; states: {', '.join(others) or 'none'}")
        return numeric, "average"

    def _read_training(self, X, y, sample_weight):
        X = as_table(X, self, fitting=True)
        weights = effective_weights(table.check_weights(sample_weight, len(X)), self.weight_type == "sampling")
        groups = group_codes(self.__dict__.pop("_cached_groups", None), len(X))
        training = super()._read_training(X, y, weights)
        values = self._raw_values(X, len(X))
        if weights is not None:
            values, groups = values[weights > 0], None if groups is None else groups[weights > 0]
        return AdditiveTraining(training, values, groups)

    def _fit(self, training):
        check_parameters(self, self.get_params(deep=False))
        kinds = check_terms(self.terms)
        training, values, groups = training
        schema = training.schema
        numeric = [name in self._number_cuts.names for name in schema.names]
        signs = [(self.monotone or {}).get(name, 0) for name in schema.names]
        if any(signs) and len(training.classes) > 2 and not all(isinstance(c, Real) for c in training.classes):
            raise ValueError(
                f"monotone needs two classes, or classes whose order is known, and {self.target_name_!r} has "
                f"{brief(list(training.classes))}; code them as numbers, the lowest first"
            )
        data = additive_data(training, values, numeric, signs, groups)
        nominal = [] if self.categorical_columns is None else list(self.categorical_columns)
        levels = [None if name in nominal else numbers for name, numbers in zip(schema.names, data.levels)]
        data = data._replace(levels=levels)
        with progress(self.verbose, "steps", label="averaged terms") as step:
            self._result = fit_additive(data, kinds, self.n_bags, step)
        self._show(data)

    def _log_joint(self, rows):
        return model_scores(self._terms, rows.codes, rows.values)

    def _rows_of_evidence(self, X):
        """Return what every column and pair says, zeros where a value is missing."""
        rows = self._encode(X)
        return iter(model_evidence(self._terms, rows.codes, rows.values))

    def _evidence_labels(self):
        """Columns and pairs; "(prior)" is the class alone, "(gaussian)", "(forest)" and "(trees)" many columns together."""
        return set_labels(line_sets(self._terms), self._of_terms(self.schema_.names))

    @property
    def model_is_exact_(self) -> bool:  # type: ignore[override]  # of the other classes it is a constant
        """Return whether `model_` is the fitted distribution itself: it lacks the forest."""
        return not self._terms.forest

    def _build_model(self):
        from pgm_bma.networks.objects import markov_network

        names = [*self._of_terms(self.schema_.names), self.target_name_]
        states = [*map(list, self._of_terms(self.schema_.states)), list(self.target_states_)]
        tables = [(variables, np.exp(values)) for variables, values in factors(self._terms)]
        return markov_network(names, states, tables)

    def _fitted_summary(self):
        numeric = f", numeric: {', '.join(map(str, self.numeric_columns_))}" if self.numeric_columns_ else ""
        return f"{super()._fitted_summary()}, {len(self.pairs_)} pairs{numeric}"

    def _encode(self, X):
        codes = super()._encode(X)
        return AdditiveRows(codes, self._raw_values(X, len(codes)))

    # ---------------------------------------------------------------------------------------------------- helpers

    def _raw_values(self, X, n_rows):
        """Numbers as they are: (n_rows, n_numeric), NaN where missing."""
        if not self._number_cuts.names:
            return np.zeros((n_rows, 0))
        return raw_values(as_frame(as_table(X, self), self.schema_.names), self._number_cuts)


def check_monotone(model, frame):
    """`monotone` of a model, or an error."""
    states = [*(model.state_names or {}), *(() if model.categorical_columns is None else model.categorical_columns)]
    for name, sign in model.monotone.items():
        if name not in frame.columns:
            known = brief(list(frame.columns))
            raise ValueError(f"monotone names {name!r}, which is not a column of X; its columns are {known}")
        if not pd.to_numeric(frame[name], errors="coerce").notna().any():
            raise ValueError(
                f"monotone names {name!r}, which holds no numbers; code its states as numbers in their order"
            )
        if name in states:
            raise ValueError(
                f"column {name!r} is named in monotone and as one of states, which have no order; drop one"
            )
        if isinstance(sign, bool) or sign not in (1, -1):
            raise ValueError(f"monotone={{{name!r}: {brief(sign)}}} must be 1 (never falls) or -1 (never rises)")
    return model.monotone


def group_codes(groups, n_rows):
    """Codes of groups, or an error: (n_rows,), None where there are none."""
    if groups is None:
        return None
    groups = np.asarray(groups, dtype=object)
    if groups.shape != (n_rows,):
        raise ValueError(f"groups has shape {groups.shape}; it needs one value for each of the {n_rows} rows")
    codes, found = pd.factorize(groups)
    if codes.min(initial=0) < 0:
        raise ValueError(f"groups is missing in row {int(codes.argmin())}; give such a row its own group")
    if len(found) < 2:
        raise ValueError("groups holds one group only, so that none could be held out; pass two or more, or no groups")
    return codes


class AdditiveTraining(NamedTuple):
    """A table that was read, the numbers of its numeric columns as they are (n_samples, n_numeric), and codes of groups."""

    training: LabelledRows
    values: np.ndarray
    groups: np.ndarray | None
