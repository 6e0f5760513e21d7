"""pgmpy's base of structure learners, from wherever the installed version has it: private in 1.1.2, public later.

It is imported with the class that derives from it, which takes some 0.4 s. What a structure learner of pgmpy has, `OrderPosterior`
has in its own way (`fit`, `score`, `causal_graph_`, `adjacency_matrix_`), so nothing but the type is taken from here.
"""

try:
    from pgmpy.causal_discovery import BaseCausalDiscovery
except ImportError:
    from pgmpy.causal_discovery._base import _BaseCausalDiscovery as BaseCausalDiscovery

__all__ = ["BaseCausalDiscovery"]
