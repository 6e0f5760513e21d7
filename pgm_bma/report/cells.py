"""How one cell of a table is written, on the page and on the terminal, and numbers as JSON can hold them."""

import math
from typing import Any


def format_cell(value: Any, digits: int = 3) -> str:
    """Numbers with `digits` decimals, whole numbers without, missing ones as nothing.

    Examples
    --------
    >>> from pgm_bma.report.cells import format_cell
    >>> format_cell(2), format_cell(0.12345), format_cell(float("nan")), format_cell("a")
    ('2', '0.123', '', 'a')
    """
    if value is None or value != value:
        return ""
    if type(value).__name__ in ("bool", "bool_") or not hasattr(value, "__float__"):
        return str(value)
    if float(value).is_integer() and not isinstance(value, float):
        return str(int(value))
    return f"{value:.{digits}f}"


def finite(node: Any) -> Any:
    """Lists and dicts with None for what JSON has no number for.

    Examples
    --------
    >>> from pgm_bma.report.cells import finite
    >>> finite({"a": [1.0, float("nan")]})
    {'a': [1.0, None]}
    """
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [finite(value) for value in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node
