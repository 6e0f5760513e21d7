"""What a Kikuchi-Bayes fit looks like from outside: names on regions, tests and terms; Markov and Bayesian networks.

Inside, a region is a tuple of attribute numbers and the class is implied. Here the class is the variable after the last
attribute. Factors are exp(weight x interaction term), so their product is Phi with the class-free regions included, and
each of them stays finite where P^c would overflow.
"""

import numpy as np
import pandas as pd

from pgm_bma.kikuchi.factor_elimination import directed_tables
from pgm_bma.kikuchi.regions import elimination_order
from pgm_bma.kikuchi.terms import term_table
from pgm_bma.networks.objects import bayesian_network, markov_network


def named_region(attributes, names, target):
    """frozenset of column names and the class."""
    return frozenset([*(names[a] for a in attributes), target])


def tests_frame(tests, names, target):
    """All tests of region selection, level by level, as a DataFrame with one row per focus."""
    columns = ["region", "level", "loss", "mean_self_loss", "p", "z", "resampled", "taken"]
    parts = []
    for level, test in enumerate(tests, start=1):
        regions = np.empty(len(test.sets), dtype=object)
        regions[:] = [named_region(s, names, target) for s in test.sets]
        values = regions, level, test.loss, test.mean, test.p, test.z, test.resampled, test.taken
        parts.append(pd.DataFrame(dict(zip(columns, values))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def region_series(sets, values, names, target, name):
    """Series of one number per term, indexed by its region."""
    index = pd.Index([named_region(s, names, target) for s in sets], dtype=object, tupleize_cols=False, name="region")
    return pd.Series(values, index=index, name=name)


def region_labels(sets, names):
    """Readable names of terms: the attributes, "(prior)" for the class alone."""
    return [", ".join(str(names[a]) for a in s) or "(prior)" for s in sets]


def log_factors(fit, free_terms, n_features):
    """[(variables, logs)]: weighted terms with the class as the last axis, then terms without it.

    free_terms : Terms of a table without the class (one state), or None
    """
    factors = []
    for t, s in enumerate(fit.terms.layout.sets):
        if fit.weights[t] != 0:
            factors.append(((*s, n_features), fit.weights[t] * term_table(fit.terms, t)))
    if free_terms is not None:
        own = set(fit.terms.layout.sets)
        for t, s in enumerate(free_terms.layout.sets):
            if s not in own:  # else the class-holding term has it already
                factors.append((s, term_table(free_terms, t)[..., 0]))
    return factors


def kikuchi_markov_network(factors, names, states):
    """The model as a pgmpy ``DiscreteMarkovNetwork``; `names` and `states` end with the class."""
    return markov_network(names, states, [(variables, np.exp(values)) for variables, values in factors])


def kikuchi_bayesian_network(factors, regions, names, states):
    """The normalised model as a pgmpy ``DiscreteBayesianNetwork``, when its regions are acyclic.

    regions : sets of positions in `names`, the class last
    """
    target = len(names) - 1
    steps, core = elimination_order(regions, last=target)
    if steps is None:
        shown = ", ".join("{" + ", ".join(str(names[v]) for v in sorted(region)) + "}" for region in core[:4])
        more = f" and {len(core) - 4} more" if len(core) > 4 else ""
        raise ValueError(
            f"the regions have a loop, so that no Bayesian network of their size equals the model: {shown}{more}; fit with "
            "cycles='gated' or give acyclic regions=, or use model_ (a Markov network)"
        )
    cardinalities = {k: len(s) for k, s in enumerate(states)}
    families = directed_tables(factors, cardinalities, steps)
    order = list(families)
    position = {v: k for k, v in enumerate(order)}
    return bayesian_network(
        [names[v] for v in order],
        [states[v] for v in order],
        [[position[p] for p in families[v][0]] for v in order],
        [families[v][1] for v in order],
    )
