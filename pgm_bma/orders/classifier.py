"""Classifiers averaged over networks: given one order (Dash and Cooper), or over many orders (Hwang and Zhang)."""

from collections.abc import Hashable

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation import table
from pgm_bma.foundation.classifier import ClassifierBase, single_row
from pgm_bma.foundation.seeds import random_generator, seed_sequence
from pgm_bma.foundation.validation import check_choice, check_number, resolve_preset
from pgm_bma.orders import exact_orders, fixed_order, order_mcmc
from pgm_bma.orders import fitting as _order_fit
from pgm_bma.orders.results import N_DIAGNOSED_ROWS, OrderResults
from pgm_bma.orders.structure_average import average_structures

MAX_CELLS = 1_000_000  # of the exact averaged network; pgmpy takes about a second to build that


class _OrderClassifier(OrderResults, ClassifierBase):
    """What both classifiers share: the class is the last variable, and every prediction comes from averaged joints."""

    def _prepare(self, training, values):
        """Codes of all variables with the class last, folded to complete rows."""
        check_choice("missing", self.missing, _order_fit.MISSING)
        check_number("max_completions", self.max_completions, 1, integer=True)
        check_number("n_completions", self.n_completions, 2, integer=True)
        self._forget()
        self._feature_states = training.schema.states
        schema, codes = _order_fit.add_missing_state(training.schema, training.codes, self.missing)
        self._variables = table.Schema((*schema.names, self.target_name_), (*schema.states, tuple(training.classes)))
        codes = np.column_stack([codes, training.target])
        return _order_fit.complete_training(self._variables, codes, training.weights, values)

    def _log_joint(self, codes):
        return self._log_joint_with_error(codes)[0]

    def _log_joint_with_error(self, codes):
        rows = np.column_stack([self._mark_missing(codes), np.zeros(len(codes), dtype=np.int64)])
        return self._joint_with_error(rows, len(self.schema_.names), len(self.classes_))

    def log_joint(self, X, y):
        """Natural log P(row, class | data) of every row with its class, missing features summed out.

        Parameters
        ----------
        X : table of features
        y : (n_samples,) classes, or one class for all rows
        """
        codes = self._encode(X)
        index = {label: k for k, label in enumerate(self.target_states_)}
        values = [y] * len(codes) if isinstance(y, str) or np.ndim(y) == 0 else list(y)
        unknown = [value for value in values if not isinstance(value, Hashable) or value not in index]
        if unknown:
            raise ValueError(f"y holds {unknown[0]!r}, which is no class; the classes are {list(self.target_states_)}")
        if len(values) != len(codes):
            raise ValueError(f"X and y have inconsistent lengths: {len(codes)} rows and {len(values)} classes")
        return self._log_joint(codes)[np.arange(len(codes)), [index[value] for value in values]]

    def predict_proba_with_error(self, X):
        """(probabilities, standard errors), both (n_samples, n_classes); the error is 0 where nothing was sampled."""
        log_joint, error = self._log_joint_with_error(self._encode(X))
        return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True)), error

    def explain(self, row):
        """Log evidence per variable and class for one complete row; the column sums are the log joint.

        A variable's evidence is its log probability given its parents, averaged over the kept orders as the row re-weights
        them. "(prior)" is the class given its own parents, "(orders)" what the averaging adds.
        """
        codes = self._mark_missing(self._encode(single_row(row, self)))
        if (codes < 0).any():
            name = self.schema_.names[int(np.argmax(codes[0] < 0))]
            raise ValueError(f"the row has no value for {name!r}; evidence is split by variable for complete rows only")
        n_classes = len(self.classes_)
        rows = np.append(codes, [[0]], axis=1)
        terms = fixed_order.log_terms(self._mixture(), rows, codes.shape[1], n_classes)[
            :, :, 0
        ]  # orders, nodes, classes
        shares = terms.sum(1)
        shares = np.exp(shares - logsumexp(shares, axis=0))
        evidence = np.einsum("tc,tvc->vc", shares, terms)
        rest = self._log_joint_with_error(self._encode(single_row(row, self)))[0] - evidence.sum(0)
        index = ["(prior)", *self.schema_.names, "(orders)"]
        return pd.DataFrame(
            np.vstack([evidence[-1:], evidence[:-1], rest]), index=index, columns=list(self.target_states_)
        )

    def _diagnosed(self):
        yield from super()._diagnosed()
        rows = self._average.training.codes[:N_DIAGNOSED_ROWS].astype(np.int64)
        if len(rows) == 0:
            return
        n_classes = len(self.classes_)
        joints = fixed_order.log_joints(self._mixture(), rows, rows.shape[1] - 1, n_classes)
        proba = np.exp(joints - logsumexp(joints, axis=2, keepdims=True))[:, :, 1:]
        labels = [f"P({c} | row {k})" for k in range(len(rows)) for c in self.target_states_[1:]]
        yield "class posterior", labels, proba.reshape(*self._average.states.shape[:2], -1)


