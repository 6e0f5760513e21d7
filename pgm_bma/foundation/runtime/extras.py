"""Libraries that only some uses need, imported at that use; the error names the extra that brings them."""

from importlib import import_module

EXTRAS = {"duckdb": "duckdb", "pyarrow": "duckdb", "dask": "dask", "distributed": "dask"}


def needed(module, use):
    """The module, or an ImportError that says which extra to install for `use`."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise ImportError(f"{use} needs {name}; pip install 'pgm_bma[{EXTRAS[name]}]'") from None
