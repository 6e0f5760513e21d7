"""Clusterer with dependences between variables: structural EM over augmented naive Bayes, or over any network."""

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.augmented import general
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.sample import sample_codes
from pgm_bma.augmented.search import family_scores, make_pair_source
from pgm_bma.augmented.structural_em import CONVERGENCES, LOOPS, PARAMETERS, Settings, run_structural_em
from pgm_bma.augmented.structures import COMPLETIONS, SEARCHES, AugmentedModel, tree_structure
from pgm_bma.foundation import table
from pgm_bma.foundation.clusterer import ClustererBase, check_n_clusters
from pgm_bma.foundation.parallel import check_n_jobs
from pgm_bma.foundation.priors import check_prior
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice, check_number, resolve_preset
from pgm_bma.foundation.warn import warn
from pgm_bma.networks.cluster_network import as_augmented, is_network, known_states, read_cluster_network
from pgm_bma.networks.em import relabel
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.junction_tree import CliqueTooLarge

INITS = ("both", "naive_bayes", "tree")
MAX_PAIR_CELLS = (
    2**28
)  # pairs of states in every cluster: 2 GB, and some six times that while they are counted and scored

# what the paper did, beside the choice between EM and BC+EM, which it compares
PAPER = {
    "structures": "augmented",
    "search": "hill_climb",
    "completion": "most_probable",
    "convergence": "completed_score",
    "init": "naive_bayes",
    "n_init": 1,
    "alpha": 1.0,
    "equivalent_sample_size": None,
    "fixing_probability_threshold": 0.51,
    "max_iter": 150,
    "tol": 1e-6,
}


