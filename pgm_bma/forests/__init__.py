"""Sums over all forests: classifiers and clusters averaged over every augmented naive Bayes structure."""
