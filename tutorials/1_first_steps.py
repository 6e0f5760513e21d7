# %% [markdown]
# # 1. First steps: which votes split a parliament?
#
# In 1984 the members of the U.S. House of Representatives voted on sixteen key questions. We hide the party of each member,
# look for two groups of members who vote alike, and ask **which votes make the groups**.
#
# You learn to: load a table, find clusters with `EMAClusterer`, read the relevance of every column, look at single rows, choose
# the number of clusters, and save the result.

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd

import pgm_bma
from pgm_bma.plotting import plot_cluster_profiles, plot_network, plot_relevance, plot_starts

plt.rcParams["figure.dpi"] = 90

votes, target = pgm_bma.load_dataset("voting")
party = votes[target]
votes = votes.drop(columns=target)
print(f"{votes.shape[0]} members, {votes.shape[1]} votes, {votes.isna().mean().mean():.1%} of the cells empty")
votes.iloc[:4, :5]

# %% [markdown]
# `y` and `n` are the votes; an empty cell means that the member abstained or that the position is unknown. Empty cells can
# stay as they are: they add no evidence, for or against any group.
#
# ## Find two groups
#
# `EMAClusterer` takes a table of discrete values (text, categories, numbers) and the number of clusters. It starts from
# many random points (30 by default) and combines what they find. `random_state` makes the run repeatable.

# %%
clusterer = pgm_bma.EMAClusterer(n_clusters=2, random_state=0).fit(votes)
print(clusterer)
print("first members:", clusterer.labels_[:10])

# %% [markdown]
# Are these groups the parties? The clusterer never saw them, so this is a fair comparison.

# %%
pd.crosstab(pd.Series(clusterer.labels_, name="cluster"), party)

# %%
agreement = pgm_bma.metrics.clustering_accuracy(party, clusterer.labels_)
print(f"{agreement:.1%} of the members are where their party is")

# %% [markdown]
# ## Which votes matter?
#
# Two numbers per vote. `cluster_dependence_` measures *how strongly* a vote depends on the group, in nats: the length of the
# bar. `arc_posterior_` is how probable it is, given the data, that it depends on the group *at all*: the shade of the bar.

# %%
_ = plot_relevance(clusterer, title="Which votes depend on the group")

# %%
both = pd.DataFrame({"dependence": clusterer.cluster_dependence_, "posterior": clusterer.arc_posterior_})
both.sort_values("dependence").head(4).round(3)

# %% [markdown]
# The dependence ranks the votes. The posterior says which of them matter at all. Immigration does not follow the groups (below
# one half). On the water project the data do not decide (near one half). All the others are close to one, so the posterior
# cannot rank them. These probabilities are also too sure: the method treats the clusters it found as if they had been observed.

# %% [markdown]
# ## What the averaging does: four structures of two votes
#
# Take the two least certain votes. Each may depend on the group or not, so there are four possible structures. Most methods
# choose one of them. `EMAClusterer` keeps all four, each with its probability. With sixteen votes it keeps all 2^16 = 65,536, at
# the cost of a single one.

# %%
pair = ["water-project-cost-sharing", "immigration"]
p_water, p_immigration = clusterer.arc_posterior_[pair]
structures = {
    "neither": ([], (1 - p_water) * (1 - p_immigration)),
    "only water": (["water"], p_water * (1 - p_immigration)),
    "only immigration": (["immigration"], (1 - p_water) * p_immigration),
    "both": (["water", "immigration"], p_water * p_immigration),
}
places = {"group": (0.0, 0.9), "water": (-0.6, 0.0), "immigration": (0.6, 0.0)}
figure, axes = plt.subplots(1, 4, figsize=(11, 2.0))
for ax, (name, (dependent, probability)) in zip(axes, structures.items()):
    graph = nx.DiGraph([("group", column) for column in dependent])
    graph.add_nodes_from(["group", "water", "immigration"])
    plot_network(graph, highlight="group", layout=places, title=f"{name}: {probability:.3f}", ax=ax)

# %% [markdown]
# The answer for one vote is then a mixture. If the vote depends on the group, each group has its own share of `y`; if not,
# both share one. The arc posterior says how much of each goes into the result. Here it is by hand, for the water project:

