"""Clusterers that fit a latent-class model: EM, and EMA, which averages over all selective naive Bayes structures."""

import numpy as np

from pgm_bma.foundation.priors import arc_prior_array
from pgm_bma.foundation.validation import check_choice
from pgm_bma.latent_class.base import LatentClassBase, prior_settings
from pgm_bma.latent_class.loop import MODES


class LatentClassClusterer(LatentClassBase):
    """Latent-class model (naive Bayes with a hidden class) by EM with Dirichlet priors.

    Parameters
    ----------
    n_clusters : int, range or "auto", default=2
        A number; several to choose from by the Cheeseman-Stutz score; or a search that splits and merges clusters.
    alpha : float, default=1.0
        Pseudo-count of every cell; 0 is maximum likelihood.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    n_init : int or "until-replicated", default=30
        Starts, run in compiled batches; or restart until the best score has been found twice (at most 200 starts).
    combine_starts : {"best", "uniform", "likelihood", "evidence"}, default="best"
        Return the best start, or average the aligned starts with these weights.
    init : {"random", "em"} or pgmpy network, default="random"
        Dirichlet(1) tables; a network is start 0, matched by node names ("em" is the same as "random" here).
    collapse : {"stop", "ignore"}, default="stop"
        What to do with starts whose clusters became equal: leave them out, or take them as they are.
    max_iter, tol : int, default=1000; float, default=1e-6
        Updates at most; the largest change of a parameter that counts as converged.
    random_state : int, Generator, RandomState or None
    n_jobs : int, default=1
        Threads over the starts, -1 for all; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.
    state_names : dict column -> states, optional
    cluster_name : str, default="cluster"
    handle_unknown : {"error", "missing"}, default="error"

    Attributes
    ----------
    model_ : DiscreteBayesianNetwork with the cluster as its latent root
    labels_ : (n_samples,) int64
    n_clusters_ : int
        Clusters of the model that is returned.
    arc_posterior_, cluster_dependence_ : Series by column
        Relevance of the columns: P(arc) at the expected counts, and I_P in nats.
    log_likelihood_, cheeseman_stutz_, evidence_bound_ : float
        Total log p(X) of the returned tables; two approximations of the log evidence, higher is better.
    score_path_ : (n_iter_ + 1,) array
        Log posterior, log-likelihood + sum of alpha x log theta, at the best start and after each of its updates.
    n_iter_, converged_ : of the best start
    starts_ : DataFrame, one line per start; `start_model(i)` is its network
    n_clusters_path_ : DataFrame of the numbers tried, when there was a choice
    feature_importances_ : (n_features_in_,) array, `arc_posterior_` for scikit-learn's SelectFromModel
    feature_names_in_, n_features_in_, n_samples_ : columns and rows seen in fit
    schema_ : names and states of the columns

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import LatentClassClusterer
    >>> X = pd.DataFrame({"a": list("xxxyyy"), "b": list("uuuvvv"), "c": list("pqpqpq")})
    >>> clusterer = LatentClassClusterer(n_clusters=2, random_state=0).fit(X)
    >>> len(set(clusterer.labels_[:3])), len(set(clusterer.labels_))
    (1, 2)
    """

    def __init__(
        self,
        n_clusters=2,
        *,
        alpha=1.0,
        equivalent_sample_size=None,
        n_init=30,
        combine_starts="best",
        init="random",
        collapse="stop",
        max_iter=1000,
        tol=1e-6,
        random_state=None,
        n_jobs=None,
        verbose=0,
        state_names=None,
        cluster_name="cluster",
        handle_unknown="missing",
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.n_init = n_init
        self.combine_starts = combine_starts
        self.init = init
        self.collapse = collapse
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown

    def _priors(self, names):
        settings = prior_settings(self.alpha, self.equivalent_sample_size, 0.5, allow_zero=True)
        if settings.cluster == 0:
            if not isinstance(self.n_clusters, (int, np.integer)):
                raise ValueError("alpha=0 leaves no evidence to choose the number of clusters by; pass alpha > 0")
            if self.combine_starts == "evidence":
                raise ValueError("combine_starts='evidence' needs a prior; pass alpha > 0")
        return settings


class EMAClusterer(LatentClassBase):
    """Clusters by expectation model averaging: one naive Bayes that averages over all 2^n selective structures.

    Every column may depend on the cluster or not; the fitted tables average over both, so that columns that say nothing
    about the clusters fall silent, and `arc_posterior_` ranks the columns by relevance. An iteration costs what EM's costs.

    Parameters
    ----------
    n_clusters : int, range or "auto", default=2
        A number; several to choose from by the averaged Cheeseman-Stutz score (the evidence bound, if variational); or a
        search that splits and merges clusters.
    averaging : {"variational", "linear"}, default="variational"
        "linear" is the paper's EMA. "variational" is its twin: the same arc posteriors and the same final mixture, but the
        expectation step uses expected logs, and an evidence bound never falls. The twin is the default because it finds
        better partitions (see docs/ema.md for the tables that decided).
    alpha : float or dict, default=1.0
        Pseudo-count of every cell; a dict may give `cluster`, `dependent` and `independent` their own.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    arc_prior : float or dict by column, default=0.5
        Prior probability that a column depends on the cluster.
    n_init : int or "until-replicated", default=30
        Starts, run in compiled batches; or restart until the best score has been found twice (at most 200 starts).
    combine_starts : {"auto", "likelihood", "evidence", "best", "uniform"}, default="auto"
        Weights of the average over the aligned starts: exp(log-likelihood), the paper's choice and "auto" for "linear";
        exp(evidence bound), "auto" for "variational"; or the best start alone; or all alike. Collapsed starts have none.
    init : {"auto", "random", "em"} or pgmpy network, default="auto"
        Dirichlet(1) tables ("auto" for "linear"); the EM solutions that they lead to, which collapse far less often ("auto"
        for "variational"); or a network, matched by node names, as start 0 with random starts after it.
    collapse : {"stop", "ignore"}, default="stop"
        A start in which no column's counts speak for its arc (every arc posterior below 1/2 with an even prior) has lost its
        clusters: stop it and leave it out; or iterate to `tol` and take the tables as they are (the paper).
    max_iter, tol : int, default=1000; float, default=1e-6
        Updates at most; the largest change of a parameter that counts as converged.
    random_state, n_jobs, verbose, state_names, cluster_name, handle_unknown : see `LatentClassClusterer`

    Attributes
    ----------
    arc_posterior_ : Series by column
        P(cluster -> column) at the expected counts: a relevance ranking. As a probability it is overconfident, because
        expected counts are taken for observed ones.
    cluster_dependence_ : Series by column
        I_P (eq. 16), nats.
    score_path_ : (n_iter_ + 1,) array
        Log-likelihood ("linear", which climbs nothing) or evidence bound ("variational").
    model_, labels_, n_clusters_, log_likelihood_, evidence_bound_, cheeseman_stutz_ : see `LatentClassClusterer`
    n_iter_, converged_, starts_, n_clusters_path_, feature_importances_ : see `LatentClassClusterer`
    feature_names_in_, n_features_in_, n_samples_, schema_ : see `LatentClassClusterer`

    References
    ----------
    Santafe, Lozano, Larranaga: Bayesian model averaging of naive Bayes for clustering. IEEE Trans. SMC-B 36 (2006).

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import EMAClusterer
    >>> X = pd.DataFrame({"a": list("xxxxyyyy") * 5, "b": list("uuuvvvvv") * 5, "noise": list("pqpqpqpq") * 5})
    >>> clusterer = EMAClusterer(n_clusters=2, random_state=0).fit(X)
    >>> clusterer.arc_posterior_.round(2).to_dict()
    {'a': 1.0, 'b': 1.0, 'noise': 0.42}
    >>> clusterer.get_support().tolist()
    [True, True, False]
    """

    def __init__(
        self,
        n_clusters=2,
        *,
        averaging="variational",
        alpha=1.0,
        equivalent_sample_size=None,
        arc_prior=0.5,
        n_init=30,
        combine_starts="auto",
        init="auto",
        collapse="stop",
        max_iter=1000,
        tol=1e-6,
        random_state=None,
        n_jobs=None,
        verbose=0,
        state_names=None,
        cluster_name="cluster",
        handle_unknown="missing",
    ):
        self.n_clusters = n_clusters
        self.averaging = averaging
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.arc_prior = arc_prior
        self.n_init = n_init
        self.combine_starts = combine_starts
        self.init = init
        self.collapse = collapse
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown

    @property
    def _averaging(self):
        check_choice("averaging", self.averaging, [mode for mode in MODES if mode])
        return self.averaging

    def _priors(self, names):
        arc_prior = arc_prior_array(self.arc_prior, names)
        return prior_settings(self.alpha, self.equivalent_sample_size, arc_prior, allow_zero=False)
