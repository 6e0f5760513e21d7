"""Structures from tables with missing values."""
