"""pgmpy face of EMA: tables of a naive Bayes network with a latent root, averaged over all selective structures."""

import numpy as np
import pandas as pd
from pgmpy.parameter_estimator import DiscreteParameterEstimator
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.parallel import check_n_jobs
from pgm_bma.foundation.priors import arc_prior_array
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice, check_number
from pgm_bma.foundation.warn import warn
from pgm_bma.latent_class.base import init_cluster, prior_settings, resolve_combination, resolve_init
from pgm_bma.latent_class.loop import COMBINATIONS, MODES, fit_latent_class
from pgm_bma.networks.cpds import read_cpds
from pgm_bma.networks.objects import bayesian_network
from pgm_bma.networks.reading import check_frame, progress_bar, read_network


class EMAEstimator(DiscreteParameterEstimator):
    """Expectation model averaging for ``DiscreteBayesianNetwork.fit``: the same tables as `EMAClusterer`.

    The network must be naive Bayes: one latent node with an arc to every column.

    Parameters
    ----------
    state_names : dict node -> states, optional
        Observed and latent nodes; may hold states never seen.
    latent_card : dict latent -> number of states, optional
        The number of clusters; 2 where nothing is said.
    averaging : {"variational", "linear"}, default="variational"
        "linear" is the paper's EMA, "variational" its twin with an evidence bound; see `EMAClusterer`.
    alpha : float or dict with `cluster`, `dependent`, `independent`, default=1.0
        Pseudo-count of every cell.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    arc_prior : float or dict by column, default=0.5
        Prior probability that a column depends on the cluster.
    n_init : int or "until-replicated", default=30
    combine_starts : {"auto", "likelihood", "evidence", "best", "uniform"}, default="auto"
        "auto": "likelihood" for "linear", "evidence" for "variational".
    init_cpds : "auto", "random", "em", DiscreteBayesianNetwork, dict or list of TabularCPD, default="auto"
        Given tables (all of them) are start 0; the other starts are random. "auto": "random" for "linear", "em" (the EM
        solutions) for "variational".
    collapse : {"stop", "ignore"}, default="stop"
    max_iter, atol : int, default=1000; float, default=1e-6
    seed : int, Generator, RandomState or None
    n_jobs : int, default=1
    show_progress : bool, default=True
        A progress bar for fits that take longer than two seconds.

    Attributes
    ----------
    parameters_ : list of TabularCPD
    state_names_ : dict node -> states
    arc_posterior_ : Series by column, a relevance ranking
    log_likelihood_, evidence_bound_, cheeseman_stutz_ : float
    score_path_ : (n_iter_ + 1,) array
        Log-likelihood ("linear") or evidence bound ("variational"), at the best start and after each of its updates.
    n_iter_, converged_ : int and bool, of the best start
    starts_ : DataFrame, one line per start

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgm_bma import EMAEstimator
    >>> df = pd.DataFrame({"a": list("xxxxyyyy") * 5, "b": list("uuuvvvvv") * 5, "noise": list("pqpqpqpq") * 5})
    >>> model = DiscreteBayesianNetwork([("cluster", column) for column in df], latents={"cluster"})
    >>> model = model.fit(df, estimator=EMAEstimator(latent_card={"cluster": 2}, seed=0))
    >>> model.get_cpds("cluster").values.round(2).tolist()
    [0.59, 0.41]
    """

    _tags = {"supports_latent_variables": True, "supports_weighted_data": True}

    def __init__(
        self,
        state_names=None,
        latent_card=None,
        averaging="variational",
        alpha=1.0,
        equivalent_sample_size=None,
        arc_prior=0.5,
        n_init=30,
        combine_starts="auto",
        init_cpds="auto",
        collapse="stop",
        max_iter=1000,
        atol=1e-6,
        seed=None,
        n_jobs=None,
        show_progress=True,
    ):
        self.latent_card = latent_card
        self.averaging = averaging
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.arc_prior = arc_prior
        self.n_init = n_init
        self.combine_starts = combine_starts
        self.init_cpds = init_cpds
        self.collapse = collapse
        self.max_iter = max_iter
        self.atol = atol
        self.seed = seed
        self.n_jobs = n_jobs
        self.show_progress = show_progress
        super().__init__(state_names=state_names)

    def fit(self, model, data, sample_weight=None):
        """Estimate the tables of `model`, a latent node with an arc to every column, from `data`.

        Parameters
        ----------
        model : DiscreteBayesianNetwork or DAG
        data : DataFrame with a column for every node that is not latent; NaN and None are missing
        sample_weight : (n_samples,), optional; a weight is a repetition of the row

        Returns
        -------
        self
        """
        check_frame(data)
        model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        self._check_parameters()
        cluster = _latent_root(model)
        init = "auto" if self.init_cpds is None else self.init_cpds
        given = {} if isinstance(init, str) else read_cpds(init, set(model.nodes()), "init_cpds")
        network = read_network(model, data, self.state_names, self.latent_card, (given, {}), sample_weight)
        columns = network.names[1:]
        arc_prior = arc_prior_array(self.arc_prior, columns)
        cardinalities = network.cardinalities
        with progress_bar(self.show_progress, "starts") as progress:
            fit = fit_latent_class(
                network.codes[:, 1:],
                cardinalities[1:],
                int(cardinalities[0]),
                weights=network.weights,
                rng=random_generator(self.seed),
                averaging=self.averaging,
                priors=prior_settings(self.alpha, self.equivalent_sample_size, arc_prior, allow_zero=False),
                n_init=self.n_init,
                init=resolve_init(init, self.averaging) if isinstance(init, str) else _start_tables(network),
                combine_starts=resolve_combination(self.combine_starts, self.averaging),
                collapse=self.collapse,
                max_iter=self.max_iter,
                tol=self.atol,
                n_jobs=self.n_jobs,
                progress=progress,
            )
        theta_c, tables = self._full_tables(fit, int(cardinalities[0]), cluster)
        cpts = [theta_c[None, :], *tables]
        built = bayesian_network(network.names, network.states, network.parents, cpts, network.latents)
        cpds = {cpd.variable: cpd for cpd in built.cpds}
        self.parameters_ = [cpds[node] for node in model.nodes()]
        states = dict(zip(network.names, network.states))
        self.state_names_ = {node: list(states[node]) for node in model.nodes()}
        self.arc_posterior_ = pd.Series(fit.arc_posterior, index=list(columns), name="arc_posterior")
        self.log_likelihood_ = fit.log_likelihood
        self.evidence_bound_ = fit.evidence_bound
        self.cheeseman_stutz_ = fit.cheeseman_stutz
        self.score_path_ = fit.score_path
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self.starts_ = pd.DataFrame(
            {
                "log_likelihood": fit.starts.log_likelihood,
                "evidence_bound": fit.starts.evidence_bound,
                "iterations": fit.starts.n_iter,
                "converged": fit.starts.converged,
                "collapsed": fit.starts.collapsed,
                "weight": fit.weights,
            }
        )
        if not self.converged_ and self.max_iter > 0 and self.atol > 0:
            warn(
                f"the best start did not converge in max_iter={self.max_iter} updates; raise max_iter or atol",
                ConvergenceWarning,
            )
        return self

    def _check_parameters(self):
        check_choice("averaging", self.averaging, [mode for mode in MODES if mode])
        check_choice("combine_starts", self.combine_starts, ("auto", *COMBINATIONS))
        check_choice("collapse", self.collapse, ("stop", "ignore"))
        if self.n_init != "until-replicated":
            check_number("n_init", self.n_init, 1, integer=True)
        check_number("max_iter", self.max_iter, 0, integer=True)
        check_number("atol", self.atol, 0.0)
        check_n_jobs(self.n_jobs)
        if isinstance(self.init_cpds, str):
            check_choice("init_cpds", self.init_cpds, ("auto", "random", "em"))

    def _full_tables(self, fit, n_clusters, cluster):
        """The network's latent node keeps its states: the one-cluster answer is spread over them evenly."""
        if not fit.all_collapsed:
            return fit.theta_c, fit.tables
        warn(
            f"all {len(fit.weights)} starts collapsed: the data show this method no clusters, and all {n_clusters} states of "
            f"{cluster!r} get the same tables. Try init_cpds='em', more rows, or collapse='ignore'"
        )
        return np.full(n_clusters, 1.0 / n_clusters), [np.repeat(table, n_clusters, axis=0) for table in fit.tables]


def _latent_root(model):
    latents = list(model.latents)
    if len(latents) != 1:
        raise ValueError(f"EMA wants one latent node, the cluster; the network has {latents or 'none'}")
    cluster = init_cluster(model, [node for node in model.nodes() if node != latents[0]])
    lonely = [node for node in model.nodes() if node != cluster and not model.has_edge(cluster, node)]
    if lonely:
        raise ValueError(
            f"node {lonely[0]!r} has no arc from {cluster!r}; add it (EMA weighs every arc) or drop the node"
        )
    return cluster


def _start_tables(network):
    lacking = [node for node in network.names if node not in network.init]
    if lacking:
        raise ValueError(f"init_cpds has no table for {lacking[0]!r}; give all of them, or 'random'")
    return network.init[network.names[0]][0], [network.init[node] for node in network.names[1:]]
