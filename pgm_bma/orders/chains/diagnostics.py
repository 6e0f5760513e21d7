"""What chains tell about their convergence: R-hat, effective sizes and differences per arc, warnings, arviz."""

import inspect
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.orders.structure_average import chain_edges, lost_mass

N_DIAGNOSED_ROWS = 50
R_HAT = 1.1
COLUMNS = ["kind", "what", "mean", "r_hat", "ess", "difference_of_chains"]


class ChainDiagnostics:
    """Mixin over ``_average`` (a `StructureAverage`) and ``_variables`` (a `Schema`)."""

    _average: Any
    _variables: Any
    _seed: int

    @property
    def converged_(self):
        """Whether the chains agree; True when nothing was sampled by Gibbs moves."""
        return self._average.chains is None or bool(self._average.chains.converged)

    @property
    def n_sweeps_(self):
        """Sweeps of every Gibbs chain; 0 when there is none."""
        return 0 if self._average.chains is None else int(self._average.chains.n_sweeps)

    @property
    def diagnostics_(self):
        """DataFrame of mean, R-hat, effective size and difference of the chains per arc, and per class posterior of some rows.

        Of Gibbs chains, over all sweeps that count, with `attrs` n_sweeps, difference, n_apart (arcs whose chains differ by more
        than 0.2), converged, lost_mass, exchange_rates (of neighbouring temperatures) and powers (of the posterior, at every
        temperature); of chains of swaps, over the kept orders (arviz-stats). The log score of an order hides bad arcs, so it is
        not listed. Empty when nothing was sampled by a chain.
        """
        rows = []
        if self._average.method == "mcmc":
            if self._average.chains is not None:
                rows += self._gibbs_rows()
            for kind, labels, values in self._diagnosed():
                rows += _series_rows(kind, labels, values)
        table = pd.DataFrame(rows, columns=COLUMNS)
        if self._average.chains is not None:
            chains = self._average.chains
            table.attrs.update(
                n_sweeps=int(chains.n_sweeps),
                difference=float(chains.difference),
                n_apart=int(chains.n_apart),
                converged=bool(chains.converged),
                lost_mass=lost_mass(self._average),
                exchange_rates=np.round(chains.exchange_rates.mean(0), 3).tolist(),
                powers=np.round(chains.betas[0], 4).tolist(),
            )
        return table

    def _gibbs_rows(self):
        chains, names = self._average.chains, self._variables.names
        u, v = np.nonzero(~np.eye(len(names), dtype=bool))
        spread = np.ptp(chains.means, axis=0)
        numbers = zip(u, v, self._average.edges[u, v], chains.r_hat[u, v], chains.effective_size[u, v], spread[u, v])
        return [("arc", f"{names[a]} -> {names[b]}", *rest) for a, b, *rest in numbers]

    def _diagnosed(self):
        """(kind, labels, values (n_chains, n_kept, n_values)) of what is judged by the kept orders."""
        if self._average.chains is None:
            names, edges = self._variables.names, chain_edges(self._average)
            u, v = np.nonzero(~np.eye(len(names), dtype=bool))
            yield "arc", [f"{names[a]} -> {names[b]}" for a, b in zip(u, v)], edges[:, :, u, v]

    def _warn_if_chains_disagree(self):
        if self._average.method != "mcmc" or self._average.chains is not None or len(self._average.states) < 2:
            return
        arcs = self.diagnostics_
        bad = arcs[(arcs.r_hat > R_HAT) & (arcs.difference_of_chains > 0.1)]
        if len(bad):
            worst = bad.loc[bad.difference_of_chains.idxmax()]
            warn(
                f"the chains disagree on {len(bad)} of {len(arcs)} posteriors (worst: {worst.what}, by "
                f"{worst.difference_of_chains:.2f}, R-hat {worst.r_hat:.2f}); raise burn_in, thin or n_orders, or use moves='gibbs'"
            )

    def to_arviz(self) -> Any:
        """The chains as arviz inference data: `order_log_score` and `arc` (parent x child) per chain and kept order.

        Returns
        -------
        arviz InferenceData or DataTree
            What ``arviz.from_dict`` makes of them.
        """
        check_is_fitted(self)
        try:
            import arviz
        except ImportError:
            raise ImportError("to_arviz needs arviz: pip install arviz") from None
        names = [str(name) for name in self._variables.names]
        posterior = {"order_log_score": self._average.log_scores, "arc": chain_edges(self._average)}
        more = {"coords": {"parent": names, "child": names}, "dims": {"arc": ["parent", "child"]}}
        if "posterior" in inspect.signature(arviz.from_dict).parameters:  # before arviz 1.0 groups are keywords
            return arviz.from_dict(posterior=posterior, **more)
        return arviz.from_dict({"posterior": posterior}, **more)


def _series_rows(kind, labels, values):
    """Rows of the table from values (n_chains, n_kept, n_values)."""
    from arviz_stats.base import array_stats

    varies = values.std((0, 1)) > 0
    r_hat, size = np.full(values.shape[2], np.nan), np.full(values.shape[2], np.nan)
    spread = np.ptp(values.mean(1), axis=0)
    if varies.any() and values.shape[1] >= 4:
        with np.errstate(divide="ignore", invalid="ignore"):  # a chain that never moves
            r_hat[varies] = array_stats.rhat(values[:, :, varies], chain_axis=0, draw_axis=1)
            size[varies] = array_stats.ess(values[:, :, varies], chain_axis=0, draw_axis=1)
        r_hat[varies & np.isnan(r_hat) & (spread > 0)] = np.inf
    columns = zip(labels, values.mean((0, 1)), r_hat, size, spread)
    return [(kind, label, *numbers) for label, *numbers in columns]
