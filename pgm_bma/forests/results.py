"""What the forest-averaged classifier and clusterer share: everything read off a `ForestAverage`."""

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.forests.average import best_tree, expected_evidence, family_mean, log_joint_with_error, sample_trees
from pgm_bma.foundation.classifier import single_row
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_number

MAX_CELLS = 100_000_000  # of the pair tables: classes x the square of all states; each copy of them is 0.8 GB then


class ForestResults:
    """Mixin over ``_result`` (a `ForestAverage`); a child says what its class is in ``_class_node()``: (name, states, latent).

    Its parameters include `max_completions`, `n_forests` and `random_state`.
    """

    model_is_exact_ = False

    def _check_sampling(self, schema, n_classes):
        check_number("max_completions", self.max_completions, 1, integer=True)
        check_number("n_forests", self.n_forests, 2, integer=True)
        cards, n_states = schema.cardinalities, int(schema.cardinalities.sum())
        if n_classes * n_states**2 > MAX_CELLS:
            worst = int(np.argmax(cards))
            raise ValueError(
                f"the {len(cards)} columns have {n_states} states together, {schema.names[worst]!r} alone {cards[worst]}; a sum "
                f"over all forests needs tables of {n_classes} x {n_states} x {n_states} cells, more than {MAX_CELLS:.3g}: drop "
                "columns or merge rare states"
            )

    def _read_result(self, rng):
        names = list(self.schema_.names)
        self._seed = int(rng.integers(2**63))
        self.edge_posterior_ = pd.DataFrame(self._result.arc_posterior.T, index=names, columns=names)
        self.class_arc_posterior_ = pd.Series(self._result.class_arc_posterior, index=names, name="class_arc_posterior")

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
        return pd.DataFrame(evidence, index=index, columns=list(self._class_node()[1]))

    @property
    def edge_graph_(self):
        """Arcs with their posterior probability, from the class and between columns; may be cyclic."""
        from pgm_bma.networks.graphs import posterior_graph

        arcs = {(self._class_node()[0], name): p for name, p in self.class_arc_posterior_.items()}
        arcs.update({(a, b): p for a, row in self.edge_posterior_.iterrows() for b, p in row.items() if a != b})
        return posterior_graph([self._class_node()[0], *self.schema_.names], arcs, prior=self.structure_prior)

    def _arc_posteriors(self):
        graph = self.edge_graph_
        return {arc: graph.edges[arc]["posterior"] for arc in self.model_.edges() if graph.has_edge(*arc)}

    def sample_models(self, n_models=1, random_state=None):
        """Structures drawn from their posterior, as pgmpy networks with posterior-mean tables."""
        check_is_fitted(self)
        check_number("n_models", n_models, 0, integer=True)
        rng = random_generator(self.random_state if random_state is None else random_state)
        return [self._network(parents, flags) for parents, flags, _ in sample_trees(self._result, n_models, rng)]

    def _build_model(self):
        return self._network(*best_tree(self._result))

    def _network(self, parents, with_class):
        from pgm_bma.networks.objects import bayesian_network

        families, tables = [()], [self._result.class_probability[None]]
        for i, (parent, flag) in enumerate(zip(parents, with_class)):
            families.append(((0,) if flag else ()) + ((int(parent) + 1,) if parent >= 0 else ()))
            table = family_mean(self._result, i, parent, flag)
            tables.append(table.reshape(-1, table.shape[-1]))
        name, class_states, latent = self._class_node()
        names, states = [name, *self.schema_.names], [class_states, *self.schema_.states]
        return bayesian_network(names, states, families, tables, latents=[name] if latent else [])
