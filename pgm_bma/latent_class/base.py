"""What the latent-class clusterers share: parameters checked, the room called, and everything read off the fitted tables."""

from heapq import heappop, heappush

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.clusterer import ClustererBase, check_n_clusters
from pgm_bma.foundation.parallel import check_n_jobs
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice, check_number
from pgm_bma.foundation.warn import warn
from pgm_bma.latent_class.cluster_number import scan_clusters, search_clusters
from pgm_bma.latent_class.loop import (
    COMBINATIONS,
    PriorSettings,
    cluster_dependence,
    fit_latent_class,
    log_joint,
    split_tables,
)
from pgm_bma.networks.cluster_network import cluster_node


def resolve_init(init, averaging):
    """ "auto" is what was measured to serve each method best: EM solutions for the variational twin, else random tables."""
    if init == "auto":
        return "em" if averaging == "variational" else "random"
    return init


def resolve_combination(combine_starts, averaging):
    """ "auto" is the best start for EM, the paper's likelihood average for EMA, weights by evidence for its twin."""
    if combine_starts == "auto":
        return {None: "best", "linear": "likelihood", "variational": "evidence"}[averaging]
    return combine_starts


def prior_settings(alpha, equivalent_sample_size, arc_prior, allow_zero):
    """PriorSettings from the public parameters: `alpha` a number or a dict by role, or BDeu's sample size."""
    if equivalent_sample_size is not None:
        check_number("equivalent_sample_size", equivalent_sample_size, 0.0, open_low=True)
        if alpha != 1.0:
            raise ValueError(
                f"alpha={alpha!r} and equivalent_sample_size={equivalent_sample_size!r} exclude each other"
            )
        return PriorSettings(arc_prior=arc_prior, equivalent_sample_size=float(equivalent_sample_size))
    roles = ("cluster", "dependent", "independent")
    if isinstance(alpha, dict):
        for role, value in alpha.items():
            check_choice("a key of alpha", role, roles)
            check_number(f"alpha[{role!r}]", value, 0.0, open_low=True)
        return PriorSettings(*(float(alpha.get(role, 1.0)) for role in roles), arc_prior=arc_prior)
    check_number("alpha", alpha, 0.0, open_low=not allow_zero)
    return PriorSettings(float(alpha), float(alpha), float(alpha), arc_prior=arc_prior)


def init_cluster(network, columns):
    """The node of a naive Bayes network that is the cluster."""
    cluster = cluster_node(network, columns)
    for parent, child in network.edges():
        if parent != cluster:
            raise ValueError(f"the arc {parent!r} -> {child!r} is not naive Bayes below {cluster!r}; drop it")
    return cluster


def _cheapest_subsets(costs, k):
    """The k subsets of positions with the smallest sums of costs, as (sum, positions), in rising order."""
    order = np.argsort(costs, kind="stable")
    costs = costs[order]
    found, heap = [(0.0, [])], []
    if len(costs):
        heappush(heap, (costs[0], (0,)))
    while heap and len(found) < k and np.isfinite(heap[0][0]):
        total, chosen = heappop(heap)
        found.append((total, order[list(chosen)]))
        last = chosen[-1]
        if last + 1 < len(costs):
            heappush(heap, (total + costs[last + 1], (*chosen, last + 1)))
            heappush(heap, (total - costs[last] + costs[last + 1], (*chosen[:-1], last + 1)))
    return found[:k]


