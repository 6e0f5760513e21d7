"""What may happen when something bad is handed over: it works, with finite numbers, or it is refused in words that we wrote.

Not allowed, and told as a text by `judge`: an error from the depths of a library, a type of error that no caller expects, numpy's
warnings of invalid arithmetic, NaN where probabilities or scores should be, and more CPU time than the limit.
"""

import signal
import threading
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

HOME = str(Path(__file__).parents[2] / "pgm_bma")
# whose words are written for users: ours, the checks of scikit-learn and of pgmpy, Python's about paths
SPEAKERS = (
    HOME,
    "sklearn/utils/validation",
    "sklearn/utils/multiclass",
    "pgmpy/parameter_estimator/base",
    "pathlib.py",
)
REFUSALS = (ValueError, TypeError, NotFittedError, OSError)
RAW = (np.linalg.LinAlgError, UnicodeError)  # both are ValueErrors


class TooLong(BaseException):
    """The limit of a try has passed."""


def judge(call, limit=20.0):
    """(outcome, seconds): outcome is "ok", "refused", or a text that tells what must not happen."""
    start = time.process_time()
    try:
        with warnings.catch_warnings(), _limited(limit):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            result = call()
        outcome = "NaN" if has_nan(result) else "ok"
    except TooLong:
        outcome = f"longer than {limit} s"
    except Exception as error:
        outcome = raw(error) or "refused"
    seconds = time.process_time() - start
    return (f"{seconds:.1f} s" if outcome in ("ok", "refused") and seconds > limit else outcome), seconds


def raw(error):
    """What is wrong with an error, or None."""
    frames = traceback.extract_tb(error.__traceback__)
    place, ours = frames[-1], [frame for frame in frames if HOME in frame.filename] or frames
    told = f"{type(error).__name__}: {str(error)[:150]!r} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
    if (
        isinstance(error, NotImplementedError) and "pgmpy" in place.filename
    ):  # pgmpy's word for a graph of the wrong kind
        return None
    if not isinstance(error, REFUSALS) or isinstance(error, RAW):
        return told
    if isinstance(error, OSError):  # the system's own words, with the file
        return None if error.filename or HOME in place.filename else told
    if not any(name in place.filename for name in SPEAKERS):
        return told
    return None if len(str(error).split()) > 3 else told  # "math domain error" is no message


def has_nan(result):
    """Whether numbers, arrays or tables that came back hold NaN."""
    if isinstance(result, (list, tuple)):
        return any(has_nan(part) for part in result)
    if isinstance(result, pd.DataFrame):
        return any(
            has_nan(result[name].to_numpy())
            for name in result.columns[result.dtypes.map(lambda kind: kind.kind == "f")]
        )
    if isinstance(result, (float, np.ndarray, np.floating, pd.Series)):
        values = np.asarray(result)
        return values.dtype.kind == "f" and bool(np.isnan(values).any())
    return False


class _limited:
    """An alarm after twice the limit on the clock (another process may hold the machine), in the main thread."""

    def __init__(self, limit):
        self.limit = limit

    def __enter__(self):
        self.armed = threading.current_thread() is threading.main_thread()
        if self.armed:
            self.before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, 2 * self.limit)

    def __exit__(self, *_):
        if self.armed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.before)

    @staticmethod
    def _ring(*_):
        raise TooLong
