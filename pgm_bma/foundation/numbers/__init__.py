"""Counts, Dirichlet families, averages over families, graphs, pairs of columns, starts."""
