"""Save fitted estimators and read them back, without pickle; the format is described in `pgm_bma.results.storage`."""

from pgm_bma.results.storage import load, save

__all__ = ["load", "save"]
