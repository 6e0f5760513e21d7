"""The averaged additive classifier: what every column and pair of columns says of the class, weighed by held-out rows."""

from __future__ import annotations

from copy import copy
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.additive.fit import fit_additive
from pgm_bma.additive.json_model import as_dict, check_content, from_dict, schema_of
from pgm_bma.additive.model import (
    additive_model,
    average_importances,
    column_curve,
    curve_errors,
    factors,
    importance_lines,
    line_sets,
    model_evidence,
    model_scores,
    named_sets,
    set_labels,
    weight_series,
    without_terms,
)
from pgm_bma.additive.solve import KINDS
from pgm_bma.additive.terms import AdditiveRows, additive_data, check_terms, effective_weights
from pgm_bma.foundation.faces.classifier import ClassifierBase, LabelledRows, interaction_frame
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import Choice, Integer, Optional, Verbose, brief, check_parameters
from pgm_bma.foundation.runtime.jobs import progress
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.kinds import as_frame, cut_series, nothing_cut, raw_values
from pgm_bma.foundation.tables.table import as_table

if TYPE_CHECKING:
    import networkx as nx


@fill(names=NAMES, classes=CLASSES)
class AdditiveBayesClassifier(ClassifierBase):
    """Classifier that adds up what columns and pairs of columns say about the class, averaged over all ways to cut them.

    A column says ln P(class | value) - ln P(class), averaged over all partitions of its values (of its states: told apart or not);
    pairs are averaged over recursive partitions of their rectangle. In addition there are slopes of numbers, weights of states and
    of cells, and one term that tells how all numbers vary together. One convex fit gives the weights; the ridge of each kind of
    term is chosen by held-out rows. Numbers are taken as they are: nothing is discretised once and for all.

    Parameters
    ----------
    terms : sequence of {"single", "pair", "linear", "state", "gaussian", "cell", "tree"}, default all seven
        Kinds of terms; "single" is always among them. "linear" has one coefficient per column of numbers and class (whole numbers
        that are states too), "state" one per state and class, "gaussian" tells how the numeric columns vary together in a class,
        "cell" has one coefficient per cell of two columns with states and class, "tree" adds trees over three or more numbers, of
        one fit of 1000 rows or more; both are used where held-out rows gain by them beyond chance.
    n_bags : int, optional
        Number of further fits, each without one of so many parts of the rows. Scores are the mean of the fit of all rows and of
        the mean of the others, times `shrinkage_`. None: 8 below 500 rows, where one fit varies too much, else 1, which is no
        further fit. Where columns were screened (see Notes) there is none.
    weight_type : {"repetition", "sampling"}, default="repetition"
        What `sample_weight` means: how often a row was seen; or how many others it stands for. Of the latter, and of weights that
        are not whole numbers, only the proportions count: they are scaled to the effective number of rows,
        (sum w)^2 / sum of w^2.
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
        Factor on the evidence of all fits that the rows left out of them ask for, drawn to 1; 1 without further fits.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean over the rows of the spread over the classes of a column's terms, in nats.
    term_importances_ : DataFrame
        All that the score is the sum of, but for the prior: columns `term`, `importance`, `low`, `high`, falling. A term is a
        column (all that it says alone), a pair, "(gaussian)", how numbers vary together in a class, or "(trees)", what single and
        pair terms do not explain; the last two have no picture. Importance is the variance of the term over the rows as a share
        of that of the whole score, with a 95 % interval from the curvature of the fit and from how the fits without parts of the
        rows differ, whichever is wider; NaN where neither is known. Terms that say the same, or the opposite, make the sum of
        the shares differ from 1.
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
        `predict_proba`. There is none (AttributeError) where numbers have linear or gaussian terms.
    {classes}

    Notes
    -----
    Of more than 50 columns, those have terms that say something alone beyond the chance of so many (log evidence above the
    logarithm of their number), if held-out rows are better predicted then; and never more than the 500 that say most. Where
    rows x classes x terms pass 60 million numbers, terms and weights are those of a sample of the rows, with a warning.

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
    _rules = {"n_bags": Optional(Integer(1)), "weight_type": Choice("repetition", "sampling"), "verbose": Verbose()}

    def __init__(
        self,
        *,
        terms: Any = KINDS,
        n_bags: int | None = None,
        weight_type: str = "repetition",
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
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns
        self.random_state = random_state
        self.verbose = verbose

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

    def term_curves(self) -> pd.DataFrame:
        """All that a column says alone, as a curve: its evidence for each class over its elementary bins or states.

        Returns
        -------
        DataFrame
            One line per column and bin: column, bin, `from`, `to` and `middle` (numeric columns), share of the rows, and one column
            per class with the evidence in nats: averaged cuts, linear part (at the middle, the mean of the numbers in the bin) and
            weights of states together, less its mean over the classes. Then one column per class, its name and "error", with the
            standard error: from the fits without parts of the rows, or, of one fit, from the curvature (of a factor on the whole
            curve).

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from pgm_bma import AdditiveBayesClassifier
        >>> x = np.random.default_rng(0).normal(size=200)
        >>> model = AdditiveBayesClassifier().fit(pd.DataFrame({"x": x}), np.where(x > 0, "high", "low"))
        >>> curve = model.term_curves()
        >>> bool(curve["high"].iloc[-1] > curve["high"].iloc[0])
        True
        """
        edges_of, middles = dict(zip(self._number_cuts.names, self._number_cuts.edges)), iter(self._middles)
        parts = []
        for j, position in enumerate(self._terms.columns):
            name, states = self.schema_.names[position], self.schema_.states[position]
            middle = next(middles) if name in edges_of else None
            evidence = column_curve(self._terms, j, middle)
            evidence -= evidence.mean(axis=1, keepdims=True)
            labels = [*self.classes_, *(f"{c} error" for c in self.classes_)]
            part = pd.DataFrame(np.hstack([evidence, curve_errors(self._result, j, middle)]), columns=labels)
            bounds = [-np.inf, *edges_of[name], np.inf] if name in edges_of else [np.nan] * (len(part) + 1)
            front = {"column": [name] * len(part), "bin": list(states), "from": bounds[:-1], "to": bounds[1:]}
            front["middle"] = bounds[1:] if middle is None else middle
            for place, (label, column) in enumerate({**front, "share": self._bin_shares[j]}.items()):
                part.insert(place, label, column, allow_duplicates=True)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def term_maps(self) -> pd.DataFrame:
        """All that pairs of columns say beyond each of them, as maps: the evidence for each class in every cell.

        The score of a row is the sum of "(prior)", "(gaussian)" and "(trees)" in `explain`, of `term_curves` and of these maps.

        Returns
        -------
        DataFrame
            One line per pair and cell: `first`, `second`, the names of the columns; `first bin`, `second bin`; and one column per
            class with the evidence in nats, less its mean over the classes. Pairs stand in the order of `pairs_`.
        """
        names, states = self._of_terms(self.schema_.names), self._of_terms(self.schema_.states)
        parts = [pd.DataFrame(columns=["first", "second", "first bin", "second bin", *self.classes_])]
        for (i, j), evidence in self._terms.pairs.items():
            cells = [(names[i], names[j], *cell) for cell in product(states[i], states[j])]
            centred = (evidence - evidence.mean(axis=2, keepdims=True)).reshape(len(cells), -1)
            part = pd.DataFrame(cells, columns=parts[0].columns[:4], dtype=object)
            parts.append(pd.concat([part, pd.DataFrame(centred, columns=parts[0].columns[4:])], axis=1))
        return pd.concat(parts[1:] or parts, ignore_index=True)

    def to_dict(self) -> dict:
        """Return the fitted model as plain lists, numbers and texts, which `json.dumps` takes: it can be scored without Python.

        The score of a class is the sum of ``prior``; of the line of each of ``tables`` at the bin or state of its column; of the
        cell of each of ``pairs`` at those of its two columns; of ``slopes``, weight x (value - mean) / spread, clipped at
        -``clip`` and ``clip``; of ``densities``; and of a leaf of each of ``trees``. Probabilities are the softmax of the scores.
        A missing or unknown value takes out whatever holds its column.

        A column of ``kind`` "number" has ``edges``: its bin is the number of edges that are not above the value. One of kind
        "states" has ``states``. ``columns`` are counted from 0. A density turns each number into a normal score, that of the
        last of the ``values`` of its knots that is not above it (else the first); v is the scores less the means of a class. Each
        of its ``parts`` adds ``weight (constant - joint_power ln(1 + |inverse v|^2) + single_power sum ln(1 + (widths v)^2))`` to
        the score of its class. The leaf of a tree is a binary number: a digit for each of its ``columns``, 1 where the bin is above
        that of ``last_bins``; a missing value is below all.

        Returns
        -------
        dict
            Keys format, version, target, classes, columns, clip, prior, tables, slopes, pairs, densities, trees.

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

    def remove_terms(self, terms: Any) -> AdditiveBayesClassifier:
        """Return the fitted model without some of its terms; the weights of the others stay as they are.

        Parameters
        ----------
        terms : list
            Names of columns (all that a column says alone; its pairs stay), tuples of two names (a pair), "(gaussian)" or
            "(trees)" (what all numbers say together).

        Returns
        -------
        AdditiveBayesClassifier
            A copy. `feature_importances_` stay those of the whole model.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from pgm_bma import AdditiveBayesClassifier
        >>> x = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = AdditiveBayesClassifier().fit(pd.DataFrame(x, columns=["a", "b"]), x[:, 0] > 0)
        >>> fewer = model.remove_terms(["b", ("a", "b"), "(gaussian)"])
        >>> float(fewer.explain({"a": 1.0, "b": 2.0}).loc["b"].abs().sum())
        0.0
        """
        check_is_fitted(self, "_result")
        if isinstance(terms, str) or not hasattr(terms, "__iter__"):
            raise ValueError(
                f"terms={brief(terms)} must be a list of columns, pairs of columns, '(gaussian)' and '(trees)'"
            )
        place = {name: j for j, name in enumerate(self._of_terms(self.schema_.names))}
        sets = named_sets(terms, place, set(self.pairs_))
        fewer = copy(self)
        fewer._result = [without_terms(fit, sets) for fit in self._result]
        for name in ("_cached_model", "_cached_terms"):
            fewer.__dict__.pop(name, None)
        names = list(place)
        fewer.pairs_ = [pair for pair in self.pairs_ if tuple(sorted(place[name] for name in pair)) not in sets]
        lines = self.interactions_
        gone = [tuple(sorted((place[a], place[b]))) in sets for a, b in zip(lines["first"], lines["second"])]
        fewer.interactions_ = lines[~np.array(gone, dtype=bool)].reset_index(drop=True)
        lines = self.term_importances_
        fewer.term_importances_ = lines[~lines["term"].isin(set_labels(sets, names))].reset_index(drop=True)
        fewer.term_weights_ = fewer._weights_by_name(names)
        return fewer

    def plot_terms(self, columns: Any = None, *, path: Any = None, n_columns: int = 3) -> Any:
        """Draw the terms: a curve for each column, a heat map for each pair of columns.

        Parameters
        ----------
        columns : list of names and pairs, optional
            Columns, and pairs (first, second), to draw. Default: the twelve of largest `feature_importances_`, and the pairs whose
            interval in `interactions_` lies above 0.
        path : str or path, optional
            File to write to.
        n_columns : int, default=3
            Panels side by side.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from pgm_bma.plotting import plot_terms

        return plot_terms(self, columns=columns, path=path, n_columns=n_columns)

    def to_networkx(self) -> nx.Graph:
        """The terms as a plain graph: the class is joined to all columns, columns with a pair term to each other.

        Returns
        -------
        networkx.Graph
            The columns and the class; edges between columns carry `interaction`, the importance in `interactions_`.
        """
        from pgm_bma.networks.graphs import interaction_graph

        names = self.schema_.names
        sets = [(name,) for name in names if not any(name in pair for pair in self.pairs_)] + self.pairs_
        groups = [frozenset([*s, self.target_name_]) for s in sets]
        graph = interaction_graph(names, self.target_name_, groups)
        for first, second, importance, *_ in self.interactions_.itertuples(index=False):
            graph.edges[first, second]["interaction"] = importance
        return graph

    @property
    def numeric_columns_(self) -> list:
        """Columns that were taken as numeric."""
        return [name for name in self.schema_.names if name in self._number_cuts.names]

    @property
    def cut_posterior_(self) -> dict:
        """For each numeric column with a term, the probability of a cut below each value of the index."""
        cuts = self._number_cuts
        posteriors = [np.mean(each, axis=0) for each in zip(*(fit.terms.cut_posteriors for fit in self._result))]
        found = dict(zip(self._of_terms(self.schema_.names), posteriors))
        kept = [k for k, name in enumerate(cuts.names) if name in found]
        cuts = cuts._replace(names=tuple(cuts.names[k] for k in kept), edges=[cuts.edges[k] for k in kept])
        return cut_series(cuts, [found[name] for name in cuts.names])

    # ---------------------------------------------------------------------------------------------------- hooks

    def _numeric_plan(self, X):
        numeric = self._numeric_names(X)
        if self.verbose:
            others = [str(c) for c in as_frame(X).columns if c not in numeric]
            print(f"numeric: {', '.join(map(str, numeric)) or 'none'}; states: {', '.join(others) or 'none'}")
        return numeric, "average"

    def _read_training(self, X, y, sample_weight):
        X = as_table(X, self, fitting=True)
        weights = effective_weights(table.check_weights(sample_weight, len(X)), self.weight_type == "sampling")
        training = super()._read_training(X, y, weights)
        values = self._raw_values(X, len(X))
        return AdditiveTraining(training, values if weights is None else values[weights > 0])

    def _fit(self, training):
        check_parameters(self, self.get_params(deep=False))
        kinds = check_terms(self.terms)
        training, values = training
        schema = training.schema
        data = additive_data(training, values, [name in self._number_cuts.names for name in schema.names])
        nominal = [] if self.categorical_columns is None else list(self.categorical_columns)
        levels = [None if name in nominal else numbers for name, numbers in zip(schema.names, data.levels)]
        data = data._replace(levels=levels)
        with progress(self.verbose, "steps", label="averaged terms") as step:
            self._result = fit_additive(data, kinds, self.n_bags, step)
        self._cached_terms = model = additive_model(self._result)
        names = self._of_terms(schema.names)
        self.pairs_ = [(names[s[0]], names[s[1]]) for s in model.pairs]
        self.term_weights_ = self._weights_by_name(names)
        self.ridge_, self.repeats_ = self._result[0].ridge, data.repeats
        self.n_bags_, self.shrinkage_ = max(len(self._result) - 1, 1), sum(fit.share for fit in self._result)
        self.feature_importances_ = average_importances(model, data)
        lines = importance_lines(self._result, data)
        pairs = [(*(names[j] for j in s), *values) for s, values in lines if s in model.pairs]
        self.interactions_ = interaction_frame(pairs)
        self.term_importances_ = pd.DataFrame([v for _, v in lines], columns=["importance", "low", "high"], dtype=float)
        self.term_importances_.insert(0, "term", pd.Series(set_labels([s for s, _ in lines], names), dtype=object))
        shown = data.take_columns(model.columns)
        self._middles, self._bin_shares = shown.bin_middles(), shown.bin_shares()

    def _log_joint(self, rows):
        return model_scores(self._terms, rows.codes, rows.values)

    def _rows_of_evidence(self, X):
        """Return what every column and pair says, zeros where a value is missing."""
        rows = self._encode(X)
        return iter(model_evidence(self._terms, rows.codes, rows.values))

    def _evidence_labels(self):
        """Columns and pairs; "(prior)" is the class alone, "(gaussian)" and "(trees)" all numbers together."""
        return set_labels(line_sets(self._terms), self._of_terms(self.schema_.names))

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

    def _weights_by_name(self, names):
        """Weights that are not 0, as a Series."""
        weights = weight_series(self._result, names, self._of_terms(self.schema_.states), list(self.target_states_))
        used = {label: weight for label, weight in weights.items() if weight != 0}
        return pd.Series(used.values(), index=pd.Index(used, dtype=object), name="weight", dtype=float)

    @property
    def _terms(self):
        """Tables that rows are scored by, made of all fits."""
        if "_cached_terms" not in self.__dict__:
            self._cached_terms = additive_model(self._result)
        return self._cached_terms

    @property
    def _number_cuts(self):
        return self.__dict__.get("_cuts") or nothing_cut()

    def _raw_values(self, X, n_rows):
        """Numbers as they are: (n_rows, n_numeric), NaN where missing."""
        if not self._number_cuts.names:
            return np.zeros((n_rows, 0))
        return raw_values(as_frame(as_table(X, self), self.schema_.names), self._number_cuts)

    def _of_terms(self, values):
        """Select the columns that have terms."""
        return [values[j] for j in self._terms.columns]


class AdditiveTraining(NamedTuple):
    """A table that was read, and the numbers of its numeric columns as they are (n_samples, n_numeric)."""

    training: LabelledRows
    values: np.ndarray
