"""Clusters with the relevance of every column: EM, EMA, variational EMA, and the number of clusters."""
