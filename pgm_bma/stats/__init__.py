"""Sufficient statistics: counts, Dirichlet scores and means, and the averaging of families."""
