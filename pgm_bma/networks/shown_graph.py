"""networkx graphs that a notebook draws: the same graphs with `plot()` and a picture for notebooks.

The classes are made on first use, because networkx is imported only where it is needed; they are found by name again, so that
such graphs can be pickled.
"""

from functools import cache


def __getattr__(name):
    if name in ("ShownDiGraph", "ShownGraph"):
        return _shown(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _shown(name):
    import networkx as nx

    def plot(self, **options):
        """The picture of the graph: see `pgm_bma.plotting`."""
        from pgm_bma.plotting.notebook import draw_graph

        return draw_graph(self, **options)

    def _repr_html_(self):
        from pgm_bma.plotting.notebook import graph_html

        return graph_html(self)

    base = nx.DiGraph if name == "ShownDiGraph" else nx.Graph
    # copies and subgraphs keep the class; what turns arcs into edges gets the other one
    return type(name, (base,), {"plot": plot, "_repr_html_": _repr_html_, "__module__": __name__,
                                "__doc__": f"networkx.{base.__name__} with `plot()`."})  # fmt: skip
