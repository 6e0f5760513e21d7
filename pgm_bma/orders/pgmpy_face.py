"""pgmpy structure score: the family scores of the order estimators for pgmpy's structure searches, with rows of experiments."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.structure_score import BaseStructureScore

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import Instance, Optional, brief, check
from pgm_bma.foundation.numbers.families import cell_alpha, check_prior, family_counts, log_marginal_likelihood
from pgm_bma.foundation.tables import interventions as experiments
from pgm_bma.foundation.tables.table import encode
from pgm_bma.networks.reading import check_frame
from pgm_bma.orders.families.family_table import regimes

DENSE = 4  # cells per row up to which a table is counted whole
# of equivalent families BDeu is equal: beyond these digits rounding would choose between them, which is no better than chance
DIGITS = 8


@fill(experiments=experiments.PARAMETERS.replace("\n    ", "\n"))
class FamilyScore(BaseStructureScore):
    """Log marginal likelihood of families (K2 or BDeu) as a structure score of pgmpy, for `HillClimbSearch`, `GES` and others.

    The scores are those of `OrderPosterior`, without its prior of structures. Rows of experiments count as there, so pgmpy's
    searches learn directions from them; but GES, which looks at classes of equivalent DAGs, does not.

    Parameters
    ----------
    data : DataFrame
        Discrete values without missing ones.
    alpha : float, default=1.0
        Pseudo-count of every cell (K2 when 1).
    equivalent_sample_size : float, optional
        Total pseudo-count of every table (BDeu), instead of `alpha`.
    state_names : dict, optional
        States of columns, in order; may hold states never seen.
    sample_weight : array of shape (n_samples,), optional
        A weight is a repetition of the row.
    {experiments}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.causal_discovery import HillClimbSearch
    >>> from pgm_bma import FamilyScore
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 3 + list("0101") * 3})
    >>> X["set"] = [None] * 12 + ["b"] * 12
    >>> score = FamilyScore(X, equivalent_sample_size=1, interventions="set")
    >>> search = HillClimbSearch(scoring_method=score, return_type="dag", show_progress=False).fit(X[["a", "b"]])
    >>> list(search.causal_graph_.edges)
    [('a', 'b')]
    """

    _tags = {"name": "family", "supported_datatype": "discrete", "default_for": None, "is_parameteric": True}

    def __init__(
        self,
        data: pd.DataFrame,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        state_names: dict | None = None,
        sample_weight: Any = None,
        interventions: Any = None,
        intervention_type: str = "perfect",
    ):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.sample_weight = sample_weight
        self.interventions = interventions
        self.intervention_type = intervention_type
        check_frame(data)
        check_prior(alpha, equivalent_sample_size)
        check("state_names", state_names, Optional(Instance(dict, "a dict column -> states")))
        found = None
        if experiments.given(interventions, None, intervention_type) is not None:
            data, found = experiments.split_experiments(data, interventions, intervention_type)
        read = encode(data, state_names, sample_weight)
        missing = (read.codes < 0).sum(0)
        if missing.any():
            name = read.schema.names[int(np.argmax(missing))]
            raise ValueError(
                f"{int(missing.sum())} cells are missing (most in {name!r}); drop these rows or impute before, or use "
                "OrderPosterior, which averages over missing cells"
            )
        self._rows = read.codes.astype(np.int64), np.asarray(read.schema.cardinalities), read.weights
        self._held = None if found is None else found.held(read.schema.names, read.codes, sample_weight)
        self._soft = found is not None and found.soft
        self._places = {name: k for k, name in enumerate(read.schema.names)}
        # what pgmpy's own scores have
        self.data, self.dtypes = data, dict.fromkeys(read.schema.names, "C")
        self.variables = list(read.schema.names)
        self.state_names = {name: list(states) for name, states in zip(read.schema.names, read.schema.states)}
        self._cached_local_score = lru_cache(maxsize=None)(self._local_score)

    def _local_score(self, variable, parents):
        for name in (variable, *parents):
            if name not in self._places:
                raise ValueError(f"{brief(name)} is not a column of data; its columns are {self.variables}")
        child, parents = self._places[variable], sorted(self._places[name] for name in parents)
        codes, cards, weights = self._rows
        tables = [self._rows]
        if self._held is not None and self._held[:, child].any():
            tables = regimes(codes, cards, weights, self._held[:, child], self._soft)
        prior = self.alpha, self.equivalent_sample_size
        return round(
            float(sum(_log_marginal(some, cards, rows, child, parents, *prior) for some, _, rows in tables)), DIGITS
        )


def _log_marginal(codes, cards, weights, child, parents, alpha, equivalent_sample_size):
    """Log marginal likelihood of one family; tables of many cells are counted where rows are."""
    r, q = int(cards[child]), float(np.prod(cards[parents].astype(float)))
    cell = cell_alpha(q, r, alpha, equivalent_sample_size)
    if q * r > DENSE * len(codes):  # joint states of the parents that no row has add nothing
        states, above = np.unique(codes[:, parents], axis=0, return_inverse=True)
        codes = np.column_stack([above.ravel(), codes[:, child]])
        cards, parents, child = [len(states), r], [0], 1
    return log_marginal_likelihood(family_counts(codes, cards, child, parents, weights), cell)
