"""Base classes of the estimators, checks of their parameters, shared parts of docstrings."""