# %%
vote = votes[pair[0]]
share = pd.DataFrame(clusterer.predict_proba(votes))[vote.notna()]  # how much each member belongs to each group
yes = (vote == "y")[vote.notna()]
own = (share[yes].sum() + 1) / (share.sum() + 2)  # each group its own table; + 1 is the prior's pseudo-count
common = (yes.sum() + 2) / (len(yes) + 4)  # one table for both, which holds the pseudo-counts of both groups
by_hand = p_water * own + (1 - p_water) * common
fitted = clusterer.model_.get_cpds(pair[0]).values[1]
table = pd.DataFrame({"own table": own, "common table": common, "mixed by hand": by_hand, "fitted": fitted})
table.rename_axis("group").round(4)

# %% [markdown]
# The last two columns agree: that is all the averaging there is. A vote that says nothing about the groups gets nearly the
# common table in both groups, and so has no influence.
#
# ## What the groups are like
#
# `describe()` lists the votes that mark each group, `plot_cluster_profiles` draws all of them. The black tick is the share among
# all members. The further the bars are from it, the more the vote separates the groups.

# %%
clusterer.describe(n_states=4).round(2)

# %%
_ = plot_cluster_profiles(clusterer)

# %% [markdown]
# ## One member
#
# `explain` shows the log evidence of every vote for each group, for one row. Of the members who took part in every vote, take
# the one whose group is least certain.

# %%
complete = votes.dropna()
probability = pd.Series(clusterer.predict_proba(complete).max(axis=1), index=complete.index)
row = probability.idxmin()
print(f"member {row}, {party[row]}: the more likely group has probability {probability[row]:.2f}")
evidence = clusterer.explain(votes.loc[row])
weight = (evidence[0] - evidence[1]).rename("for group 0 (+) or 1 (-)")
print(weight.sort_values(key=abs, ascending=False).head(5).round(2).to_string())
print(f"sum over all votes: {weight.sum():.2f}")

# %% [markdown]
# ## Did the search find the same answer twice?
#
# Clustering can get stuck. All 30 starts are run for a few updates (stage 1), and the best of them to the end (stage 2). The
# scores show whether the best answer was found again.

# %%
_ = plot_starts(clusterer, label="score (bound on the log evidence)")
finished = clusterer.starts_.query("stage == 2")
best, worst = finished["score"].max(), finished["score"].min()
print(f"best and worst of {len(finished)} finished starts differ by {best - worst:.4f}")
print(f"{clusterer.starts_['collapsed'].sum()} of {len(clusterer.starts_)} starts collapsed")

# %% [markdown]
# All finished starts found the same answer, so the two groups do not depend on luck.
#
# ## How many groups?
#
# Give a range, and the clusterer compares the numbers by an approximation of the evidence (higher is better).

# %%
several = pgm_bma.EMAClusterer(n_clusters=range(1, 8), random_state=0).fit(votes)
several.n_clusters_path_[["n_clusters", "score"]].set_index("n_clusters").T.round(1)

# %%
print(f"chosen: {several.n_clusters_}")
groups = pd.crosstab(pd.Series(several.labels_, name="cluster"), party)
groups.head(len(groups))

# %%
print(f"{groups.max(axis=1).sum() / len(votes):.1%} of the members are in a group where their party has the majority")

# %% [markdown]
# Five groups score best. They cut finer than the parties and yet mix them less than two groups did: the two groups put
# 86.9 % of the members with their party, the five groups 95.4 %. (More groups raise this share almost by themselves, so take
# it as a description, not as a score.) What marks them:

# %%
several.describe(n_states=3).round(2)

# %% [markdown]
# The groups 0 and 4 are mostly Republican, 1, 2 and 3 mostly Democrat. Group 3 holds Democrats who voted *for* aid to El
# Salvador, unlike those of groups 1 and 2.
#
# ## Keep the result
#
# The fitted model is an ordinary pgmpy network. It can be written as a BIF file, which other tools read, and the clusterer
# itself can be saved and loaded (tutorial 5 has more).

# %%
temporary = TemporaryDirectory()  # removed when Python ends
folder = Path(temporary.name)
pgm_bma.write_bif(clusterer.model_, folder / "voting.bif")
clusterer.save(folder / "voting.pgm")
again = pgm_bma.load(folder / "voting.pgm")
print("the loaded clusterer gives the same labels:", bool((again.predict(votes) == clusterer.labels_).all()))
print(type(clusterer.model_).__name__, "with", len(clusterer.model_.nodes()), "nodes")
