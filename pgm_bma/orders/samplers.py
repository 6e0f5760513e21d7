"""Samplers of orders: a record per kind of chain, the `sampler` of the order estimators."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import Either, Instance, Integer, Number, Optional, ParameterRecord

_COMMON_RULES = {
    "n_orders": Integer(1),
    "n_chains": Integer(1),
    "checkpoint": Optional(Instance((str, os.PathLike), "the name of a file")),
    "checkpoint_every": Integer(1),
}
_KEPT = """init : list, optional
        Order to start from, or one per chain; by default, climbs from random orders, and one random order. Under method="given",
        the orders that are averaged.
    checkpoint : path, optional
        File that keeps the run; a killed run started again ends with the same orders.
    checkpoint_every : int, default=10000
        Moves of a chain between two writes."""


@fill(kept=_KEPT)
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GibbsSampler(ParameterRecord):
    """Chains of Gibbs moves: one variable is put back into any place with exactly the right probabilities, until the chains agree.

    Parameters
    ----------
    tol : float, default=0.05
        Chains stop when every arc posterior, pooled over the chains, is expected to be within this of its exact value: 2 to 2.5
        standard errors from the spread of the chains, of their halves and of batches of sweeps. No chain may be far below the best
        scores that were seen.
    max_sweeps : int, default=4096
        Most sweeps (one move per variable) of a chain; they grow by 1.3 to 1.5 until the chains agree, and the last half to three
        quarters count. With missing values, a sweep over structures and cells counts as one to four, by families and rows.
    n_chains : int, default=4
        Independent chains.
    max_time : float, optional
        Seconds after which chains end, converged or not, scores of families included; a run that ends so cannot be repeated bit
        for bit.
    n_orders : int, default=30
        Orders kept per chain, evenly spaced, for predictions and sampled networks; under "exact", independent draws.
    n_temperatures : int or "auto", default="auto"
        Replicas of a chain at different temperatures, which help it across modes; "auto": as many as exchanges of neighbours at a
        rate of 0.2 take to a tenth of the log posterior, or to where the best order is 50 nats (more from 64 variables on)
        above a random one, 3 to 16. Not used under structure_weighting="dag", where arcs are turned round instead.
    eps : float, default=0.01
        Parent sets that are left out of the lists have less than this share of a variable's sum, whatever stands before it. Where
        all families are too many to score, no bound is known before: sets with less than a tenth of it of their best subset are
        left out. Long lists cost little: chains over orders walk over a short part of them and are corrected.
    beam : int, default=120
        Where all families are too many to score, the best `beam` parent sets of every size are extended by every variable.
    {kept}

    Examples
    --------
    >>> from pgm_bma import GibbsSampler, OrderPosterior
    >>> posterior = OrderPosterior(sampler=GibbsSampler(tol=0.1))
    >>> posterior.set_params(sampler__n_chains=2).sampler
    GibbsSampler(tol=0.1, n_chains=2)
    """

    tol: float = 0.05
    max_sweeps: int = 4096
    n_chains: int = 4
    max_time: float | None = None
    n_orders: int = 30
    n_temperatures: int | str = "auto"
    eps: float = 0.01
    beam: int = 120
    init: Iterable | None = None
    checkpoint: Any = None
    checkpoint_every: int = 10_000

    _rules: ClassVar[dict[str, Any]] = {
        **_COMMON_RULES,
        "tol": Number(0, 1, open_low=True),
        "max_sweeps": Integer(1),
        "max_time": Optional(Number(0, open_low=True)),
        "n_temperatures": Either(Integer(1), "auto"),
        "eps": Number(0, 1, open_low=True),
        "beam": Integer(1),
    }


@fill(kept=_KEPT)
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SwapSampler(ParameterRecord):
    """Chains of the paper's swaps of two variables, for a given number of iterations (Hwang and Zhang 2005).

    It needs all families in one table, complete rows and structure_weighting="order".

    Parameters
    ----------
    n_orders : int, default=30
        Orders kept per chain, for predictions and sampled networks; under "exact", independent draws.
    burn_in : int, default=10000
        Iterations before the first kept one.
    thin : int, default=1667
        Iterations from one kept order to the next.
    n_chains : int, default=4
        Independent chains.
    {kept}

    Examples
    --------
    >>> from pgm_bma import SwapSampler
    >>> SwapSampler(n_chains=1)
    SwapSampler(n_chains=1)
    >>> SwapSampler().get_params()["thin"]
    1667
    """

    n_orders: int = 30
    burn_in: int = 10_000
    thin: int = 1667
    n_chains: int = 4
    init: Iterable | None = None
    checkpoint: Any = None
    checkpoint_every: int = 10_000

    _rules: ClassVar[dict[str, Any]] = {**_COMMON_RULES, "burn_in": Integer(0), "thin": Integer(1)}


SAMPLER = Optional(Instance((GibbsSampler, SwapSampler), "a GibbsSampler or a SwapSampler"))
