"""The averaged additive classifier: what every column and pair of columns says of the class, weighed by held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.additive.fit import fit_additive
from pgm_bma.additive.interactions import interaction_table
from pgm_bma.additive.results import (
    AdditiveRows,
    additive_data,
    average_factors,
    average_importances,
    average_scores,
    check_terms,
    column_evidence,
    explained,
    explained_labels,
    weight_series,
)
from pgm_bma.additive.ridges import KINDS
from pgm_bma.foundation.faces.classifier import ClassifierBase, Training
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import Verbose, check_parameters
from pgm_bma.foundation.numbers.pairs import information_gains, interaction_information
from pgm_bma.foundation.runtime.messages import progress
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.numeric_columns import as_frame, cut_series, nothing_cut, raw_values
from pgm_bma.foundation.tables.table import as_table

if TYPE_CHECKING:
    import networkx as nx

_PAIR_WORK = 500_000_000  # pairs x rows up to which the interactions of all pairs are counted in fit


@fill(names=NAMES, classes=CLASSES)
class AdditiveBayesClassifier(ClassifierBase):
    """Sum of terms of columns and pairs of columns, each averaged over all ways to cut the columns, with learned weights.

    A column says ln P(class | value) - ln P(class), averaged over all partitions of its values (of its states: told apart or not);
    pairs are averaged over recursive partitions of their rectangle. Beside these there are slopes of numbers, weights of states and
    of cells, and one term that tells how all numbers vary together. One convex fit gives the weights; the ridge of each kind of
    term is chosen by held-out rows. Numbers are taken as they are: nothing is discretised once and for all.

    Parameters
    ----------
    terms : sequence of {"single", "pair", "linear", "state", "gaussian", "cell"}, default all six
        Kinds of terms; "single" is always among them. "linear" has one coefficient per column of numbers and class (whole numbers
        that are states too), "state" one per state and class, "gaussian" tells how the numeric columns vary together in a class,
        "cell" has one coefficient per cell of two columns with states and class, used where held-out rows gain by it beyond chance.
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
        Ridge of every kind of term at the best point of the search; 1e5 is "off".
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean over the rows of the spread over the classes of a column's terms, in nats.
    interaction_strength_ : DataFrame
        In nats, I(X_i; class) on the diagonal, I(X_i; X_j | class) - I(X_i; X_j) off it: positive where a pair says more than
        its columns, negative where they repeat each other; NaN where not counted.
    interactions_ : DataFrame
        The pairs of columns in the model, columns `first`, `second`, `importance`, `low`, `high`, falling: the variance over
        the rows of the pair's term as a share of that of the whole score, with a 95 % interval from the curvature of the fit.
        A pair whose `low` is 0 may be chance.
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
    A table of more than 500 columns has terms of the 500 whose single terms say most. Where rows x classes x terms pass 60 million
    numbers, terms and weights are those of a sample of the rows, with a warning.

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
    _rules = {"verbose": Verbose()}

    def __init__(
        self,
        *,
        terms: Any = KINDS,
        state_names: dict | None = None,
        target_name: str | None = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.terms = terms
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
            One line per column and bin: column, bin, `from` and `to` (numeric columns), share of the rows, and one column per class
            with the evidence in nats: averaged cuts, linear part (at the middle of the bin) and weights of states together, less
            its mean over the classes.

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
        edges_of, numbers = dict(zip(self._number_cuts.names, self._number_cuts.edges)), self._numbers_with_terms()
        parts = []
        for j, position in enumerate(self._result.terms.columns):
            name, states = self.schema_.names[position], self.schema_.states[position]
            values = np.full((len(states), len(numbers)), np.nan)
            if name in edges_of:
                values[:, numbers.index(name)] = self._middles[numbers.index(name)]
            evidence = column_evidence(self._result, j, values)
            evidence -= evidence.mean(axis=1, keepdims=True)
            part = pd.DataFrame(evidence, columns=list(self.classes_))
            bounds = [-np.inf, *edges_of[name], np.inf] if name in edges_of else [np.nan] * (len(part) + 1)
            front = {"column": [name] * len(part), "bin": list(states), "from": bounds[:-1], "to": bounds[1:]}
            for place, (label, column) in enumerate({**front, "share": self._bin_shares[j]}.items()):
                part.insert(place, label, column, allow_duplicates=True)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def plot_terms(self, columns: Any = None, *, path: Any = None, n_columns: int = 3) -> Any:
        """Draw `term_curves`: a panel per column, the evidence for each class above, the density of the data below.

        Parameters
        ----------
        columns : list of names, optional
            Columns to draw, default the twelve of largest `feature_importances_`.
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
            The columns and the class; edges carry `interaction`.
        """
        from pgm_bma.networks.graphs import interaction_graph

        names = self.schema_.names
        sets = [(name,) for name in names if not any(name in pair for pair in self.pairs_)] + self.pairs_
        groups = [frozenset([*s, self.target_name_]) for s in sets]
        return interaction_graph(names, self.target_name_, groups, self.interaction_strength_)

    @property
    def numeric_columns_(self) -> list:
        """Columns that were taken as numeric."""
        return [name for name in self.schema_.names if name in self._number_cuts.names]

    @property
    def cut_posterior_(self) -> dict:
        """For each numeric column with a term, the probability of a cut below each value of the index."""
        terms, cuts = self._result.terms, self._number_cuts
        found = dict(zip((self.schema_.names[j] for j in terms.columns), terms.cut_posteriors))
        kept = [k for k, name in enumerate(cuts.names) if name in found]
        cuts = cuts._replace(names=tuple(cuts.names[k] for k in kept), edges=[cuts.edges[k] for k in kept])
        return cut_series(cuts, [found[name] for name in cuts.names])

    @property
    def interaction_strength_(self) -> pd.DataFrame:
        """Information on the class in nats: of each column on the diagonal, of each pair beyond its columns off it."""
        names, values = list(self.schema_.names), self._information
        if values.ndim == 1:
            values = np.where(np.eye(len(names), dtype=bool), values, np.nan)
        return pd.DataFrame(values, index=names, columns=names)

    # ---------------------------------------------------------------------------------------------------- hooks

    def _numeric_plan(self, X):
        numeric = self._numeric_names(X)
        if self.verbose:
            others = [str(c) for c in as_frame(X).columns if c not in numeric]
            print(f"numeric: {', '.join(map(str, numeric)) or 'none'}; states: {', '.join(others) or 'none'}")
        return numeric, "average"

    def _read_training(self, X, y, sample_weight):
        X = as_table(X, self, fitting=True)
        training = super()._read_training(X, y, sample_weight)
        weights = table.check_weights(sample_weight, len(X))
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
            self._result = fit_additive(data, kinds, step)
        terms = self._result.terms
        names, states = self._of_terms(schema.names), self._of_terms(schema.states)
        self.pairs_ = [(names[i], names[j]) for i, j in sorted({*terms.pairs, *terms.cells})]
        labels, weights = weight_series(self._result, names, states, list(training.classes))
        used = weights != 0
        self.term_weights_ = pd.Series(weights[used], index=np.array(labels, dtype=object)[used], name="weight")
        self.ridge_, self.repeats_ = self._result.ridge, data.repeats
        self.feature_importances_ = average_importances(self._result, data)
        shown = data.take_columns(terms.columns)
        self.interactions_ = interaction_table(self._result, shown, names)
        self._middles, self._bin_shares = shown.bin_middles(), shown.bin_shares()
        self._information = _information(data, "pair" in kinds)

    def _log_joint(self, rows):
        return average_scores(self._result, rows.codes, rows.values)

    def _rows_of_evidence(self, X):
        """What every column and pair says, zeros where a value is missing."""
        rows = self._encode(X)
        return iter(explained(self._result, rows.codes, rows.values))

    def _evidence_labels(self):
        """Columns and pairs; "(prior)" is the class alone, "(gaussian)" all numbers together."""
        return explained_labels(self._result, self._of_terms(self.schema_.names))

    def _build_model(self):
        from pgm_bma.networks.objects import markov_network

        names = [*self._of_terms(self.schema_.names), self.target_name_]
        states = [*map(list, self._of_terms(self.schema_.states)), list(self.target_states_)]
        factors = average_factors(self._result)
        return markov_network(names, states, [(variables, np.exp(values)) for variables, values in factors])

    def _fitted_summary(self):
        numeric = f", numeric: {', '.join(map(str, self.numeric_columns_))}" if self.numeric_columns_ else ""
        return f"{super()._fitted_summary()}, {len(self.pairs_)} pairs{numeric}"

    def _encode(self, X):
        codes = super()._encode(X)
        return AdditiveRows(codes, self._raw_values(X, len(codes)))

    # ---------------------------------------------------------------------------------------------------- helpers

    @property
    def _number_cuts(self):
        return self.__dict__.get("_cuts") or nothing_cut()

    def _raw_values(self, X, n_rows):
        """Numbers as they are: (n_rows, n_numeric), NaN where missing."""
        if not self._number_cuts.names:
            return np.zeros((n_rows, 0))
        return raw_values(as_frame(as_table(X, self), self.schema_.names), self._number_cuts)

    def _of_terms(self, values):
        """What belongs to the columns that have terms."""
        return [values[j] for j in self._result.terms.columns]

    def _numbers_with_terms(self):
        return [name for name in self._of_terms(self.schema_.names) if name in self._number_cuts.names]


def _information(data, pairs):
    """(n, n) with the interactions of all pairs, or (n,) information gains when pairs are not wanted or too many."""
    n_rows, n_columns = data.codes.shape
    counted = data.codes, data.target, data.weights, data.n_bins, data.n_classes
    if pairs and n_columns**2 * (data.n_classes + n_rows) <= _PAIR_WORK:
        return interaction_information(*counted)
    return information_gains(*counted)


class AdditiveTraining(NamedTuple):
    """A table that was read, and the numbers of its numeric columns as they are (n_samples, n_numeric)."""

    training: Training
    values: np.ndarray
