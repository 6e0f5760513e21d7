# %% [markdown]
# # 13. Effects from experiments
#
# What happens to one variable if we set another? Rows that were only observed answer this in part: they show which variables depend
# on each other, but often not in which direction. Experiments show the direction. This tutorial uses both kinds of rows.
#
# Sachs and others (2005) measured eleven proteins of a signalling pathway in single cells. In some of the cells a drug acted on one
# protein. Their table is not part of this package. So we draw rows from the network of the literature, by the same design at a
# fifth of the size: 360 rows without an experiment, 120 rows each for Mek, PIP2, Akt and PKA, and 240 rows for PKC. One thing is
# simpler than in the laboratory: an experiment sets a protein to one of its three states at random. Here the true arcs and effects
# are known, so we can check every answer.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", category=FutureWarning)  # pgmpy announces changes

from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import VariableElimination
from sklearn.metrics import average_precision_score, roc_auc_score

import pgm_bma

plt.rcParams["figure.dpi"] = 90
network = pgm_bma.load_network("sachs")
proteins = sorted(network.nodes)


def experiment(protein):
    """The network in which a protein is set at random: the arcs into it are cut."""
    model = network.copy()
    states = model.get_cpds(protein).state_names[protein]
    model.remove_cpds(protein)
    model.remove_edges_from([(parent, protein) for parent in list(model.get_parents(protein))])
    model.add_cpds(TabularCPD(protein, 3, [[1 / 3]] * 3, state_names={protein: states}))
    return model


def rows(protein, n, seed):
    """Rows of an experiment, or without one."""
    model = network if protein is None else experiment(protein)
    return pgm_bma.simulate(model, n, random_state=seed)[proteins].assign(set=protein)


design = {None: 360, "Mek": 120, "PIP2": 120, "Akt": 120, "PKA": 120, "PKC": 240}
table = pd.concat([rows(protein, n, seed) for seed, (protein, n) in enumerate(design.items())], ignore_index=True)
print(len(table), "rows; a protein was set in", table["set"].notna().sum(), "of them")
table.iloc[[0, 1, 400, 401, 1000]]

# %% [markdown]
# ## Arcs with and without the experiments
#
# `interventions` names the column that says which protein was set. A row in which a protein was set says nothing about what that
# protein depends on. So the row does not count in the table of that protein, and it counts in all others. We compare four fits:
#
# - only the 360 rows without an experiment;
# - 1,080 rows without an experiment, as many as the whole table has;
# - all rows, as if nobody had set anything;
# - all rows, with the experiments used.

# %%
fits = {
    "360 rows, no experiments": pgm_bma.OrderPosterior(random_state=0).fit(table.loc[table["set"].isna(), proteins]),
    "1080 rows, no experiments": pgm_bma.OrderPosterior(random_state=0).fit(rows(None, 1080, 6)[proteins]),
    "experiments ignored": pgm_bma.OrderPosterior(random_state=0).fit(table[proteins]),
    "experiments used": pgm_bma.OrderPosterior(random_state=0).fit(table, interventions="set"),
}
used = fits["experiments used"]
true = pd.DataFrame(False, index=proteins, columns=proteins)
for a, b in network.edges:
    true.loc[a, b] = True
pairs = ~np.eye(len(proteins), dtype=bool)


def judged(posterior):
    """Expected numbers of arcs, and how well the probabilities separate true arcs from all other ordered pairs."""
    arcs = posterior.edge_posterior_.loc[proteins, proteins].to_numpy()
    right, turned = arcs[true].sum(), arcs[true.T].sum()
    return {
        "true arcs": right,
        "turned round": turned,
        "other arcs": arcs.sum() - right - turned,
        "AUROC": roc_auc_score(true.to_numpy()[pairs], arcs[pairs]),
        "average precision": average_precision_score(true.to_numpy()[pairs], arcs[pairs]),
    }


comparison = pd.DataFrame({name: judged(posterior) for name, posterior in fits.items()}).T
comparison.round(2)

# %% [markdown]
# The network has 17 arcs; the first three columns are expected numbers of arcs. In this table, 360 rows without experiments find
# most pairs, but one out of three points the wrong way. Three times as many rows find all pairs and still turn almost five arcs
# round. The same happens if the experiments are in the table and ignored. With the experiments used, less than one arc is turned
# round.
#
# The picture shows both directions of every true arc. On the left, some arcs are more probable the wrong way round, none of them
# surely, and those between Plcg, PIP2 and PIP3 are open. On the right the experiments have moved the directions apart. One arc
# stays open, Plcg to PIP3: neither protein was ever set, and no row can say which comes first.

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharex=True, sharey=True, layout="constrained")
arcs = sorted(network.edges, key=lambda arc: used.edge_posterior_.loc[arc])
for ax, name in zip(axes, ("1080 rows, no experiments", "experiments used")):
    edges = fits[name].edge_posterior_
    for k, (a, b) in enumerate(arcs):
        ax.plot([edges.loc[b, a], edges.loc[a, b]], [k, k], color="#D5DCE2", zorder=1)
        ax.plot(edges.loc[b, a], k, "s", color="#D55E00", label="turned round" if k == 0 else None)
        ax.plot(edges.loc[a, b], k, "o", color="#0072B2", label="as in the network" if k == 0 else None)
    ax.set_title(name)
    ax.set_xlabel("posterior probability")