class StructuralEMClusterer(ClustererBase):
    """Clusters and the dependences between variables inside them, by structural EM.

    The structure found is augmented naive Bayes: the cluster is a parent of every column, and a column may have one other
    column as a parent. Parameters are fitted by EM or BC+EM, the data completed by the fitted model, the best structure for
    that completion taken, and so on while the score gains. Cells may be missing; they are summed out exactly.

    Parameters
    ----------
    n_clusters : int, or several to choose from by Cheeseman-Stutz, such as range(1, 7), default=2
    parameters : {"em", "bound_collapse"}, default="em"
        EM, or BC+EM: cases whose cluster is clear are assigned, Bound and Collapse runs on them, EM goes on from there.
    bound_collapse_loop : {"released", "alternating"}, default="released"
        EM to convergence after each Bound and Collapse, or one update.
    fixing_probability_threshold : float, default=0.51
        Posterior above which BC+EM assigns a case.
    search : {"branching", "hill_climb"}, default="branching"
        The best structure there is (maximum-weight branching), or the paper's greedy search. General structures are always
        searched by hill climbing.
    completion : {"expected", "most_probable"}, default="expected"
        Structures are scored at expected counts, or on rows given to their most probable cluster (the paper), which
        invents arcs.
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
        Starts; the one with the highest completed score (most probable cluster) is kept.
    max_iter, tol : int, default=150; float, default=1e-6
        EM updates per structure at most; relative change of the watched value that counts as converged.
    preset : {"paper"}, optional
        The choices of the paper: greedy search, most probable completion, its convergence, one start from naive Bayes.
    random_state, n_jobs, verbose, state_names, cluster_name, handle_unknown : see `LatentClassClusterer`

    Attributes
    ----------
    model_ : DiscreteBayesianNetwork with the cluster latent
    causal_graph_ : its structure as a pgmpy DAG
    labels_ : (n_samples,) int64
    n_clusters_ : int
    score_path_ : (n_iter_ + 1,) array
        The score of the run, which no round lowers: with completion "most_probable" the log marginal likelihood of the
        completed data (sc_initial ... sc_final of the paper, in nats), with "expected" that of the expected counts plus the
        entropy of the completion. First value: the start; second: after the first fit.
    structure_path_ : list of dict, arcs "added", "removed" and "reversed" between rounds
    n_iter_, n_em_updates_ : rounds, and EM updates of all of them
    converged_ : bool
    log_likelihood_, cheeseman_stutz_ : float, nats
    starts_ : DataFrame, one line per start
    n_clusters_path_ : DataFrame of the numbers tried, when there was a choice
    feature_names_in_, n_features_in_, n_samples_, schema_ : see `LatentClassClusterer`

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

    def __init__(
        self,
        n_clusters=2,
        *,
        parameters="em",
        bound_collapse_loop="released",
        fixing_probability_threshold=0.51,
        search="branching",
        completion="expected",
        convergence="log_posterior",
        init="both",
        structures="augmented",
        max_indegree=3,
        alpha=1.0,
        equivalent_sample_size=None,
        n_init=20,
        max_iter=150,
        tol=1e-6,
        preset=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
        state_names=None,
        cluster_name="cluster",
        handle_unknown="missing",
    ):
        self.n_clusters = n_clusters
        self.parameters = parameters
        self.bound_collapse_loop = bound_collapse_loop
        self.fixing_probability_threshold = fixing_probability_threshold
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

    def _fit(self, folded):
        values = self._checked_values(folded.schema)
        prior = anb.Prior(float(values["alpha"]), values["equivalent_sample_size"])
        shared = {field: values[field] for field in Settings._fields if field != "prior"}
        settings = Settings(prior=prior, **shared)
        candidates = [values["n_clusters"]] if np.isscalar(values["n_clusters"]) else list(values["n_clusters"])
        generators = random_generator(self.random_state).spawn(len(candidates))
        found = [self._fit_number(folded, int(k), rng, settings, values) for k, rng in zip(candidates, generators)]
        evidence = [runs[best].cheeseman_stutz for _, runs, best in found]
        kinds, runs, best = found[int(np.argmax(evidence))]
        self.__dict__.pop("n_clusters_path_", None)
        if not np.isscalar(values["n_clusters"]):
            self.n_clusters_path_ = pd.DataFrame(
                {
                    "n_clusters": candidates,
                    "score": evidence,
                    "log_likelihood": [tried[b].log_likelihood for _, tried, b in found],
                    "completed_score": [tried[b].completed_score for _, tried, b in found],
                }
            )
        self._keep(runs[best], [self.cluster_name, *folded.schema.names], renumber=not is_network(self.init))
        self.starts_ = pd.DataFrame(
            {
                "score": [run.completed_score for run in runs],
                "iterations": [len(run.scores) - 1 for run in runs],
                "converged": [bool(run.converged) for run in runs],
                "weight": (np.arange(len(runs)) == best).astype(float),
                "init": kinds,
                "em_updates": [run.n_em_updates for run in runs],
                "log_likelihood": [run.log_likelihood for run in runs],
                "cheeseman_stutz": [run.cheeseman_stutz for run in runs],
            }
        )
        if not self.converged_ and values["tol"] > 0:
            warn(
                f"the best start did not converge in max_iter={values['max_iter']} updates; raise max_iter or tol",
                ConvergenceWarning,
            )

    def _fit_number(self, folded, n_clusters, rng, settings, values):
        """All starts for one number of clusters: their kinds, runs, and which one is kept."""
        build = self._general_starts if values["structures"] == "general" else self._augmented_starts
        starts = build(folded, n_clusters, rng.spawn(values["n_init"]), settings.prior, values)
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", verbose=10 * int(bool(self.verbose)))
        try:
            runs = parallel(delayed(run_structural_em)(model, first, settings) for _, model, first in starts)
        except CliqueTooLarge as error:
            raise error.named([self.cluster_name, *folded.schema.names]) from None
        except ImpossibleEvidence as error:
            raise ImpossibleEvidence(int(np.argmax(folded.inverse == error.row))) from None
        best = int(np.argmax([run.completed_score for run in runs]))
        return [kind for kind, _, _ in starts], runs, best

    def _augmented_starts(self, folded, n_clusters, generators, prior, values):
        cards = folded.schema.cardinalities
        cases = anb.make_cases(folded.codes, cards, folded.weights)
        source = make_pair_source(cases)
        first = {"naive_bayes": np.full(len(cards), -1)}
        if values["init"] != "naive_bayes":
            first["tree"] = tree_structure(cases, prior)
        kinds = self._kinds(values["init"], len(generators))
        starts = []
        for kind, rng in zip(kinds, generators):
            if kind == "network":
                names = [self.cluster_name, *folded.schema.names]
                read = read_cluster_network(self.init, folded.schema, n_clusters)
                parents, class_probs, tables = as_augmented(*read, names)
                parameters = anb.Parameters(np.ascontiguousarray(class_probs), anb.pack_tables(tables))
                model = AugmentedModel.build(cases, parents, prior, source)
            else:
                model = AugmentedModel.build(cases, first[kind], prior, source)
                parameters = anb.random_parameters(model.layout, n_clusters, rng)
            starts.append((kind, model, parameters))
        return starts

    def _general_starts(self, folded, n_clusters, generators, prior, values):
        cards = np.array([n_clusters, *folded.schema.cardinalities])
        codes = general.with_cluster(folded.codes)
        naive = ((), *((0,) for _ in folded.schema.names))
        first = {"naive_bayes": naive}
        if values["init"] != "naive_bayes":
            cases = anb.make_cases(folded.codes, folded.schema.cardinalities, folded.weights)
            tree = tree_structure(cases, prior)
            joined = [(0,) if p < 0 or self.max_indegree < 2 else (0, int(p) + 1) for p in tree]
            first["tree"] = ((), *joined)
        starts = []
        for kind, rng in zip(self._kinds(values["init"], len(generators)), generators):
            if kind == "network":
                parents, parameters = read_cluster_network(self.init, folded.schema, n_clusters)
            else:
                parents = first[kind]
                parameters = general.random_tables(cards, parents, rng)
            model = general.GeneralModel(codes, folded.weights, cards, parents, prior, self.max_indegree)
            starts.append((kind, model, parameters))
        return starts

    @staticmethod
    def _kinds(init, n_init):
        """First structure of every start."""
        turns = ("naive_bayes", "tree") if is_network(init) or init == "both" else (init,)
        kinds = [turns[i % len(turns)] for i in range(n_init)]
        return ["network", *kinds[1:]] if is_network(init) else kinds

    def _keep(self, run, names, renumber):
        """Read the fitted state off a run; clusters by falling probability unless a network gave their order."""
        if isinstance(run.model, AugmentedModel):
            order = np.argsort(-run.parameters.class_probs, kind="stable") if renumber else slice(None)
            self._parents = run.model.parents
            self._parameters = anb.Parameters(
                np.ascontiguousarray(run.parameters.class_probs[order]),
                np.ascontiguousarray(run.parameters.table[:, order]),
            )
            self.n_clusters_ = len(self._parameters.class_probs)
            arcs = names[1:]
        else:
            cards = run.model.cardinalities
            order = np.argsort(-(run.model.weights @ run.responsibilities), kind="stable")
            self._parents = tuple(run.model.parents)
            self._parameters = list(run.parameters)
            if renumber:
                self._parameters = relabel(self._parameters, self._parents, cards, 0, order)
            self.n_clusters_ = int(cards[0])
            arcs = names
        self.score_path_ = np.array(run.scores)
        self.structure_path_ = [
            {what: [(arcs[a], arcs[b]) for a, b in change] for what, change in step.items()} for step in run.changes
        ]
        self.n_iter_ = len(run.scores) - 1
        self.n_em_updates_ = int(run.n_em_updates)
        self.converged_ = bool(run.converged)
        self.log_likelihood_ = float(run.log_likelihood)
        self.cheeseman_stutz_ = float(run.cheeseman_stutz)

    # ------------------------------------------------------------------------------------------------ scores

    def completed_score(self, X, completion="most_probable", sample_weight=None):
        """Log marginal likelihood, in nats, of rows completed by the fitted model.

        completion : "most_probable" cluster (the sc of the paper's tables, there in log10), or "expected" counts
        """
        check_choice("completion", completion, COMPLETIONS)
        codes = self._encode(X)
        return self._model_of(codes, table.check_weights(sample_weight, len(codes)))[0].completed_score(
            self._parameters, completion
        )

    def family_scores(self, X, responsibilities=None, sample_weight=None):
        """Log marginal likelihood of every column below the cluster alone and below the cluster and one other column.

        responsibilities : (n_samples, n_clusters), default those of the model
        returns (n_features, n_features + 1): [i, 0] the cluster alone, [i, j + 1] with column j, nan where j = i
        """
        codes = self._encode(X)
        weights = table.check_weights(sample_weight, len(codes))
        if responsibilities is None:
            responsibilities = self.predict_proba(X)
        responsibilities = np.asarray(responsibilities, dtype=float)
        if responsibilities.ndim != 2 or len(responsibilities) != len(codes):
            raise ValueError(f"responsibilities has shape {responsibilities.shape}, want ({len(codes)}, n_clusters)")
        if not (responsibilities >= 0).all() or not np.isfinite(responsibilities).all():
            raise ValueError(
                "responsibilities holds a negative, infinite or NaN value; pass the probabilities of the clusters"
            )
        model, order = self._model_of(codes, weights)
        if isinstance(model, AugmentedModel):
            if (codes < 0).any() and responsibilities.shape[1] != self.n_clusters_:
                raise ValueError(
                    f"responsibilities has {responsibilities.shape[1]} clusters, the model that completes the missing cells "
                    f"{self.n_clusters_}"
                )
            return model.family_scores(self._parameters, np.ascontiguousarray(responsibilities[order]))
        if (codes < 0).any():
            name = self.schema_.names[int(np.argmax((codes < 0).any(axis=0)))]
            raise ValueError(
                f"column {name!r} has missing cells; with structures='general' pass complete rows, or impute"
            )
        cases = anb.make_cases(codes, self.schema_.cardinalities, weights)
        return family_scores(cases, responsibilities[cases.order], model.prior)

    def _model_of(self, codes, weights):
        """The fitted structure over other rows, and the order in which it takes them."""
        cards = self.schema_.cardinalities
        prior = anb.Prior(float(self.alpha), self.equivalent_sample_size)
        if self._is_augmented:
            cases = anb.make_cases(codes, cards, weights)
            return AugmentedModel.build(cases, self._parents, prior), cases.order
        weights = np.ones(len(codes)) if weights is None else weights
        cards = np.array([self.n_clusters_, *cards])
        codes = general.with_cluster(codes)
        return general.GeneralModel(codes, weights, cards, self._parents, prior, self.max_indegree), slice(None)

    # ------------------------------------------------------------------------------------------------ hooks

    @property
    def _is_augmented(self):
        return isinstance(self._parameters, anb.Parameters)

    @property
    def causal_graph_(self):
        """The structure as a pgmpy DAG, the cluster latent."""
        from pgm_bma.networks.objects import structure_of

        return structure_of(self.model_)

    def _log_joint(self, codes):
        cards = self.schema_.cardinalities
        if self._is_augmented:
            return anb.log_joint(codes, cards, self._parents, self._parameters)
        return general.log_joint(codes, np.array([self.n_clusters_, *cards]), self._parents, self._parameters)

    def _evidence(self, codes):
        """By the chain rule, columns in an order that follows the arcs, so that the rows add up to the log joint."""
        order_of = anb.topological_order if self._is_augmented else general.column_order
        order = order_of(self._parents)
        shown = np.full((len(order) + 1, len(order)), -1)
        for step, column in enumerate(order):
            shown[step + 1 :, column] = codes[0, column]
        gained = self._log_joint(shown)
        evidence = np.zeros((len(order) + 1, self.n_clusters_))
        evidence[0] = gained[0]
        with np.errstate(invalid="ignore"):
            evidence[1 + np.array(order)] = np.where(gained[1:] == -np.inf, -np.inf, np.diff(gained, axis=0))
        return evidence

    def _profiles(self):
        cards = self.schema_.cardinalities
        single = np.full((int(cards.sum()) + 1, len(cards)), -1)
        row = 1
        for column, card in enumerate(cards):
            for state in range(card):
                single[row, column] = state
                row += 1
        joint = np.exp(self._log_joint(single))
        sizes, rest = joint[0], joint[1:] / np.where(joint[0] > 0, joint[0], 1.0)
        return sizes, [part.T for part in np.split(rest, np.cumsum(cards)[:-1])]

    def _n_parameters(self):
        cards = self.schema_.cardinalities
        if not self._is_augmented:
            return int(sum(t.shape[0] * (t.shape[1] - 1) for t in self._parameters))
        lines = np.where(self._parents >= 0, cards[np.maximum(self._parents, 0)], 1)
        return self.n_clusters_ - 1 + self.n_clusters_ * int(lines @ (cards - 1))

    def _sample_codes(self, n_samples, rng):
        cards = self.schema_.cardinalities
        if self._is_augmented:
            return sample_codes(self._parents, cards, self._parameters, n_samples, rng)
        return general.sample_codes(
            np.array([self.n_clusters_, *cards]), self._parents, self._parameters, n_samples, rng
        )

    def _build_model(self):
        from pgm_bma.networks.augmented import augmented_network
        from pgm_bma.networks.objects import bayesian_network

        names, states = self.schema_.names, self.schema_.states
        clusters = range(self.n_clusters_)
        if self._is_augmented:
            layout = anb.make_layout(self._parents, self.schema_.cardinalities)
            tables = anb.unpack_tables(self._parameters.table, layout)
            class_probs = self._parameters.class_probs
            return augmented_network(
                self.cluster_name, clusters, class_probs, names, states, tables, self._parents, latent=True
            )
        return bayesian_network(
            [self.cluster_name, *names],
            [clusters, *states],
            self._parents,
            self._parameters,
            latents=[self.cluster_name],
        )

    # ------------------------------------------------------------------------------------------------ checks

    def _checked_values(self, schema):
        """Parameter values under the preset, all checked."""
        given = is_network(self.init)
        paper = {name: value for name, value in PAPER.items() if not (given and name == "init")}
        values = resolve_preset(self, {"paper": paper})
        check_choice("parameters", values["parameters"], PARAMETERS)
        check_choice("bound_collapse_loop", values["bound_collapse_loop"], LOOPS)
        check_choice("search", values["search"], SEARCHES)
        check_choice("completion", values["completion"], COMPLETIONS)
        check_choice("convergence", values["convergence"], CONVERGENCES)
        check_choice("structures", values["structures"], ("augmented", "general"))
        check_number("fixing_probability_threshold", values["fixing_probability_threshold"], 0.0, 1.0)
        check_number("max_indegree", values["max_indegree"], 1, integer=True)
        check_number("n_init", values["n_init"], 1, integer=True)
        check_number("max_iter", values["max_iter"], 1, integer=True)
        check_number("tol", values["tol"], 0.0)
        check_n_jobs(values["n_jobs"])
        if values["alpha"] != 0 or values["equivalent_sample_size"] is not None:  # 0 is maximum likelihood
            check_prior(values["alpha"], values["equivalent_sample_size"])
        numbers = check_n_clusters(values["n_clusters"])
        if given and len(numbers) > 1:
            raise ValueError(
                f"init= a network fixes the number of clusters, but n_clusters={self.n_clusters!r}; pass a number"
            )
        if not given:
            check_choice("init", values["init"], INITS)
        n_states = int(schema.cardinalities.sum())
        if max(numbers) * n_states**2 > MAX_PAIR_CELLS:
            raise ValueError(
                f"the {len(schema.names)} columns have {n_states} states together; the search for structure counts all pairs of "
                f"them in {max(numbers)} clusters, {max(numbers) * n_states**2:,} cells, and the limit is {MAX_PAIR_CELLS:,}: "
                "select columns first"
            )
        return values

    def _feature_state_names(self, X, forbidden_name):
        """States of the columns: declared ones, else those of the `init` network, in its order."""
        declared = super()._feature_state_names(X, forbidden_name)
        if not is_network(self.init):
            return declared
        return {**known_states(self.init, table.read_columns(X)[0]), **(declared or {})}
