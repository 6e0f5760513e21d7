"""Kikuchi-Bayes: region graphs, interaction terms, their selection and weights.

regions      regions, energies, selection, criteria
terms        terms, weights, tuning, content, fit
numbers      numeric_cuts, numeric_pairs, numeric_gaussian, numeric_terms, numeric_pair_choice, numeric_fit, numeric_results
faces        reading, numeric_face, network, factor_elimination, classifier
"""
