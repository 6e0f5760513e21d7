"""Data from networks: `simulate` draws rows from a pgmpy network by ancestral sampling, one compiled step per node.

`foundation.numbers.graphs.sample_codes` is the same for arrays; `random_dags` draws graphs.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pgm_bma.foundation.faces.validation import Flag, Integer, check
from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.runtime.seeds import random_generator
from pgm_bma.networks.objects import network_arrays

if TYPE_CHECKING:
    import pandas as pd


MAX_CELLS = 2 * 10**10  # rows x nodes: 20 GB in the smallest integers


def simulate(model: Any, n: int, random_state: Any = None, include_latents: bool = False) -> "pd.DataFrame":
    """Draw `n` rows from a network.

    Parameters
    ----------
    model : DiscreteBayesianNetwork
        A pgmpy network with its tables.
    n : int
        Number of rows.
    random_state : int, Generator, RandomState or None
        A Generator or RandomState gives up one draw, which seeds the sampling.
    include_latents : bool, default=False
        Keep the columns of latent nodes, as in pgmpy's own ``model.simulate``. They are drawn in any case, so the other
        columns do not depend on this.

    Returns
    -------
    DataFrame
        Columns in the order of ``model.nodes``. They are categoricals whose categories are the states of the node, in
        its order, with their Python types; so a state that was never drawn is still known to every estimator.

    Examples
    --------
    >>> from pgm_bma import load_network, simulate
    >>> rows = simulate(load_network("cancer"), 1000, random_state=0)
    >>> rows.shape, list(rows["Smoker"].cat.categories)
    ((1000, 5), ['True', 'False'])
    """
    import pandas as pd

    arrays = network_arrays(model)
    check("n", n, Integer(0, MAX_CELLS // max(len(arrays.names), 1)))
    check("include_latents", include_latents, Flag())
    codes = sample_codes(arrays.cpts, arrays.parents, n, random_generator(random_state), names=arrays.names)
    hidden = set() if include_latents else set(arrays.latents)
    columns = {
        node: pd.Categorical.from_codes(column, dtype=_column_type(node, states), validate=False)
        for node, states, column in zip(arrays.names, arrays.states, codes.T)
        if node not in hidden
    }
    return pd.DataFrame(columns, copy=False) if columns else pd.DataFrame(index=range(n))


def _column_type(node, states):
    try:
        return _categories(states, tuple(map(type, states)))
    except ValueError as error:
        raise ValueError(
            f"the states {list(states)} of node {node!r} cannot label a column ({error}); rename them"
        ) from None


@lru_cache(maxsize=4096)
def _categories(states, types):
    """The categorical dtype of a node; `types` keeps 1 and True apart in the cache. Mixed types stay as they are."""
    import pandas as pd

    same = len(set(types)) == 1
    return pd.CategoricalDtype(pd.Index(list(states), dtype=None if same else object, tupleize_cols=False))
