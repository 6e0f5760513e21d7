# %% [markdown]
# # 9. Tables with missing values
#
# Structure learners usually drop every row with a missing value, or treat "missing" as one more state. `OrderPosterior` does
# neither. It samples structures and missing values together, so the posterior of an arc is an average over networks *and*
# over what the missing values may have been.
#
# The table: votes of 435 members of the US congress in 1984. The missing votes are real.

# %%
import warnings

import matplotlib.pyplot as plt
import pandas as pd

import pgm_bma
from pgm_bma.plotting import plot_arc_posteriors

plt.rcParams["figure.dpi"] = 90

votes, party = pgm_bma.load_dataset("voting")
short = {
    party: "party", "water-project-cost-sharing": "water", "physician-fee-freeze": "physician", "el-salvador-aid": "salvador",
    "mx-missile": "missile", "synfuels-corporation-cutback": "synfuels", "education-spending": "education",
    "duty-free-exports": "duty_free", "export-administration-act-south-africa": "south_africa",
}  # fmt: skip
table = votes[list(short)].rename(columns=short)
n_complete = len(table.dropna())
print(f"{len(table)} rows, {n_complete} of them complete")

# %% [markdown]
# ## With and without the incomplete rows
#
# `missing="auto"`, the default, keeps every row. `missing="drop"` drops incomplete rows, as is usual. The chains end when every arc
# is expected within 0.1 of its value (`tol`; the default, 0.05, takes twice as long).

# %%
posterior = pgm_bma.OrderPosterior(sampler=pgm_bma.GibbsSampler(tol=0.1), random_state=0).fit(table)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says how many rows it leaves out
    dropped = pgm_bma.OrderPosterior(missing="drop", random_state=0).fit(table)

figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plot_arc_posteriors(posterior.edge_posterior_, ax=axes[0], title=f"all {len(table)} rows")
_ = plot_arc_posteriors(dropped.edge_posterior_, ax=axes[1], title=f"the {n_complete} complete rows")

# %% [markdown]
# On the right, two out of five rows are lost, because of 280 empty cells out of 3,915. First we ask whether two columns are
# joined at all, in either direction (`skeleton_posterior_`), and list where the two answers differ most.

# %%
names = list(posterior.skeleton_posterior_)
pairs = pd.DataFrame(
    [
        (a, b, posterior.skeleton_posterior_.loc[a, b], dropped.skeleton_posterior_.loc[a, b])
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ],
    columns=["first", "second", "all rows", "complete rows"],
)
pairs["difference"] = pairs["all rows"] - pairs["complete rows"]
pairs.reindex(pairs["difference"].abs().sort_values(ascending=False).index).head(6).round(2)

# %% [markdown]
# Some pairs move by more than a half. The second answer rests on fewer people, and not on the same kind of people: those who
# did not vote are not a random choice. The first answer assumes that values are missing at random: given the votes that are
# there, it says nothing about a vote that it is missing.
#
# ## What was missing, and what that costs
#
# `gaps_` says what was missing in each column. `arc_spread_` is the standard deviation of an arc's posterior between completed
# tables: what the missing values leave open. `converged_` and `diagnostics_` say whether the chains agree.

# %%
posterior.gaps_[posterior.gaps_["missing"] > 0].round(3)

# %%
spread = posterior.arc_spread_.stack().sort_values(ascending=False)
print("largest spread of an arc:", spread.index[0], f"{spread.iloc[0]:.2f}")
print("chains agree:", posterior.converged_, f"after {posterior.n_sweeps_} sweeps")

# %% [markdown]
# ## Completed tables for other analyses
#
# `complete` draws whole tables from the same posterior: multiple imputation, averaged over structures. Do any analysis on each
# copy and look at mean and spread. How many Republicans were for the missile?

# %%
copies = posterior.complete(table, 20, random_state=0)
shares = pd.Series([(copy.loc[copy["party"] == "republican", "missile"] == "y").mean() for copy in copies])
known = table.loc[table["party"] == "republican", "missile"].dropna()
print(f"answers only: {(known == 'y').mean():.3f} of {len(known)}")
print(f"completed:    {shares.mean():.3f}, from {shares.min():.3f} to {shares.max():.3f} over 20 tables")

# %% [markdown]
# From the command line: `pgm-bma structure votes.csv` keeps incomplete rows too, and `pgm-bma impute votes.csv --copies 20`
# writes the completed tables.
