# %% [markdown]
# # 8. Latent class analysis, from a questionnaire to a paper's tables
#
# A latent-class paper reports the fit of several numbers of classes, profiles with standard errors, what the classes leave
# unexplained, what predicts membership, and what follows from it. This page goes from the file to three such tables. Classes are
# called clusters here; docs/howto/coming_from.md translates the words of poLCA, StepMix, Mplus and Latent GOLD.

# %%
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from pgm_bma import (
    LatentClassClusterer,
    Starts,
    StructuralEMClusterer,
    bivariate_residuals,
    goodness_of_fit,
    likelihood_ratio_test,
    three_step,
)
from pgm_bma.plotting import plot_criteria, plot_profile_intervals, plot_residuals

plt.rcParams["figure.dpi"] = 90

# %% [markdown]
# ## The file
#
# A questionnaire about getting to work: 900 people, eight yes-no questions, `-9` for no answer, a case number, age, place of
# living, and satisfaction with the way to work from 0 to 100. The data are simulated, so we know what should come out: three
# groups (drivers, riders of trains and buses, cyclists). The answers to two questions, "owns a bicycle" and "has a
# helmet", belong together more closely than the groups alone explain.

# %%
rng = np.random.default_rng(2)
n = 900
age, town = rng.integers(18, 66, n), rng.choice(["country", "city"], n, p=[0.4, 0.6])
log_odds = np.column_stack(
    [np.zeros(n), -0.6 + 1.3 * (town == "city") - 0.03 * (age - 40), -1.2 + 1.0 * (town == "city") - 0.05 * (age - 40)]
)
shares = np.exp(log_odds) / np.exp(log_odds).sum(axis=1, keepdims=True)
group = (rng.random(n)[:, None] > shares.cumsum(axis=1)[:, :2]).sum(axis=1)  # 0 drivers, 1 riders, 2 cyclists
yes = {
    "owns a car": (0.95, 0.35, 0.40),
    "drove last week": (0.90, 0.15, 0.20),
    "has a season ticket": (0.05, 0.80, 0.25),
    "took a train last week": (0.10, 0.85, 0.30),
    "owns a bicycle": (0.30, 0.35, 0.95),
    "cycled last week": (0.10, 0.15, 0.85),
    "walks to a stop": (0.15, 0.80, 0.30),
}
answers = {name: rng.random(n) < np.array(p)[group] for name, p in yes.items()}
answers["has a helmet"] = np.where(rng.random(n) < 0.65, answers["owns a bicycle"], rng.random(n) < 0.2)
survey = pd.DataFrame(answers).astype(int).mask(rng.random((n, 8)) < 0.03, -9)
survey.insert(0, "case", np.arange(n) + 20_001)
survey["age"], survey["town"] = age, town
survey["satisfaction"] = np.clip(rng.normal(np.array([50, 55, 75])[group], 15), 0, 100).round()
temporary = TemporaryDirectory()  # removed when Python ends
folder = Path(temporary.name)
survey.to_csv(folder / "way-to-work.csv", index=False)
survey.head()

# %% [markdown]
# In Python the codes for "no answer" become missing values, and the columns that are not answers stay out. A column that
# names the rows causes a warning:

# %%
questions = list(answers)
X = survey[questions].replace(-9, np.nan)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    LatentClassClusterer(2, n_init=2, random_state=0).fit(X.assign(case=survey["case"]))
print(caught[0].message)

# %% [markdown]
# On the command line one message lists all of that, with the command to run instead:
#
# ```
# pgm-bma cluster way-to-work.csv --clusters 1:5 --covariates age,town --outcome satisfaction
# ```
#
# Rows with missing answers stay: a missing answer is summed out.
#
# ## How many classes?
#
# `alpha` is the pseudo-count of every cell. A tiny one is maximum likelihood, as the other programs have it; the default of 1
# keeps estimates off 0 and 1. Every number is fitted from many starts, and from splits and merges of its neighbours.

# %%
every = LatentClassClusterer(range(1, 6), alpha=0.1, random_state=0).fit(X)
criteria = [
    "log_likelihood",
    "n_parameters",
    "aic",
    "bic",
    "adjusted_bic",
    "entropy_r2",
    "smallest_cluster",
    "probability",
]
every.n_clusters_path_.set_index("n_clusters")[criteria].round(3)

# %% [markdown]
# AIC, BIC and the evidence take five classes, the largest number tried. We know that there are three. Where more and more
# classes fit better, it is worth looking at what the fewer ones leave unexplained.
#
# ## What the classes leave unexplained
#
# `bivariate_residuals` compares observed and expected tables of every pair of questions. About 1 or less is what chance gives.

