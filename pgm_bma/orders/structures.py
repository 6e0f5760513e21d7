"""Structures of a posterior: paths, Markov blankets, parent sets, compelled arcs, networks, one graph and its comparison."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.validation import brief, check_choice, check_number, is_hashable
from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.orders import consensus, dags, network
from pgm_bma.orders.families.arcs import arc_positions
from pgm_bma.orders.families.family_table import members
from pgm_bma.orders.structure_average import WEIGHTINGS
from pgm_bma.orders.sums import fixed_order


class DagResults:
    """Structures of an estimator over ``_average``, ``_variables`` and ``_seed``; see `results.OrderResults`."""

    _average: Any
    _variables: Any
    _seed: int
    _mixture: Any
    _labels: Any
    causal_graph_: Any

    def _dags(self):
        """The `WeightedDags` that everything here but `sample_dags` reads, made once."""
        if "_cached_dags" not in self.__dict__:
            rng = np.random.default_rng([self._seed, 1])
            self._cached_dags = dags.weighted_dags(self._average, self._mixture, rng)
        return self._cached_dags

    def _position(self, parameter, name):
        check_is_fitted(self)
        names = list(self._variables.names)
        if not is_hashable(name) or name not in names:
            raise ValueError(f"{parameter}={brief(name)} is not a variable; the variables are {names}")
        return names.index(name)

    def _drawn_labels(self, sample, values):
        n_dags = None if sample.states is None else len(sample.weights)
        return {**self._labels(), "n_dags": n_dags, "monte_carlo_error": sample.error(values)}

    @property
    def ancestor_posterior_(self):
        """DataFrame ancestor x descendant: P(a directed path from row to column | data).

        Exact under method "exact" with up to 12 variables (10 under structure_weighting="dag"). Else the share of 1000 drawn DAGs:
        under "exact" each with its own order from the exact law; of chains each with its own order, as the chains go on from the
        kept ones; with missing values from the kept orders in turn (`sampler.n_orders` of every chain). `attrs` has `n_dags` (None
        where all were summed) and `monte_carlo_error`, the largest standard error of an entry.
        """
        if "_cached_ancestors" not in self.__dict__:
            self._cached_ancestors = self._ancestors()
        shares, labels = self._cached_ancestors
        names = list(self._variables.names)
        paths = pd.DataFrame(shares.copy(), index=names, columns=names)
        paths.index.name, paths.columns.name = "ancestor", "descendant"
        paths.attrs.update(labels)
        return paths

    @property
    def compelled_posterior_(self):
        """DataFrame parent x child: P(parent -> child is compelled | data), that is, in all DAGs equivalent to the one drawn.

        The rest of `edge_posterior_` are arcs that equivalent DAGs turn round: without experiments their direction stays open.
        Summed over all DAGs under method "exact" with up to 5 variables, else the share of 1000 drawn DAGs; `attrs` has `n_dags`
        and `monte_carlo_error`.
        """
        sample, names = self._dags(), list(self._variables.names)
        found = dags.compelled(sample.parents)
        arcs = pd.DataFrame(sample.share(found), index=names, columns=names)
        arcs.index.name, arcs.columns.name = "parent", "child"
        arcs.attrs.update(self._drawn_labels(sample, found))
        return arcs

    def _ancestors(self):
        """(P(path from row to column), what is said of their origin)."""
        average = self._average
        kind = WEIGHTINGS[average.weighting]
        if average.method == "exact" and len(average.table.cardinalities) <= kind.exact_ancestors:
            shares = kind.ancestors(kind.sum_all(average.table))
            return shares, {**self._labels(), "n_dags": None, "monte_carlo_error": 0.0}
        sample = self._dags()
        found = dags.paths(dags.arcs(sample.parents))
        return sample.share(found), self._drawn_labels(sample, found)

    def markov_blanket_posterior(self, node: Any) -> pd.Series:
        """Probability that each other variable is in the Markov blanket of `node`: a parent, a child or a child's other parent.

        Parameters
        ----------
        node : label
            A variable.

        Returns
        -------
        Series
            By variable. Summed over all DAGs under method "exact" with up to 5 variables, else from 1000 drawn DAGs; `attrs` has
            their number and the Monte Carlo error.
        """
        v, sample = self._position("node", node), self._dags()
        found = dags.blankets(dags.arcs(sample.parents), v)
        share = pd.Series(sample.share(found), index=list(self._variables.names), name=node).drop(node)
        share.attrs.update(self._drawn_labels(sample, np.delete(found, v, axis=1)))
        return share

    def sample_dags(self, n_dags: int = 1, random_state: Any = None) -> list:
        """Draw DAGs from the posterior, as pgmpy networks with posterior-mean tables.

        Under method "exact" the draws are independent, each with its own order from the exact law. Otherwise they come from the
        kept orders (`sampler.n_orders` of every chain); beyond their number, Gibbs chains go on, and with missing values they
        take turns. Within an order, parents are drawn exactly.

        Parameters
        ----------
        n_dags : int, default=1
            Number to draw.
        random_state : int, Generator, RandomState or None, default=None
            Seed; without it, equal calls give equal networks.

        Returns
        -------
        list of DiscreteBayesianNetwork
            The networks.
        """
        check_is_fitted(self)
        check_number("n_dags", n_dags, 0, integer=True)
        rng = np.random.default_rng([self._seed, 2]) if random_state is None else random_generator(random_state)
        drawn = dags.draw(self._average, self._mixture, n_dags, rng)
        return [self._network(dags.as_tuples(parents)) for parents in drawn]

    def _network(self, parents):
        return network.dag_network(self._variables, self._average.training, parents)

    def parent_set_posterior(self, node: Any) -> pd.DataFrame:
        """Probability of every set of parents of a variable.

        Exact under method "exact"; else averaged over the kept orders, exactly given each of them.

        Parameters
        ----------
        node : label
            A variable.

        Returns
        -------
        DataFrame
            Columns `parents` (tuple of names in the order of the columns) and `probability`, falling.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6, "c": list("0101") * 6})
        >>> OrderPosterior(equivalent_sample_size=1).fit(X).parent_set_posterior("b").round(2).head(2)
          parents  probability
        0      ()         0.49
        1    (a,)         0.41
        """
        v, average = self._position("node", node), self._average
        if average.method == "exact":
            kind = WEIGHTINGS[average.weighting]
            sets, shares = members(average.table, v), kind.parent_sets(kind.sum_all(average.table), v)
        else:
            mix = self._mixture()
            sets, shares = fixed_order.set_members(mix.table, v, mix.places[v]), mix.weights[v].mean(0)
        ranked = np.argsort(-shares, kind="stable")
        names = self._variables.names
        parents = [tuple(names[p] for p in sets[k] if p >= 0) for k in ranked]
        found = pd.DataFrame({"parents": pd.Series(parents, dtype=object), "probability": shares[ranked]})
        found.attrs.update(self._labels(), node=node)
        return found

    def cpdag(self, of: str = "best") -> Any:
        """The class of equivalent DAGs of one structure: arcs that all of them share are directed.

        Parameters
        ----------
        of : {"best", "consensus"}, default="best"
            The DAG of `model_`, or that of `consensus()`.

        Returns
        -------
        pgmpy PDAG
            The completed partially directed graph.
        """
        check_is_fitted(self)
        check_choice("of", of, ("best", "consensus"))
        if of == "best":
            return self.causal_graph_.to_pdag()
        return self.consensus().to_pdag()

    def consensus(
        self, threshold: float | str | None = None, *, false_arc: float | None = None, missed_arc: float | None = None
    ) -> Any:
        """One acyclic graph from the arc posteriors.

        Parameters
        ----------
        threshold : float or "data", optional
            Take arcs of at least this posterior (0.5 by default), the most probable first, leaving out what would close a cycle.
            "data": the acyclic graph of least expected structural Hamming distance, in which a missing, false or reversed arc
            counts one (exact up to 16 variables, greedy beyond). It also has edges that are probable while their direction is open.
        false_arc : float, optional
            Cost of a false arc, instead of a threshold: the acyclic graph of least expected loss (exact up to 16 variables, greedy
            beyond).
        missed_arc : float, optional
            Cost of a missed arc, likewise.

        Returns
        -------
        pgmpy DAG
            All variables, and arcs with the attribute `posterior`; pgmpy's metrics take it.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6, "c": list("0101") * 6})
        >>> posterior = OrderPosterior(equivalent_sample_size=1).fit(X)
        >>> [list(posterior.consensus(threshold).edges) for threshold in (0.6, "data")]
        [[], [('a', 'b')]]
        """
        check_is_fitted(self)
        if threshold is not None and (false_arc is not None or missed_arc is not None):
            raise ValueError("consensus takes a threshold or the costs false_arc and missed_arc, not both")
        edges = self._average.edges
        if isinstance(threshold, str):
            check_choice("threshold", threshold, ("data",))
            arcs = consensus.least_expected_distance(edges)
        elif false_arc is None and missed_arc is None:
            threshold = 0.5 if threshold is None else threshold
            check_number("threshold", threshold, 0, 1, open_low=True)
            arcs = consensus.above_threshold(edges, threshold)
        else:
            costs = [1.0 if cost is None else cost for cost in (false_arc, missed_arc)]
            for name, cost in zip(("false_arc", "missed_arc"), costs):
                check_number(name, cost, 0)
            arcs = consensus.least_expected_loss(edges, *costs)
        return network.consensus_dag(self._variables.names, edges, arcs, self._labels())

    def compare(self, true_graph: Any) -> pd.DataFrame:
        """Precision, recall and structural Hamming distance of `consensus(threshold)` against a known graph, along the threshold.

        Parameters
        ----------
        true_graph : pgmpy DAG or network, networkx DiGraph, or list of arcs (parent, child)
            The graph that the arcs are compared with.

        Returns
        -------
        DataFrame
            A row per `threshold`: `n_arcs`, `precision` (NaN without arcs) and `recall` of the arcs, `skeleton_precision` and
            `skeleton_recall` of the edges in either direction, and `shd`, in which a missing, false or reversed arc counts one.
            `attrs` has `average_precision`, `skeleton_average_precision`, `expected_shd` (of a DAG drawn from the posterior) and
            `consensus_shd` (of ``consensus("data")``). `plotting.plot_comparison` draws it.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6, "c": list("0101") * 6})
        >>> found = OrderPosterior(equivalent_sample_size=1).fit(X).compare([("a", "b")])
        >>> found[found.threshold.isin([0.01, 0.25, 0.75])].round(2)[["n_arcs", "precision", "recall", "shd"]]
            n_arcs  precision  recall  shd
        0        3       0.33     1.0    2
        24       1       1.00     1.0    0
        74       0        NaN     0.0    1
        """
        check_is_fitted(self)
        names, edges = list(self._variables.names), self._average.edges
        truth = np.zeros(edges.shape, dtype=bool)
        for parent, child in arc_positions("true_graph", getattr(true_graph, "edges", true_graph), names):
            truth[parent, child] = True
        if (truth & truth.T).any():
            u, v = np.argwhere(truth & truth.T)[0]
            raise ValueError(
                f"true_graph has arcs both ways between {names[u]!r} and {names[v]!r}; pass a directed graph without loops"
            )
        return _comparison(edges, truth)


def _comparison(edges, truth):
    """The table of `compare`; edges : (n, n) posteriors, truth : (n, n) bool, row parent."""
    found = consensus.along_threshold(edges)
    posterior = np.array([p for _, _, p in found])
    right = np.array([truth[u, v] for u, v, _ in found], dtype=bool)
    joined = right | np.array([truth[v, u] for u, v, _ in found], dtype=bool)
    n_true = int(truth.sum())
    table = pd.DataFrame({"threshold": np.round(np.arange(1, 100) / 100, 2)})
    table["n_arcs"] = counts = np.array([int((posterior >= t).sum()) for t in table["threshold"]])
    hits, edge_hits = (np.append(0, np.cumsum(some))[counts] for some in (right, joined))
    with np.errstate(invalid="ignore"):
        for start, some in (("", hits), ("skeleton_", edge_hits)):
            table[f"{start}precision"] = some / counts
            table[f"{start}recall"] = some / n_true if n_true else np.nan
    table["shd"] = n_true + counts - hits - edge_hits
    either, edge = truth | truth.T, np.minimum(edges + edges.T, 1.0)
    pairs, upper = ~np.eye(len(edges), dtype=bool), np.triu(np.ones(edges.shape, dtype=bool), 1)
    right_way = np.where(truth, edges, edges.T)
    best = consensus.least_expected_distance(edges)
    n_right, n_joined = sum(truth[u, v] for u, v in best), sum(either[u, v] for u, v in best)
    table.attrs.update(
        average_precision=_average_precision(truth[pairs], edges[pairs]),
        skeleton_average_precision=_average_precision(either[upper], edge[upper]),
        expected_shd=float(np.where(either, 1.0 - right_way, edge)[upper].sum()),
        consensus_shd=int(n_true + len(best) - n_right - n_joined),
    )
    return table


def _average_precision(truth, values):
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(truth, values)) if truth.any() else np.nan
