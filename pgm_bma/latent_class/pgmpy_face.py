"""pgmpy estimator of EMA: tables of a naive Bayes network with a latent root, averaged over all selective structures."""

from typing import Any, Self

import numpy as np
import pandas as pd
from pgmpy.parameter_estimator import DiscreteParameterEstimator

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import (
    Flag,
    Number,
    check_choice,
    check_parameters,
    resolve_preset,
    with_plain_parameters,
)
from pgm_bma.foundation.numbers.starts import STARTS_DOC
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.runtime.jobs import progress, random_generator
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables.table import check_weights
from pgm_bma.latent_class.base import PAPER_EMA, RULES, STARTS_PARAMETER, Starts, fit_settings, keep_scores
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.results import starts_frame
from pgm_bma.networks.given import check_naive_bayes, read_cpds
from pgm_bma.networks.reading import check_frame, read_network, set_tables, warn_unless_converged

PAPER = {**{name: value for name, value in PAPER_EMA.items() if name != "init"}, "init_cpds": "random"}


@fill(starts_=STARTS_DOC, starts=STARTS_PARAMETER)
class EMAEstimator(DiscreteParameterEstimator):
    """Expectation model averaging for ``DiscreteBayesianNetwork.fit``: the same tables as `EMAClusterer`.

    The network must be naive Bayes: one latent node with an arc to every column.

    Parameters
    ----------
    state_names : dict, optional
        States by node, observed and latent; may hold states never seen.
    latent_card : dict, optional
        Number of states of the latent node, which is the number of clusters: ``{{"cluster": 3}}``. Needed unless `state_names` or
        `init_cpds` tell it.
    averaging : {"variational", "linear"}, default="variational"
        "linear" is the paper's EMA, "variational" variational EMA, which climbs an evidence bound; see `EMAClusterer`.
    alpha : float or dict, default=1.0
        Pseudo-count of every cell; a dict may give `cluster`, `dependent` and `independent` their own, taken as they are.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    arc_prior : float or dict, default=0.5
        Prior probability that a column depends on the cluster; a dict by column (others 0.5).
    n_init : int or "until-replicated", default=30
        Starts; or restart until the best score has been found twice (at most 200 starts). Large tables have fewer, with a warning:
        see `EMAClusterer`.
    combine_starts : {"auto", "likelihood", "evidence", "best", "uniform"}, default="auto"
        Weights of the average over the finished starts; "auto": "likelihood" for "linear", "evidence" for "variational".
    init_cpds : {"auto", "random", "em"}, DiscreteBayesianNetwork, dict or list of TabularCPD, default="auto"
        Given tables (all of them) are start 0; the other starts are random. "auto": "random" for "linear", "em" (the
        first updates are EM's) for "variational".
    max_iter : int, default=1000
        Updates of a start at most.
    atol : float, default=1e-6
        The largest change of a parameter that counts as converged.
    seed : int, Generator, RandomState or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads over the starts, as joblib reads it; the result does not depend on it.
    show_progress : bool, default=True
        A progress bar for fits that take longer than two seconds.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        Pseudo-counts of a column that does not depend on the clusters: see `EMAClusterer`.
    {starts}
    preset : {"paper"}, optional
        EMA as published: see `EMAClusterer`.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        The estimated tables, one per node.
    state_names_ : dict
        States by node.
    arc_posterior_ : Series
        P(cluster -> column) by column, a relevance ranking.
    log_likelihood_ : float
        Total log p(data) of the returned tables.
    evidence_bound_ : float
        Lower bound of the log evidence, nats.
    cheeseman_stutz_ : float
        Approximation of the log evidence, nats.
    score_path_ : ndarray (n_iter_ + 1,)
        Log-likelihood ("linear") or evidence bound ("variational"), at the best start and after each of its updates.
    n_iter_ : int
        Updates of the best start.
    converged_ : bool
        True if the best start converged.
    {starts_}
        Also `log_likelihood`, `evidence_bound` and `collapsed`.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgm_bma import EMAEstimator
    >>> df = pd.DataFrame({"a": list("xxxxyyyy") * 5, "b": list("uuuvvvvv") * 5, "noise": list("pqpqpqpq") * 5})
    >>> model = DiscreteBayesianNetwork([("cluster", column) for column in df], latents={"cluster"})
    >>> model = model.fit(df, estimator=EMAEstimator(latent_card={"cluster": 2}, seed=0))
    >>> model.get_cpds("cluster").values.round(2).tolist()
    [0.58, 0.42]
    """

    _tags = {"supports_latent_variables": True, "supports_weighted_data": True}

    _rules = {**RULES, "atol": Number(0), "show_progress": Flag()}

    def __init__(
        self,
        state_names: dict | None = None,
        latent_card: dict | None = None,
        averaging: str = "variational",
        alpha: float | dict = 1.0,
        equivalent_sample_size: float | None = None,
        arc_prior: float | dict = 0.5,
        n_init: int | str = 30,
        combine_starts: str = "auto",
        init_cpds: Any = "auto",
        max_iter: int = 1000,
        atol: float = 1e-6,
        seed: Any = None,
        n_jobs: int | None = None,
        show_progress: bool = True,
        parameter_prior: str = "consistent",
        starts: Starts | None = None,
        preset: str | None = None,
    ):
        self.latent_card = latent_card
        self.averaging = averaging
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.arc_prior = arc_prior
        self.n_init = n_init
        self.combine_starts = combine_starts
        self.init_cpds = init_cpds
        self.max_iter = max_iter
        self.atol = atol
        self.seed = seed
        self.n_jobs = n_jobs
        self.show_progress = show_progress
        self.parameter_prior = parameter_prior
        self.starts = starts
        self.preset = preset
        super().__init__(state_names=state_names)

    @with_plain_parameters
    def fit(self, model: Any, data: pd.DataFrame, sample_weight: Any = None) -> Self:
        """Estimate the tables of `model`, a latent node with an arc to every column, from `data`.

        Parameters
        ----------
        model : DiscreteBayesianNetwork or DAG
            A latent node with an arc to every other node.
        data : DataFrame
            A column for every node that is not latent; NaN and None are missing.
        sample_weight : array-like (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        EMAEstimator
            The estimator itself.
        """
        check_frame(data)
        sample_weight = check_weights(sample_weight, len(data))
        model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        given = self.init_cpds is not None and not isinstance(self.init_cpds, str)
        paper = {name: value for name, value in PAPER.items() if not (given and name == "init_cpds")}
        values = resolve_preset(self, {"paper": paper})
        check_parameters(self, values)
        init = "auto" if values["init_cpds"] is None else values["init_cpds"]
        if not given:
            check_choice("init_cpds", init, ("auto", "random", "em"))
        cluster = _latent_root(model)
        cpds = read_cpds(init, set(model.nodes()), "init_cpds") if given else {}
        network = read_network(model, data, self.state_names, self.latent_card, (cpds, {}), sample_weight)
        if not given and not any(cluster in (said or ()) for said in (self.latent_card, self.state_names)):
            raise ValueError(f"latent_card does not say how many clusters to find; pass latent_card={{{cluster!r}: 3}}")
        columns, cardinalities = network.names[1:], network.cardinalities
        init = _start_tables(network) if given else init
        with progress(self.show_progress, "starts") as bar:
            rows = table_rows(network.codes[:, 1:], cardinalities[1:], network.weights)
            settings = fit_settings(values, columns, init, values["atol"], bar)
            fit = fit_latent_class(rows, int(cardinalities[0]), settings, rng=random_generator(self.seed))
        theta_c, tables = self._full_tables(fit, int(cardinalities[0]), cluster)
        set_tables(self, model, network, [theta_c[None, :], *tables])
        self.arc_posterior_ = pd.Series(fit.arc_posterior, index=list(columns), name="arc_posterior")
        keep_scores(self, fit)
        self.starts_ = starts_frame(fit, values["averaging"])
        warn_unless_converged(self)
        return self

    def _full_tables(self, fit, n_clusters, cluster):
        """The network's latent node keeps its states: the one-cluster answer is spread over them evenly."""
        if not fit.all_collapsed:
            return fit.theta_c, fit.tables
        warn(
            f"all {len(fit.weights)} starts collapsed: the data show this method no clusters, and all {n_clusters} states of "
            f"{cluster!r} get the same tables. Try init_cpds='em', more rows, or starts=Starts(collapse='ignore')"
        )
        return np.full(n_clusters, 1.0 / n_clusters), [np.repeat(table, n_clusters, axis=0) for table in fit.tables]


def _latent_root(model):
    latents = list(model.latents)
    if len(latents) != 1:
        raise ValueError(f"EMA needs one latent node, the cluster; the network has {latents or 'none'}")
    cluster = check_naive_bayes(model, [node for node in model.nodes() if node != latents[0]])
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
