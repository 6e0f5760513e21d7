"""The posterior over structures of all columns, without a class."""

import numpy as np

from pgm_bma.foundation import table
from pgm_bma.foundation.face import DiscreteEstimator
from pgm_bma.foundation.seeds import seed_sequence
from pgm_bma.foundation.validation import check_choice, check_number, resolve_preset
from pgm_bma.orders import fitting as _order_fit
from pgm_bma.orders.results import OrderResults


class OrderPosterior(OrderResults, DiscreteEstimator):
    """Posterior of arcs and structures: exact for up to 20 variables, sampled over orders beyond (Friedman and Koller; Hwang and
    Zhang 2005).

    Parameters
    ----------
    method : "auto" (exact up to 20 variables, up to 12 under structure_weighting="dag"), "exact" or "mcmc"
    n_orders, burn_in, thin, n_chains, n_jobs, structure_weighting, init, max_indegree : as in `OrderAveragedClassifier`
    alpha, equivalent_sample_size, structure_prior, required_arcs, forbidden_arcs, n_candidates : as in `OrderAveragedClassifier`
    missing, max_completions, n_completions, checkpoint, checkpoint_every, preset : as in `OrderAveragedClassifier`
    random_state, show_progress : as in `OrderAveragedClassifier`
    state_names : dict column -> states
    handle_unknown : "error" or "missing", in `score_samples`

    Attributes
    ----------
    edge_posterior_ : DataFrame parent x child, P(parent -> child | data); `attrs` names the weighting
    edge_graph_ : networkx DiGraph with `posterior`, may be cyclic
    ancestor_posterior_, family_scores_, log_evidence_, method_, structure_weighting_ : as in `OrderAveragedClassifier`
    orders_, order_log_scores_, acceptance_rate_, diagnostics_ : as in `OrderAveragedClassifier`
    model_ : the best DAG as a pgmpy network with posterior-mean tables
    causal_graph_, best_log_score_ : the same as a pgmpy DAG, and its score
    feature_names_in_, n_features_in_, n_samples_, schema_ : as in `LatentClassClusterer`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import OrderPosterior
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6, "c": list("0101") * 6})
    >>> posterior = OrderPosterior(equivalent_sample_size=1, random_state=0).fit(X)
    >>> posterior.edge_posterior_.round(2).loc["a"].tolist()
    [0.0, 0.5, 0.02]
    >>> list(posterior.model_.edges), posterior.structure_weighting_
    ([('a', 'b')], 'order')
    """

    model_is_exact_ = False

    def __init__(
        self,
        *,
        method="auto",
        n_orders=30,
        burn_in=10_000,
        thin=1667,
        n_chains=1,
        structure_weighting="order",
        init=None,
        max_indegree=3,
        alpha=1.0,
        equivalent_sample_size=None,
        structure_prior="mdl",
        required_arcs=None,
        forbidden_arcs=None,
        n_candidates=None,
        missing="sum_out",
        max_completions=1024,
        n_completions=200,
        checkpoint=None,
        checkpoint_every=10_000,
        preset=None,
        n_jobs=None,
        random_state=None,
        show_progress=False,
        state_names=None,
        handle_unknown="missing",
    ):
        self.method = method
        self.n_orders = n_orders
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.structure_weighting = structure_weighting
        self.init = init
        self.max_indegree = max_indegree
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.structure_prior = structure_prior
        self.required_arcs = required_arcs
        self.forbidden_arcs = forbidden_arcs
        self.n_candidates = n_candidates
        self.missing = missing
        self.max_completions = max_completions
        self.n_completions = n_completions
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.preset = preset
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.show_progress = show_progress
        self.state_names = state_names
        self.handle_unknown = handle_unknown

    def fit(self, X, y=None, sample_weight=None):
        """Learn the posterior over structures of the columns of `X`; `y` is ignored.

        Parameters
        ----------
        X : table of discrete values
        sample_weight : (n_samples,), optional; a weight is a repetition of the row

        Returns
        -------
        self
        """
        with self._unchanged_by_failure():
            self._fit(*self._fold_scan(X, sample_weight))
        return self

    def _fit(self, X, sample_weight):
        values = resolve_preset(self, _order_fit.PRESETS)
        check_choice("missing", self.missing, _order_fit.MISSING)
        check_number("max_completions", self.max_completions, 1, integer=True)
        check_number("n_completions", self.n_completions, 2, integer=True)
        read = self._read_features(X, sample_weight, None)
        self._forget()
        self._feature_states = read.schema.states
        schema, codes = _order_fit.add_missing_state(read.schema, read.codes, self.missing)
        self._variables = table.Schema(schema.names, schema.states)
        rows = _order_fit.complete_training(schema, codes, read.weights, values)
        root = seed_sequence(self.random_state)
        self._average = _order_fit.average(rows, list(schema.names), values, self.random_state, root, False)
        self._seed = int(np.random.default_rng(root).integers(2**63))
        self._warn_if_chains_disagree()

    def log_joint(self, X):
        """Natural log P(row | data) of every row, averaged over structures, missing cells summed out.

        Exact under method "exact" up to 16 variables (9 under structure_weighting="dag"); else averaged over the kept orders.
        """
        codes = self._mark_missing(self._encode(X))
        return self._joint_with_error(codes, None, 1)[0][:, 0]

    def score_samples(self, X):
        """The same as `log_joint`."""
        return self.log_joint(X)

    def score(self, X, y=None, sample_weight=None):
        """Weighted mean natural log P(row | data)."""
        log_p = self.log_joint(X)
        return float(np.average(log_p, weights=table.check_weights(sample_weight, len(log_p))))

    def _fitted_summary(self):
        return f", {self.method_} over {'orders' if self.structure_weighting_ == 'order' else 'DAGs'}"
