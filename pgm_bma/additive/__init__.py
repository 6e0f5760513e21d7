"""Averaged additive terms of columns and pairs of columns: the default classifier."""
