"""Results of a fitted additive classifier: curves, maps, importances, pictures, and the model without some of its terms."""

from __future__ import annotations

from copy import copy
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.additive.model import (
    additive_model,
    average_importances,
    column_curve,
    curve_errors,
    importance_lines,
    named_sets,
    set_labels,
    weight_series,
    without_terms,
)
from pgm_bma.foundation.faces.classifier import ClassifierBase, interaction_frame
from pgm_bma.foundation.faces.validation import brief
from pgm_bma.foundation.tables.kinds import cut_series, nothing_cut

if TYPE_CHECKING:
    import networkx as nx


class AdditiveResults(ClassifierBase):
    """Everything that is read off the fits `_result`; for `AdditiveBayesClassifier`."""

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

        The score of a row is the sum of "(prior)", "(gaussian)", "(forest)" and "(trees)" in `explain`, of `term_curves` and of
        these maps.

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

    def remove_terms(self, terms: Any) -> Self:
        """Return the fitted model without some of its terms; the weights of the others stay as they are.

        Parameters
        ----------
        terms : list
            Names of columns (all that a column says alone; its pairs stay), tuples of two names (a pair), "(gaussian)", "(forest)"
            or "(trees)" (what many columns say together).

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
                f"terms={brief(terms)} must be a list of columns, pairs of columns, '(gaussian)', '(forest)' and '(trees)'"
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

    def _show(self, data):
        """Fill the attributes from the fits and their training data."""
        self._cached_terms = model = additive_model(self._result)
        names = self._of_terms(self.schema_.names)
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

    def _of_terms(self, values):
        """Select the columns that have terms."""
        return [values[j] for j in self._terms.columns]
