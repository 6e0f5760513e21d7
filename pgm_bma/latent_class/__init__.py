"""Clusters with the relevance of every column: EM, EMA and its variational twin, and the number of clusters."""