class FixedOrderClassifier(_OrderClassifier):
    """Class posterior averaged over all networks that fit one order of the variables (Dash and Cooper 2004; ORD eq. 9).

    Parameters
    ----------
    order : list of all variables, the class among them, earliest first; or "random", "greedy" (from the order of the columns,
        one variable is moved at a time to where the score rises most) or "best" (exact up to 20 variables, else the best of a
        chain and a climb)
    max_indegree : most parents of a variable
    alpha, equivalent_sample_size : pseudo-count per cell (K2 when 1), or BDeu's total
    structure_prior : "mdl" (ORD eq. 13), "friedman_koller" or "uniform"
    required_arcs, forbidden_arcs : pairs (parent, child) of names
    n_candidates : parents to choose from per variable, the best by their score alone; default all, fewer for many variables
    missing : "sum_out" (exact up to `max_completions` completions of a row, else `n_completions` draws with a standard error),
        "impute" (uniformly at random, as the paper does) or "state" (missing is a value). In training, rows with missing cells
        are left out unless it is "state"
    max_completions, n_completions : see `missing`
    random_state : seeds "random", "best" and the draws
    state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`

    Attributes
    ----------
    order_ : tuple of names, earliest first
    order_log_score_ : log of prod_i sum over parent sets of prior x marginal likelihood
    edge_posterior_ : DataFrame parent x child, P(parent -> child | data, order)
    edge_graph_, ancestor_posterior_, family_scores_, best_log_score_, causal_graph_ : as in `OrderAveragedClassifier`
    orders_, order_log_scores_, acceptance_rate_, diagnostics_ : as in `OrderAveragedClassifier`, for the one order
    log_evidence_, method_, structure_weighting_ : as in `OrderAveragedClassifier`
    model_ : the exact averaged network while it has at most a million cells, else the best DAG of the order
    model_is_exact_ : bool, which of the two
    classes_, target_name_, target_states_, feature_names_in_, n_features_in_, n_samples_, schema_ : as in `NaiveBayesClassifier`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import FixedOrderClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = pd.Series(["even", "odd", "odd", "even"] * 6, name="sum")
    >>> classifier = FixedOrderClassifier(order=["a", "b", "sum"]).fit(X, y)
    >>> classifier.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    >>> round(float(classifier.edge_posterior_.loc["a", "sum"]), 3)
    1.0
    >>> classifier.to_network().check_model()
    True
    """

    def __init__(
        self,
        order="best",
        *,
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
        random_state=None,
        state_names=None,
        target_name=None,
        handle_unknown="missing",
    ):
        self.order = order
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
        self.random_state = random_state
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown

    def _fit(self, training):
        values = self.get_params(deep=False)
        rows = self._prepare(training, values)
        names = list(self._variables.names)
        scores = _order_fit.score(rows, names, values)
        required = _order_fit.arc_positions("required_arcs", self.required_arcs, names)
        rng = random_generator(self.random_state)
        order = self._choose_order(scores, names, required, rng)
        self._average = average_structures(scores, rows, "given", "order", n_kept=1, rngs=[rng], orders=[order])
        self._seed = int(rng.integers(2**63))
        self.order_ = tuple(names[v] for v in order)
        self.order_log_score_ = float(self._average.log_scores[0, 0])
        self._get_ready()

    def _choose_order(self, scores, names, required, rng):
        if not isinstance(self.order, str):
            return _order_fit.order_positions("order", self.order, names, required)
        check_choice("order", self.order, ("random", "greedy", "best"))
        if self.order == "random":
            return order_mcmc.random_order(len(names), rng, required)
        if self.order == "best" and len(names) <= exact_orders.MAX_VARIABLES:
            return exact_orders.best_order(exact_orders.sum_over_orders(scores))
        families = order_mcmc.prepare(scores)
        start = order_mcmc.random_order(len(names), _InOrder(), required)
        if self.order == "best":
            found = order_mcmc.sample_orders(families, [start], [rng], n_kept=1, burn_in=50_000, thin=1)
            start = found.best_state
        return order_mcmc.climb(families, start)

    @property
    def model_is_exact_(self):
        return fixed_order.averaged_cells(self._mixture()) <= MAX_CELLS

    def to_network(self, max_cells=MAX_CELLS):
        """The averaged joint itself as a pgmpy network: every variable has all parents that carry weight.

        Raises
        ------
        ValueError
            If its tables would hold more than `max_cells` cells; the message tells the size.
        """
        from pgm_bma.networks.objects import bayesian_network

        check_is_fitted(self)
        mix = self._mixture()
        cells = fixed_order.averaged_cells(mix)
        if cells > max_cells:
            raise ValueError(
                f"the exact averaged network has {cells:.3g} cells, more than max_cells={max_cells}: every variable has all of its "
                "predecessors as parents; use sample_dags() or model_, the best single DAG"
            )
        return bayesian_network(self._variables.names, self._variables.states, *fixed_order.averaged_network(mix))

    def _build_model(self):
        return self.to_network() if self.model_is_exact_ else super()._build_model()

    def _arc_posteriors(self):
        names, edges = self._variables.names, self._average.edges
        index = {name: k for k, name in enumerate(names)}
        return {(u, v): edges[index[u], index[v]] for u, v in self.model_.edges()}

    def _fitted_summary(self):
        return f"{super()._fitted_summary()}, given one order"


