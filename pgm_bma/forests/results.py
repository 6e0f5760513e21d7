"""Shared results of the forest-averaged classifier and clusterer: everything read off a `ForestAverage`."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from pgm_bma.forests.average import (
    PARAMETER_PRIORS,
    STRUCTURE_PRIORS,
    ForestAverage,
    best_tree,
    class_information,
    expected_evidence,
    log_joint_with_error,
    sample_trees,
    tree_tables,
)
from pgm_bma.foundation.faces.face import DiscreteEstimator
from pgm_bma.foundation.faces.validation import Choice, Integer, check_number, check_parameters, resolve_preset
from pgm_bma.foundation.numbers.families import check_prior
from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.networks.graphs import posterior_graph
from pgm_bma.networks.objects import HasStructure, bayesian_network

MAX_CELLS = 2**26  # of the pair tables: classes x the square of all states; each copy of them is half a GB then
PAPER = {"parameter_prior": "paper", "alpha": 1.0, "equivalent_sample_size": None}


class ForestResults(HasStructure, DiscreteEstimator):
    """Mixin over ``_result`` (a `ForestAverage`); a child says what its class is in ``_class_node()``: (name, states, latent).

    Its parameters include those of `_rules`, `alpha`, `equivalent_sample_size`, `preset` and `random_state`.
    """

    _result: ForestAverage
    structure_prior: str
    max_completions: int
    n_forests: int
    random_state: Any
    model_is_exact_ = False
    _paper = PAPER
    _max_columns: int
    _rules = {
        "structure_prior": Choice(*STRUCTURE_PRIORS),
        "parameter_prior": Choice(*PARAMETER_PRIORS),
        "max_completions": Integer(1),
        "n_forests": Integer(2),
    }

    def _checked_values(self, schema, n_classes):
        """Parameter values under the preset, all checked; tables that would be too large are refused."""
        values = resolve_preset(self, {"paper": self._paper})
        check_parameters(self, values)
        check_prior(values["alpha"], values["equivalent_sample_size"])
        cards, n_states = schema.cardinalities, int(schema.cardinalities.sum())
        if len(cards) > self._max_columns:
            raise ValueError(
                f"X has {len(cards)} columns; a sum over all forests takes steps by the cube of their number, minutes from here "
                f"on, and the limit is {self._max_columns}: select columns first, by AveragedNaiveBayesClassifier or EMAClusterer "
                "and their feature_importances_, say"
            )
        if n_classes * n_states**2 > MAX_CELLS:
            worst = int(np.argmax(cards))
            raise ValueError(
                f"the {len(cards)} columns have {n_states} states together, {schema.names[worst]!r} alone {cards[worst]}; a sum "
                f"over all forests needs tables of {n_classes} x {n_states} x {n_states} cells, more than {MAX_CELLS:.3g}: drop "
                "columns or merge rare states"
            )
        return values

    def _class_node(self):
        raise NotImplementedError

    def _averages(self):
        """The averages whose joints are averaged: one, or one per completed table."""
        return (self._result,)

    def _read_result(self, rng):
        names = pd.Index(self.schema_.names, dtype=object)  # pandas' own texts refuse some
        self._seed = int(rng.integers(2**63))
        self.edge_posterior_ = pd.DataFrame(self._result.arc_posterior.T, index=names, columns=names)
        self.class_arc_posterior_ = pd.Series(self._result.class_arc_posterior, index=names, name="class_arc_posterior")

    def _log_joint(self, codes):
        return self._log_joint_with_error(codes)[0]

    def _log_joint_with_error(self, codes):
        rng = np.random.default_rng(self._seed)  # the same forests at every call
        tables = self._averages()
        if len(tables) == 1:
            return log_joint_with_error(self._result, codes, self.max_completions, self.n_forests, rng)
        n_forests = max(-(-self.n_forests // len(tables)), 2)
        joints, errors = zip(*(log_joint_with_error(t, codes, self.max_completions, n_forests, rng) for t in tables))
        mean = logsumexp(joints, axis=0) - np.log(len(joints))
        shares = np.exp(np.array(joints) - mean) / len(joints)
        return mean, np.sqrt(((shares * errors) ** 2).sum(0))

    def predict_proba_with_error(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities with their standard errors.

        Parameters
        ----------
        X : table of discrete values
            Rows with the columns of the fit.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            As `predict_proba`.
        errors : array of shape (n_samples, n_classes)
            Standard errors; 0 for rows that were summed out exactly.
        """
        log_joint, relative = self._log_joint_with_error(self._encode(X))
        joint = np.exp(log_joint - log_joint.max(1, keepdims=True))
        proba = joint / joint.sum(1, keepdims=True)
        # first order, classes taken as independent: an upper bound where their errors go together
        spread = proba * relative
        total = np.sqrt((spread**2).sum(1, keepdims=True))
        return proba, np.sqrt(((1 - proba) * spread) ** 2 + proba**2 * np.maximum(total**2 - spread**2, 0.0))

    def _evidence(self, codes):
        """Expected log evidence of a complete row, under the structures as the row re-weights them; last what that costs."""
        if (codes < 0).any():
            name = self.schema_.names[int(np.argmax(codes[0] < 0))]
            raise ValueError(f"the row has no value for {name!r}; evidence is split by column for complete rows only")
        found = [expected_evidence(average, codes) for average in self._averages()]
        evidence = found[0]
        if len(found) > 1:  # tables as the row re-weights them; the last line takes what their average adds
            totals = np.sum(found, axis=1)
            mean = logsumexp(totals, axis=0) - np.log(len(found))
            evidence = np.einsum("tc,tvc->vc", np.exp(totals - mean) / len(found), found)
            evidence[-1] = mean - evidence[:-1].sum(0)
        return np.vstack([np.log(self._result.class_probability), evidence])

    def _evidence_labels(self):
        return [*super()._evidence_labels(), "(structures)"]

    @property
    def edge_graph_(self) -> Any:
        """Arcs with their posterior probability, from the class and between columns; may be cyclic."""
        name, edges = self._class_node()[0], self.edge_posterior_
        arcs = {(name, column): p for column, p in self.class_arc_posterior_.items()}
        arcs.update({(a, b): p for a, row in edges.iterrows() for b, p in row.items() if a != b})
        return posterior_graph([name, *edges.columns], arcs, prior=self.structure_prior)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Expected information of every column about the class, nats: for scikit-learn's SelectFromModel."""
        check_is_fitted(self)
        return class_information(self._result)

    def _arc_posteriors(self):
        graph = self.edge_graph_
        return {arc: graph.edges[arc]["posterior"] for arc in self.model_.edges() if graph.has_edge(*arc)}

    def sample_models(self, n_models: int = 1, random_state: Any = None) -> list:
        """Structures drawn from their posterior, as pgmpy networks with posterior-mean tables.

        Parameters
        ----------
        n_models : int, default=1
            Number to draw.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the draws; without it the estimator's own.

        Returns
        -------
        list of DiscreteBayesianNetwork
            The networks, independent of each other.
        """
        check_is_fitted(self)
        check_number("n_models", n_models, 0, integer=True)
        rng = random_generator(self.random_state if random_state is None else random_state)
        tables = self._averages()
        if len(tables) == 1:
            return [self._network(parents, flags) for parents, flags, _ in sample_trees(self._result, n_models, rng)]
        chosen = rng.permutation(len(tables))[np.arange(n_models) % len(tables)]
        drawn = ((k, *tree) for k in chosen for tree in sample_trees(tables[k], 1, rng))
        return [self._network(parents, flags, tables[k]) for k, parents, flags, _ in drawn]

    def _build_model(self):
        return self._network(*best_tree(self._result))

    def _network(self, parents, with_class, average=None):
        families, tables = tree_tables(average or self._result, parents, with_class)
        name, class_states, latent = self._class_node()
        names, states = [name, *self.schema_.names], [class_states, *self.schema_.states]
        return bayesian_network(names, states, families, tables, latents=[name] if latent else [])
