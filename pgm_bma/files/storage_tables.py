"""Tables and graphs for `storage`: pandas, networkx and pgmpy objects as tagged JSON.

``encode(value, inner)`` returns ``[tag, content]`` or None; ``decode(tag, content, inner)`` is its inverse. `inner`
encodes or decodes the parts.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.files.invariant_checks import check_network
from pgm_bma.files.invariant_rules import TABLE, Scope


def encode(value, inner):
    """Encode a Series, DataFrame, Index, graph or network; None if it is something else."""
    root = type(value).__module__.partition(".")[0]
    return _encode_pandas(value, inner) if root == "pandas" else _encode_graph(value, inner)


def decode(tag, value, inner):
    if tag not in _DECODERS:
        raise ValueError(f"unknown kind of value {tag!r}; the file was written by a newer version or is damaged")
    return _DECODERS[tag](value, inner)


# -------------------------------------------------------------------------------------------------------- pandas


def _encode_pandas(value, inner):
    if type(value) is pd.DataFrame and _is_matrix(value):
        return ["matrix", [inner(value.index), inner(value.columns), inner(value.to_numpy())]]
    if type(value) is pd.DataFrame:
        columns = [_encode_values(value.iloc[:, i].array, inner) for i in range(value.shape[1])]
        return ["DataFrame", [inner(value.index), inner(value.columns), columns]]
    if type(value) is pd.Series:
        return ["Series", [inner(value.index), inner(value.name), _encode_values(value.array, inner)]]
    if type(value) is pd.RangeIndex:
        return ["RangeIndex", [value.start, value.stop, value.step, inner(value.name)]]
    if type(value) is pd.MultiIndex:
        codes = [inner(np.asarray(c)) for c in value.codes]
        return ["MultiIndex", [[inner(level) for level in value.levels], codes, inner(list(value.names))]]
    if isinstance(value, pd.Index):
        return ["Index", [_encode_values(value.array, inner), inner(value.name)]]
    if type(value) is pd.Categorical or isinstance(value, pd.api.extensions.ExtensionArray):
        return ["pandas.array", _encode_values(value, inner)]
    return None


def _is_matrix(frame):
    """Numbers of one numpy type in every column, such as arc posteriors: stored as one array."""
    dtypes = set(frame.dtypes)
    return len(dtypes) == 1 and all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)


def _encode_values(array, inner):
    """Encode one column as [kind, ...]: numpy, category, string, or any other extension type by its name and values."""
    dtype = array.dtype
    if isinstance(dtype, np.dtype) and dtype.kind != "M" and dtype.kind != "m":
        return ["numpy", inner(np.asarray(array))]
    if isinstance(dtype, pd.CategoricalDtype):
        return ["category", inner(np.asarray(array.codes)), inner(dtype.categories), bool(dtype.ordered)]
    if isinstance(dtype, pd.StringDtype):
        missing = "NA" if dtype.na_value is pd.NA else "nan"
        return ["string", dtype.storage, missing, [None if m else str(v) for v, m in zip(array, pd.isna(array))]]
    if isinstance(dtype, pd.SparseDtype):
        raise TypeError("a sparse column cannot be stored; make it dense")
    return ["other", str(dtype), [None if m else inner(v) for v, m in zip(array, pd.isna(array))]]


def _decode_values(value, inner):
    kind = value[0]
    if kind == "numpy":
        return inner(value[1])
    if kind == "category":
        return pd.Categorical.from_codes(inner(value[1]), categories=inner(value[2]), ordered=value[3])
    if kind == "string":
        # a file written where pyarrow is installed is read without it: storage is no part of what the column says
        storage: Any = value[1] if value[1] != "pyarrow" or find_spec("pyarrow") else "python"
        dtype = pd.StringDtype(storage, na_value=pd.NA if value[2] == "NA" else np.nan)
        return pd.array(value[3], dtype=dtype)
    return pd.array([inner(item) for item in value[2]], dtype=value[1])


def _decode_frame(value, inner):
    index, labels, columns = inner(value[0]), inner(value[1]), value[2]
    # by position first: labels may repeat
    frame = pd.DataFrame({i: _decode_values(column, inner) for i, column in enumerate(columns)}, index=index)
    frame.columns = labels
    return frame


def _decode_matrix(value, inner):
    return pd.DataFrame(inner(value[2]), index=inner(value[0]), columns=inner(value[1]))


def _decode_series(value, inner):
    values = _decode_values(value[2], inner)
    return pd.Series(values, index=inner(value[0]), name=inner(value[1]), dtype=values.dtype)


def _decode_index(value, inner):
    values = _decode_values(value[0], inner)
    return pd.Index(values, name=inner(value[1]), dtype=values.dtype)


def _decode_range_index(value, inner):
    start, stop, step, name = value
    return pd.RangeIndex(start, stop, step, name=inner(name))


def _decode_multi_index(value, inner):
    levels, codes, names = value
    return pd.MultiIndex(levels=[inner(x) for x in levels], codes=[inner(x) for x in codes], names=inner(names))


# -------------------------------------------------------------------------------------------------------- graphs


def _encode_graph(value, inner):
    """Plain networkx graphs and pgmpy DAGs by nodes and edges with attributes, Bayesian networks by their arrays."""
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if kind == "pgmpy.DiscreteBayesianNetwork":
        from pgm_bma.networks.objects import network_arrays

        return ["network", inner(network_arrays(value))]
    if kind == "pgmpy.TabularCPD":
        states = [[inner(state) for state in value.state_names[node]] for node in value.variables]
        return ["cpd", [[inner(node) for node in value.variables], states, inner(value.get_values())]]
    if kind not in _GRAPHS:
        return None
    nodes = [[inner(node), inner(data)] for node, data in value.nodes(data=True)]
    keys = {"keys": True} if value.is_multigraph() else {}
    edges = [[inner(part) for part in edge] for edge in value.edges(data=True, **keys)]
    return ["graph", [kind, inner(dict(value.graph)), nodes, edges]]


def _decode_graph(value, inner):
    import networkx as nx

    kind, graph_data, nodes, edges = value
    if kind not in _GRAPHS:
        raise ValueError(f"unknown kind of graph {kind!r}")
    if kind == "pgmpy.DAG":
        from pgmpy.base import DAG as make
    else:
        make = getattr(nx, _GRAPHS[kind])
    graph, plain = make(), getattr(nx, _GRAPHS[kind])
    graph.graph.update(inner(graph_data))
    # networkx's own methods: pgmpy's variants take no attributes
    plain.add_nodes_from(graph, [(inner(node), inner(data)) for node, data in nodes])
    plain.add_edges_from(graph, [tuple(inner(part) for part in edge) for edge in edges])
    return graph


def _decode_network(value, inner):
    from pgm_bma.networks.objects import bayesian_network

    arrays = inner(value)
    check_network(arrays, Scope())
    return bayesian_network(**arrays._asdict())


def _decode_cpd(value, inner):
    from pgmpy.factors.discrete import TabularCPD

    nodes, states = [inner(node) for node in value[0]], [[inner(state) for state in node] for node in value[1]]
    cardinalities = [len(node) for node in states]
    family = nodes[1:], cardinalities[1:], dict(zip(nodes, states))
    table = inner(value[2])
    TABLE(f"the table of {nodes[0]!r:.60}", table, Scope())
    return TabularCPD(nodes[0], cardinalities[0], table, *family)


# exact class -> the networkx class that fills it
_GRAPHS = {
    "networkx.Graph": "Graph",
    "networkx.DiGraph": "DiGraph",
    "networkx.MultiGraph": "MultiGraph",
    "networkx.MultiDiGraph": "MultiDiGraph",
    "pgmpy.DAG": "DiGraph",
}
_DECODERS = {
    "DataFrame": _decode_frame,
    "matrix": _decode_matrix,
    "Series": _decode_series,
    "Index": _decode_index,
    "RangeIndex": _decode_range_index,
    "MultiIndex": _decode_multi_index,
    "pandas.array": _decode_values,
    "graph": _decode_graph,
    "network": _decode_network,
    "cpd": _decode_cpd,
}
