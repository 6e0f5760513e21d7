"""Classifier averaged exactly over all forest-augmented naive Bayes structures."""

import numpy as np
import pandas as pd

from pgm_bma.algorithms.forest_average import (
    best_tree,
    expected_evidence,
    family_mean,
    fit_forest_average,
    log_joint_with_error,
    sample_trees,
)
from pgm_bma.estimators._base import check_choice, check_number, random_generator
from pgm_bma.estimators._classifier import ClassifierBase, single_row
from pgm_bma.estimators.naive_bayes import arc_prior_array, check_prior

MAX_STATES = 20_000  # of all columns together: the pair tables hold their square


class ForestAveragedClassifier(ClassifierBase):
    """Class posterior averaged exactly over every structure in which each column has the class as a parent and at most one
    other column, without cycles. The sum over all of them is a determinant (directed matrix-tree theorem).

    Parameters
    ----------
    class_arcs : "all" (the class is a parent of every column) or "selective" (each column with or without it)
    arc_prior : prior of an arc class -> column under "selective"; a number or a dict by column
    structure_prior : "arc_cost" (every arc between columns costs log n), "friedman_koller" (log(n - 1)) or "uniform"
    forbidden_arcs : pairs (parent, child) of columns that no structure may have, or "all"
    alpha, equivalent_sample_size : pseudo-count per cell (K2 when 1), or BDeu's total
    max_completions : rows with missing cells are summed out exactly up to this many completions
    n_forests : forests sampled for rows past that; the standard error is in `predict_proba_with_error`
    random_state : seeds those samples
    state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`

    Attributes
    ----------
    edge_posterior_ : DataFrame parent x child, P(parent -> child | data) between columns
    class_arc_posterior_ : Series, P(class -> column | data); 1 under class_arcs="all"
    edge_graph_ : networkx DiGraph with `posterior`; log_evidence_ : log p(data), structures and parameters summed out
    model_ : the most probable structure with posterior-mean tables (a pgmpy network; `model_is_exact_` is False)

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import ForestAveragedClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = ["even", "odd", "odd", "even"] * 6
    >>> classifier = ForestAveragedClassifier().fit(X, y)
    >>> classifier.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    >>> round(float(classifier.edge_posterior_.loc["a", "b"]), 2)
    0.5
    """

    model_is_exact_ = False

    def __init__(
        self,
        *,
        class_arcs="all",
        arc_prior=0.5,
        structure_prior="arc_cost",
        forbidden_arcs=None,
        alpha=1.0,
        equivalent_sample_size=None,
        max_completions=64,
        n_forests=200,
        random_state=0,
        state_names=None,
        target_name=None,
        handle_unknown="error",
    ):
        self.class_arcs = class_arcs
        self.arc_prior = arc_prior
        self.structure_prior = structure_prior
        self.forbidden_arcs = forbidden_arcs
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.max_completions = max_completions
        self.n_forests = n_forests
        self.random_state = random_state
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown

    def _fit(self, training):
        check_prior(self.alpha, self.equivalent_sample_size)
        check_choice("class_arcs", self.class_arcs, ("all", "selective"))
        check_number("max_completions", self.max_completions, 1, integer=True)
        check_number("n_forests", self.n_forests, 2, integer=True)
        names, cardinalities = list(training.schema.names), training.schema.cardinalities
        if cardinalities.sum() > MAX_STATES:
            raise ValueError(
                f"the {len(names)} columns have {cardinalities.sum()} states together; a sum over all forests wants the square of "
                f"that in memory and at most {MAX_STATES}: select columns first, for example by AveragedNaiveBayesClassifier"
            )
        self._result = fit_forest_average(
            training.codes,
            cardinalities,
            training.target,
            len(training.classes),
            training.weights,
            alpha=self.alpha,
            equivalent_sample_size=self.equivalent_sample_size,
            class_arc_prior=arc_prior_array(self.arc_prior, names) if self.class_arcs == "selective" else None,
            structure_prior=self.structure_prior,
            forbidden=forbidden_matrix(self.forbidden_arcs, names),
        )
        self._seed = int(random_generator(self.random_state).integers(2**63))
        self.edge_posterior_ = pd.DataFrame(self._result.arc_posterior.T, index=names, columns=names)
        self.class_arc_posterior_ = pd.Series(self._result.class_arc_posterior, index=names, name="class_arc_posterior")
        self.log_evidence_ = self._result.log_evidence

    def _log_joint(self, codes):
        return self._log_joint_with_error(codes)[0]

    def _log_joint_with_error(self, codes):
        rng = np.random.default_rng(self._seed)  # the same forests at every call
        return log_joint_with_error(self._result, codes, self.max_completions, self.n_forests, rng)

    def predict_proba_with_error(self, X):
        """(probabilities, standard errors): errors are 0 for rows that were summed out exactly."""
        log_joint, relative = self._log_joint_with_error(self._encode(X))
        joint = np.exp(log_joint - log_joint.max(1, keepdims=True))
        proba = joint / joint.sum(1, keepdims=True)
        # first order, classes taken as independent: an upper bound where their errors go together
        spread = proba * relative
        total = np.sqrt((spread**2).sum(1, keepdims=True))
        return proba, np.sqrt(((1 - proba) * spread) ** 2 + proba**2 * np.maximum(total**2 - spread**2, 0.0))

    def explain(self, row):
        """Expected log evidence per column and class for one complete row, under the structures as the row re-weights them.

        The row "(structures)" is what that re-weighting costs; the column sums are the log joint.
        """
        codes = self._encode(single_row(row, self))
        if (codes < 0).any():
            name = self.schema_.names[int(np.argmax(codes[0] < 0))]
            raise ValueError(f"the row has no value for {name!r}; evidence is split by column for complete rows only")
        evidence = np.vstack([np.log(self._result.class_probability), expected_evidence(self._result, codes)])
        index = ["(prior)", *self.schema_.names, "(structures)"]
        return pd.DataFrame(evidence, index=index, columns=list(self.classes_))

    @property
    def edge_graph_(self):
        """Arcs with their posterior probability, from the class and between columns; may be cyclic."""
        from pgm_bma.results.graphs import posterior_graph

        arcs = {(self.target_name_, name): p for name, p in self.class_arc_posterior_.items()}
        arcs.update({(a, b): p for a, row in self.edge_posterior_.iterrows() for b, p in row.items() if a != b})
        return posterior_graph([self.target_name_, *self.schema_.names], arcs, prior=self.structure_prior)

    def _arc_posteriors(self):
        graph = self.edge_graph_
        return {arc: graph.edges[arc]["posterior"] for arc in self.model_.edges() if graph.has_edge(*arc)}

    def sample_models(self, n_models=1, random_state=None):
        """Structures drawn from their posterior, as pgmpy networks with posterior-mean tables."""
        rng = random_generator(self.random_state if random_state is None else random_state)
        return [self._network(parents, flags) for parents, flags, _ in sample_trees(self._result, n_models, rng)]

    def _build_model(self):
        return self._network(*best_tree(self._result))

    def _network(self, parents, with_class):
        from pgm_bma.results.networks import bayesian_network

        families, tables = [()], [self._result.class_probability[None]]
        for i, (parent, flag) in enumerate(zip(parents, with_class)):
            families.append(((0,) if flag else ()) + ((int(parent) + 1,) if parent >= 0 else ()))
            table = family_mean(self._result, i, parent, flag)
            tables.append(table.reshape(-1, table.shape[-1]))
        names, states = [self.target_name_, *self.schema_.names], [self.target_states_, *self.schema_.states]
        return bayesian_network(names, states, families, tables)


def forbidden_matrix(forbidden_arcs, names):
    """(n, n) bool [child, parent], or None."""
    if forbidden_arcs is None:
        return None
    forbidden = np.zeros((len(names), len(names)), dtype=bool)
    if isinstance(forbidden_arcs, str):
        check_choice("forbidden_arcs", forbidden_arcs, ("all",))
        forbidden[:] = True
        return forbidden
    for parent, child in forbidden_arcs:
        for name in (parent, child):
            if name not in names:
                raise ValueError(f"forbidden_arcs names {name!r}, which is no column of X")
        forbidden[names.index(child), names.index(parent)] = True
    return forbidden
