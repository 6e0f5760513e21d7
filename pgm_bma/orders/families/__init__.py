"""Scores of parent sets: full tables, pruned lists, counts from rows in passes."""
