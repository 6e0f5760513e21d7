"""How one cell of a table is written, on the page and on the terminal."""

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
