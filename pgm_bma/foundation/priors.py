"""Public prior parameters, checked and turned into numbers: pseudo-counts and the priors of class arcs."""

import numpy as np

from pgm_bma.foundation.validation import check_number


def arc_prior_array(arc_prior, names):
    """Prior of every class arc: (n_columns,), from a number or a dict by column (others 0.5)."""
    if not isinstance(arc_prior, dict):
        check_number("arc_prior", arc_prior, 0.0, 1.0)
        return np.full(len(names), float(arc_prior))
    for name, prior in arc_prior.items():
        if name not in names:
            raise ValueError(f"arc_prior names {name!r}, which is no column of X")
        check_number(f"arc_prior[{name!r}]", prior, 0.0, 1.0)
    return np.array([float(arc_prior.get(name, 0.5)) for name in names])


def independent_alpha(alpha, n_parent_states, parameter_prior="consistent"):
    """Pseudo-count of a cell of the table without the arc, where a cell of the table with it has `alpha`.

    "consistent": both tables hold the same prior mass, ``n_parent_states * alpha`` a state; with less, flat noise of many states
    would reward the arc. "paper": `alpha` in every cell.
    """
    return alpha * n_parent_states if parameter_prior == "consistent" else alpha


def check_prior(alpha, equivalent_sample_size):
    """Positive pseudo-counts, and only one of the two ways to state them."""
    check_number("alpha", alpha, 0.0, open_low=True)
    if equivalent_sample_size is not None:
        check_number("equivalent_sample_size", equivalent_sample_size, 0.0, open_low=True)
        if alpha != 1.0:
            raise ValueError(
                f"alpha={alpha!r} and equivalent_sample_size={equivalent_sample_size!r} exclude each other"
            )
