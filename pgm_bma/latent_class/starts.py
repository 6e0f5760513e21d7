"""What the loop does with its starts, as one record that the latent-class estimators take."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pgm_bma.foundation.faces.records import ParameterRecord
from pgm_bma.foundation.faces.validation import Choice, Flag, Integer, Optional

STARTS_PARAMETER = """starts : Starts, optional
        How many of the starts are run to the end (8), whether they are accelerated, and what becomes of those that lose their
        clusters. One field is changed by ``set_params(starts__n_final=None)``."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Starts(ParameterRecord):
    """What becomes of the starts of a latent-class model.

    Parameters
    ----------
    n_final : int or None, default=8
        All starts are run for 8 updates and the best `n_final` of them to the end, further ones if all of those collapse;
        None runs all to the end. Start i is the same whatever `n_init` and `n_final` are.
    collapse : {"stop", "ignore"}, default="stop"
        A start whose clusters became equal (EM), or in which no column's counts speak for its arc (EMA; every arc posterior below
        1/2 with an even prior), has lost its clusters: stop it and leave it out; or iterate to `tol` and take the tables as they
        are (the paper).
    accelerate : bool, default=True
        After 8 updates extrapolate from every three of them, where what climbs would not fall (SQUAREM); False is the plain
        loop. Only where something climbs: EM and variational EMA.

    Examples
    --------
    >>> from pgm_bma import EMAClusterer, Starts
    >>> clusterer = EMAClusterer(starts=Starts(n_final=None))
    >>> clusterer.set_params(starts__accelerate=False).starts
    Starts(n_final=None, accelerate=False)
    """

    n_final: int | None = 8
    collapse: str = "stop"
    accelerate: bool = True

    _rules: ClassVar[dict[str, Any]] = {
        "n_final": Optional(Integer(1)),
        "collapse": Choice("stop", "ignore"),
        "accelerate": Flag(),
    }


PAPER_STARTS = Starts(n_final=None, collapse="ignore", accelerate=False)
