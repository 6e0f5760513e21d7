"""Docstring parts that several classes or functions share, written once."""

from collections.abc import Callable
from typing import TypeVar

Documented = TypeVar("Documented", bound=Callable)

ROWS = """feature_names_in_ : array of shape (n_features_in_,)
        Column names, where they are texts.
    n_features_in_ : int
        Number of columns.
    n_samples_ : int
        Number of rows.
    schema_ : Schema
        Columns and their states."""

NUMBERS = """numeric_columns : list of names, optional
        Columns that are numeric in any case. By default those whose numbers are not all whole or more than 20 different ones.
    categorical_columns : list of names, optional
        Columns whose numbers are states in any case."""

NAMES = f"""state_names : dict, optional
        States by column, target included; the order is kept and states never seen may be declared.
    target_name : str, optional
        Name of the class in `model_`; by default that of `y`, else "class".
    handle_unknown : {{"missing", "ignore", "error"}}, default="missing"
        Treatment of a value that `fit` has not seen: as missing with a warning, as missing, or as an error.
    {NUMBERS}"""

STARTS = """random_state : int, Generator, RandomState or None, default=None
        Seed of the starts; start i does not depend on `n_init` or `n_jobs`.
    n_jobs : int, optional
        Starts at once, as joblib reads it.
    verbose : bool or int, default=0
        Shows a bar of the starts.
    state_names : dict, optional
        States by column; the order is kept and states never seen may be declared.
    cluster_name : str, default="cluster"
        Name of the cluster in `model_`.
    handle_unknown : {"missing", "ignore", "error"}, default="missing"
        Treatment of a value that `fit` has not seen: as missing with a warning, as missing, or as an error."""

CLASSES = f"""classes_ : array of shape (n_classes,)
        Class labels, in the order of the columns of `predict_proba`.
    target_name_ : str
        Name of the class node.
    target_states_ : tuple
        Its states, with their Python types.
    {ROWS}"""

# the end of every picture's parameters, and what it returns
DRAWN = """title : str, optional
        Title above the picture.
    ax : matplotlib axes, optional
        Where to draw; None makes a new figure of fitting size.

    Returns
    -------
    matplotlib axes
        Where it was drawn."""


def fill(**parts: str) -> Callable[[Documented], Documented]:
    """Decorator of a class or function: every ``{name}`` of the docstring becomes the part of that name, indented like its line.

    Where a part begins with a parameter (``name : type``), its second line stands four spaces to the right of the first.
    """

    def decorate(thing: Documented) -> Documented:
        for name, text in parts.items():
            if thing.__doc__:  # none under python -OO
                thing.__doc__ = _put(thing.__doc__, "{" + name + "}", text)
        return thing

    return decorate


def _put(text: str, placeholder: str, part: str) -> str:
    first, *more = part.split("\n")
    lines = [line for line in text.split("\n") if placeholder in line]
    if not lines or not more:
        return text.replace(placeholder, part)
    own, wanted = _indent(more[0]) - 4 * (" : " in first), " " * _indent(lines[0])
    return text.replace(placeholder, "\n".join([first, *(wanted + line[own:] if line else "" for line in more)]))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
