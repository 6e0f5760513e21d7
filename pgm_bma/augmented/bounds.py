"""Probability intervals of a network under missing cells, with the names that make them readable."""

from dataclasses import dataclass
from itertools import product

import numpy as np


@dataclass(frozen=True)
class NodeBounds:
    """What Bound and Collapse says of one node; every array is (n_parent_states, n_states), first parent slowest.

    lower, upper : extremes of the estimate over all completions of the missing cells
    collapsed : the value chosen between them, a weighted mean of the tables in which all uncertain cases go to one state
    counts : complete cases      possible : incomplete cases that could become this cell
    weights : collapse weights, P(a missing case takes this state)
    """

    node: object
    states: tuple
    parents: tuple
    parent_states: tuple
    lower: np.ndarray
    upper: np.ndarray
    collapsed: np.ndarray
    counts: np.ndarray
    possible: np.ndarray
    weights: np.ndarray

    def to_frame(self):
        """The intervals as a DataFrame: one line per parent state and state, `width` the length of the interval."""
        import pandas as pd

        rows = [(*above, state) for above in product(*self.parent_states) for state in self.states]
        frame = pd.DataFrame(rows, columns=pd.Index([*self.parents, self.node], dtype=object))
        for name in ("lower", "collapsed", "upper"):
            frame[name] = getattr(self, name).ravel()
        frame["width"] = frame["upper"] - frame["lower"]
        frame["counts"], frame["possible"] = self.counts.ravel(), self.possible.ravel()
        return frame

    @property
    def labels(self):
        """One text per cell, "state | parent=state, ...", for pictures."""
        texts = []
        for above in product(*self.parent_states):
            given = ", ".join(f"{parent}={state}" for parent, state in zip(self.parents, above))
            texts += [f"{state} | {given}" if given else str(state) for state in self.states]
        return texts
