"""Clusterers that fit a latent-class model: EM, and EMA, which averages over all selective naive Bayes structures."""

from typing import Any

from pgm_bma.foundation.faces.docstrings import NUMBERS, fill
from pgm_bma.foundation.numbers.starts import STARTS_DOC
from pgm_bma.latent_class.base import PAPER_EMA, STARTS_PARAMETER, LatentClassBase, Starts

# parts of both docstrings
PARAMETERS_DOC = f"""n_init : int or "until-replicated", default=30
        Starts, run in compiled batches; or restart until the best score has been found twice (at most 200 starts). Where all of
        them would take more than a minute or so, fewer are run, 8 at least, with a warning (all if `starts` has ``n_final=None``).
    {STARTS_PARAMETER}"""
SHARED_DOC = f"""max_iter : int, default=1000
        Updates of a start at most.
    tol : float, default=1e-6
        The largest change of a parameter that counts as converged.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads over the starts, as joblib reads it; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar for fits that take longer than two seconds.
    state_names : dict, optional
        States of the columns, by column; may hold states never seen.
    cluster_name : str, default="cluster"
        Name of the cluster variable in `model_`.
    handle_unknown : {{"missing", "ignore", "error"}}, default="missing"
        Treatment of a value that `fit` has not seen: as missing with a warning, as missing, or as an error.
    weight_type : {{"repetition", "sampling"}}, default="repetition"
        What `sample_weight` means: how often a row was seen; or how many others it stands for, only the proportions of which
        count (they are scaled to the number of rows, standard errors are those of the sandwich).
    {NUMBERS}"""
ATTRIBUTES_DOC = """model_ : DiscreteBayesianNetwork
        The fitted network, the cluster its latent root; of a table with numeric columns only the columns of states.
    model_is_exact_ : bool
        Whether `model_` is the fitted distribution itself. False with numeric columns: pgmpy has no network with exact queries
        in which a number depends on a state, so that `densities_` holds that part.
    numeric_columns_ : list
        Columns that were taken as numbers.
    densities_ : DataFrame
        Mean and standard deviation of every numeric column in every cluster: column, cluster, mean, sd.
    hints_ : list of str
        Sentences about numeric columns that a normal density does not suit: skewed ones, and those that repeat one value.
    labels_ : ndarray (n_samples,) of int64
        Most probable cluster of every row.
    n_clusters_ : int
        Clusters of the model that is returned.
    arc_posterior_ : Series
        P(cluster -> column) at the expected counts, by column: a relevance ranking. As a probability it is overconfident,
        because expected counts are taken for observed ones.
    cluster_dependence_ : Series
        I_P by column (EMA eq. 16), in nats; numbers are compared as Gaussians.
    feature_importances_ : ndarray (n_features_in_,)
        `arc_posterior_` for scikit-learn's SelectFromModel.
    log_likelihood_ : float
        Total log p(X) of the returned tables.
    cheeseman_stutz_ : float
        Approximation of the log evidence, nats; higher is better.
    evidence_bound_ : float
        Lower bound of the log evidence, nats; higher is better.
    n_iter_ : int
        Updates of the best start.
    converged_ : bool
        True if the best start converged.
    {starts_}
        Also `log_likelihood`, `evidence_bound`, `collapsed`, and the I_P of every column; `start_model(i)` is its network.
    fit_statistics_ : Series
        Log-likelihood, number of parameters, AIC, BIC, sample-size adjusted BIC, CAIC, ICL, entropy R-squared, G-squared and
        X-squared with degrees of freedom (p-values where the cells allow), smallest cluster, clusters that any row belongs to.
    n_clusters_path_ : DataFrame
        The numbers of clusters tried, when there was a choice: score, probability from the evidence, and fit statistics.
    profiles_ : DataFrame
        Cluster sizes and P(state | cluster) with standard errors and 95 % intervals; of numeric columns mean and sd.
    feature_names_in_ : ndarray (n_features_in_,)
        Columns seen in fit, where they have names.
    n_features_in_ : int
        Number of columns.
    n_samples_ : int
        Number of rows.
    schema_ : Schema
        Names and states of the columns that are not numeric."""


@fill(starting=PARAMETERS_DOC, shared=SHARED_DOC, attributes=ATTRIBUTES_DOC, starts_=STARTS_DOC)
class LatentClassClusterer(LatentClassBase):
    """Latent-class model (naive Bayes with a hidden class) by EM with Dirichlet priors.

    Columns of numbers are Gaussian in every cluster (mean and variance at their posterior mode, whatever `alpha` is: without a
    prior a cluster of one row would have no variance).

    Parameters
    ----------
    n_clusters : int or range, default=2
        A number; or several to choose from by the Cheeseman-Stutz score.
    alpha : float, default=1.0
        Pseudo-count of every cell; 0 is maximum likelihood.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        Pseudo-counts of a column that would not depend on the clusters, in `arc_posterior_`: see `EMAClusterer`.
    {starting}
    combine_starts : {"best", "uniform", "likelihood", "evidence"}, default="best"
        Return the best start, or average the aligned finished starts with these weights.
    init : {"random", "em"} or pgmpy network, default="random"
        Dirichlet(1) tables; a network is start 0, matched by node names ("em" is the same as "random" here).
    preset : {"paper"}, optional
        EM as the EMA paper ran it: all starts to the end without acceleration, the best of them, whatever they collapse to.
    {shared}

    Attributes
    ----------
    score_path_ : ndarray (n_iter_ + 1,)
        Log posterior, log-likelihood + sum of alpha x log theta, at the best start and after each of its updates.
    {attributes}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import LatentClassClusterer
    >>> X = pd.DataFrame({"a": list("xxxyyy"), "b": list("uuuvvv"), "c": list("pqpqpq")})
    >>> clusterer = LatentClassClusterer(n_clusters=2, random_state=0).fit(X)
    >>> len(set(clusterer.labels_[:3])), len(set(clusterer.labels_))
    (1, 2)
    """

    _allow_zero = True

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        n_init: int | str = 30,
        starts: Starts | None = None,
        combine_starts: str = "best",
        init: Any = "random",
        preset: str | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        state_names: dict | None = None,
        cluster_name: str = "cluster",
        handle_unknown: str = "missing",
        weight_type: str = "repetition",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.n_init = n_init
        self.starts = starts
        self.combine_starts = combine_starts
        self.init = init
        self.preset = preset
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown
        self.weight_type = weight_type
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns


