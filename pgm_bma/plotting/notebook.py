"""HTML for notebooks: a line or two and a small picture of a fitted estimator or of a graph of results.

Pictures are PNG of at most some ten kilobytes, and networks are cut to their strongest nodes, so that a notebook with many
results stays small.
"""

import base64
import html
import io
import warnings
from typing import Any

MOST_NODES = 30
MOST_ITEMS = 12


def estimator_html(estimator: Any) -> str:
    """Words and picture of a fitted estimator.

    Parameters
    ----------
    estimator : fitted estimator
        Any of this package.

    Returns
    -------
    str
        A ``<div>`` that needs nothing else.

    Examples
    --------
    >>> import pandas as pd
    >>> import pgm_bma
    >>> from pgm_bma.plotting.notebook import estimator_html
    >>> rows = pd.DataFrame({"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5})
    >>> page = estimator_html(pgm_bma.NaiveBayesClassifier().fit(rows[["a"]], rows["b"]))
    >>> "fitted on 20 rows x 1 columns" in page, "data:image/png" in page, len(page) < 100_000
    (True, True, True)
    """
    name = type(estimator).__name__
    size = f"{estimator.n_samples_} rows x {estimator.n_features_in_} columns"
    first = f"<b>{name}</b> fitted on {size}{html.escape(estimator._fitted_summary())}."
    options = {"plot_network": {"max_nodes": MOST_NODES}, "plot_relevance": {"top": MOST_ITEMS},
               "plot_cluster_profiles": {"top": MOST_ITEMS}}.get(estimator._picture, {})  # fmt: skip
    if estimator._picture == "plot_arc_posteriors" and estimator.n_features_in_ > MOST_NODES:
        options = {"max_nodes": MOST_NODES}
    return _box([first, _learned(estimator)], lambda: draw_estimator(estimator, **options))


def draw_estimator(estimator: Any, **options: Any) -> Any:
    """A fitted estimator by the function that suits it: above 30 columns a network of the strongest arcs, not all arcs as cells.

    Parameters
    ----------
    estimator : fitted estimator
        Any of this package.
    **options : dict
        Of that function.

    Returns
    -------
    matplotlib axes
        Where it was drawn.
    """
    from pgm_bma import plotting

    is_large = estimator._picture == "plot_arc_posteriors" and estimator.n_features_in_ > MOST_NODES
    return getattr(plotting, "plot_network" if is_large else estimator._picture)(estimator, **options)


def graph_html(graph: Any) -> str:
    """Words and picture of a graph of results.

    Parameters
    ----------
    graph : networkx graph
        With `posterior` on its arcs, `counting_number` on its nodes, or plain.

    Returns
    -------
    str
        A ``<div>`` that needs nothing else.
    """
    arcs = "arcs" if graph.is_directed() else "edges"
    words = f"<b>{graph.number_of_nodes()} nodes</b>, {graph.number_of_edges()} {arcs}{_likely(graph)}."
    return _box([words], lambda: draw_graph(graph, max_nodes=MOST_NODES))


def draw_graph(graph: Any, **options: Any) -> Any:
    """A graph of results by the function that suits it.

    Parameters
    ----------
    graph : networkx graph
        With `counting_number` on its nodes (regions), `interaction` on its edges, or arcs.
    **options : dict
        Of that function.

    Returns
    -------
    matplotlib axes
        Where it was drawn.
    """
    from pgm_bma.plotting import plot_interactions, plot_network, plot_region_graph

    if any("counting_number" in data for _, data in graph.nodes(data=True)):
        options.pop("max_nodes", None)
        return plot_region_graph(graph, **options)
    if not graph.is_directed():
        options.pop("max_nodes", None)
        return plot_interactions(graph, **options)
    return plot_network(graph, **options)


def _learned(estimator):
    """One line: what was learned, in numbers."""
    if hasattr(estimator, "n_clusters_"):
        sizes = estimator._profiles()[0]
        shares = ", ".join(f"{k}: {size:.0%}".replace("%", " %") for k, size in enumerate(sizes[:10]))
        return f"Sizes of the clusters: {shares}{' ...' if len(sizes) > 10 else ''}."
    graph = getattr(estimator, "edge_graph_", None)
    if graph is not None:
        return f"{graph.number_of_nodes()} nodes{_likely(graph)}."
    importances = getattr(estimator, "feature_importances_", None)
    if importances is None:
        return ""
    names = estimator.schema_.names
    order = sorted(range(len(names)), key=lambda i: -importances[i])[:4]
    return f"Most telling columns: {html.escape(', '.join(str(names[i]) for i in order))}."


def _likely(graph):
    found = [(p, a, b) for a, b, p in graph.edges(data="posterior") if p is not None and p >= 0.5]
    if not any(p is not None for _, _, p in graph.edges(data="posterior")):
        return ""
    best = ", ".join(f"{a} → {b} ({p:.2f})" for p, a, b in sorted(found, key=lambda arc: -arc[0])[:3])
    return f", {len(found)} arcs of posterior at least 0.5{': ' if best else ''}{html.escape(best)}"


def _box(lines, draw):
    words = "".join(f"<p style='margin:.3em 0'>{line}</p>" for line in lines if line)
    return f"<div class='pgm-bma' style='max-width:60em'>{words}{_image(draw)}</div>"


def _image(draw):
    """The picture as PNG; nothing where it cannot be drawn."""
    import matplotlib.pyplot as plt

    was_interactive = plt.isinteractive()
    plt.ioff()  # a notebook would show the figure a second time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            figure = draw().figure
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=80, bbox_inches="tight")
        plt.close(figure)
    except (ValueError, RuntimeError, MemoryError) as reason:
        return f"<p style='margin:.3em 0'>No picture: {html.escape(' '.join(str(reason).split()))}</p>"
    finally:
        if was_interactive:
            plt.ion()
    content = base64.b64encode(file.getvalue()).decode()
    return f"<img alt='picture of the result' style='max-width:100%' src='data:image/png;base64,{content}'>"
