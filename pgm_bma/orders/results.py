"""Results of an average over structures: arcs, DAGs, networks, diagnostics. Shared by all order estimators."""

import inspect
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.face import DiscreteEstimator
from pgm_bma.foundation.faces.validation import check_choice
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.runtime.jobs import seed_sequence
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables.missing import mark_missing, with_missing_state
from pgm_bma.foundation.tables.table import Schema
from pgm_bma.orders import network
from pgm_bma.orders.chains.runner import R_HAT
from pgm_bma.orders.effect_results import EffectResults
from pgm_bma.orders.families.counted import CountedTraining
from pgm_bma.orders.families.family_table import parent_sets
from pgm_bma.orders.fitting import UNOBSERVED, average, counted_rows
from pgm_bma.orders.gaps.augmented_average import own_mixture
from pgm_bma.orders.score_files import ScoresOnly
from pgm_bma.orders.structure_average import (
    WEIGHTINGS,
    chain_edges,
    exact_log_joint,
    exact_predictor,
    lost_mass,
    mixed_log_joint,
    state_mixture,
)
from pgm_bma.orders.sums import fixed_order, unobserved

MAX_COMPLETIONS = 1024  # of a row that are summed out exactly
N_COMPLETIONS = 200  # draws for rows past that
N_DIAGNOSED_ROWS = 50
COLUMNS = ["kind", "what", "mean", "r_hat", "ess", "difference_of_chains"]


