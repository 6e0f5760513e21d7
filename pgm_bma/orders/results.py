"""What can be read off an average over structures: arcs, DAGs, networks, diagnostics. Shared by all order estimators."""

import inspect

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_number
from pgm_bma.foundation.warn import warn
from pgm_bma.orders import consensus, fixed_order, unobserved
from pgm_bma.orders.family_table import parent_sets
from pgm_bma.orders.fitting import MISSING
from pgm_bma.orders.structure_average import exact_log_joint, exact_predictor, mixed_log_joint, state_mixture

N_ANCESTOR_DAGS = 1000
N_DIAGNOSED_ROWS = 50
R_HAT = 1.1


class OrderResults:
    """Mixin over ``_average`` (a `StructureAverage`) and ``_variables`` (a `Schema`, the class last if there is one).

    Its parameters include `missing`, `max_completions` and `n_completions`; ``_seed`` is drawn in fit.
    """

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
    def edge_graph_(self):
        """networkx DiGraph of all arcs with a positive posterior (attribute `posterior`); it may be cyclic."""
        from pgm_bma.networks.graphs import posterior_graph

        return posterior_graph(self._variables.names, self._arc_dict(self._average.edges), **self._labels())

    @property
    def ancestor_posterior_(self):
        """DataFrame ancestor x descendant: share of 1000 sampled DAGs with a directed path from row to column."""
        mix = self._mixture()
        n_states = len(mix.weights[0])
        structures = np.arange(N_ANCESTOR_DAGS) % n_states
        dags = fixed_order.draw_dags(mix, structures, np.random.default_rng([self._seed, 1]))
        names = list(self._variables.names)
        orders = self._flat_orders()[structures]
        paths = pd.DataFrame(fixed_order.ancestors(dags, orders), index=names, columns=names)
        paths.index.name, paths.columns.name = "ancestor", "descendant"
        paths.attrs.update(self._labels(), n_dags=N_ANCESTOR_DAGS)
        return paths

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

    def consensus(self, threshold=None, *, false_arc=None, missed_arc=None):
        """One acyclic graph from the arc posteriors.

        Parameters
        ----------
        threshold : float, optional (default 0.5)
            Take arcs of at least this posterior, the most probable first, leaving out what would close a cycle.
        false_arc, missed_arc : float, optional
            Costs instead of a threshold: the acyclic graph of least expected loss (exact up to 16 variables, greedy beyond).

        Returns
        -------
        networkx.DiGraph with attribute `posterior`
        """
        from pgm_bma.networks.graphs import posterior_graph

        check_is_fitted(self)
        if threshold is not None and (false_arc is not None or missed_arc is not None):
            raise ValueError("consensus takes a threshold or the costs false_arc and missed_arc, not both")
        edges = self._average.edges
        if false_arc is None and missed_arc is None:
            threshold = 0.5 if threshold is None else threshold
            check_number("threshold", threshold, 0, 1, open_low=True)
            arcs = consensus.above_threshold(edges, threshold)
        else:
            costs = [1.0 if cost is None else cost for cost in (false_arc, missed_arc)]
            for name, cost in zip(("false_arc", "missed_arc"), costs):
                check_number(name, cost, 0)
            arcs = consensus.least_expected_loss(edges, *costs)
        chosen = np.zeros_like(edges)
        for arc in arcs:
            chosen[arc] = edges[arc]
        return posterior_graph(self._variables.names, self._arc_dict(chosen), **self._labels())

    # ------------------------------------------------------------------------------------------------ networks

    @property
    def best_log_score_(self):
        """Log posterior weight of the DAG in `model_`: log prior + log marginal likelihood."""
        return self._average.best_log_score

    @property
    def causal_graph_(self):
        """The DAG of `model_` as a pgmpy DAG, for pgmpy's metrics. Its arcs factorise the joint; they prove no causes."""
        from pgm_bma.networks.structures import dag

        return dag(self._variables.names, self._average.best_parents)

    def sample_dags(self, n_dags=1, random_state=None):
        """Draw DAGs from the posterior, as pgmpy networks with posterior-mean tables.

        The kept orders take turns; within an order, parents are drawn exactly. Without `random_state`, equal calls give
        equal networks.
        """
        check_is_fitted(self)
        check_number("n_dags", n_dags, 0, integer=True)
        mix = self._mixture()
        rng = np.random.default_rng([self._seed, 2]) if random_state is None else random_generator(random_state)
        n_states = len(mix.weights[0])
        structures = rng.permutation(n_states)[np.arange(n_dags) % n_states]
        dags = fixed_order.draw_dags(mix, structures, rng)
        return [self._network([tuple(int(p) for p in z if p >= 0) for z in parents]) for parents in dags]

    def _build_model(self):
        return self._network(self._average.best_parents)

    def _network(self, parents):
        from pgm_bma.networks.objects import bayesian_network

        training = self._average.training
        cpts = [fixed_order.family_cpt(training, child, z) for child, z in enumerate(parents)]
        return bayesian_network(self._variables.names, self._variables.states, parents, cpts)

    def _flat_orders(self):
        flat = self._average.states.reshape(-1, len(self._variables.names))
        return flat if self._average.weighting == "order" else np.argsort(flat, axis=1, kind="stable")

    def _arc_posteriors(self):
        names, edges = self._variables.names, self._average.edges
        return {(names[p], names[c]): edges[p, c] for c, z in enumerate(self._average.best_parents) for p in z}

    def _arc_dict(self, edges):
        names = self._variables.names
        return {(names[u], names[v]): edges[u, v] for u, v in zip(*np.nonzero(edges))}

    def _labels(self):
        return {"structure_weighting": self._average.weighting, "method": self._average.method}

    # ------------------------------------------------------------------------------------------------ joints of rows

    def _forget(self):
        """Drop what was built from an earlier fit."""
        for name in [name for name in self.__dict__ if name.startswith("_cached_")]:
            del self.__dict__[name]

    def _mixture(self):
        if "_cached_mixture" not in self.__dict__:
            self._cached_mixture = state_mixture(self._average)
        return self._cached_mixture

    def _joint_with_error(self, codes, class_index, n_classes):
        """Log joint (n_rows, n_classes) of rows over all variables, -1 missing, and its standard error."""
        if self.missing not in MISSING:
            raise ValueError(f"missing={self.missing!r} is not one of {', '.join(map(repr, MISSING))}")
        cardinalities = self._variables.cardinalities
        codes = codes.astype(np.int64)
        if self.missing == "impute":
            rng = np.random.default_rng([self._seed, 3])  # equal calls give equal draws
            codes = unobserved.impute_uniformly(codes, cardinalities, rng)
        return unobserved.log_joint(
            self._evaluator(class_index, n_classes),
            codes,
            cardinalities,
            class_index,
            n_classes,
            self.max_completions,
            self.n_completions,
            self._proposal,
            self._seed,
        )

    def _predictor(self):
        if "_cached_predictor" not in self.__dict__:
            self._cached_predictor = exact_predictor(self._average)
        return self._cached_predictor

    def _evaluator(self, class_index, n_classes):
        predictor = self._predictor()
        if predictor is not None:
            return lambda rows, *_: exact_log_joint(predictor, self._average, rows, class_index, n_classes)
        return lambda rows, *holes: mixed_log_joint(self._mixture(), rows, class_index, n_classes, *holes)

    def _get_ready(self):
        """Build what predictions need now, so that predicting leaves the estimator as it is."""
        if self._predictor() is None:
            self._mixture()

    def _proposal(self):
        """The network that completions are drawn from when there are too many to sum."""
        parents, training = self._average.best_parents, self._average.training
        return parents, [fixed_order.family_cpt(training, child, z) for child, z in enumerate(parents)]

    def _mark_missing(self, codes):
        """Missing cells become the extra state of the columns that have one, under missing="state"."""
        if self.missing != "state":
            return codes
        codes = codes.astype(np.int64)
        for column, states in enumerate(self._feature_states):
            if len(self._variables.states[column]) > len(states):
                codes[codes[:, column] < 0, column] = len(states)
        return codes

    # ------------------------------------------------------------------------------------------------ diagnostics

    @property
    def diagnostics_(self):
        """DataFrame of mean, R-hat and effective size per arc, and per class posterior of some training rows.

        Over the kept orders, chain by chain (arviz-stats). The log score of an order hides bad arcs, so it is not listed.
        Empty when nothing was sampled by a chain.
        """
        from arviz_stats.base import array_stats

        rows = []
        if self._average.method == "mcmc":
            for kind, labels, values in self._diagnosed():
                varies = values.std((0, 1)) > 0
                r_hat, size = np.full(values.shape[2], np.nan), np.full(values.shape[2], np.nan)
                spread = np.ptp(values.mean(1), axis=0)
                if varies.any() and values.shape[1] >= 4:
                    with np.errstate(divide="ignore", invalid="ignore"):  # a chain that never moves
                        r_hat[varies] = array_stats.rhat(values[:, :, varies], chain_axis=0, draw_axis=1)
                        size[varies] = array_stats.ess(values[:, :, varies], chain_axis=0, draw_axis=1)
                    r_hat[varies & np.isnan(r_hat) & (spread > 0)] = np.inf
                columns = zip(labels, values.mean((0, 1)), r_hat, size, spread)
                rows += [(kind, label, *numbers) for label, *numbers in columns]
        columns = ["kind", "what", "mean", "r_hat", "ess", "difference_of_chains"]
        return pd.DataFrame(rows, columns=columns)

    def _diagnosed(self):
        """(kind, labels, values (n_chains, n_kept, n_values))"""
        names, edges = self._variables.names, self._average.chain_edges
        pairs = [(u, v) for u in range(len(names)) for v in range(len(names)) if u != v]
        values = edges[:, :, [u for u, _ in pairs], [v for _, v in pairs]]
        yield "arc", [f"{names[u]} -> {names[v]}" for u, v in pairs], values

    def _warn_if_chains_disagree(self):
        if self._average.method != "mcmc" or len(self._average.states) < 2:
            return
        arcs = self.diagnostics_
        bad = arcs[(arcs.r_hat > R_HAT) & (arcs.difference_of_chains > 0.1)]
        if len(bad):
            worst = bad.loc[bad.difference_of_chains.idxmax()]
            warn(
                f"the chains disagree on {len(bad)} of {len(arcs)} posteriors (worst: {worst.what}, by "
                f"{worst.difference_of_chains:.2f}, R-hat {worst.r_hat:.2f}); raise burn_in, thin or n_orders"
            )

    def to_arviz(self):
        """The chains as arviz inference data: `order_log_score` and `arc` (parent x child) per chain and draw."""
        check_is_fitted(self)
        try:
            import arviz
        except ImportError:
            raise ImportError("to_arviz needs arviz: pip install arviz") from None
        names = [str(name) for name in self._variables.names]
        posterior = {"order_log_score": self._average.log_scores, "arc": self._average.chain_edges}
        more = {"coords": {"parent": names, "child": names}, "dims": {"arc": ["parent", "child"]}}
        if "posterior" in inspect.signature(arviz.from_dict).parameters:  # before arviz 1.0 groups are keywords
            return arviz.from_dict(posterior=posterior, **more)
        return arviz.from_dict({"posterior": posterior}, **more)
