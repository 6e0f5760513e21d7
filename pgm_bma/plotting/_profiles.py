"""Cluster profiles: P(x | cluster) of every variable as small bars, side by side for all clusters."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import rel_entr

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import (
    NAME,
    Fitted,
    Flag,
    Integer,
    Optional,
    check,
    check_arguments,
    reading,
)
from pgm_bma.foundation.numbers.graphs import ancestors
from pgm_bma.plotting._style import (
    DRAWN,
    FONT,
    INK,
    PAPER,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    drawing_axes,
    note,
    short_labels,
    text_size,
    titled,
)

NETWORK = Fitted("a network with its tables, or a fitted clusterer", "get_cpds", "latents", "nodes")
ROW, CELL, BAR = 0.36, 0.9, 0.26  # inches


@fill(drawn=DRAWN)
def plot_cluster_profiles(
    model: Any,
    *,
    cluster: Any = None,
    columns: Sequence | None = None,
    top: int = 60,
    sort: bool = True,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw P(x | cluster) as small bars, one row per variable and one cell per cluster; a black tick marks P(x).

    The bars of a cell stand in the order of the states named under the variable. Variables that differ most between the
    clusters come first (EMA eq. 16).

    Parameters
    ----------
    model : DiscreteBayesianNetwork or fitted clusterer
        A network with a latent cluster, or what has one in `model_`.
    cluster : node, optional
        The cluster variable; None takes the only latent one.
    columns : sequence of nodes, optional
        Variables to draw, in this order; None takes all.
    top : int, default=60
        Draw at most this many.
    sort : bool, default=True
        Order by dependence on the cluster; False keeps the order of the network.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_cluster_profiles
    >>> from pgm_bma.networks.objects import bayesian_network
    >>> model = bayesian_network(
    ...     ["cluster", "vote"], [[0, 1], ["no", "yes"]], [(), (0,)], [[[0.25, 0.75]], [[0.9, 0.1], [0.2, 0.8]]],
    ...     latents=["cluster"])
    >>> ax = plot_cluster_profiles(model)
    >>> [text.get_text() for text in ax.texts][:4]
    ['0 (25 %)', '1 (75 %)', 'vote', 'no · yes']
    """
    from matplotlib.patches import Rectangle

    check_arguments(locals(), cluster=Optional(NAME), top=Integer(1), sort=Flag(), title=TITLE)
    network = model if hasattr(model, "get_cpds") else getattr(model, "model_", model)
    check("model", network, NETWORK)
    cluster = _cluster_name(network, cluster)
    with reading("columns", columns, "a list of names of variables, or None"):
        names = [v for v in network.nodes() if v != cluster] if columns is None else list(columns)
    unknown = [v for v in names if not NAME.admits(v) or v not in network.nodes() or v == cluster]
    if unknown:
        raise ValueError(f"columns= names {unknown[0]!r}, which is no variable of the network beside the cluster")
    weights = conditional_table(network, cluster, None)
    tables = {v: conditional_table(network, v, cluster) for v in names}
    if sort and columns is None:
        dependence = {v: _dependence(tables[v], weights) for v in names}
        names = sorted(names, key=lambda v: -round(dependence[v], 9))
    shown = names[:top]
    states = {v: [str(s) for s in network.get_cpds(v).state_names[v]] for v in shown}
    cluster_states = [str(s) for s in network.get_cpds(cluster).state_names[cluster]]

    labels = short_labels(shown, 26)
    legends = {v: _state_line(states[v]) for v in shown}
    widths = [max(text_size(labels[v])[0], text_size(legends[v], FONT - 2)[0]) for v in shown]
    label_width = max(widths) + 0.15
    cell = CELL if len(cluster_states) <= 5 else max(0.5, 4.5 / len(cluster_states))
    block = label_width + len(cluster_states) * cell + 0.35
    n_blocks = max(1, math.ceil(len(shown) * ROW / 9.5))
    per_block = math.ceil(len(shown) / n_blocks)
    width, height = n_blocks * block, per_block * ROW + 0.34
    ax, scale = drawing_axes(ax, width, height, 0.3 * bool(title) + 0.28, 6.5 if len(shown) < len(names) else 4.4)
    style = {"parse_math": False, "va": "center"}
    for b in range(n_blocks):
        for k, state in enumerate(cluster_states):
            x = b * block + label_width + (k + 0.5) * cell
            text = f"{state} ({weights[k]:.0%})".replace("%", " %")
            ax.text(x, height - 0.16, text, ha="center", fontsize=FONT * scale, color=INK, fontweight="bold", **style)
    for i, v in enumerate(shown):
        left, bottom = (i // per_block) * block, height - 0.34 - (i % per_block + 1) * ROW
        end = left + label_width - 0.08
        ax.text(end, bottom + 0.23, labels[v], ha="right", fontsize=FONT * scale, color=INK, **style)
        ax.text(end, bottom + 0.09, legends[v], ha="right", fontsize=(FONT - 2) * scale, color=SOFT, **style)
        overall = weights @ tables[v]
        for k in range(len(cluster_states)):
            x0 = left + label_width + k * cell + 0.05
            span = cell - 0.1
            ax.add_patch(
                Rectangle((x0, bottom + 0.03), span, BAR, facecolor=PAPER, edgecolor=RULE, linewidth=0.5 * scale)
            )
            step = span / len(overall)
            for s, p in enumerate(tables[v][k]):
                bar = Rectangle(
                    (x0 + (s + 0.12) * step, bottom + 0.03), 0.76 * step, BAR * p, color=SERIES[k % 7], zorder=3
                )
                bar.set_gid(f"bar:{v}:{k}:{s}")
                ax.add_patch(bar)
                y = bottom + 0.03 + BAR * overall[s]
                ax.plot(
                    [x0 + (s + 0.04) * step, x0 + (s + 0.96) * step], [y, y], color=INK, linewidth=0.9 * scale, zorder=4
                )
    for b in range(n_blocks):  # the scale, at the first row of every block
        right, bottom = (b + 1) * block - 0.33, height - 0.34 - ROW + 0.03
        for share, text in ((0.0, "0"), (1.0, "1")):
            ax.text(right, bottom + BAR * share, text, ha="left", fontsize=(FONT - 2.5) * scale, color=SOFT, **style)
    remark = "every cell goes from 0 to 1; bars are P(state | cluster), ticks P(state)"
    if len(shown) < len(names):
        remark = f"{len(shown)} of {len(names)} variables, those that differ most between the clusters; {remark}"
    note(ax, remark)
    return titled(ax, title)


def conditional_table(network, variable, given):
    """P(variable | given): (n_states_given, n_states), or P(variable) : (n_states,) when given is None; exact.

    All tables above the two variables are multiplied and summed by einsum, which finds the order of the sums.
    """
    wanted = [variable] if given is None else [given, variable]
    parents = {cpd.variable: cpd.variables[1:] for cpd in network.cpds}
    above = {*wanted, *ancestors(parents, wanted)}
    if len(above) > 50:
        raise ValueError(
            f"{variable!r} has {len(above)} ancestors; profiles are drawn for networks with at most 50 of them"
        )
    index = {v: i for i, v in enumerate(v for v in network.nodes() if v in above)}
    operands = []
    for v in index:
        cpd = network.get_cpds(v)
        operands += [np.asarray(cpd.values, dtype=float), [index[u] for u in cpd.variables]]
    joint = np.einsum(*operands, [index[v] for v in wanted], optimize="greedy")
    if given is None:
        return joint
    total = joint.sum(axis=1, keepdims=True)
    return np.where(total > 0, joint / np.where(total > 0, total, 1.0), 0.0)  # an empty cluster has no profile


def mutual_information(network, variable, root):
    """I(variable; root) in nats under the network; exact."""
    weights, table = conditional_table(network, root, None), conditional_table(network, variable, root)
    joint = weights[:, None] * table
    return max(float(rel_entr(joint, np.outer(weights, joint.sum(axis=0))).sum()), 0.0)


def _cluster_name(network, cluster):
    latents = sorted(network.latents, key=str)
    if cluster is None:
        if len(latents) != 1:
            raise ValueError(
                f"the network has {len(latents)} latent variables {latents}; name the cluster with cluster="
            )
        return latents[0]
    if cluster not in network.nodes():
        raise ValueError(f"cluster={cluster!r} is no node of the network")
    return cluster


def _dependence(table, weights):
    """Mean divergence of P(x) from P(x | cluster) (EMA eq. 16), with a floor instead of infinite values."""
    overall = weights @ table
    floor = np.maximum(table, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(overall > 0, overall * (np.log(overall) - np.log(floor)), 0.0)
    return float(terms.sum(axis=1).mean())


def _state_line(states, limit=34):
    line = " · ".join(states)
    if len(line) <= limit:
        return line
    return f"{states[0][:12]} · … · {states[-1][:12]} ({len(states)} states)"