axes[0].set_yticks(range(len(arcs)), [f"{a} to {b}" for a, b in arcs])
fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# Rows without experiments leave directions open because of the prior, too. By default, networks that imply the same independences
# get the same evidence. Not every prior does that. With `parameter_prior="consistent"` the cells of most tables have the same
# pseudo-count, which can prefer one direction of an arc even if both fit equally well.

# %%
by_cells = {
    "1080 rows, no experiments": pgm_bma.OrderPosterior(parameter_prior="consistent", random_state=0).fit(
        rows(None, 1080, 6)[proteins]
    ),
    "experiments used": pgm_bma.OrderPosterior(parameter_prior="consistent", random_state=0).fit(
        table, interventions="set"
    ),
}
directions = pd.DataFrame(
    {
        (name, prior): {
            f"{a} to {b}": fit.edge_posterior_.loc[a, b]
            for a, b in [("Raf", "Mek"), ("PIP3", "PIP2"), ("Plcg", "PIP3")]
        }
        for name in by_cells
        for prior, fit in (("default", fits[name]), ("consistent", by_cells[name]))
    }
)
directions.round(2)

# %% [markdown]
# By default the rows without experiments leave all three arcs open. The experiments then settle two of them, the right way, and the
# third stays at one half. With the other prior, rows without experiments are almost sure of all three arcs, and wrong about two.
# With the experiments it still prefers the wrong direction of PIP3 to PIP2. It is almost sure of Plcg to PIP3, which no row can
# know, and happens to be right. So keep the default if directions matter to you.

# %% [markdown]
# ## Effects
#
# `effects()` has a row for every ordered pair. Set a protein to two of its states: how far apart are the two distributions of the
# other protein? `size` is this distance (total variation, from 0 to 1) for the two states that differ most. `zero` is the share of
# the posterior in which there is no effect at all. The intervals hold 90 % of the posterior.

# %%
effects = used.effects()
used.plot_effects(top=15, title="Effects of setting a protein")
plt.show()

# %% [markdown]
# PKA and PKC are the proteins that act on most others. We know the network, so we compute their true effects and draw both.

# %%
states = {protein: network.get_cpds(protein).state_names[protein] for protein in proteins}


def true_effect(of, on):
    """Distribution of `on` for each state that `of` is set to: a line per state."""
    inference = VariableElimination(experiment(of))
    answers = [inference.query([on], evidence={of: state}, show_progress=False) for state in states[of]]
    return np.array([[answer.get_value(**{on: state}) for state in states[on]] for answer in answers])


def size(table):
    """Largest total variation between two lines."""
    return np.abs(table[:, None] - table[None]).sum(-1).max() / 2


two = effects[effects["of"].isin(["PKA", "PKC"])].sort_values("size").reset_index(drop=True)
two["truth"] = [size(true_effect(row.of, row.on)) for row in two.itertuples()]
shown = two[two["truth"] > 1e-9].reset_index(drop=True)

fig, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
ax.hlines(shown.index, shown["low"], shown["high"], color="#0072B2", lw=2)
ax.plot(shown["size"], shown.index, "o", color="#0072B2", label="posterior mean, 90 % interval")
ax.plot(shown["truth"], shown.index, "x", color="#D55E00", ms=8, mew=2, label="truth")
ax.set_yticks(shown.index, [f"{row.of} on {row.on}" for row in shown.itertuples()])
ax.set_xlabel("size of the effect")
ax.set_xlim(left=0)
ax.legend(loc="lower right")
plt.show()

# %%
two[two["truth"] < 1e-9].round(3)

# %% [markdown]
# The ranking is close to the true one. The truth is in 10 of these 13 intervals; 90 % intervals should hold about 12. The sizes
# share their rows and their tables, so misses come together: all three are effects of PKA. The table lists the pairs without a true
# effect: the posterior says so, with a `zero` above .99 for all of them.
#
# One effect in full: what happens to Akt when PKA is set?

# %%
single = used.effect("PKA", "Akt")
single["truth"] = [
    true_effect("PKA", "Akt")[states["PKA"].index(row.do), states["Akt"].index(row.outcome)]
    for row in single.itertuples()
]
single.round(2)

# %% [markdown]
# The means are within .05 of the truth, which is in six of the nine intervals. Where the true probability is almost 0, the mean is
# a little above it: the prior gives every state some probability, so no interval reaches 0. One of the three misses is of this
# kind.
#
# `contrast="difference"` compares two states of PKA.

# %%
used.effect("PKA", "Akt", contrast="difference").round(2)

# %% [markdown]
# ## What the numbers do not say
#
# - Without experiments, networks that imply the same independences fit equally well, and only the prior of structures decides
#   between the two directions of an arc. `zero` is the share without any effect.
# - The intervals hold if all common causes are among the columns, and if an experiment sets the named variable and nothing else. A
#   drug that acts on two proteins breaks this: name both in `interventions`.
# - If an experiment changes a protein but its parents still act on it, use `intervention_type="soft"`.
# - These rows come from a network. Real rows are less clear.
#
# From the command line: `pgm-bma structure cells.csv --interventions set --effects PKA,Akt` writes a report with such tables and
# pictures.
