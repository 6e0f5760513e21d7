"""Clusterer with dependences between variables: structural EM over augmented naive Bayes, or over any network."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pgm_bma.augmented import structural_em as loops
from pgm_bma.augmented._expectation_kernels import N_POWERS
from pgm_bma.augmented.expectation import check_expectation
from pgm_bma.augmented.model import Prior
from pgm_bma.augmented.search import check_pairs
from pgm_bma.augmented.structural_em import KINDS, ClusterTable, StructuralEMSettings
from pgm_bma.augmented.structures import COMPLETIONS, SEARCHES
from pgm_bma.foundation.faces.clusterer import ClustererBase, Network, check_n_clusters, is_network
from pgm_bma.foundation.faces.docstrings import ROWS, STARTS, fill
from pgm_bma.foundation.faces.explanation import evidence_in_order
from pgm_bma.foundation.faces.validation import (
    Choice,
    Either,
    Integer,
    Jobs,
    Number,
    Verbose,
    check,
    check_choice,
    check_parameters,
    resolve_preset,
)
from pgm_bma.foundation.numbers.families import PSEUDO_COUNT_OR_ZERO, check_prior, information, state_offsets
from pgm_bma.foundation.numbers.graphs import sample_codes, topological_order
from pgm_bma.foundation.numbers.starts import choose_starts, path_table, starts_table
from pgm_bma.foundation.rows.blocks import as_is
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.runtime.jobs import map_jobs, progress, random_generator
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.given import known_states, read_cluster_network
from pgm_bma.networks.junction_tree import CliqueTooLarge
from pgm_bma.networks.objects import HasStructure, bayesian_network

INITS = ("both", "naive_bayes", "tree")

# what the paper did, but for the choice between EM and BC+EM, which it compares
PAPER = {
    "structures": "augmented",
    "search": "hill_climb",
    "completion": "most_probable",
    "convergence": "completed_score",
    "init": "naive_bayes",
    "n_init": 1,
    "alpha": 1.0,
    "equivalent_sample_size": None,
    "max_iter": 150,
    "tol": 1e-6,
}


@fill(starts=STARTS, rows=ROWS)
class StructuralEMClusterer(HasStructure, ClustererBase):
    """Clusters and the dependences between variables inside them, by structural EM.

    The structure found is augmented naive Bayes: the cluster is a parent of every column, and a column may have one other
    column as a parent. Parameters are fitted by EM or BC+EM, the data completed by the fitted model, the best structure for
    that completion taken, and so on while the score gains. Cells may be missing; they are summed out exactly.

    Parameters
    ----------
    n_clusters : int or iterable of int, default=2
        Number of clusters, or several to choose from by Cheeseman-Stutz, such as range(1, 7).
    parameters : {"em", "bound_collapse", "bound_collapse_alternating"}, default="em"
        EM, or BC+EM: cases whose cluster is clear (posterior above 0.51, as in the paper) are assigned, Bound and Collapse runs on
        them, EM goes on from there: to convergence, or under "alternating" for one update.
    search : {"branching", "hill_climb"}, default="branching"
        The best structure there is (maximum-weight branching), or the paper's greedy search. General structures are always
        searched by hill climbing.
    completion : {"expected", "most_probable", "expectation"}, default="expected"
        Structures are scored at expected counts; on rows given to their most probable cluster (the paper's runs), which
        invents arcs; or by the expectation of the log score over all completions (the paper's algorithm), exactly. The last one
        takes rows in memory, whole weights, and with structures="general" no missing cells.
    convergence : {"log_posterior", "log_likelihood", "completed_score"}, default="log_posterior"
        What EM watches: the value it climbs, the likelihood, or the score of the data completed with the most probable cluster
        (the paper; it stops early on plateaus).
    init : {"both", "naive_bayes", "tree"} or pgmpy network, default="both"
        First structure: no arcs between columns, the best tree without clusters, or the two in turns; parameters from
        Dirichlet(1). A network is start 0, matched by node names, and keeps its order of clusters.
    structures : {"augmented", "general"}, default="augmented"
        "general" searches all directed acyclic graphs over cluster and columns.
    max_indegree : int, default=3
        Parents of a node, the cluster included, when structures="general".
    alpha : float, default=1.0
        Pseudo-count of every cell; 0 is maximum likelihood, with structures scored as by 1.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    n_init : int, default=20
        Starts; the one with the highest completed score (most probable cluster) is kept. Where all of them would take more than
        a minute or so, only those that are best after 15 updates are run to the end, two or more.
    max_iter : int, default=150
        EM updates per structure at most.
    tol : float, default=1e-6
        Relative change of the watched value that counts as converged.
    preset : {"paper"}, optional
        The choices of the paper: greedy search, most probable completion, its convergence, one start from naive Bayes.
    {starts}

    Attributes
    ----------
    model_ : DiscreteBayesianNetwork
        The fitted network, the cluster latent.
    causal_graph_ : pgmpy DAG
        Its structure.
    labels_ : array of shape (n_samples,)
        Most probable cluster of every row, int64.
    n_clusters_ : int
        Number of clusters.
    feature_importances_ : array of shape (n_features_in_,)
        Information of every column about the cluster in the fitted model, nats.
    score_path_ : array of shape (n_iter_ + 1,)
        The score of the run, which no round lowers: with completion "most_probable" the log marginal likelihood of the
        completed data (sc_initial ... sc_final of the paper, in nats), with "expected" that of the expected counts plus the
        entropy of the completion, with "expectation" its expectation plus that entropy. First value: the start; second:
        after the first fit.
    structure_path_ : list of dict
        Arcs "added", "removed" and "reversed" between rounds.
    n_iter_ : int
        Rounds of the best start.
    n_em_updates_ : int
        EM updates of all of them.
    converged_ : bool
        True if the best start converged.
    log_likelihood_ : float
        Total log p(X), nats.
    cheeseman_stutz_ : float
        Approximate log evidence, nats.
    starts_ : DataFrame
        One line per start: start, stage (1: stopped after 15 updates, or on a sample of rows visited in passes), score
        (completed), log_likelihood, cheeseman_stutz, converged, n_iter, weight, init, em_updates.
    n_clusters_path_ : DataFrame
        The numbers of clusters tried, when there was a choice: score (`cheeseman_stutz_`), probability from it, log_likelihood,
        completed_score.
    {rows}

    References
    ----------
    Pena, Lozano, Larranaga: An improved Bayesian structural EM algorithm for learning Bayesian networks for clustering.
    Pattern Recognition Letters 21 (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma import StructuralEMClusterer, load_dataset
    >>> X = load_dataset("tic-tac-toe")[0].drop(columns="class")
    >>> clusterer = StructuralEMClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    >>> bool(clusterer.completed_score(X) / np.log(10) > -3930)  # the paper's table has -3949 and -3931
    True
    >>> sum("cluster" not in arc for arc in clusterer.causal_graph_.edges)
    7
    """

    _rules = {
        "parameters": Choice("em", "bound_collapse", "bound_collapse_alternating"),
        "search": Choice(*SEARCHES),
        "completion": Choice(*COMPLETIONS),
        "convergence": Choice(*loops.CONVERGENCES),
        "init": Either(Choice(*INITS), Network()),
        "structures": Choice(*KINDS),
        "max_indegree": Integer(1),
        "n_init": Integer(1),
        "max_iter": Integer(1),
        "tol": Number(0.0),
        "n_jobs": Jobs(),
        "verbose": Verbose(),
    }

    def __init__(
        self,
        n_clusters: int | Iterable[int] = 2,
        *,
        parameters: str = "em",
        search: str = "branching",
        completion: str = "expected",
        convergence: str = "log_posterior",
        init: Any = "both",
        structures: str = "augmented",
        max_indegree: int = 3,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        n_init: int = 20,
        max_iter: int = 150,
        tol: float = 1e-6,
        preset: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        state_names: dict | None = None,
        cluster_name: str = "cluster",
        handle_unknown: str = "missing",
    ):
        self.n_clusters = n_clusters
        self.parameters = parameters
        self.search = search
        self.completion = completion
        self.convergence = convergence
        self.init = init
        self.structures = structures
        self.max_indegree = max_indegree
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.preset = preset
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown

    # ------------------------------------------------------------------------------------------------ fitting

    def _fit_rows(self, rows, sample_rows):
        """Fit on rows that are visited in passes; starts are screened on `sample_rows` of them, None for no screening."""
        values = self._checked_values(rows.schema)
        possible = {"parameters": ["em"], "structures": ["augmented"], "completion": ["expected", "most_probable"]}
        for name, choices in possible.items():
            if values[name] not in choices:
                raise NeedsRows(f"{name}={values[name]!r}", f"{name}={choices[0]!r}")
        rows, sample = rows.prepared(as_is), None
        if sample_rows is not None:
            block, share = rows.sample(sample_rows)
            codes, weights, _ = table.fold(block.codes, block.weights)
            sample = ClusterTable(codes, weights, rows.schema.cardinalities), share
        self._fit_structures(rows.schema, rows, values, sample)

    def _fit(self, folded):
        values = self._checked_values(folded.schema, not (folded.codes < 0).any())
        if values["completion"] == "expectation":
            check_expectation(folded.codes, folded.weights, folded.schema.names, values["structures"] == "general")
        rows = ClusterTable(folded.codes, folded.weights, folded.schema.cardinalities)
        try:
            self._fit_structures(folded.schema, rows, values)
        except CliqueTooLarge as error:
            raise error.named([self.cluster_name, *folded.schema.names]) from None
        except ImpossibleEvidence as error:
            raise ImpossibleEvidence(int(np.argmax(folded.inverse == error.row))) from None

    def _fit_structures(self, schema, rows, values, sample=None):
        settings = StructuralEMSettings.read(values)
        kind, inits = KINDS[values["structures"]], self._inits(values["init"], values["n_init"])
        candidates = check_n_clusters(values["n_clusters"])
        n_final = loops.affordable_starts(kind, rows, candidates, len(inits))
        generators = random_generator(self.random_state).spawn(len(candidates))
        n_again = loops.most_run_again(inits, n_final, sample is not None)
        with progress(self.verbose, "starts", total=len(candidates) * (len(inits) + n_again)) as tick:
            found = [
                self._fit_number(schema, rows, kind, int(k), rng, inits, settings, tick, n_final, sample)
                for k, rng in zip(candidates, generators)
            ]
        scores = [np.where(finished, [run.completed_score for run in runs], -np.inf) for runs, finished in found]
        bests = [int(np.argmax(score)) for score in scores]
        kept = [runs[best] for (runs, _), best in zip(found, bests)]
        chosen = int(np.argmax([run.cheeseman_stutz for run in kept]))
        self.__dict__.pop("n_clusters_path_", None)
        if not np.isscalar(values["n_clusters"]):
            self.n_clusters_path_ = path_table(
                candidates,
                [run.cheeseman_stutz for run in kept],
                log_likelihood=[run.log_likelihood for run in kept],
                completed_score=[run.completed_score for run in kept],
            )
        self._keep(kind, kept[chosen], [self.cluster_name, *schema.names])
        runs, finished = found[chosen]
        self.starts_ = _starts_table(runs, finished, bests[chosen], inits)
        if not self.converged_ and values["tol"] > 0:
            message = f"the best start did not converge in max_iter={values['max_iter']} updates; raise max_iter or tol"
            warn(message, ConvergenceWarning)

    def _fit_number(self, schema, rows, kind, n_clusters, rng, inits, settings, tick, n_final, sample=None):
        """All runs for one number of clusters, and which were run to the end on all rows: `n_final` after a short fit of all.

        sample : (rows, share of all rows that they are) to screen the starts on, the best of which are run on all rows
        """
        given = None
        if "network" in inits:
            given = *read_cluster_network(self.init, schema, n_clusters), [self.cluster_name, *schema.names]
        first = rows if sample is None else sample[0]
        starts = loops.make_starts(kind, first, n_clusters, rng.spawn(len(inits)), inits, settings, given)

        def run_all(loop, models):
            def run(model, parameters):
                result = loop(model, parameters, settings)
                if tick is not None:
                    tick(1)
                return result

            return map_jobs(run, models, self.n_jobs, threads=True)

        models = [(start.model, start.parameters) for start in starts]
        is_short, finished = n_final < len(models), np.ones(len(models), dtype=bool)
        runs = run_all(loops.first_fit if is_short else loops.run_structural_em, models)
        if is_short:
            chosen = loops.best_first_fits(runs, inits, n_final)
            models = [models[i] for i in chosen]
        elif sample is None:
            return runs, finished
        else:
            chosen = choose_starts([found.completed_score for found in runs], finished, loops.FEWEST_STARTS)
            if given is not None:
                chosen = np.union1d(chosen, [0])  # the given network keeps its place
            runs = [found.scaled(1.0 / sample[1]) for found in runs]
            models = [(kind.model(rows, n_clusters, runs[i].parents, settings), runs[i].parameters) for i in chosen]
        for i, found in zip(chosen, run_all(loops.run_structural_em, models)):
            runs[i] = found
        return runs, np.isin(np.arange(len(runs)), chosen)

    @staticmethod
    def _inits(init, n_init):
        """First structure of every start."""
        turns = ("naive_bayes", "tree") if is_network(init) or init == "both" else (init,)
        inits = [turns[i % len(turns)] for i in range(n_init)]
        return ["network", *inits[1:]] if is_network(init) else inits

    def _keep(self, kind, run, names):
        """Read the fitted state off a run; clusters by falling probability unless a network gave their order."""
        self._parents, self._parameters = kind.by_size(run, renumber=not is_network(self.init))
        self.n_clusters_ = int(self._network()[1][0].shape[-1])
        self.score_path_ = np.array(run.scores)
        self.structure_path_ = [
            {what: [(names[a], names[b]) for a, b in change] for what, change in step.items()} for step in run.changes
        ]
        self.n_iter_ = len(run.scores) - 1
        self.n_em_updates_ = int(run.n_em_updates)
        self.converged_ = bool(run.converged)
        self.log_likelihood_ = float(run.log_likelihood)
        self.cheeseman_stutz_ = float(run.cheeseman_stutz)

    # ------------------------------------------------------------------------------------------------ scores

    def completed_score(
        self, X: Any, completion: str = "most_probable", sample_weight: ArrayLike | None = None
    ) -> float:
        """Log marginal likelihood, in nats, of rows completed by the fitted model.

        Parameters
        ----------
        X : table of discrete values
            Rows with the columns of the fit.
        completion : {"most_probable", "expected", "expectation"}, default="most_probable"
            The most probable cluster (the sc of the paper's tables, there in log10), expected counts, or the expectation over all
            completions.
        sample_weight : array of shape (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        float
            The score; higher is better.
        """
        check_choice("completion", completion, COMPLETIONS)
        codes = self._encode(X)
        weights = table.check_weights(sample_weight, len(codes))
        if completion == "expectation":
            check_expectation(codes, weights, self.schema_.names, self._kind is KINDS["general"])
        return self._model_of(codes, weights).completed_score(self._parameters, completion)

    def family_scores(
        self, X: Any, responsibilities: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Log marginal likelihood of every column below the cluster alone and below the cluster and one other column.

        Parameters
        ----------
        X : table of discrete values
            Rows with the columns of the fit.
        responsibilities : array of shape (n_samples, n_clusters), optional
            P(cluster | row); by default those of the model.
        sample_weight : array of shape (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        array of shape (n_features, n_features + 1)
            [i, 0] is column i below the cluster alone, [i, j + 1] with column j, nan where j = i.
        """
        codes = self._encode(X)
        weights = table.check_weights(sample_weight, len(codes))
        if responsibilities is None:
            responsibilities = self.predict_proba(X)
        responsibilities = np.asarray(responsibilities, dtype=float)
        if responsibilities.ndim != 2 or len(responsibilities) != len(codes):
            raise ValueError(
                f"responsibilities has shape {responsibilities.shape}, expected ({len(codes)}, n_clusters)"
            )
        if not (responsibilities >= 0).all() or not np.isfinite(responsibilities).all():
            raise ValueError(
                "responsibilities holds a negative, infinite or NaN value; pass the probabilities of the clusters"
            )
        return self._kind.family_scores(
            self._model_of(codes, weights), self._parameters, responsibilities, self.schema_.names
        )

    def _model_of(self, codes, weights):
        """The fitted structure over other rows."""
        weights = np.ones(len(codes)) if weights is None else weights
        prior = Prior(float(self.alpha), self.equivalent_sample_size)
        settings = StructuralEMSettings(prior=prior, max_indegree=self.max_indegree)
        rows = ClusterTable(codes, weights, self.schema_.cardinalities)
        return self._kind.model(rows, self.n_clusters_, self._parents, settings)

    # ------------------------------------------------------------------------------------------------ hooks

    @property
    def _kind(self):
        return loops.kind_of(self._parameters)

    def _network(self):
        """(families, tables) of the cluster, node 0, and the columns."""
        return self._kind.network(self._parents, self._parameters, self.schema_.cardinalities)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Information of every column about the cluster in the fitted model, nats: for scikit-learn's SelectFromModel."""
        check_is_fitted(self)
        sizes, profiles = self._profiles()
        return np.array([information(sizes[:, None] * profile) for profile in profiles])

    def _log_joint(self, codes):
        return self._kind.log_joint(codes, self.schema_.cardinalities, self._parents, self._parameters)

    def _evidence(self, codes):
        order = [node - 1 for node in topological_order(self._network()[0]) if node]
        return evidence_in_order(self._log_joint, order, codes[0])

    def _profiles(self):
        cards = self.schema_.cardinalities
        single = np.full((int(cards.sum()) + 1, len(cards)), -1)
        columns = np.repeat(np.arange(len(cards)), cards)
        single[1 + np.arange(len(columns)), columns] = np.arange(len(columns)) - state_offsets(cards)[columns]
        joint = np.exp(self._log_joint(single))
        sizes, rest = joint[0], joint[1:] / np.where(joint[0] > 0, joint[0], 1.0)
        return sizes, [part.T for part in np.split(rest, np.cumsum(cards)[:-1])]

    def _n_parameters(self):
        return int(sum(t.shape[0] * (t.shape[1] - 1) for t in self._network()[1]))

    def _sample_codes(self, n_samples, rng):
        families, tables = self._network()
        drawn = sample_codes(tables, families, n_samples, rng).astype(np.int64)
        return drawn[:, 1:], drawn[:, 0]

    def _build_model(self):
        families, tables = self._network()
        names, states = [self.cluster_name, *self.schema_.names], [range(self.n_clusters_), *self.schema_.states]
        return bayesian_network(names, states, families, tables, latents=[self.cluster_name])

    # ------------------------------------------------------------------------------------------------ checks

    def _checked_values(self, schema, is_complete=False):
        """Parameter values under the preset, all checked. is_complete : rows in memory without a missing cell"""
        given = is_network(self.init)
        paper = {name: value for name, value in PAPER.items() if not (given and name == "init")}
        values = resolve_preset(self, {"paper": paper})
        check_parameters(self, values)
        check("alpha", values["alpha"], PSEUDO_COUNT_OR_ZERO)
        if values["alpha"] != 0 or values["equivalent_sample_size"] is not None:  # 0 is maximum likelihood
            check_prior(values["alpha"], values["equivalent_sample_size"])
        numbers = check_n_clusters(values["n_clusters"])
        if given and len(numbers) > 1:
            raise ValueError(
                f"init= a network fixes the number of clusters, but n_clusters={self.n_clusters!r}; pass a number"
            )
        is_expectation = values["completion"] == "expectation"
        in_blocks = values["structures"] == "augmented" and is_complete and not is_expectation
        check_pairs(schema.names, schema.cardinalities, max(numbers), in_blocks, N_POWERS if is_expectation else 1)
        return values

    def _feature_state_names(self, X, forbidden_name):
        """States of the columns: declared ones, else those of the `init` network, in its order."""
        declared = super()._feature_state_names(X, forbidden_name)
        if not is_network(self.init):
            return declared
        return {**known_states(self.init, table.read_columns(X)[0]), **(declared or {})}


def _starts_table(runs, finished, best, inits):
    return starts_table(
        [run.completed_score for run in runs],
        [run.converged for run in runs],
        [len(run.scores) - 1 for run in runs],
        np.arange(len(runs)) == best,
        finished,
        log_likelihood=[run.log_likelihood for run in runs],
        cheeseman_stutz=[run.cheeseman_stutz for run in runs],
    ).assign(init=inits, em_updates=[run.n_em_updates for run in runs])
