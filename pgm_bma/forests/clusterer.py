"""Clusterer averaged over all forest-augmented naive Bayes structures."""

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.augmented.sample import sample_codes
from pgm_bma.forests.average import best_tree, sample_trees
from pgm_bma.forests.clustering import INITS, Settings, fit_forest_clusters
from pgm_bma.forests.results import ForestResults
from pgm_bma.foundation.clusterer import ClustererBase
from pgm_bma.foundation.counts import state_offsets
from pgm_bma.foundation.parallel import check_n_jobs
from pgm_bma.foundation.priors import check_prior
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice, check_number
from pgm_bma.foundation.warn import warn

MAX_SAMPLED = 100  # structures behind one call of `sample`


class ForestAveragedClusterer(ForestResults, ClustererBase):
    """Clusters averaged over every structure in which each column depends on the cluster and on at most one other column.

    A variational loop: given the clusters, the structures and their tables have their exact posterior (one determinant); given
    these, the clusters follow from expected logarithms. Its evidence bound never falls, weighs the starts and chooses the number
    of clusters. New rows are judged like `ForestAveragedClassifier` does, with the soft counts taken as observed.

    Parameters
    ----------
    n_clusters : int, or several to choose from by the bound, such as range(1, 7)
    n_init : starts
    init : "structural" (structural EM from the best structure without clusters), "em" (EM), "both" in turns, or "random"
    combine_starts : "evidence" (aligned starts averaged with weights exp(bound)) or "best"
    structure_prior : "arc_cost" (every arc between columns costs log n), "friedman_koller" or "uniform"
    alpha, equivalent_sample_size : pseudo-count per cell (K2 when 1), or BDeu's total
    max_iter, tol : updates at most; relative gain of the bound that counts as none
    max_completions, n_forests : how rows with missing cells are predicted, see `ForestAveragedClassifier`
    random_state, n_jobs, verbose, state_names, cluster_name, handle_unknown : see `LatentClassClusterer`

    Attributes
    ----------
    labels_ : (n_samples,) int64
    n_clusters_ : int, clusters with at least half an expected row
    edge_posterior_ : DataFrame parent x child, P(parent -> child) between columns at the expected counts: a ranking
    class_arc_posterior_ : Series, P(cluster -> column); 1, since every column depends on the cluster
    edge_graph_ : networkx DiGraph with `posterior`
    evidence_bound_ : of the best start, nats
    score_path_ : (n_iter_ + 1,) array, the bound at the best start and after each of its updates
    log_likelihood_, n_iter_, converged_ : total log p(X); updates of the best start, and whether it converged
    n_clusters_path_ : DataFrame of the numbers tried, when there was a choice
    model_ : the most probable structure with posterior-mean tables, the cluster latent (`model_is_exact_` is False)
    causal_graph_ : its structure as a pgmpy DAG
    starts_ : DataFrame, one line per start
    feature_names_in_, n_features_in_, n_samples_, schema_ : see `LatentClassClusterer`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import ForestAveragedClusterer
    >>> X = pd.DataFrame({"a": list("xxxxyyyy") * 9, "b": list("uuuvvvvv") * 9})
    >>> X = X.assign(c=list("ppqqppqq") * 9, d=list("mmnnmmnn") * 9)
    >>> clusterer = ForestAveragedClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    >>> bool(clusterer.edge_posterior_.loc["c", "d"] + clusterer.edge_posterior_.loc["d", "c"] > 0.99)
    True
    """

    def __init__(
        self,
        n_clusters=2,
        *,
        n_init=10,
        init="both",
        combine_starts="evidence",
        structure_prior="arc_cost",
        alpha=1.0,
        equivalent_sample_size=None,
        max_iter=500,
        tol=1e-8,
        max_completions=64,
        n_forests=200,
        random_state=None,
        n_jobs=None,
        verbose=0,
        state_names=None,
        cluster_name="cluster",
        handle_unknown="missing",
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.init = init
        self.combine_starts = combine_starts
        self.structure_prior = structure_prior
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.max_iter = max_iter
        self.tol = tol
        self.max_completions = max_completions
        self.n_forests = n_forests
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown

    def _fit(self, folded):
        candidates = self._check_parameters()
        self._check_sampling(folded.schema, max(candidates))
        settings = Settings(self.alpha, self.equivalent_sample_size, self.structure_prior, self.max_iter, self.tol)
        rng = random_generator(self.random_state)
        sequence = rng.spawn(len(candidates))
        found = [self._fit_number(folded, k, child, settings) for k, child in zip(candidates, sequence)]
        chosen = found[int(np.argmax([result.bound for result in found]))]
        self.__dict__.pop("n_clusters_path_", None)
        if not np.isscalar(self.n_clusters):
            self.n_clusters_path_ = pd.DataFrame(
                {
                    "n_clusters": candidates,
                    "score": [result.bound for result in found],
                    "n_effective": [result.responsibilities.shape[1] for result in found],
                }
            )
        run = chosen.runs[chosen.best]
        self._result = chosen.average
        self.n_clusters_ = chosen.responsibilities.shape[1]
        self.evidence_bound_ = chosen.bound
        self.score_path_ = run.bounds
        self.n_iter_ = len(run.bounds) - 1
        self.converged_ = bool(run.converged)
        self.starts_ = pd.DataFrame(
            {
                "score": [r.bounds[-1] for r in chosen.runs],
                "iterations": [len(r.bounds) - 1 for r in chosen.runs],
                "converged": [bool(r.converged) for r in chosen.runs],
                "weight": chosen.weights,
                "pruned_loss": [r.pruned_loss for r in chosen.runs],
            }
        )
        self._read_result(rng)
        self.log_likelihood_ = float(folded.weights @ logsumexp(self._log_joint(folded.codes), axis=1))
        if not self.converged_:
            warn(
                f"the best start did not converge in max_iter={self.max_iter} updates; raise max_iter or tol",
                ConvergenceWarning,
            )

    def _fit_number(self, folded, n_clusters, rng, settings):
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", verbose=10 * int(bool(self.verbose)))

        def run_all(function, starts):
            return parallel(delayed(function)(start) for start in starts)

        return fit_forest_clusters(
            folded.codes,
            folded.schema.cardinalities,
            folded.weights,
            n_clusters,
            rng,
            settings,
            self.n_init,
            self.init,
            self.combine_starts,
            run_all,
        )

    def _check_parameters(self):
        check_prior(self.alpha, self.equivalent_sample_size)
        check_number("n_init", self.n_init, 1, integer=True)
        check_choice("init", self.init, INITS)
        check_choice("combine_starts", self.combine_starts, ("evidence", "best"))
        check_number("max_iter", self.max_iter, 1, integer=True)
        check_number("tol", self.tol, 0.0)
        check_n_jobs(self.n_jobs)
        several = hasattr(self.n_clusters, "__iter__") and not isinstance(self.n_clusters, str)
        candidates = list(self.n_clusters) if several else [self.n_clusters]
        if not candidates:
            raise ValueError(f"n_clusters={self.n_clusters!r} names no number; pass an integer or a range")
        for value in candidates:
            check_number("n_clusters", value, 1, integer=True)
        return [int(k) for k in candidates]

    def _class_node(self):
        return self.cluster_name, tuple(range(self.n_clusters_)), True

    @property
    def causal_graph_(self):
        """The most probable structure as a pgmpy DAG, the cluster latent."""
        from pgm_bma.networks.objects import structure_of

        return structure_of(self.model_)

    def _profiles(self):
        splits = np.split(np.exp(self._result.log_singles), state_offsets(self.schema_.cardinalities)[1:-1], axis=1)
        return self._result.class_probability, splits

    def _n_parameters(self):
        parents, _ = best_tree(self._result)
        lines = [self.schema_.cardinalities[p] if p >= 0 else 1 for p in parents]
        return self.n_clusters_ - 1 + self.n_clusters_ * int(np.dot(lines, self.schema_.cardinalities - 1))

    def _sample_codes(self, n_samples, rng):
        """Each row from a structure drawn from the posterior; rows share at most `MAX_SAMPLED` structures."""
        sizes = rng.multinomial(n_samples, np.full(MAX_SAMPLED, 1.0 / MAX_SAMPLED))
        parts = [
            sample_codes(parents, self.schema_.cardinalities, parameters, size, rng)
            for size, (parents, _, parameters) in zip(sizes, sample_trees(self._result, MAX_SAMPLED, rng))
            if size
        ]
        order = rng.permutation(n_samples)
        codes = np.concatenate([part[0] for part in parts]) if parts else np.empty((0, len(self.schema_.names)), int)
        labels = np.concatenate([part[1] for part in parts]) if parts else np.empty(0, dtype=np.int64)
        return codes[order], labels[order]
