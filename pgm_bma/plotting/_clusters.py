"""Cluster profiles: P(x | cluster) of every variable, as small bars or as points with their intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
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
from pgm_bma.foundation.tables.cut_points import state_text
from pgm_bma.plotting._densities import plot_densities
from pgm_bma.plotting._drawing import (
    BLUE,
    FONT,
    INK,
    MARKERS,
    PAPER,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    bare,
    drawing_axes,
    new_axes,
    note,
    short_labels,
    sized_heads,
    table_rule,
    text_size,
    titled,
)

NETWORK = Fitted("a network with its tables, or a fitted clusterer", "get_cpds", "latents", "nodes")
ROW, CELL, BAR = 0.36, 0.9, 0.26  # inches
LINE, SPAN, AXIS = 0.075, 2.3, 0.3  # inches: an interval, the scale from 0 to 1 at least, the room for its figures
TALLEST = 11.0  # inches of a block of profiles
BOLD = 1.1  # how much wider bold text is
LEAST = 4.4  # inches: width of a new figure of profiles

# column of `n_clusters_path_` -> words; the score is turned round, so that all are lower for better models
CRITERIA = {
    "score": "evidence (-2 x score)",
    "bic": "BIC",
    "adjusted_bic": "adjusted BIC",
    "aic": "AIC",
    "caic": "CAIC",
    "icl": "ICL",
}
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)), (0, (2, 2))]


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
        raise ValueError(f"columns= names {unknown[0]!r}, which is not a column of the network")
    if not names:
        if hasattr(model, "densities_"):
            return plot_densities(model, top=top, title=title, ax=ax)
        raise ValueError("there are no columns of states to draw")
    weights = conditional_table(network, cluster, None)
    tables = {v: conditional_table(network, v, cluster) for v in names}
    if sort and columns is None:
        dependence = {v: _dependence(tables[v], weights) for v in names}
        names = sorted(names, key=lambda v: -round(dependence[v], 9))
    shown = names[:top]
    states = {v: [state_text(s) for s in network.get_cpds(v).state_names[v]] for v in shown}
    cluster_states = [str(s) for s in network.get_cpds(cluster).state_names[cluster]]

    labels = short_labels(shown, 26)
    legends = {v: _state_line(states[v]) for v in shown}
    widths = [max(text_size(labels[v])[0], text_size(legends[v], FONT - 2)[0]) for v in shown]
    label_width = max(widths) + 0.15
    cell = CELL if len(cluster_states) <= 5 else max(0.5, 4.5 / len(cluster_states))
    heads, more = sized_heads(cluster_states, weights, cell / BOLD)
    above = 0.34 + more
    block = label_width + len(cluster_states) * cell + 0.35
    n_blocks = max(1, math.ceil(len(shown) * ROW / 9.5))
    per_block = math.ceil(len(shown) / n_blocks)
    width, height = n_blocks * block, per_block * ROW + above
    ax, scale = drawing_axes(ax, width, height, 0.3 * bool(title) + 0.28 + 0.16 * (len(shown) < len(names)), 4.8)
    style = {"parse_math": False, "va": "center"}
    for b in range(n_blocks):
        for k, head in enumerate(heads):
            x = b * block + label_width + (k + 0.5) * cell
            ax.text(
                x,
                height - above / 2 + 0.01,
                head,
                ha="center",
                fontsize=FONT * scale,
                color=INK,
                fontweight="bold",
                **style,
            )
    for i, v in enumerate(shown):
        left, bottom = (i // per_block) * block, height - above - (i % per_block + 1) * ROW
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
        right, bottom = (b + 1) * block - 0.33, height - above - ROW + 0.03
        for share, text in ((0.0, "0"), (1.0, "1")):
            ax.text(right, bottom + BAR * share, text, ha="left", fontsize=(FONT - 2.5) * scale, color=SOFT, **style)
    remark = "every cell goes from 0 to 1; bars are P(state | cluster), ticks P(state)"
    if len(shown) < len(names):
        remark = f"{len(shown)} of {len(names)} variables, those that differ most between the clusters\n{remark}"
    note(ax, remark)
    return titled(ax, title)


@fill(drawn=DRAWN)
def plot_profile_intervals(profiles: Any, *, top: int = 60, title: str | None = None, ax: Any = None) -> Any:
    """P(state | cluster) as points with their 95 % intervals, one line per column and state, on a scale from 0 to 1.

    Of columns with two states the second is drawn. Columns that differ most between the clusters come first.

    Parameters
    ----------
    profiles : DataFrame or fitted clusterer
        `profiles_`, or what has it.
    top : int, default=60
        Draw at most so many columns.
    {drawn}

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer
    >>> from pgm_bma.plotting import plot_profile_intervals
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 200)
    >>> X = pd.DataFrame({name: np.where(rng.random(200) < 0.9, z, 1 - z) for name in "abc"})
    >>> ax = plot_profile_intervals(LatentClassClusterer(2, n_init=4, random_state=0).fit(X))
    >>> sorted(text.get_text() for text in ax.texts if "=" in text.get_text())
    ['a = 1', 'b = 1', 'c = 1']
    """
    frame = getattr(profiles, "profiles_", profiles)
    numeric = set(getattr(profiles, "numeric_columns_", ()))
    if numeric:  # `plot_densities` draws those
        frame = frame[~frame["column"].isin(numeric)]
    check_arguments(locals(), top=Integer(1), title=TITLE)
    check("profiles", frame, table_rule("probability", "low", "high", others=("column", "state", "cluster")))
    sizes = frame[frame["column"].isna()]
    tables = frame[frame["column"].notna()]
    clusters = list(sizes["cluster"])
    names = _by_difference(tables)
    lines = _lines(tables, names[:top])
    labels = short_labels(names[:top], 30)
    texts = [f"{labels[name]} = {_state_text(state)}" for name, state, _ in lines]
    label_width = max(text_size(text, FONT - 1)[0] for text in texts) + 0.15
    row = max(0.19, LINE * len(clusters) + 0.09)
    n_blocks = max(1, math.ceil(len(lines) * row / TALLEST))
    per_block = math.ceil(len(lines) / n_blocks)
    span = max(SPAN, LEAST / n_blocks - label_width - 0.3)
    block, height = label_width + span + 0.3, per_block * row + 2 * AXIS
    keys = [_key_text(line) for line in sizes.itertuples()]
    per_line = max(1, int(n_blocks * block / (max(text_size(text, FONT - 1)[0] for text in keys) + 0.55)))
    above = 0.32 + 0.19 * math.ceil(len(keys) / per_line) + 0.3 * bool(title)
    ax, scale = drawing_axes(ax, n_blocks * block, height, above + 0.25 * (len(names) > top), LEAST)
    ax.set_anchor("S")  # what room is to spare stands above, where the key is
    style = {"parse_math": False, "va": "center"}
    for b in range(n_blocks):
        left, n_here = b * block + label_width, min(per_block, len(lines) - b * per_block)
        bottom = height - AXIS - n_here * row
        for share, text in ((0.0, "0"), (0.25, ""), (0.5, ".5"), (0.75, ""), (1.0, "1")):
            x = left + span * share
            ax.plot([x, x], [bottom, height - AXIS], color=RULE, linewidth=0.7 * scale, zorder=0)
            for y in (height - AXIS / 2, bottom - AXIS / 2):
                ax.text(x, y, text, ha="center", fontsize=(FONT - 1.5) * scale, color=SOFT, **style)
    for i, ((_, _, values), text) in enumerate(zip(lines, texts)):
        left = (i // per_block) * block + label_width
        middle = height - AXIS - (i % per_block + 0.5) * row
        ax.text(left - 0.1, middle, text, ha="right", fontsize=(FONT - 1) * scale, color=INK, **style)
        if i % 2 == 0:
            ax.axhspan(
                middle - row / 2, middle + row / 2, xmin=left / (n_blocks * block), facecolor=PAPER, zorder=-1,
                xmax=(left + span) / (n_blocks * block), linewidth=0,
            )  # fmt: skip
        for c, line in enumerate(values.itertuples()):
            y = middle + LINE * ((len(clusters) - 1) / 2 - c)
            colour = SERIES[c % len(SERIES)]
            ax.plot([left + span * line.low, left + span * line.high], [y, y], color=colour, linewidth=1.1 * scale)
            (point,) = ax.plot(
                left + span * line.probability, y, MARKERS[c % 8], color=colour, markersize=3.4 * scale, zorder=4
            )
            point.set_gid(f"profile:{line.column}:{line.state}:{line.cluster}")
    _key(ax, keys, min(per_line, len(keys)), scale)
    if len(names) > top:
        note(ax, f"{top} of {len(names)} columns, those that differ most between the clusters")
    return titled(ax, title, pad=72 * (above - 0.3))


@fill(drawn=DRAWN)
def plot_criteria(path: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """All criteria over the numbers of clusters tried, each as its distance from its own best; the choice is marked.

    Parameters
    ----------
    path : DataFrame or fitted clusterer
        `n_clusters_path_`, or what has it.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_criteria
    >>> path = pd.DataFrame({"n_clusters": [1, 2, 3], "score": [-90.0, -70.0, -75.0], "bic": [180.0, 150.0, 149.0]})
    >>> ax = plot_criteria(path)
    >>> [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    ['evidence (-2 x score): 2', 'BIC: 3']
    """
    path = getattr(path, "n_clusters_path_", path)
    check_arguments(locals(), path=table_rule("n_clusters", "score"), title=TITLE)
    if path["n_clusters"].nunique() < 2:
        raise ValueError("a single number of clusters was tried; fit with a range, such as n_clusters=range(1, 9)")
    best = path.loc[path.groupby("n_clusters")["score"].idxmax()].sort_values("n_clusters")
    numbers = best["n_clusters"].to_numpy()
    ax = new_axes(ax, 6.4, 3.6)
    shown = [name for name in CRITERIA if name in best and np.isfinite(best[name]).any()]
    chosen = int(numbers[np.argmax(best["score"].to_numpy())])
    ax.axvspan(chosen - 0.3, chosen + 0.3, color=PAPER, linewidth=0, zorder=0)
    highest = 1.0
    for i, name in enumerate(shown):
        values = best[name].to_numpy(dtype=float) * (-2 if name == "score" else 1)
        above = values - np.nanmin(values)
        highest = max(highest, float(np.nanmax(above)))
        at = int(np.nanargmin(values))
        style = {"color": SERIES[i % len(SERIES)], "linewidth": 2.2 if name == "score" else 1.2}
        ax.plot(numbers, above, linestyle=DASHES[i % 6], label=f"{CRITERIA[name]}: {numbers[at]}", **style)
        ax.plot(numbers[at], 0.0, MARKERS[i % 8], color=style["color"], markersize=9 - i, clip_on=False, zorder=5)
    ax.set_yscale("symlog", linthresh=2.0)
    ticks = [0, 2, *(10**e for e in range(1, math.ceil(math.log10(highest)) + 1) if 10**e <= 2 * highest)]
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, 1.3 * highest)
    ax.set_xticks(numbers)
    bare(ax, "y", f"number of clusters (shaded: chosen by the evidence, {chosen})", "above its own best")
    ax.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=FONT - 1, title="criterion: its choice",
        title_fontsize=FONT - 1, handlelength=3.2,
    )  # fmt: skip
    return titled(ax, title)


@fill(drawn=DRAWN)
def plot_residuals(pairs: Any, *, top: int = 40, title: str | None = None, ax: Any = None) -> Any:
    """Heat map of the pairs of columns that clusters leave dependent.

    Parameters
    ----------
    pairs : DataFrame
        What `pgm_bma.bivariate_residuals` returns.
    top : int, default=40
        Draw at most so many columns, those with the largest residuals.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_residuals
    >>> pairs = pd.DataFrame({"first": ["a", "a", "b"], "second": ["b", "c", "c"], "residual": [9.0, 1.0, 0.2]})
    >>> ax = plot_residuals(pairs)
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['a', 'b', 'c']
    """
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    table = table_rule("residual", others=("first", "second"))
    check_arguments(locals(), pairs=table, top=Integer(1), title=TITLE)
    names = list(dict.fromkeys([*pairs["first"], *pairs["second"]]))
    largest = pd.concat([pairs.groupby(end)["residual"].max() for end in ("first", "second")])
    largest = largest.groupby(level=0).max()
    kept = set(sorted(names, key=lambda name: -largest[name])[:top])
    shown = [name for name in names if name in kept]
    place = {name: i for i, name in enumerate(shown)}
    n = len(shown)
    values = np.full((n, n), np.nan)
    for a, b, value in zip(pairs["first"], pairs["second"], pairs["residual"]):
        if a in place and b in place:
            values[place[a], place[b]] = values[place[b], place[a]] = value
    labels = short_labels(shown, 18)
    cell = 0.42 if n <= 14 else 0.24
    edge = max(text_size(labels[name])[0] for name in shown) + 0.2
    if n < len(names):
        title = title or f"{n} of {len(names)} columns, those with the largest residuals"
    # a figure of its own has the right size; an equal aspect would hide from the layout what the labels need
    aspect = "auto" if ax is None else "equal"
    ax = new_axes(ax, n * cell + edge + 1.1, n * cell + edge + 0.3 + 0.3 * bool(title))
    high = max(float(np.nanmax(values, initial=10.0, where=np.isfinite(values))), 10.0)
    blues = LinearSegmentedColormap.from_list("residuals", ["#FFFFFF", "#B9D3E6", BLUE, "#00304D"])
    colours = blues.with_extremes(bad=RULE)
    drawn = np.clip(np.where(np.isinf(values), high, values), 1.0, high)  # at most 1 is what chance gives: white
    image = ax.imshow(drawn, cmap=colours, norm=LogNorm(1.0, high), aspect=aspect)
    ax.set_xticks(range(n), [labels[name] for name in shown], rotation=90, fontsize=FONT - 1.5, parse_math=False)
    ax.set_yticks(range(n), [labels[name] for name in shown], fontsize=FONT - 1.5, parse_math=False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if n <= 14:
        for i, j in np.argwhere(np.isfinite(values) & ~np.eye(n, dtype=bool)):
            text = f"{values[i, j]:.1f}" if values[i, j] < 99.5 else f"{values[i, j]:.0f}"
            ink = "white" if values[i, j] > math.sqrt(high) else INK
            ax.text(j, i, text, ha="center", va="center", fontsize=FONT - 2.5, color=ink)
    length = min(1.0, 2.4 / (n * cell))
    bar = ax.figure.colorbar(image, ax=ax, shrink=length, fraction=min(0.15, 0.6 / (n * cell)), pad=0.02)
    bar.set_label("X2 / degrees of freedom (white: chance)", fontsize=FONT - 1.5)
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if t <= high]
    bar.set_ticks(ticks, labels=[str(t) for t in ticks], fontsize=FONT - 2)
    bar.minorticks_off()
    bar.outline.set_visible(False)
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
    operands: list[Any] = []  # of einsum: a table, then the numbers of its axes, and so on
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
        raise ValueError(f"cluster={cluster!r} is not a node of the network")
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
    first, last = (state if len(state) <= 13 else f"{state[:12]}…" for state in (states[0], states[-1]))
    return f"{first} · … · {last} ({len(states)} states)"


def _key(ax, texts, per_line, scale):
    """Clusters and their sizes, above the drawing."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=SERIES[c % len(SERIES)], marker=MARKERS[c % 8], markersize=4, label=text)
        for c, text in enumerate(texts)
    ]
    ax.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=per_line, frameon=False,
        fontsize=(FONT - 1) * scale, handlelength=1.8, columnspacing=1.2, title="cluster: size (95 % interval)",
        title_fontsize=(FONT - 1) * scale, borderpad=0.2,
    )  # fmt: skip


def _key_text(line):
    return f"{line.cluster}: {100 * line.probability:.0f} % ({100 * line.low:.0f}-{100 * line.high:.0f})"


def _state_text(state):
    """Return 1.0 as 1, where a missing value has made floats of whole numbers."""
    text = str(int(state)) if isinstance(state, float) and state.is_integer() else state_text(state)
    return short_labels([text], 18)[text]


def _by_difference(tables):
    """Columns by the largest difference of a state's probability between two clusters."""
    spread = tables.groupby(["column", "state"], sort=False, dropna=False)["probability"].agg(np.ptp)
    largest = spread.groupby(level=0, sort=False).max()
    return list(largest.sort_values(ascending=False, kind="stable").index)


def _lines(tables, names):
    """(column, state, lines of all clusters); of two states the second only."""
    found = []
    for name in names:
        here = tables[tables["column"] == name]
        states = list(dict.fromkeys(here["state"]))
        for state in states[1:] if len(states) == 2 else states:
            found.append((name, state, here[here["state"] == state]))
    return found
