"""Estimators for discrete data that average over graphical-model structures instead of betting on one.

Public names are loaded on first use, so that ``import pgm_bma`` itself imports nothing heavy; `catalogue` lists them.
"""

from importlib import import_module

from pgm_bma import catalogue as _catalogue

_PUBLIC = _catalogue.public()
__all__ = [*_PUBLIC, *_catalogue.MODULES]


def __getattr__(name):
    if name in _PUBLIC:
        value = getattr(import_module(f"pgm_bma.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    if name in _catalogue.MODULES:
        return import_module(f"pgm_bma.{name}")
    if name == "__version__":
        metadata = import_module("importlib.metadata")  # setup.cfg has it, once
        try:
            return metadata.version("pgm-bma")
        except metadata.PackageNotFoundError:
            return "unknown"  # a folder on the path that was never installed
    raise AttributeError(f"module 'pgm_bma' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
