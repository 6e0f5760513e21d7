"""The part of the Kikuchi-Bayes face that reads numbers: which columns are numeric, averaged fits, their curves and cuts."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.additive.fit import AverageFit, fit_average
from pgm_bma.additive.results import (
    NumericRows,
    average_importances,
    check_terms,
    column_evidence,
    numeric_data,
    weight_series,
)
from pgm_bma.foundation.faces.validation import check
from pgm_bma.foundation.runtime.messages import progress
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.numeric_columns import as_frame, cut_series, nothing_cut, raw_values
from pgm_bma.foundation.tables.table import as_table

# parameters that choose regions, priors and weights: any of them set asks for regions
REGION_PARAMETERS = (
    "level", "significance_level", "n_resamples", "cycles", "prior", "prior_strength", "weights", "ridge", "criterion",
    "regions", "missing", "preset",
)  # fmt: skip
_MOST_CELLS, _MOST_COLUMNS = 2_000_000, 500  # of tables whose terms are averaged unasked


class NumericTerms:
    """`numeric=`: reads numbers, fits averaged terms and shows them."""

    schema_: Any  # these two by the face
    classes_: Any

    @property
    def numeric_columns_(self) -> list:
        """Columns that were taken as numeric."""
        return [name for name in self.schema_.names if name in self._numeric_cuts.names]

    @property
    def cut_posterior_(self) -> dict:
        """For each numeric column, the probability of a cut below each value of the index; averaged terms only."""
        if self._average is None:
            raise AttributeError("cut_posterior_ exists with averaged terms only; fit with numeric='average'")
        posteriors = self._average.terms.cut_posteriors
        cuts = self._numeric_cuts
        return cut_series(cuts, [posteriors[self.schema_.index(name)] for name in cuts.names])

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
        >>> from pgm_bma import KikuchiBayesClassifier
        >>> x = np.random.default_rng(0).normal(size=200)
        >>> model = KikuchiBayesClassifier(numeric="average").fit(pd.DataFrame({"x": x}), np.where(x > 0, "high", "low"))
        >>> curve = model.term_curves()
        >>> bool(curve["high"].iloc[-1] > curve["high"].iloc[0])
        True
        """
        if self._average is None:
            raise ValueError("term_curves needs averaged terms; fit with numeric='average'")
        return column_curves(
            self._average, self.schema_, self._numeric_cuts, self._middles, self._bin_shares, self.classes_
        )

    def plot_terms(self, columns: Any = None, *, path: Any = None, n_columns: int = 3) -> Any:
        """Draw `term_curves`: a panel per column, the evidence for each class above, the density of the data below.

        Parameters
        ----------
        columns : list of names, optional
            Columns to draw, default the twelve of largest `feature_importances_`.
        path : str or path, optional
            File to write to.
        n_columns : int, default=3
            Panels beside each other.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from pgm_bma.plotting import plot_terms

        return plot_terms(self, columns=columns, path=path, n_columns=n_columns)

    # ---------------------------------------------------------------------------------------------------- hooks

    @property
    def _average(self) -> AverageFit | None:
        """The fit of averaged terms, else None."""
        return self._result if isinstance(self._result, AverageFit) else None

    @property
    def _numeric_cuts(self):
        return self.__dict__.get("_cuts") or nothing_cut()

    def _numeric_plan(self, X):
        check("numeric", self.numeric, self._rules["numeric"])
        self._mode = self._numeric_mode(X)
        if self._mode is None:
            return [], "mdl"
        if self.numeric == "auto" and self._mode == "mdl":  # regions of states, as in the other classifiers
            return super()._numeric_plan(X)
        numeric = self._numeric_names(X)
        if self.verbose:
            others = [str(c) for c in as_frame(X).columns if c not in numeric]
            print(f"numeric: {', '.join(map(str, numeric)) or 'none'}; states: {', '.join(others) or 'none'}")
        return numeric, self._mode

    def _numeric_mode(self, X):
        """ "average", "mdl" or None (every value is a state); "auto" averages unless a parameter asks for regions."""
        if self.numeric != "auto":
            return self.numeric
        defaults = inspect.signature(type(self).__init__).parameters
        asked = [name for name in REGION_PARAMETERS if not _is(getattr(self, name), defaults[name].default)]
        width = len(table.column_names(X))
        return "mdl" if asked or width > _MOST_COLUMNS or len(X) * width > _MOST_CELLS else "average"

    def _cut_numbers(self, X, y, name, sample_weight):
        cut = super()._cut_numbers(X, y, name, sample_weight)
        if self._mode == "average":
            weights = table.check_weights(sample_weight, len(X))
            kept = np.ones(len(X), dtype=bool) if weights is None else weights > 0
            numeric = self._numeric_cuts
            self._raw_values = raw_values(as_frame(X)[kept], numeric) if numeric.names else np.zeros((kept.sum(), 0))
        return cut

    def _encode_values(self, X, codes):
        """Codes with the raw numbers beside them, for averaged terms."""
        if not self._numeric_cuts.names:
            return NumericRows(codes, np.zeros((len(codes), 0)))
        return NumericRows(codes, raw_values(as_frame(as_table(X, self), self.schema_.names), self._numeric_cuts))

    def _fit_average(self, training, raw):
        from pgm_bma.kikuchi.network import named_region

        names, target = list(training.schema.names), self.target_name_
        kinds = check_terms(self.terms)
        if self.preset is not None:
            raise ValueError(f"preset={self.preset!r} takes states, numeric='average' numbers; drop one")
        data = numeric_data(training, raw, [name in self._numeric_cuts.names for name in names])
        nominal = [] if self.categorical_columns is None else list(self.categorical_columns)
        levels = [None if name in nominal else numbers for name, numbers in zip(names, data.levels)]
        data = data._replace(levels=levels)
        with progress(self.verbose, "steps", label="averaged terms") as step:
            result = fit_average(data, kinds, step)
        self._result, self._free_terms, self._state_columns = result, None, np.zeros(0, dtype=np.int64)
        self._handle_unknown = self.handle_unknown
        pairs = sorted({*result.terms.pairs, *result.terms.cells})
        alone = [(j,) for j in range(len(names)) if not any(j in pair for pair in pairs)]
        self.initial_regions_ = [named_region(s, names, target) for s in [*alone, *pairs]]
        labels, weights = weight_series(result, names, training.schema.states, list(training.classes))
        self.term_weights_ = pd.Series(weights, index=labels, name="weight")
        self.ridge_, self.prior_strength_ = result.ridge, None
        self._importances = average_importances(result, data)
        self._middles, self._bin_shares = data.bin_middles(), data.bin_shares()
        return kinds


def column_curves(fit, schema, cuts, middles, shares, classes):
    """What each column says alone, over its bins: see `KikuchiBayesClassifier.term_curves`."""
    edges_of, middle_of = dict(zip(cuts.names, cuts.edges)), dict(zip(cuts.names, middles))
    parts = []
    for j, name in enumerate(schema.names):
        values = np.full((len(schema.states[j]), len(cuts.names)), np.nan)
        if name in edges_of:
            values[:, cuts.names.index(name)] = middle_of[name]
        evidence = column_evidence(fit, j, values)
        evidence -= evidence.mean(axis=1, keepdims=True)
        part = pd.DataFrame(evidence, columns=list(classes))
        bounds = [-np.inf, *edges_of[name], np.inf] if name in edges_of else [np.nan] * (len(part) + 1)
        front = {"column": [name] * len(part), "bin": list(schema.states[j]), "from": bounds[:-1], "to": bounds[1:]}
        for place, (label, column) in enumerate({**front, "share": shares[j]}.items()):
            part.insert(place, label, column, allow_duplicates=True)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _is(value, default):
    """Whether a parameter was left at its default; one that is wrong altogether was not, and is refused by its rule."""
    return value is default or (isinstance(value, (str, int, float, tuple)) and value == default)