class OrderResults(EffectResults, DiscreteEstimator):
    """An estimator over ``_average`` (a `StructureAverage`) and ``_variables`` (a `Schema`, the class last if there is one).

    ``_seed`` is drawn in fit.
    """

    missing: str
    unobserved: str
    random_state: Any
    _picture = "plot_arc_posteriors"

    # ------------------------------------------------------------------------------------------------ fit

    def _average_over(self, training, settings, predicts, families=None):
        """Average as `settings` says, with the seed; returns what predictions are made of (see `fitting.average`)."""
        root = seed_sequence(self.random_state)
        names = list(self._variables.names)
        self._average, ready = average(training, names, settings, self.random_state, root, predicts, families)
        self._seed = int(np.random.default_rng(root).integers(2**63))
        return ready

    # ------------------------------------------------------------------------------------------------ arcs and orders

    @property
    def structure_weighting_(self):
        """ "order" (every order counts once) or "dag" (every DAG counts once): what the posteriors here mean."""
        return self._average.weighting

    @property
    def method_(self):
        """ "exact", "mcmc" or "given": how the average was formed."""
        return self._average.method

    @property
    def orders_(self):
        """The kept orders as tuples of names, earliest first, chain after chain.

        Under structure_weighting="dag" they are orders of the sampled layers, names in column order within a layer.
        """
        names = self._variables.names
        return [tuple(names[v] for v in order) for order in self._flat_orders()]

    @property
    def order_log_scores_(self):
        """Natural log of the unnormalised posterior of every kept order (of every kept layering under "dag")."""
        return self._average.log_scores.ravel()

    @property
    def n_chains_(self):
        """Chains behind `orders_`; 1 when nothing was sampled by a chain."""
        return len(self._average.states)

    @property
    def acceptance_rate_(self):
        """Share of proposals that were accepted, over all chains; NaN when nothing was sampled by a chain."""
        return float(self._average.acceptance.mean())

    @property
    def log_evidence_(self):
        """Log of the sum over all orders, each with weight 1 (over all DAGs under "dag"); NaN unless method_ is "exact"."""
        return self._average.log_evidence

    @property
    def edge_posterior_(self):
        """DataFrame parent x child: P(parent -> child | data), from every kept order exactly; `attrs` names the weighting."""
        names = list(self._variables.names)
        edges = pd.DataFrame(self._average.edges, index=names, columns=names)
        edges.index.name, edges.columns.name = "parent", "child"
        edges.attrs.update(self._labels())
        return edges

    @property
    def skeleton_posterior_(self):
        """DataFrame P(an arc between row and column | data), in either direction: the two exclude each other."""
        edges = self.edge_posterior_
        either = np.minimum(edges.to_numpy() + edges.to_numpy().T, 1.0)
        skeleton = pd.DataFrame(either, index=list(edges.index), columns=list(edges.columns))
        skeleton.attrs.update(self._labels())
        return skeleton

    @property
    def chain_posteriors_(self):
        """(n_chains_, n, n) array: `edge_posterior_` of every chain by itself; of one chain where nothing was sampled by chains."""
        if self._average.chains is not None:
            return self._average.chains.means.copy()
        return (
            self._average.edges[None].copy() if self._average.method != "mcmc" else chain_edges(self._average).mean(1)
        )

    @property
    def lost_mass_(self):
        """Bound on what parent sets left out of a list have, as a share of the others, the largest over the variables.

        With missing values it is no bound but what they had in the states of the chains, the largest that was measured.
        """
        return lost_mass(self._average)

    @property
    def gaps_(self):
        """DataFrame of missing cells in training by column: `missing` (weighted) and `share` of the rows.

        `attrs` has `rows`, `incomplete_rows`, `treatment` ("augment", "drop", "state", or "none" where nothing was missing),
        `arc_spread` (largest standard deviation of an arc posterior from completed table to completed table) and `by_cells`
        (share of the incomplete rows whose missing cells have too many joint states to be drawn at once), and `lost_mass`: for
        every completed table on which it was measured, chain after chain, the share that `lost_mass_` is the largest of.
        """
        names = list(self._variables.names)
        n_missing, n_incomplete, n_rows = self._missing_counts
        gaps = pd.DataFrame({"missing": n_missing, "share": np.asarray(n_missing) / max(n_rows, 1)}, index=names)
        treatment = "none"
        if n_incomplete:
            treatment = "augment" if self._average.gaps is not None else "state" if self.missing == "state" else "drop"
        record = self._average.gaps
        gaps.attrs.update(
            rows=n_rows,
            incomplete_rows=n_incomplete,
            treatment=treatment,
            arc_spread=0.0 if record is None else float(record.spread.max(initial=0.0)),
            by_cells=0.0 if record is None else float(record.by_cells),
            lost_mass=[] if record is None else self._average.table.lost_mass.max(-1).ravel().tolist(),
        )
        return gaps

    @property
    def arc_spread_(self):
        """DataFrame parent x child: standard deviation of the arc posterior from completed table to completed table.

        What the missing cells add to the uncertainty of an arc (beyond 12 variables, with what differs from order to order); 0
        where nothing was missing or missing cells were not sampled.
        """
        names, record = list(self._variables.names), self._average.gaps
        values = np.zeros((len(names), len(names))) if record is None else record.spread
        spread = pd.DataFrame(values, index=names, columns=names)
        spread.index.name, spread.columns.name = "parent", "child"
        return spread

    def _count_missing(self, codes, weights):
        """Remember how many cells are missing in training: per column, the incomplete rows, all rows."""
        weights = np.ones(len(codes)) if weights is None else weights
        holes = codes < 0
        self._set_missing(weights @ holes, weights @ holes.any(1), weights.sum())

    def _set_missing(self, by_column, incomplete, total):
        self._missing_counts = (by_column.tolist(), float(incomplete), float(total))

    def _count_passes(self, rows, settings, target=None):
        """The `CountedTraining` of rows that are visited in passes; sets `_variables`, target : (name, states) of a class."""
        self._forget()
        self._feature_states = rows.schema.states
        schema, columns = rows.schema, np.zeros(0, dtype=np.int64)
        if settings.missing == "state":
            columns = np.flatnonzero(rows.has_missing)
            schema = with_missing_state(schema, columns)
        more = ((), ()) if target is None else ((target[0],), (tuple(target[1]),))
        self._variables = Schema((*schema.names, *more[0]), (*schema.states, *more[1]))
        training, incomplete = counted_rows(self._variables, rows, settings, columns)
        n_missing = rows.total_weight - np.add.reduceat(
            rows.state_counts, state_offsets(rows.schema.cardinalities)[:-1]
        )
        self._set_missing(np.append(n_missing, np.zeros(len(more[0]))), incomplete, rows.total_weight)
        return training

    @property
    def edge_graph_(self):
        """networkx DiGraph of all arcs with a positive posterior (attribute `posterior`); it may be cyclic."""
        return network.arc_graph(self._variables.names, self._average.edges, self._labels())

    @property
    def family_scores_(self):
        """DataFrame child, parents, log_marginal_likelihood, log_prior of every family scored."""
        table, names = self._average.table, self._variables.names
        children, parents = [], []
        for child, name in enumerate(names):
            sets = parent_sets(table, child)
            children += [name] * len(sets)
            parents += [tuple(names[p] for p in z) for z in sets]
        return pd.DataFrame(
            {
                "child": children,
                "parents": pd.Series(parents, dtype=object),
                "log_marginal_likelihood": table.log_marginal,
                "log_prior": table.log_prior,
            }
        )

    # ------------------------------------------------------------------------------------------------ networks

    @property
    def best_log_score_(self):
        """Log posterior weight of the DAG in `model_`: log prior + log marginal likelihood."""
        return self._average.best_log_score

    @property
    def causal_graph_(self):
        """The DAG of `model_` as a pgmpy DAG, for pgmpy's metrics. Its arcs factorise the joint; they prove no causes."""
        return network.dag(self._variables.names, self._average.best_parents)

    @property
    def adjacency_matrix_(self):
        """DataFrame parent x child of 0 and 1: the arcs of `causal_graph_`, as pgmpy's structure learners have it."""
        return network.adjacency(self.causal_graph_)

    def _build_model(self):
        return self._network(self._average.best_parents)

    def _flat_orders(self):
        return self._weighting().order(self._average.states.reshape(-1, len(self._variables.names)))

    def _weighting(self):
        return WEIGHTINGS[self._average.weighting]

    def _arc_posteriors(self):
        names, edges = self._variables.names, self._average.edges
        return {(names[p], names[c]): edges[p, c] for c, z in enumerate(self._average.best_parents) for p in z}

    def _labels(self):
        return {"structure_weighting": self._average.weighting, "method": self._average.method}

    # ------------------------------------------------------------------------------------------------ joints of rows

    def _forget(self):
        """Drop what was built from an earlier fit."""
        for name in [name for name in self.__dict__ if name.startswith("_cached_") and name != "_cached_scan"]:
            del self.__dict__[name]

    def _mixture(self, made=None):
        """The `Mixture` that predictions and DAGs are drawn from; made : the same, where the fit has it already."""
        if "_cached_mixture" not in self.__dict__:
            make = state_mixture if self._average.gaps is None else own_mixture
            self._cached_mixture = make(self._average) if made is None else made
        return self._cached_mixture

    def _joint_with_error(self, codes, class_index, n_classes):
        """Log joint (n_rows, n_classes) of rows over all variables, -1 missing, and its standard error."""
        check_choice("unobserved", self.unobserved, UNOBSERVED)
        cardinalities = self._variables.cardinalities
        codes = codes.astype(np.int64)
        if self.unobserved == "fill":
            rng = np.random.default_rng([self._seed, 3])  # equal calls give equal draws
            codes = unobserved.impute_uniformly(codes, cardinalities, rng)
        return unobserved.log_joint(
            self._evaluator(class_index, n_classes),
            codes,
            cardinalities,
            class_index,
            n_classes,
            MAX_COMPLETIONS,
            N_COMPLETIONS,
            self._proposal,
            self._seed,
        )

    def _predictor(self, sums=None):
        if "_cached_predictor" not in self.__dict__:
            self._cached_predictor = exact_predictor(self._average, sums)
        return self._cached_predictor

    def _evaluator(self, class_index, n_classes):
        predictor = self._predictor()
        if predictor is not None:
            return lambda rows, *_: exact_log_joint(predictor, self._average, rows, class_index, n_classes)
        return lambda rows, *holes: mixed_log_joint(self._mixture(), rows, class_index, n_classes, *holes)

    def _get_ready(self, ready=None):
        """Build what predictions need now, so that predicting leaves the estimator as it is.

        ready : sums of an exact average, or the mixture of one over completed tables
        """
        completed = self._average.gaps is not None
        if self._predictor(None if completed else ready) is None:
            self._keep_used_counts(self._mixture(ready if completed else None))

    def _keep_used_counts(self, mix):
        """Of counts that were made in passes, keep those of the families that predictions and `model_` read."""
        training, best = self._average.training, self._average.best_parents
        if not isinstance(training, CountedTraining):
            return
        width = max(mix.table.max_indegree, 1)
        own = np.array([[*z, *[-1] * (width - len(z))] for z in best], dtype=np.int64)
        used = [fixed_order.set_members(mix.table, child, places) for child, places in enumerate(mix.places)]
        children = np.repeat(np.arange(len(used)), [len(some) for some in used])
        children = np.concatenate([children, np.arange(len(best))])
        training = training.only(children, np.concatenate([*used, own]))
        self._average = self._average._replace(training=training)
        self._cached_mixture = mix._replace(training=training)

    def _proposal(self):
        """The network that completions are drawn from when there are too many to sum."""
        parents, training = self._average.best_parents, self._average.training
        return parents, [fixed_order.family_cpt(training, child, z) for child, z in enumerate(parents)]

    def _encode(self, X):
        """Codes of new rows; under missing="state", missing cells have the extra state of the columns that got one."""
        check_is_fitted(self)
        if isinstance(self._average.training, ScoresOnly):
            raise ValueError("fit_scores has scores of families and no rows, so rows cannot be judged; use fit(X)")
        codes = super()._encode(X)
        if self.missing != "state":
            return codes
        longer = [len(wide) > len(own) for wide, own in zip(self._variables.states, self._feature_states)]
        return mark_missing(X, codes, self.schema_, np.flatnonzero(longer))

    # ------------------------------------------------------------------------------------------------ diagnostics

    @property
    def converged_(self):
        """Return whether the chains agree; True when nothing was sampled by Gibbs moves."""
        return self._average.chains is None or bool(self._average.chains.converged)

    @property
    def n_sweeps_(self):
        """Sweeps of every Gibbs chain; 0 when there is none."""
        return 0 if self._average.chains is None else int(self._average.chains.n_sweeps)

    @property
    def diagnostics_(self):
        """DataFrame of mean, R-hat, effective size and difference of the chains per arc, and per class posterior of some rows.

        Of Gibbs chains, over all sweeps that count, with `attrs` n_sweeps, difference, error (the largest
        that is expected of an arc, pooled over the chains), n_apart (arcs whose chains differ by more
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
                error=float(chains.error),
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
        if not self._average.finished:  # said already; the diagnostics of many arcs take seconds
            return
        arcs = self.diagnostics_
        bad = arcs[(arcs.r_hat > R_HAT) & (arcs.difference_of_chains > 0.1)]
        if len(bad):
            worst = bad.loc[bad.difference_of_chains.idxmax()]
            warn(
                f"the chains disagree on {len(bad)} of {len(arcs)} posteriors (worst: {worst.what}, by "
                f"{worst.difference_of_chains:.2f}, R-hat {worst.r_hat:.2f}); raise burn_in, thin or n_orders, or "
                "use sampler=GibbsSampler()"
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