class LatentClassBase(ClustererBase):
    """What the two clusterers share; they differ in priors and in the step that turns counts into tables."""

    _averaging = None

    def _fit(self, folded):
        self._check_parameters()
        options = {
            "weights": folded.weights,
            "averaging": self._averaging,
            "priors": self._priors(folded.schema.names),
            "n_init": self.n_init,
            "init": resolve_init(self.init, self._averaging)
            if isinstance(self.init, str)
            else self._init_tables(folded.schema),
            "combine_starts": resolve_combination(self.combine_starts, self._averaging),
            "collapse": self.collapse,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
        }
        rng = random_generator(self.random_state)
        self.__dict__.pop("n_clusters_path_", None)
        with _progress(self.verbose) as options["progress"]:
            self._result = self._find(folded.codes, folded.schema.cardinalities, rng, options)
        self._warn(len(folded.codes))
        fit = self._result
        self.n_clusters_ = len(fit.theta_c)
        self.log_likelihood_ = fit.log_likelihood
        self.evidence_bound_ = fit.evidence_bound
        self.cheeseman_stutz_ = fit.cheeseman_stutz
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self.score_path_ = fit.score_path

    def _find(self, codes, cardinalities, rng, options):
        if isinstance(self.n_clusters, (int, np.integer)):
            return fit_latent_class(codes, cardinalities, int(self.n_clusters), rng=rng, **options)
        if isinstance(self.n_clusters, str):
            found = search_clusters(codes, cardinalities, rng=rng, **options)
        else:
            found = scan_clusters(codes, cardinalities, self.n_clusters, rng=rng, **options)
        self.n_clusters_path_ = pd.DataFrame(
            {
                "n_clusters": [step.n_clusters for step in found.path],
                "score": [step.score for step in found.path],
                "log_likelihood": [step.log_likelihood for step in found.path],
                "n_effective": [step.n_effective for step in found.path],
                "move": [step.move for step in found.path],
            }
        )
        return found.fit

    # -------------------------------------------------------------------------------------------- results

    @property
    def arc_posterior_(self):
        """P(cluster -> column) at the expected counts: a ranking of relevance, too sure of itself as a probability."""
        return pd.Series(self._result.arc_posterior, index=list(self.schema_.names), name="arc_posterior")

    @property
    def cluster_dependence_(self):
        """I_P of every column in nats (EMA eq. 16): how far the clusters pull the column apart; 0 = independent."""
        fit = self._result
        values = cluster_dependence(fit.theta_c, fit.theta, fit.state_start)
        return pd.Series(values, index=list(self.schema_.names), name="cluster_dependence")

    @property
    def starts_(self):
        """One line per start: score, iterations, converged, collapsed, weight, log-likelihood, bound, I_P of every column."""
        fit, starts = self._result, self._result.starts
        score = starts.evidence_bound if self._averaging == "variational" else starts.log_likelihood
        frame = pd.DataFrame(
            {
                "score": score,
                "iterations": starts.n_iter,
                "converged": starts.converged,
                "collapsed": starts.collapsed,
                "weight": fit.weights,
                "log_likelihood": starts.log_likelihood,
                "evidence_bound": starts.evidence_bound,
            }
        )
        dependence = [cluster_dependence(c, t, fit.state_start) for c, t in zip(starts.theta_c, starts.theta)]
        columns = [f"I_P[{name}]" for name in self.schema_.names]
        return pd.concat([frame, pd.DataFrame(np.array(dependence), columns=columns)], axis=1)

    def start_model(self, start):
        """The pgmpy network that start number `start` ended in, its clusters in its own order."""
        starts = self._result.starts
        check_number("start", start, 0, len(starts.theta) - 1, integer=True)
        tables = split_tables(starts.theta[start], self._result.state_start)
        return self._network(starts.theta_c[start], tables)

    @property
    def feature_importances_(self):
        """Relevance of every column, for scikit-learn's SelectFromModel."""
        return self._known_arc_posterior()

    def get_support(self, threshold=0.5, indices=False):
        """Mask (or positions) of the columns whose arc posterior is at least `threshold`."""
        check_number("threshold", threshold, 0.0, 1.0)
        mask = self._known_arc_posterior() >= threshold
        return np.flatnonzero(mask) if indices else mask

    def top_structures(self, k=10):
        """The `k` most probable selective structures at the expected counts.

        Returns a DataFrame with columns `probability`, `dependent` (tuple of the columns that depend on the cluster) and
        `n_dependent`. Columns are independent of each other here, so a structure's probability is a product.
        """
        check_number("k", k, 1, integer=True)
        posterior = self._known_arc_posterior()
        with np.errstate(divide="ignore"):
            log_odds = np.abs(np.log(posterior) - np.log1p(-posterior))
        likely = posterior >= 0.5
        log_best = np.log(np.maximum(posterior, 1 - posterior)).sum()
        names = np.array(self.schema_.names, dtype=object)
        rows = []
        for log_loss, flipped in _cheapest_subsets(log_odds, k):
            mask = likely.copy()
            mask[flipped] = ~mask[flipped]
            rows.append((np.exp(log_best - log_loss), tuple(names[mask]), int(mask.sum())))
        return pd.DataFrame(rows, columns=["probability", "dependent", "n_dependent"])

    def _known_arc_posterior(self):
        posterior = self._result.arc_posterior
        if np.isnan(posterior).any():
            raise ValueError("alpha=0 leaves the arcs without a posterior; pass alpha > 0 to rank the columns")
        return posterior

    # ---------------------------------------------------------------------------------------------- hooks

    def _log_joint(self, codes):
        fit = self._result
        return log_joint(np.asfortranarray(codes), fit.theta_c, fit.theta, fit.state_start)

    def _evidence(self, codes):
        fit = self._result
        rows = [fit.theta_c]
        for value, first in zip(codes[0], fit.state_start):
            rows.append(fit.theta[first + value] if value >= 0 else np.ones(self.n_clusters_))
        with np.errstate(divide="ignore"):
            return np.log(np.array(rows))

    def _profiles(self):
        return self._result.theta_c, self._result.tables

    def _n_parameters(self):
        return self.n_clusters_ - 1 + self.n_clusters_ * int((self.schema_.cardinalities - 1).sum())

    def _sample_codes(self, n_samples, rng):
        fit = self._result
        clusters = rng.choice(self.n_clusters_, size=n_samples, p=fit.theta_c / fit.theta_c.sum()).astype(np.int64)
        codes = np.empty((n_samples, len(self.schema_.names)), dtype=np.int64, order="F")
        for i, table in enumerate(fit.tables):
            steps = np.cumsum(table, axis=1)[clusters, :-1]
            codes[:, i] = (rng.random(n_samples)[:, None] >= steps).sum(axis=1)
        return codes, clusters

    def _build_model(self):
        return self._network(self._result.theta_c, self._result.tables)

    def _network(self, theta_c, tables):
        from pgm_bma.networks.augmented import augmented_network

        return augmented_network(
            self.cluster_name,
            range(len(theta_c)),
            theta_c,
            self.schema_.names,
            self.schema_.states,
            tables,
            latent=True,
        )

    def _arc_posteriors(self):
        return {(self.cluster_name, column): float(p) for column, p in self.arc_posterior_.items()}

    # ------------------------------------------------------------------------------------- checks and reading

    def _check_parameters(self):
        if isinstance(self.n_clusters, str):
            check_choice("n_clusters", self.n_clusters, ("auto",))
        else:
            check_n_clusters(self.n_clusters)
        if self.n_init != "until-replicated":
            check_number("n_init", self.n_init, 1, integer=True)
        check_choice("combine_starts", self.combine_starts, ("auto", *COMBINATIONS))
        check_choice("collapse", self.collapse, ("stop", "ignore"))
        check_number("max_iter", self.max_iter, 0, integer=True)
        check_number("tol", self.tol, 0.0)
        check_n_jobs(self.n_jobs)
        if isinstance(self.init, str):
            check_choice("init", self.init, ("auto", "random", "em"))
        elif not hasattr(self.init, "cpds"):
            raise ValueError(f"init={self.init!r} must be 'random', 'em' or a pgmpy network with its CPDs")
        elif not isinstance(self.n_clusters, (int, np.integer)):
            raise ValueError(
                f"init= a network fixes the number of clusters, but n_clusters={self.n_clusters!r}; pass a number"
            )

    def _feature_state_names(self, X, forbidden_name):
        """States of the columns: declared ones, else those of the `init` network, in its order."""
        declared = super()._feature_state_names(X, forbidden_name)
        if isinstance(self.init, str) or not hasattr(self.init, "cpds"):
            return declared
        from pgm_bma.foundation.table import read_columns

        names = set(read_columns(X)[0])
        known = {cpd.variable: list(cpd.state_names[cpd.variable]) for cpd in self.init.cpds if cpd.variable in names}
        return {**known, **(declared or {})}

    def _init_tables(self, schema):
        """(theta_c, tables) of the `init` network, columns and states in the order of the schema."""
        from pgm_bma.networks.cpds import cpt_array

        cluster = init_cluster(self.init, schema.names)
        cpds = {cpd.variable: cpd for cpd in self.init.cpds}
        lacking = [name for name in (cluster, *schema.names) if name not in cpds]
        if lacking:
            raise ValueError(f"init has no conditional probabilities for {lacking[0]!r}; it needs every column of X")
        states = {cluster: list(cpds[cluster].state_names[cluster]), **dict(zip(schema.names, schema.states))}
        if len(states[cluster]) != self.n_clusters:
            raise ValueError(
                f"init has {len(states[cluster])} states of {cluster!r}, but n_clusters={self.n_clusters}; make them equal"
            )
        theta_c = cpt_array(cpds[cluster], [], states, "init")[0]
        return theta_c, [cpt_array(cpds[name], [cluster], states, "init") for name in schema.names]

    def _warn(self, n_distinct):
        largest = self.n_clusters if isinstance(self.n_clusters, (int, np.integer)) else 0
        if largest > n_distinct:
            warn(f"n_clusters={largest} exceeds the {n_distinct} distinct rows; some clusters must be empty or equal")
        fit = self._result
        if fit.all_collapsed:
            warn(
                f"all {len(fit.weights)} starts collapsed: their clusters became equal, the data show this method no "
                "clusters, and the one-cluster model is returned (n_clusters_ = 1). Try init='em', more rows, other "
                "columns, or collapse='ignore' to see the tables as they are"
            )
        elif not fit.converged and self.max_iter > 0 and self.tol > 0:
            warn(
                f"the best start did not converge in max_iter={self.max_iter} updates; raise max_iter or tol",
                ConvergenceWarning,
            )


class _progress:
    """A progress bar over starts when `verbose`, else None."""

    def __init__(self, verbose):
        self.verbose, self.bar = verbose, None

    def __enter__(self):
        if not self.verbose:
            return None
        from tqdm import tqdm

        self.bar = tqdm(unit=" starts", leave=False)
        return self.bar.update

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()
