"""Averaged additive terms of columns and pairs of columns: the default classifier.

partitions   a column, and a pair, averaged over all ways to cut it          gaussian   how the numbers vary together
choice       which pairs get a term, which cells weights                     terms      all terms, and rows left out of their own
solve        the convex fit of the weights        ridges   what the search for ridges starts from        fit   the search itself
results      scores, evidence, importances, factors                          classifier the estimator
"""
