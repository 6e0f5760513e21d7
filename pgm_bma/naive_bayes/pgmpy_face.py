"""Averaged naive Bayes for pgmpy: a parameter estimator for ``DiscreteBayesianNetwork.fit``."""

from typing import Any, Self

import numpy as np
import pandas as pd
from pgmpy.parameter_estimator import DiscreteParameterEstimator

from pgm_bma.foundation.faces.validation import Choice, Instance, Optional, with_plain_parameters
from pgm_bma.foundation.numbers.families import PARAMETER_PRIOR, PSEUDO_COUNT
from pgm_bma.foundation.tables import table
from pgm_bma.naive_bayes.classifier import ARC_PRIOR, averaged_prior
from pgm_bma.naive_bayes.selective import fit_naive_bayes, split_tables
from pgm_bma.networks.objects import augmented_network
from pgm_bma.networks.reading import check_frame


class AveragedNaiveBayesEstimator(DiscreteParameterEstimator):
    """Parameters of an observed-class naive Bayes network, averaged exactly over all 2^n selective structures.

    Parameters
    ----------
    state_names : dict, optional
        States by node; the order is kept and states never seen may be declared.
    alpha : float, default=1.0
        Pseudo-count of a cell in the tables with the arc.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha` and `parameter_prior`.
    arc_prior : float or dict, default=0.5
        Prior of an arc class -> column, a number or by column (others 0.5).
    parameter_prior : {"consistent", "paper"}, default="consistent"
        "consistent": n_classes * alpha in a cell without the arc, so that noise of many states is not called relevant.
        "paper": alpha in every cell.
    preset : {"paper"}, optional
        Dash and Cooper's setting: one pseudo-count in every cell.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        A table for every node.
    state_names_ : dict
        States by node.
    arc_posterior_ : dict
        P(class -> column | data) by column.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgm_bma import AveragedNaiveBayesEstimator
    >>> df = pd.DataFrame({"class": ["n", "n", "y", "y"] * 5, "a": list("aabb") * 5, "b": list("abab") * 5})
    >>> model = DiscreteBayesianNetwork([("class", "a"), ("class", "b")])
    >>> model = model.fit(df, estimator=AveragedNaiveBayesEstimator())
    >>> model.get_cpds("a").values.round(2).tolist()
    [[0.92, 0.08], [0.08, 0.92]]
    """

    _tags = {"supports_latent_variables": False, "supports_weighted_data": True}
    _rules = {
        "state_names": Optional(Instance(dict, "a dict node -> states")),
        "alpha": PSEUDO_COUNT,
        "equivalent_sample_size": Optional(PSEUDO_COUNT),
        "arc_prior": ARC_PRIOR,
        "parameter_prior": PARAMETER_PRIOR,
        "preset": Optional(Choice("paper")),
    }

    def __init__(
        self,
        state_names: dict | None = None,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        arc_prior: float | dict = 0.5,
        parameter_prior: str = "consistent",
        preset: str | None = None,
    ):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.arc_prior = arc_prior
        self.parameter_prior = parameter_prior
        self.preset = preset
        super().__init__(state_names=state_names)

    @with_plain_parameters
    def fit(self, model: Any, data: pd.DataFrame, sample_weight: Any = None) -> Self:
        """Estimate the parameters of `model`, a class with an arc to every other node, from complete classes in `data`.

        Parameters
        ----------
        model : DiscreteBayesianNetwork or DAG
            A naive Bayes structure.
        data : DataFrame
            A column for every node; NaN and None are missing, but not in the class.
        sample_weight : array-like (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        AveragedNaiveBayesEstimator
            The estimator itself.
        """
        check_frame(data)
        model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        root, names = naive_bayes_root(model)
        prior = averaged_prior(self, names)
        read = table.encode(data[[root, *names]], self.state_names, sample_weight)
        n_missing = int((read.codes[:, 0] < 0).sum())
        if n_missing:
            raise ValueError(f"class {root!r} has {n_missing} missing values; drop those rows")
        states, target = read.schema.states, read.codes[:, 0].astype(np.int64)
        schema = table.Schema(tuple(names), states[1:])
        fit = fit_naive_bayes(read.codes[:, 1:], schema.cardinalities, target, len(states[0]), read.weights, prior)
        tables = split_tables(fit, schema.cardinalities)
        network = augmented_network(root, states[0], fit.class_probability, names, schema.states, tables)
        self.parameters_ = [network.get_cpds(node) for node in model.nodes()]
        self.state_names_ = {name: list(s) for name, s in zip(read.schema.names, states)}
        self.arc_posterior_ = dict(zip(names, fit.arc_posterior.tolist()))
        return self


def naive_bayes_root(model):
    """(root, children in node order) of a naive Bayes structure; any other structure is an error naming the arc."""
    roots = [node for node in model.nodes() if model.in_degree(node) == 0 and model.out_degree(node) > 0]
    root = max(roots, key=model.out_degree, default=None)
    names = [node for node in model.nodes() if node != root]
    for parent, child in model.edges():
        if parent != root:
            raise ValueError(
                f"the arc {parent!r} -> {child!r} is not part of a naive Bayes network with class {root!r}"
            )
    lonely = [name for name in names if not model.has_edge(root, name)]
    if root is None or lonely:
        raise ValueError(
            f"node {lonely[0] if lonely else None!r} has no arc from the class {root!r}; add it or drop the node"
        )
    return root, names
