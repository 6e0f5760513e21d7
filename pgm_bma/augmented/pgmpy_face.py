"""pgmpy face of BC+EM: parameters of a network with a latent variable by Bound and Collapse and EM."""

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from pgmpy.parameter_estimator import DiscreteParameterEstimator
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.augmented import general
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.structural_em import CONVERGENCES, LOOPS, Settings, fit_em, fit_parameters
from pgm_bma.augmented.structures import AugmentedModel
from pgm_bma.foundation.parallel import check_n_jobs
from pgm_bma.foundation.priors import check_prior
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice, check_number
from pgm_bma.foundation.warn import warn
from pgm_bma.networks.cpds import read_cpds
from pgm_bma.networks.em import relabel
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.junction_tree import CliqueTooLarge
from pgm_bma.networks.objects import bayesian_network
from pgm_bma.networks.reading import check_frame, progress_bar, read_network


class BoundCollapseEMEstimator(DiscreteParameterEstimator):
    """Tables of a discrete Bayesian network with at most one latent variable by BC+EM.

    Cases whose latent state is clear are assigned to it, Bound and Collapse estimates the tables from that partly completed
    data, and EM goes on from there; repeated until nothing changes. Without a latent variable (only cells are missing) Bound
    and Collapse runs once, as the start of EM.

    Parameters
    ----------
    state_names : dict node -> states, optional
        Observed and latent nodes; may hold states never seen.
    latent_card : dict latent -> number of states, optional
        2 where nothing is said.
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
    max_iter, atol : int, default=150; float, default=1e-6
        EM updates of a start at most; relative change of the watched value that counts as converged.
    seed : int, Generator, RandomState or None
    n_jobs : int, default=1
        Threads over the starts; the result does not depend on it.
    show_progress : bool, default=True
        A progress bar for fits that take longer than two seconds.

    Attributes
    ----------
    parameters_ : list of TabularCPD
    state_names_ : dict node -> states
    log_likelihood_ : float, of the returned tables
    score_path_ : (n_iter_ + 1,) array, the watched value at the best start and after each of its EM updates
    n_iter_, converged_ : int and bool, of the best start
    rounds_ : DataFrame, one line per Bound and Collapse of the best start: cases left unassigned, EM updates, value reached
    starts_ : DataFrame, one line per start

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

    def __init__(
        self,
        state_names=None,
        latent_card=None,
        alpha=1.0,
        equivalent_sample_size=None,
        bound_collapse_loop="released",
        fixing_probability_threshold=0.51,
        convergence="log_posterior",
        n_init=10,
        init_cpds=None,
        max_iter=150,
        atol=1e-6,
        seed=None,
        n_jobs=None,
        show_progress=True,
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

    def fit(self, model, data, sample_weight=None):
        """Estimate the tables of `model` from `data`.

        Parameters
        ----------
        model : DiscreteBayesianNetwork or DAG with at most one latent variable
        data : DataFrame with a column for every node that is not latent; NaN and None are missing, other columns ignored
        sample_weight : (n_samples,), optional; a weight is a repetition of the row

        Returns
        -------
        self
        """
        check_frame(data)
        model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        self._check_parameters()
        given = read_cpds(self.init_cpds or {}, set(model.nodes()), "init_cpds")
        network = read_network(model, data, self.state_names, self.latent_card, (given, {}), sample_weight)
        if len(network.latents) > 1:
            raise ValueError(
                f"BC+EM is defined for one latent variable, the network has {list(network.latents)}; use EMEstimator"
            )
        settings = Settings(
            prior=anb.Prior(float(self.alpha), self.equivalent_sample_size),
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
        if not self.converged_ and self.max_iter > 0 and self.atol > 0:
            warn(
                f"the best start did not converge in max_iter={self.max_iter} updates; raise max_iter or atol",
                ConvergenceWarning,
            )
        return self

    def _run(self, network, settings):
        """One FitResult per start, parameters as a list of tables."""
        cards = network.cardinalities
        room = _room(network, settings.prior)
        if not network.latents:
            start = room.collapse(None, 0)
            return [fit_em(room, start, settings.convergence, settings.max_iter, settings.tol)]
        starts = []
        for number, rng in enumerate(random_generator(self.seed).spawn(self.n_init)):
            tables = general.random_tables(cards, network.parents, rng)
            init = network.init_tables() if number == 0 else [None] * len(tables)
            starts.append([drawn if kept is None else kept for drawn, kept in zip(tables, init)])
        try:
            with progress_bar(self.show_progress, "starts") as progress:
                parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
                return parallel(delayed(_fit_start)(room, tables, network, settings, progress) for tables in starts)
        except CliqueTooLarge as error:
            raise error.named(network.names) from None
        except ImpossibleEvidence as error:
            raise ImpossibleEvidence(network.first_row(error.row)) from None

    def _read(self, model, network, found, fits, best):
        tables = found.parameters
        if network.latents and not network.init:
            order = np.argsort(-(network.weights @ found.responsibilities), kind="stable")
            tables = relabel(tables, network.parents, network.cardinalities, 0, order)
        built = bayesian_network(network.names, network.states, network.parents, tables, network.latents)
        cpds = {cpd.variable: cpd for cpd in built.cpds}
        states = dict(zip(network.names, network.states))
        self.parameters_ = [cpds[node] for node in model.nodes()]
        self.state_names_ = {node: list(states[node]) for node in model.nodes()}
        self.log_likelihood_ = float(found.log_likelihood)
        self.score_path_ = np.array(found.path)
        self.n_iter_ = int(found.n_updates)
        self.converged_ = bool(found.converged)
        self.rounds_ = pd.DataFrame(
            [tuple(r) for r in found.rounds], columns=["unassigned", "em_updates", "value"]
        ).astype({"em_updates": np.int64})
        self.starts_ = pd.DataFrame(
            {
                "score": [fit.value for fit in fits],
                "iterations": [fit.n_updates for fit in fits],
                "converged": [bool(fit.converged) for fit in fits],
                "weight": (np.arange(len(fits)) == best).astype(float),
                "log_likelihood": [fit.log_likelihood for fit in fits],
            }
        )

    def _check_parameters(self):
        check_choice("bound_collapse_loop", self.bound_collapse_loop, LOOPS)
        check_choice("convergence", self.convergence, CONVERGENCES)
        check_number("fixing_probability_threshold", self.fixing_probability_threshold, 0.0, 1.0)
        check_number("n_init", self.n_init, 1, integer=True)
        check_number("max_iter", self.max_iter, 1, integer=True)
        check_number("atol", self.atol, 0.0)
        check_n_jobs(self.n_jobs)
        if self.alpha != 0 or self.equivalent_sample_size is not None:  # 0 is maximum likelihood
            check_prior(self.alpha, self.equivalent_sample_size)


def _room(network, prior):
    """The fast room when the network is augmented naive Bayes below its latent, else the general one."""
    cards, families = network.cardinalities, network.parents[1:]
    below = network.latents and network.parents[0] == () and all(0 in ps and len(ps) <= 2 for ps in families)
    if below and families:
        cases = anb.make_cases(network.codes[:, 1:], cards[1:], network.weights)
        return AugmentedModel.build(cases, [next((p - 1 for p in ps if p), -1) for ps in families], prior)
    return general.GeneralModel(network.codes.astype(np.int64), network.weights, cards, network.parents, prior, 0)


def _fit_start(room, tables, network, settings, progress=None):
    """BC+EM from tables in the order of the network, whichever room runs it."""
    fit = _fit_in_room(room, tables, network, settings)
    if progress is not None:
        progress(1)
    return fit


def _fit_in_room(room, tables, network, settings):
    if not isinstance(room, AugmentedModel):
        return fit_parameters(room, tables, settings)
    cards, families = network.cardinalities, network.parents[1:]
    turned = [_swap(t, ps, cards) if ps[0] else t for t, ps in zip(tables[1:], families)]
    packed = anb.pack_tables([t.reshape(cards[0], -1) for t in turned])
    fit = fit_parameters(room, anb.Parameters(np.ascontiguousarray(tables[0][0]), packed), settings)
    back = [t.reshape(-1, t.shape[-1]) for t in anb.unpack_tables(fit.parameters.table, room.layout)]
    back = [_swap(t, ps[::-1], cards) if ps[0] else t for t, ps in zip(back, families)]
    responsibilities = np.empty_like(fit.responsibilities)
    responsibilities[room.cases.order] = fit.responsibilities
    return fit._replace(parameters=[fit.parameters.class_probs[None], *back], responsibilities=responsibilities)


def _swap(cpt, parents, cards):
    """The table of a node with two parents, the other one first."""
    shaped = cpt.reshape(*(int(cards[p]) for p in parents), -1)
    return np.ascontiguousarray(shaped.swapaxes(0, 1)).reshape(cpt.shape)
