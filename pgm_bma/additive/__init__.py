"""Averaged additive terms of columns and pairs of columns: the default classifier.

averages     what a column, a pair, and all numbers together say of the class, averaged over all ways to cut them
choice       pairs that get a term, cells that get weights    terms     all terms, each row left out of its own terms
solve        the convex fit of the weights, and the record of ridges     fit       the search for ridges
model        the fitted tables: scores, evidence, errors, JSON  classifier     the estimator
"""
