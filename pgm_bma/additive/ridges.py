"""What the search for ridges starts from and is bounded by, with the reason of each, in one frozen record."""

from dataclasses import dataclass, field

KINDS = ("single", "pair", "linear", "state", "gaussian", "cell")
OFF = 1e5  # a ridge at which a kind of term is held at its centre: it has no say


def _of_kinds(*ridges):
    return dict(zip(KINDS, ridges))


@dataclass(frozen=True)
class RidgeSearch:
    """Ridges by kind of term. The reasons stand above the values; all were chosen on the development tables."""

    # Not searched: the class shares belong to weight 1, and a level per class is hardly held back.
    fixed: dict = field(default_factory=lambda: {"prior": 5.0, "level": 0.1})
    # Steps of about three, from "free" to "off". Single terms below zero are drawn to weight 0 instead of 1: with a stiff ridge
    # that leaves them out, and what is left is a logistic regression.
    grids: dict = field(
        default_factory=lambda: {
            "single": (-OFF, -30.0, -5.0, 1.0, 5.0, 25.0, 100.0),
            "pair": (0.1, 0.3, 1.0, 5.0, 30.0, 200.0, 1000.0, OFF),
            "linear": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, OFF),
            "state": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, OFF),
            "gaussian": (1.0, 5.0, 30.0, 200.0, 1000.0, OFF),
            "cell": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, OFF),
        }
    )
    # One walk from one start ends in the nearest valley: the starts are models that are known to be good on some tables.
    starts: tuple = (
        _of_kinds(5.0, 30.0, 10.0, 30.0, 30.0, OFF),  # a little of everything
        _of_kinds(5.0, OFF, OFF, OFF, OFF, OFF),  # weighted naive Bayes
        _of_kinds(-OFF, OFF, 0.3, 1.0, OFF, OFF),  # logistic regression
        _of_kinds(-5.0, 200.0, 1.0, 3.0, 30.0, OFF),  # logistic regression with curves and pairs
        _of_kinds(25.0, 30.0, OFF, OFF, OFF, OFF),  # naive Bayes with pairs
        _of_kinds(5.0, OFF, 3.0, 10.0, 1.0, OFF),  # discriminant analysis with curves
        _of_kinds(-30.0, OFF, 0.03, 0.3, OFF, OFF),  # logistic regression that is hardly held back
    )
    # Cells have many weights, so they are asked for after all else, from a logistic regression with cells.
    cells: dict = field(default_factory=lambda: _of_kinds(-30.0, OFF, 0.3, 1.0, OFF, 1.0))
    # Ridges of the fit that shows what pairs and cells could explain: those of the first start.
    screening: dict = field(
        default_factory=lambda: {
            "prior": 5.0, "level": 0.1, "single": 5.0, "linear": 10.0, "state": 30.0, "gaussian": 30.0,
        }
    )  # fmt: skip
    # Paired standard errors that a step must gain: the best of many points is too often the luckiest.
    sure: float = 1.5
    # Nats of held-out loss by which the share of a point in the average falls by e, and how many points may have one.
    spread: float = 5.0
    most_points: int = 8
    smallest_share: float = 0.02  # of a point: smaller ones cost a fit and change nothing
    # Below ten rows nothing can be held out. From 1000 on two folds judge as well as four; 3000 rows tell ridges apart.
    fewest_rows: int = 10
    many_rows: int = 1000
    enough_rows: int = 3000
    n_folds: tuple = (4, 2)  # below and from `many_rows`
    # One fold of 100 rows shows which starts are far off; three go on to all folds.
    telling_rows: int = 100
    n_final_starts: int = 3
    # A rough optimum is enough to compare ridges; a gain below rounding is none.
    rough: float = 1e-3
    rounding: float = 1e-6


SEARCH = RidgeSearch()
