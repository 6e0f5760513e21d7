"""Naive Bayes, its exact average over all selective structures, and TAN: classifiers with observed classes."""
