"""pgmpy face of averaged naive Bayes: a parameter estimator for ``DiscreteBayesianNetwork.fit``."""

import numpy as np
from pgmpy.parameter_estimator import DiscreteParameterEstimator

from pgm_bma.foundation import table
from pgm_bma.foundation.counts import class_counts, state_offsets
from pgm_bma.foundation.priors import arc_prior_array, check_prior
from pgm_bma.naive_bayes.selective import fit_naive_bayes
from pgm_bma.networks.augmented import augmented_network


class AveragedNaiveBayesEstimator(DiscreteParameterEstimator):
    """Parameters of an observed-class naive Bayes network, averaged exactly over all 2^n selective structures.

    Parameters
    ----------
    state_names : dict node -> states, optional
    alpha : pseudo-count per cell
    equivalent_sample_size : total prior mass of every table (BDeu), instead of `alpha`
    arc_prior : prior of an arc class -> column, a number or a dict by column

    Attributes
    ----------
    parameters_ : list of TabularCPD
    state_names_ : dict node -> states
    arc_posterior_ : dict by column, P(class -> column | data)

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

    def __init__(self, state_names=None, alpha=1.0, equivalent_sample_size=None, arc_prior=0.5):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.arc_prior = arc_prior
        super().__init__(state_names=state_names)

    def fit(self, model, data, sample_weight=None):
        """Estimate the parameters of `model`, a class with an arc to every other node, from complete classes in `data`."""
        model, sample_weight = self._validate_inputs(model, data, sample_weight=sample_weight)
        check_prior(self.alpha, self.equivalent_sample_size)
        root, names = naive_bayes_root(model)
        read = table.encode(data[[root, *names]], self.state_names, sample_weight)
        n_missing = int((read.codes[:, 0] < 0).sum())
        if n_missing:
            raise ValueError(f"class {root!r} has {n_missing} missing values; drop those rows")
        cardinalities = read.schema.cardinalities
        target = read.codes[:, 0].astype(np.int64)
        fit = fit_naive_bayes(
            np.bincount(target, read.weights, minlength=cardinalities[0]).astype(float),
            class_counts(read.codes[:, 1:], cardinalities[1:], target, int(cardinalities[0]), read.weights),
            cardinalities[1:],
            alpha=self.alpha,
            equivalent_sample_size=self.equivalent_sample_size,
            arc_prior=arc_prior_array(self.arc_prior, names),
        )
        states = read.schema.states
        tables = np.split(fit.tables, state_offsets(cardinalities[1:])[1:-1], axis=1)
        network = augmented_network(root, states[0], fit.class_probability, names, states[1:], tables)
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
