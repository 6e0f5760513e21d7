"""pgmpy estimator by EM for any network: latent variables, missing cells, priors, restarts, for ``DiscreteBayesianNetwork.fit``.

A thin layer over two loops: `networks.em` for any structure, and `latent_class.loop` when the network is
naive Bayes below one latent root and every column is complete, so that
``LatentClassClusterer(starts=Starts(n_final=None, accelerate=False))`` gives the same tables.
"""

from typing import Any, Self

import numpy as np
import pandas as pd
from pgmpy.parameter_estimator import DiscreteParameterEstimator

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import (
    Choice,
    Flag,
    Integer,
    Jobs,
    Number,
    Optional,
    check,
    check_parameters,
    with_plain_parameters,
)
from pgm_bma.foundation.numbers.families import PSEUDO_COUNT
from pgm_bma.foundation.numbers.starts import starts_table
from pgm_bma.foundation.rows.blocks import Rows, table_rows
from pgm_bma.foundation.rows.scan import NotFolded, as_scan, is_scan
from pgm_bma.foundation.runtime.jobs import fresh, random_generator
from pgm_bma.foundation.tables import interventions as experiments
from pgm_bma.foundation.tables.table import check_weights
from pgm_bma.latent_class.base import prior_settings
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.results import starts_frame
from pgm_bma.networks.em import fit_network, relabel
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.given import read_cpds
from pgm_bma.networks.junction_tree import MAX_CLIQUE_SIZE, CliqueTooLarge
from pgm_bma.networks.reading import (
    alpha_per_node,
    check_frame,
    check_structure,
    progress_bar,
    read_network,
    read_network_rows,
    set_tables,
    warn_unless_converged,
)

N_INIT_LATENT = 30  # starts by default when there are latent variables; without any the likelihood is far tamer


