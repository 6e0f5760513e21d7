"""Clusters with dependences between columns: augmented naive Bayes, structural EM, Bound and Collapse."""
