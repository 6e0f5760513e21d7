"""Few drawn tables behind intervals and p-values: their number is a constant that reports name, and most of the time of a run."""

import pytest

from pgm_bma.commands import cluster


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(cluster, "N_BOOTSTRAP", 19)