@fill(starting=PARAMETERS_DOC, shared=SHARED_DOC, attributes=ATTRIBUTES_DOC, starts_=STARTS_DOC)
class EMAClusterer(LatentClassBase):
    """Clusters with the relevance of every column, averaged over all choices of the columns that depend on the cluster (EMA).

    Every column may depend on the cluster or not; the fitted tables average over both, so that columns that say nothing
    about the clusters fall silent, and `arc_posterior_` ranks the columns by relevance. An iteration costs what EM's costs.
    Columns of numbers are Gaussian in every cluster, with a Normal-inverse-gamma prior on the standardised column, and have arcs
    too. Ordered columns are averaged over all ways to merge neighbouring levels: given the arc, levels that all stay apart, as if
    they had no order, have prior 1/2, and the ways that merge some of them have the other half in equal parts.

    Parameters
    ----------
    n_clusters : int or range, default=2
        A number; or several to choose from by the averaged Cheeseman-Stutz score (the evidence bound, if variational).
    averaging : {"variational", "linear"}, default="variational"
        "linear" is the paper's EMA. "variational" has the same arc posteriors and the same final mixture, but its
        expectation step uses expected logs, and an evidence bound never falls. It is the default because it finds
        better partitions (docs/evidence.md has the tables).
    alpha : float or dict, default=1.0
        Pseudo-count of every cell; a dict may give `cluster`, `dependent` and `independent` their own, taken as they are.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        Pseudo-counts of a column that does not depend on the clusters: `n_clusters` x `alpha`, so that its table holds the same
        prior mass with the arc and without it; or `alpha` in every cell ("paper"), where noise of many states looks relevant.
    arc_prior : float or dict, default=0.5
        Prior probability that a column depends on the cluster; a dict by column (others 0.5).
    {starting}
    combine_starts : {"auto", "likelihood", "evidence", "best", "uniform"}, default="auto"
        Weights of the average over the aligned finished starts: exp(log-likelihood), the paper's choice and "auto" for
        "linear"; exp(evidence bound), "auto" for "variational"; or the best start alone; or all alike. Collapsed starts have
        none.
    init : {"auto", "random", "em"} or pgmpy network, default="auto"
        Dirichlet(1) tables ("auto" for "linear"); what EM makes of them, which collapses far less often ("auto" for
        "variational"): the first updates are EM's for "variational", EM's solutions are begun from for "linear"; or a network,
        matched by node names, as start 0 with random starts after it.
    preset : {"paper"}, optional
        EMA as published: averaging="linear", parameter_prior="paper", random starts, all of them run to the end without
        acceleration and averaged by likelihood, whatever they collapse to.
    {shared}
    ordered_columns : list, optional
        Columns of states with an order, such as answers from 1 to 7; ordered categoricals are taken so unless they are named in
        `categorical_columns`. Texts need their order from `state_names`. The table of such a column is averaged over all ways to
        merge neighbouring levels: few rows, or levels that clusters do not tell apart, then cost fewer parameters.

    Attributes
    ----------
    ordered_columns_ : list
        Columns whose states were taken in their order.
    score_path_ : ndarray (n_iter_ + 1,)
        Log-likelihood ("linear", which climbs nothing) or evidence bound ("variational").
    {attributes}

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
    {'a': 1.0, 'b': 1.0, 'noise': 0.31}
    >>> clusterer.get_support().tolist()
    [True, True, False]

    Numbers and states together:

    >>> X = X.assign(length=[1.1, 1.3, 0.9, 1.2, 4.1, 3.8, 4.4, 4.0] * 5)
    >>> clusterer = EMAClusterer(n_clusters=2, random_state=0).fit(X)
    >>> sorted(clusterer.densities_["mean"].round(1))
    [1.1, 4.1]
    """

    _paper = PAPER_EMA

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        averaging: str = "variational",
        alpha: float | dict = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        arc_prior: float | dict = 0.5,
        n_init: int | str = 30,
        starts: Starts | None = None,
        combine_starts: str = "auto",
        init: Any = "auto",
        preset: str | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        state_names: dict | None = None,
        cluster_name: str = "cluster",
        handle_unknown: str = "missing",
        weight_type: str = "repetition",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
        ordered_columns: Any = None,
    ):
        self.n_clusters = n_clusters
        self.averaging = averaging
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.arc_prior = arc_prior
        self.n_init = n_init
        self.starts = starts
        self.combine_starts = combine_starts
        self.init = init
        self.preset = preset
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown
        self.weight_type = weight_type
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns
        self.ordered_columns = ordered_columns