# %%
three = LatentClassClusterer(3, alpha=0.1, random_state=0).fit(X)
residuals = bivariate_residuals(three, X, n_bootstrap=19, random_state=0)
residuals.head(4).round(3)

# %%
ax = plot_residuals(residuals)

# %% [markdown]
# The largest residual is that of the pair that was made dependent; it bends the classes, so that other pairs suffer too. The
# further classes divide people by bicycle and helmet together. There are two cures. Structural EM lets a question depend on
# another one in addition to the class; it takes three classes, and its residuals show that nothing much is left.

# %%
structural = StructuralEMClusterer(range(2, 6), n_init=3, random_state=0).fit(X)
left = bivariate_residuals(structural, X, random_state=0)
print(structural.n_clusters_, "classes")
left.head(3).round(3)

# %% [markdown]
# The other cure is that of most papers: drop one of the two questions. Then AIC, BIC and the evidence agree on three classes.
# (On the command line `--method structural` and `--drop "has a helmet"` do the same.)

# %%
X = X.drop(columns="has a helmet")
questions.remove("has a helmet")
lca = LatentClassClusterer(range(1, 6), alpha=0.1, random_state=0).fit(X)
table_1 = lca.n_clusters_path_.set_index("n_clusters")[criteria]
table_1.round(3)

# %%
ax = plot_criteria(lca)

# %% [markdown]
# Two tests by parametric bootstrap: do patterns of answers occur as often as the model expects (`goodness_of_fit`), and does
# one more class fit better than chance allows (`likelihood_ratio_test`)? Three classes pass the first, and a fourth gains no
# more than chance would give it.

# %%
goodness = goodness_of_fit(lca, X, n_bootstrap=49, random_state=0).set_index("n_clusters")
goodness.round(3)

# %%
numbers = {
    k: LatentClassClusterer(k, alpha=0.1, n_init=8, starts=Starts(n_final=2), random_state=0).fit(X) for k in (2, 3)
}
ratio = {
    f"{k} against {k + 1}": likelihood_ratio_test(m, X, n_bootstrap=19, random_state=0) for k, m in numbers.items()
}
pd.DataFrame({name: {"2 x gain": test.statistic, "p": test.p_value} for name, test in ratio.items()}).round(3)

# %% [markdown]
# ## Profiles with their uncertainty
#
# `profiles_` has the size of every class and the probability of every answer in it, with standard errors from the observed
# information and 95 % intervals.

# %%
profiles = lca.profiles_
ax = plot_profile_intervals(lca)

# %%
cell = profiles["probability"].map("{:.2f}".format) + " (" + profiles["standard_error"].map("{:.2f}".format) + ")"
lines = profiles.assign(cell=cell, column=profiles["column"].fillna("(size)"), state=profiles["state"].fillna(1))
table_2 = lines[lines["state"] == 1].pivot(index="column", columns="cluster", values="cell")
table_2 = table_2.loc[["(size)", *questions]]
table_2.rename_axis(index="answers yes", columns="class")

# %% [markdown]
# ## What predicts membership, and what follows from it
#
# A regression of the most probable class on age ignores that some people were put into the wrong class, and finds effects
# that are too small. `three_step` corrects for that (by maximum likelihood, or by the weights of Bolck, Croon and Hagenaars),
# and its standard errors contain the uncertainty of the classes.

# %%
membership = three_step(lca, X, covariates=survey[["age", "town"]])
table_3 = membership.estimates.drop(columns=["z"]).round(3)
table_3.set_index(["cluster", "term"])

# %%
membership.tests.round(4)

# %% [markdown]
# Classes are numbered by size, and a row of the table compares one with the first. Satisfaction differs between classes:

# %%
satisfaction = three_step(lca, X, outcome=survey["satisfaction"])
plain = three_step(lca, X, outcome=survey["satisfaction"], correction="none")
both = satisfaction.estimates.assign(uncorrected=plain.estimates["estimate"]).round(2)
both.set_index("cluster")

# %%
satisfaction.tests.round(4)

# %% [markdown]
# The corrected means lie further apart than the uncorrected ones, and near the truth: 55 for riders, 50 for drivers, 75 for
# cyclists.
#
# ## The tables of the paper

# %%
for name, table in {"fit": table_1, "profiles": table_2, "covariates": table_3}.items():
    table.to_csv(folder / f"table-{name}.csv")
sorted(path.name for path in folder.glob("table-*.csv"))

# %% [markdown]
# With sampling weights the same calls take `sample_weight=` and the clusterer `weight_type="sampling"`; only the proportions of
# the weights count then, and standard errors are those of the sandwich.
