"""Networks as BIF, estimators as one safe file."""
