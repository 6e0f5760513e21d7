"""Naive Bayes and TAN as pgmpy networks."""

from pgm_bma.naive_bayes.selective import split_tables
from pgm_bma.networks.augmented import augmented_network


def naive_bayes_network(fit, class_name, class_states, schema):
    """The class with an arc to every column; `fit` is a `NaiveBayesFit`."""
    tables = split_tables(fit, schema.cardinalities)
    return augmented_network(class_name, class_states, fit.class_probability, schema.names, schema.states, tables)


def tan_network(fit, class_name, class_states, schema):
    """The class with an arc to every column, and the tree; `fit` is a `TANFit`."""
    probability = fit.parameters.class_probs
    return augmented_network(
        class_name, class_states, probability, schema.names, schema.states, fit.tables, fit.parents
    )
