"""pgmpy estimator of BC+EM: parameters of a network with a latent variable by Bound and Collapse and EM."""

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pgmpy import config
from pgmpy.parameter_estimator import DiscreteParameterEstimator

from pgm_bma.augmented.general import GeneralModel, random_tables
from pgm_bma.augmented.model import Prior, make_cases
from pgm_bma.augmented.structural_em import CONVERGENCES, LOOPS, StructuralEMSettings, fit_em, fit_parameters
from pgm_bma.augmented.structures import AugmentedModel
from pgm_bma.foundation.faces.validation import (
    Choice,
    Flag,
    Integer,
    Jobs,
    Number,
    check_parameters,
    with_plain_parameters,
)
from pgm_bma.foundation.numbers.families import check_prior
from pgm_bma.foundation.numbers.starts import starts_table
from pgm_bma.foundation.runtime.jobs import map_jobs, progress, random_generator
from pgm_bma.foundation.tables.table import check_weights
from pgm_bma.networks.em import relabel
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.given import read_cpds
from pgm_bma.networks.junction_tree import CliqueTooLarge
from pgm_bma.networks.reading import check_frame, read_network, set_tables, warn_unless_converged


class BoundCollapseEMEstimator(DiscreteParameterEstimator):
    """Tables of a discrete Bayesian network with at most one latent variable, by EM that starts from Bound and Collapse.

    Cases whose latent state is clear are assigned to it, Bound and Collapse estimates the tables from that partly completed
    data, and EM goes on from there; repeated until nothing changes. Without a latent variable (only cells are missing) Bound
    and Collapse runs once, as the start of EM.

    Parameters
    ----------
    state_names : dict, optional
        Node -> states, of observed and latent nodes; may hold states never seen.
    latent_card : dict, optional
        Latent node -> number of states; 2 by default.
    alpha : float, default=1.0
        Dirichlet pseudo-count of every cell; 0 is maximum likelihood.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    bound_collapse_loop : {"released", "alternating"}, default="released"
        EM to convergence after each Bound and Collapse, keeping the better tables when a round does not gain; or one update.
    fixing_probability_threshold : float, default=0.51
        Posterior above which a case is assigned.
    convergence : {"log_posterior", "log_likelihood", "completed_score"}, default="log_posterior"
        What EM watches: the value it climbs, the likelihood, or the score of the data completed with the most probable state.
    n_init : int, default=10
        Starts with tables from Dirichlet(1); the highest value of what is watched wins.
    init_cpds : DiscreteBayesianNetwork, dict or list of TabularCPD, optional
        Start 0; tables left out are drawn.
    max_iter : int, default=150
        EM updates of a start at most.
    atol : float, default=1e-6
        Relative change of the watched value that counts as converged.
    seed : int, Generator, RandomState or None, default=None
        Seed of the starts; start i does not depend on `n_init` or `n_jobs`.
    n_jobs : int, optional
        Starts at once, as joblib reads it; the result does not depend on it.
    show_progress : bool, default=True
        A progress bar for fits that take longer than two seconds.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        The tables, nodes in the order of the network.
    state_names_ : dict
        Node -> states.
    log_likelihood_ : float
        Of the returned tables.
    score_path_ : array of shape (n_iter_ + 1,)
        The watched value at the best start and after each of its EM updates.
    n_iter_ : int
        EM updates of the best start.
    converged_ : bool
        True if the best start converged.
    rounds_ : DataFrame
        One line per Bound and Collapse of the best start: cases left unassigned, EM updates, value reached.
    starts_ : DataFrame
        One line per start: start, stage, score (the watched value), log_likelihood, converged, n_iter, weight.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgm_bma import BoundCollapseEMEstimator
    >>> df = pd.DataFrame({"a": list("xxxxyyyy"), "b": list("uuuvvvvu"), "c": list("pppqqqqp")})
    >>> model = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c"), ("b", "c")], latents={"h"})
    >>> model = model.fit(df, estimator=BoundCollapseEMEstimator(latent_card={"h": 2}, seed=0))
    >>> model.check_model(), model.get_cpds("h").values.shape
    (True, (2,))
    """

    _tags = {"supports_latent_variables": True, "supports_weighted_data": True}
    _rules = {
        "alpha": Number(0.0),
        "bound_collapse_loop": Choice(*LOOPS),
        "fixing_probability_threshold": Number(0.0, 1.0),
        "convergence": Choice(*CONVERGENCES),
        "n_init": Integer(1),
        "max_iter": Integer(1),
        "atol": Number(0.0),
        "n_jobs": Jobs(),
        "show_progress": Flag(),
    }

    def __init__(
        self,
        state_names: dict | None = None,
        latent_card: dict | None = None,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        bound_collapse_loop: str = "released",
        fixing_probability_threshold: float = 0.51,
        convergence: str = "log_posterior",
        n_init: int = 10,
        init_cpds: Any = None,
        max_iter: int = 150,
        atol: float = 1e-6,
        seed: Any = None,
        n_jobs: int | None = None,
        show_progress: bool = True,
    ):
        self.latent_card = latent_card
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.bound_collapse_loop = bound_collapse_loop
        self.fixing_probability_threshold = fixing_probability_threshold
        self.convergence = convergence
        self.n_init = n_init
        self.init_cpds = init_cpds
        self.max_iter = max_iter
        self.atol = atol
        self.seed = seed
        self.n_jobs = n_jobs
        self.show_progress = show_progress
        super().__init__(state_names=state_names)

    @with_plain_parameters
    def fit(self, model: Any, data: pd.DataFrame, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the tables of `model` from `data`.

        Parameters
        ----------
        model : DiscreteBayesianNetwork or DAG
            A structure with at most one latent variable.
        data : DataFrame
            A column for every node that is not latent; NaN and None are missing, other columns ignored.
        sample_weight : array of shape (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        BoundCollapseEMEstimator
            The estimator itself.
        """
        check_frame(data)
        sample_weight = check_weights(sample_weight, len(data))
        model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        check_parameters(self)
        if self.alpha != 0 or self.equivalent_sample_size is not None:  # 0 is maximum likelihood
            check_prior(self.alpha, self.equivalent_sample_size)
        given = read_cpds({} if self.init_cpds is None else self.init_cpds, set(model.nodes()), "init_cpds")
        network = read_network(model, data, self.state_names, self.latent_card, (given, {}), sample_weight)
        if len(network.latents) > 1:
            raise ValueError(
                f"BC+EM is defined for one latent variable, the network has {list(network.latents)}; use EMEstimator"
            )
        settings = StructuralEMSettings(
            prior=Prior(float(self.alpha), self.equivalent_sample_size),
            parameters="bound_collapse",
            bound_collapse_loop=self.bound_collapse_loop,
            fixing_probability_threshold=self.fixing_probability_threshold,
            convergence=self.convergence,
            max_iter=self.max_iter,
            tol=self.atol,
        )
        fits = self._run(network, settings)
        best = int(np.argmax([fit.value for fit in fits]))
        found = fits[best]
        self._read(model, network, found, fits, best)
        warn_unless_converged(self)
        return self

    def _run(self, network, settings):
        """One FitResult per start, parameters as a list of tables."""
        fitted = _model(network, settings.prior)
        if not network.latents:
            start = fitted.collapse(None, 0)
            return [fit_em(fitted, start, settings.convergence, settings.max_iter, settings.tol)]
        starts = []
        for number, rng in enumerate(random_generator(self.seed).spawn(self.n_init)):
            tables = random_tables(network.cardinalities, network.parents, rng)
            init = network.init_tables() if number == 0 else [None] * len(tables)
            starts.append(([drawn if kept is None else kept for drawn, kept in zip(tables, init)],))
        with progress(self.show_progress and config.SHOW_PROGRESS, "starts", total=len(starts)) as tick:

            def run(tables):
                fit = fit_parameters(fitted, fitted.read_tables(network.parents, tables), settings)
                if tick is not None:
                    tick(1)
                responsibilities = np.empty_like(fit.responsibilities)
                responsibilities[fitted.order] = fit.responsibilities
                tables = fitted.write_tables(network.parents, fit.parameters)
                return fit._replace(parameters=tables, responsibilities=responsibilities)

            try:
                return map_jobs(run, starts, self.n_jobs, threads=True)
            except CliqueTooLarge as error:
                raise error.named(network.names) from None
            except ImpossibleEvidence as error:
                raise ImpossibleEvidence(network.first_row(error.row)) from None

    def _read(self, model, network, found, fits, best):
        tables = found.parameters
        if network.latents and not network.init:
            order = np.argsort(-(network.weights @ found.responsibilities), kind="stable")
            tables = relabel(tables, network.parents, network.cardinalities, 0, order)
        set_tables(self, model, network, tables)
        self.log_likelihood_ = float(found.log_likelihood)
        self.score_path_ = np.array(found.path)
        self.n_iter_ = int(found.n_updates)
        self.converged_ = bool(found.converged)
        self.rounds_ = pd.DataFrame(
            [tuple(r) for r in found.rounds], columns=["unassigned", "em_updates", "value"]
        ).astype({"em_updates": np.int64})
        self.starts_ = starts_table(
            [fit.value for fit in fits],
            [fit.converged for fit in fits],
            [fit.n_updates for fit in fits],
            np.arange(len(fits)) == best,
            log_likelihood=[fit.log_likelihood for fit in fits],
        )


def _model(network, prior):
    """The fast model when the network is augmented naive Bayes below its latent, else the general one."""
    cards, families = network.cardinalities, network.parents[1:]
    below = network.latents and network.parents[0] == () and all(0 in ps and len(ps) <= 2 for ps in families)
    if below and families:
        cases = make_cases(network.codes[:, 1:], cards[1:], network.weights)
        return AugmentedModel.build(cases, [next((p - 1 for p in ps if p), -1) for ps in families], prior)
    return GeneralModel(network.codes.astype(np.int64), network.weights, cards, network.parents, prior, 0)
