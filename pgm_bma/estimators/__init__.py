"""The faces: thin scikit-learn and pgmpy estimators over the rooms."""
