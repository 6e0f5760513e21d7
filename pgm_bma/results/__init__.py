"""The only place that builds pgmpy and networkx objects."""
