"""Kikuchi-Bayes: region graphs, interaction terms, their selection and weights."""