class EMEstimator(DiscreteParameterEstimator):
    """EM for the tables of any discrete Bayesian network, exact, with latent variables and cells missing anywhere.

    Parameters
    ----------
    state_names : dict node -> list of states, optional
        Observed and latent nodes; may hold states never seen. Default: the table's own order (categories, else sorted).
    latent_card : dict latent -> number of states, optional
        2 by default.
    alpha : float or dict node -> float or array, default=1.0
        Dirichlet pseudo-count of every cell; 0 is maximum likelihood. An array has pgmpy's layout, (n_states,
        n_parent_states) with the parents in the order of ``model.get_parents(node)``. Nodes that a dict leaves out get 1.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    n_init : int, optional
        Starts; the one with the highest log-likelihood is returned. Default: 30 with latent variables, else 1.
    combine_starts : {"best", "uniform", "likelihood"}, default="best"
        The averages are defined for naive Bayes below one latent root only.
    init_cpds : DiscreteBayesianNetwork, dict or list of TabularCPD, "random" or "uniform", optional
        Start 0; the other starts, and tables left out, are drawn. Default: tables that touch a latent variable from
        Dirichlet(1), the others from the rows in which they are complete.
    fixed_cpds : dict or list of TabularCPD, optional
        Tables that are known and stay as they are.
    collapse : {"stop", "ignore"}, default="stop"
        In naive Bayes below a latent root, whether starts whose clusters became equal are passed over where others exist.
    max_iter : int, default=1000
        Updates at most.
    atol : float, default=1e-6
        Largest parameter change that counts as converged.
    seed : int, Generator, RandomState or None
        Seed of the starts.
    n_jobs : int, optional
        Threads over the starts, as joblib reads it; the result does not depend on it.
    show_progress : bool, default=True
        A progress bar for fits that take longer than two seconds.
    max_clique_size : int, default=4194304
        Joint states of the largest clique beyond which a network is refused before the first iteration.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        One table per node, in the order of the network.
    state_names_ : dict node -> list of states
        The states that the tables have.
    log_likelihood_ : float
        Total, of the returned parameters.
    score_path_ : (n_iter_ + 1,) array
        What EM climbs, log-likelihood + sum of alpha x log theta, at the start and after every update.
    n_iter_, converged_ : int and bool
        Of the best start.
    starts_ : DataFrame
        One line per start: start, stage (always 2, run to the end), score (what ranks the starts: the log-likelihood),
        log_likelihood, objective, converged, n_iter, weight.

    Notes
    -----
    The states of a latent variable are numbered by falling probability, unless `init_cpds`, `fixed_cpds` or an array in
    `alpha` already tells them apart. A column that is a declared latent must be empty. Rows are grouped by what is missing and
    equal pieces of evidence are computed once, so the cost follows the number of different patterns of missing values, not of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgm_bma import EMEstimator
    >>> df = pd.DataFrame({"a": [0, 0, None, 1, 1, 1], "b": list("xxxyyx"), "c": ["u", None, "u", "v", "v", "v"]})
    >>> model = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("b", "c")], latents={"h"})
    >>> model = model.fit(df, estimator=EMEstimator(latent_card={"h": 2}, seed=0))
    >>> model.check_model(), model.get_cpds("h").values.shape
    (True, (2,))
    """

    _tags = {"supports_latent_variables": True, "supports_weighted_data": True}
    _rules = {
        "equivalent_sample_size": Optional(PSEUDO_COUNT),
        "n_init": Optional(Integer(1)),
        "combine_starts": Choice("best", "uniform", "likelihood"),
        "collapse": Choice("stop", "ignore"),
        "max_iter": Integer(0),
        "atol": Number(0),
        "n_jobs": Jobs(),
        "show_progress": Flag(),
        "max_clique_size": Integer(1),
    }

    def __init__(
        self,
        state_names: dict | None = None,
        latent_card: dict | None = None,
        alpha: Any = 1.0,
        equivalent_sample_size: float | None = None,
        n_init: int | None = None,
        combine_starts: str = "best",
        init_cpds: Any = None,
        fixed_cpds: Any = None,
        collapse: str = "stop",
        max_iter: int = 1000,
        atol: float = 1e-6,
        seed: Any = None,
        n_jobs: int | None = None,
        show_progress: bool = True,
        max_clique_size: int = MAX_CLIQUE_SIZE,
    ):
        self.latent_card = latent_card
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.n_init = n_init
        self.combine_starts = combine_starts
        self.init_cpds = init_cpds
        self.fixed_cpds = fixed_cpds
        self.collapse = collapse
        self.max_iter = max_iter
        self.atol = atol
        self.seed = seed
        self.n_jobs = n_jobs
        self.show_progress = show_progress
        self.max_clique_size = max_clique_size
        super().__init__(state_names=state_names)

    @with_plain_parameters
    @fill(experiments=experiments.INTERVENTIONS, targets=experiments.TARGETS)
    def fit(
        self,
        model: Any,
        data: pd.DataFrame,
        sample_weight: Any = None,
        interventions: Any = None,
        intervention_targets: Any = None,
    ) -> Self:
        """Estimate the tables of `model` from `data`.

        Parameters
        ----------
        model : DiscreteBayesianNetwork or DAG
            The structure, with its latent variables.
        data : DataFrame or scan
            A column for every node that is not latent; NaN and None are missing, other columns are ignored. The rows of a scan that
            do not fit in memory are visited in passes, one for each update of each start.
        sample_weight : (n_samples,) array, optional
            A weight is a repetition of the row; for a scan the name of a column.
        {experiments} Such interventions are
            perfect: the set value depends on nothing. A scan must have rows that fold.
        {targets}

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        Setting b breaks what a says about it, so the rows in which b was set do not count in its table:

        >>> import pandas as pd
        >>> from pgmpy.models import DiscreteBayesianNetwork
        >>> from pgm_bma import EMEstimator
        >>> df = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 3 + list("0101") * 3, "set": [None] * 12 + ["b"] * 12})
        >>> model = DiscreteBayesianNetwork([("a", "b")])
        >>> estimator = EMEstimator().fit(model, df, interventions="set")
        >>> model.add_cpds(*estimator.parameters_)
        >>> model.get_cpds("b").get_values().round(2)
        array([[0.88, 0.12],
               [0.12, 0.88]])
        """
        check_structure(model)
        interventions = experiments.given(interventions, intervention_targets)
        has_experiments, found = interventions is not None, None
        if has_experiments:
            experiments.check_source(data, interventions)
        scan = None
        if is_scan(data):
            try:
                data, sample_weight, _ = as_scan(data).fold(sample_weight, self.state_names)
            except NotFolded as refusal:
                if has_experiments:
                    raise NotFolded(f"interventions need the distinct rows in memory, but {refusal}") from None
                scan = as_scan(data)
        else:
            check_frame(data)
        if scan is None:
            check_weights(sample_weight, len(data))
            if has_experiments:
                data, found = experiments.split_experiments(data, interventions)
            model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        check_parameters(self)
        if isinstance(self.init_cpds, str):
            check("init_cpds", self.init_cpds, Choice("random", "uniform"))
        given = self.state_names, self.latent_card, self._given_cpds(model), sample_weight
        network = read_network(model, data, *given, found) if scan is None else read_network_rows(model, scan, *given)
        alpha = alpha_per_node(self.alpha, network, self.equivalent_sample_size)
        is_latent_class = self._is_plain_latent_class(network)
        with progress_bar(self.show_progress, "starts" if is_latent_class else "updates") as progress:
            if is_latent_class:
                cpts, fit, self.starts_ = self._fit_latent_class(network, progress)
            else:
                cpts, fit, self.starts_ = self._fit_network(network, alpha, progress)
        set_tables(self, model, network, cpts)
        self.log_likelihood_ = float(fit.log_likelihood)
        self.score_path_ = np.asarray(fit.score_path)
        self.n_iter_ = int(fit.n_iter)
        self.converged_ = bool(fit.converged)
        warn_unless_converged(self)
        return self

    def _given_cpds(self, model):
        nodes = set(model.nodes())
        init = {} if self.init_cpds is None or isinstance(self.init_cpds, str) else self.init_cpds
        fixed = {} if self.fixed_cpds is None else self.fixed_cpds
        return read_cpds(init, nodes, "init_cpds"), read_cpds(fixed, nodes, "fixed_cpds")

    def _n_starts(self, network):
        if self.n_init is not None:
            return int(self.n_init)
        return N_INIT_LATENT if network.latents else 1

    def _is_plain_latent_class(self, network):
        """Naive Bayes below one latent root, complete columns, one number as prior, all or no tables given."""
        if isinstance(network.codes, Rows) or network.held is not None:
            return False
        if len(network.latents) != 1 or network.fixed or isinstance(self.alpha, dict):
            return False
        if isinstance(self.init_cpds, str) and self.init_cpds == "uniform":
            return False
        shape_fits = len(network.names) > 1 and network.parents[0] == () and set(network.parents[1:]) == {(0,)}
        if not shape_fits or len(network.init) not in (0, len(network.names)):
            return False
        # the latent-class loop leaves a missing cell out of its column's counts: the same limit by other steps
        return not (network.codes[:, 1:] < 0).any() or self.combine_starts != "best"

    def _fit_latent_class(self, network, progress):
        init: Any = "random"
        if network.init:
            tables = network.init_tables()
            init = (tables[0][0], tables[1:])
        keywords = dict(
            priors=prior_settings(self.alpha, self.equivalent_sample_size, 0.5, allow_zero=True),
            n_init=self._n_starts(network),
            init=init,
            combine_starts=self.combine_starts,
            max_iter=self.max_iter,
            tol=self.atol,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        cards = network.cardinalities
        rows = table_rows(network.codes[:, 1:], cards[1:], network.weights)
        rng = random_generator(self.seed)
        # the number of states is given here: when all starts have identical clusters they are kept as they are
        for collapse in ("stop", "ignore") if self.collapse == "stop" else ("ignore",):
            more = {"rng": fresh(rng), "collapse": collapse, **keywords}
            fit = fit_latent_class(rows, int(cards[0]), **more)
            if not fit.all_collapsed:
                break
        starts = starts_frame(fit, None).drop(columns=["evidence_bound", "collapsed"])
        starts.insert(starts.columns.get_loc("converged"), "objective", [path[-1] for path in fit.starts.paths])
        return [fit.theta_c[None, :], *fit.tables], fit, starts

    def _fit_network(self, network, alpha, progress):
        if self.combine_starts != "best":
            raise ValueError(
                f"combine_starts={self.combine_starts!r} averages aligned starts, which is defined for naive Bayes below one "
                "latent root; use combine_starts='best' for this network"
            )
        how = self.init_cpds if isinstance(self.init_cpds, str) else None
        try:
            fit = fit_network(
                network.codes,
                network.cardinalities,
                network.parents,
                weights=network.weights,
                held=network.held,
                alpha=alpha,
                init=network.init_tables(uniform=how == "uniform"),
                draw_all=how == "random",
                fixed=[network.names.index(node) for node in network.fixed],
                n_init=self._n_starts(network),
                rng=random_generator(self.seed),
                max_iter=self.max_iter,
                atol=self.atol,
                n_jobs=self.n_jobs,
                progress=progress,
                max_clique_size=self.max_clique_size,
            )
        except CliqueTooLarge as error:
            raise error.named(network.names) from None
        except ImpossibleEvidence as error:
            raise ImpossibleEvidence(network.first_row(error.row)) from None
        log_likelihood = [start.log_likelihood for start in fit.starts]
        starts = starts_table(
            log_likelihood,
            [start.converged for start in fit.starts],
            [start.n_iter for start in fit.starts],
            np.arange(len(fit.starts)) == fit.best,
            log_likelihood=log_likelihood,
            objective=[start.score_path[-1] for start in fit.starts],
        )
        cpts = fit.cpts
        if not network.init and not isinstance(self.alpha, dict):
            cpts = _number_by_probability(network, cpts, fit.expected_counts)
        return cpts, fit, starts


def _number_by_probability(network, cpts, counts):
    """States of the latent variables by falling probability, where no fixed table tells them apart."""
    for node, name in enumerate(network.latents):  # the latents stand first
        touched = [name, *(network.names[c] for c, ps in enumerate(network.parents) if node in ps)]
        if not network.fixed.keys() & set(touched):
            order = np.argsort(-counts[node].sum(axis=0), kind="stable")
            cpts = relabel(cpts, network.parents, network.cardinalities, node, order)
    return cpts