class OrderAveragedClassifier(_OrderClassifier):
    """Class posterior averaged over networks of all variables: over all orders exactly while they are few, over sampled orders
    beyond (Hwang and Zhang 2005). Joints are averaged over orders, then normalised over the class (ORD eq. 11).

    Parameters
    ----------
    method : "auto" (exact up to 12 variables, the class included), "exact" (up to 16) or "mcmc"
    orders : list of orders to average with equal weight, instead of sampling any; an order lists all variables, earliest first
    n_orders : orders kept per chain; under "exact", independent draws that `orders_` and `sample_dags` use
    burn_in, thin : iterations burn_in + 1 + thin t of every chain are kept
    n_chains, n_jobs : chains, and threads to run them in; the result does not depend on `n_jobs`
    structure_weighting : "order" (every order counts once, the paper's) or "dag" (every DAG once: exact up to 9 variables,
        partition MCMC beyond)
    init : order to start from, or one per chain; default random
    max_indegree, alpha, equivalent_sample_size, structure_prior, required_arcs, forbidden_arcs, n_candidates : as in
        `FixedOrderClassifier`. With candidates or constraints the prior of a DAG given an order is no longer normalised alike for
        all orders
    missing, max_completions, n_completions : as in `FixedOrderClassifier`
    checkpoint : file that keeps the run; a killed run started again ends with the same orders
    checkpoint_every : iterations between two writes
    preset : "paper" for the chain of the paper: 30 orders, iterations 10,001 + 1667 t
    random_state, show_progress
    state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`

    Attributes
    ----------
    edge_posterior_ : DataFrame parent x child, P(parent -> child | data); `attrs` names the weighting
    edge_graph_ : networkx DiGraph with `posterior`, may be cyclic
    ancestor_posterior_ : DataFrame ancestor x descendant, share of 1000 sampled DAGs with a directed path
    family_scores_ : DataFrame, the scores of every variable with every set of parents
    orders_, order_log_scores_ : the kept orders as tuples of names, and the log of their unnormalised posteriors
    acceptance_rate_ : share of accepted proposals (NaN without a chain)
    diagnostics_ : DataFrame, R-hat and effective size of arcs and class posteriors
    log_evidence_ : log of the sum over all orders, or all DAGs under "dag" (NaN unless exact)
    method_, structure_weighting_ : what was done
    model_ : the best DAG (exact search under "exact", best seen otherwise) with posterior-mean tables; not the average itself
    causal_graph_, best_log_score_ : its structure as a pgmpy DAG, and its score
    classes_, target_name_, target_states_, feature_names_in_, n_features_in_, n_samples_, schema_ : as in `NaiveBayesClassifier`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import OrderAveragedClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = pd.Series(["even", "odd", "odd", "even"] * 6, name="sum")
    >>> classifier = OrderAveragedClassifier(random_state=0).fit(X, y)
    >>> classifier.predict(X[:4]).tolist(), classifier.method_
    (['even', 'odd', 'odd', 'even'], 'exact')
    >>> classifier.edge_posterior_.round(2).loc["a"].tolist()
    [0.0, 0.36, 0.36]
    """

    model_is_exact_ = False

    def __init__(
        self,
        *,
        method="auto",
        orders=None,
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
        target_name=None,
        handle_unknown="missing",
    ):
        self.method = method
        self.orders = orders
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
        self.target_name = target_name
        self.handle_unknown = handle_unknown

    def _fit(self, training):
        values = resolve_preset(self, _order_fit.PRESETS)
        rows = self._prepare(training, values)
        root = seed_sequence(self.random_state)
        self._average = _order_fit.average(rows, list(self._variables.names), values, self.random_state, root, True)
        self._seed = int(np.random.default_rng(root).integers(2**63))
        self._get_ready()
        self._warn_if_chains_disagree()

    def _fitted_summary(self):
        return f"{super()._fitted_summary()}, {self.method_} over {'orders' if self.structure_weighting_ == 'order' else 'DAGs'}"


class _InOrder:
    """Stands in for a generator where ties go to the first variable."""

    @staticmethod
    def random(n):
        return np.arange(n)
