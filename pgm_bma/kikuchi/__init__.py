"""Kikuchi-Bayes: region graphs, interaction terms, their selection and weights.

regions      regions, selection, criteria
terms        terms, weights, tuning, fit
estimator    reading, network, classifier
"""
