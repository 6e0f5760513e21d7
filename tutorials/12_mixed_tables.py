# %% [markdown]
# # 12. Clusters of a mixed table
#
# Most tables have several kinds of columns: measurements, answers on a scale, and categories. `EMAClusterer` takes them together.
# A number is normal inside a cluster, an ordered column is averaged over all ways to merge neighbouring levels, a category has a
# table. For every column it reports the probability that the column matters.
#
# The table here is simulated, so that the truth is known: 400 birds of three kinds on three islands, with two measurements of the
# bill, the mass, a score of condition from 1 to 7, and two columns that say nothing. Some cells are missing.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import pgm_bma
from pgm_bma.plotting import plot_densities

plt.rcParams["figure.dpi"] = 90

rng = np.random.default_rng(7)
n = 400
kind = rng.choice(3, n, p=[0.4, 0.35, 0.25])
birds = pd.DataFrame(
    {
        "bill_length": rng.normal(np.array([39.0, 47.0, 48.5])[kind], 2.8).round(1),
        "bill_depth": rng.normal(np.array([18.3, 15.0, 18.4])[kind], 1.1).round(1),
        "mass": np.exp(rng.normal(np.array([8.2, 8.5, 8.22])[kind], 0.11)).round(),
        "condition": np.clip(np.round(rng.normal(np.array([3.0, 5.0, 4.0])[kind], 1.2)), 1, 7).astype(int),
        "island": np.array(["north", "south", "west"])[np.where(rng.random(n) < 0.7, kind, rng.integers(0, 3, n))],
        "ring": rng.choice(["left", "right"], n),
        "wind": rng.gamma(2.0, 3.0, n).round(1) + 0.1,
    }
)
birds = birds.mask(rng.random(birds.shape) < 0.03)
birds.head()

# %% [markdown]
# ## One call
#
# Numbers that are not whole, or take more than 20 values, are numbers. `condition` is whole with few values, so that it would be
# a category: `ordered_columns` says that it has an order. (An ordered pandas categorical says so by itself.)

# %%
first = pgm_bma.EMAClusterer(range(1, 7), ordered_columns=["condition"], random_state=0).fit(birds)
print(first.n_clusters_, "clusters;", "numbers:", first.numeric_columns_, "ordered:", first.ordered_columns_)
print("arc posterior of wind:", round(first.arc_posterior_["wind"], 3))
print(first.hints_)

# %% [markdown]
# One cluster too many, and `wind` seems to matter, though it was drawn without regard to the kinds. The hint says why: `wind` is
# skewed, and several normal densities are needed to follow one skewed column. Nothing is transformed by itself. We take the hint:

# %%
birds["wind"] = np.log(birds["wind"])
model = pgm_bma.EMAClusterer(range(1, 7), ordered_columns=["condition"], random_state=0).fit(birds)
print(model.n_clusters_, "clusters;", "hints:", model.hints_)
print("adjusted Rand index with the kinds:", round(adjusted_rand_score(kind, model.labels_), 3))

# %%
model.n_clusters_path_[["n_clusters", "score", "probability", "bic", "icl"]].round(2)

# %% [markdown]
# The evidence bound chooses the number. ICL prefers clusters that are told apart clearly. Where both agree, there is little to
# discuss. Where columns stay correlated inside clusters, the evidence asks for more clusters than ICL does.
#
# ## Which columns matter

# %%
model.arc_posterior_.round(3).to_frame().join(model.cluster_dependence_.round(3))

# %% [markdown]
# `ring` and `wind` say nothing about the clusters, and the model knows it.
#
# ## What the clusters are

# %%
plot_densities(model, birds, title="Numbers in the clusters")
plt.show()

# %%
model.plot()
plt.show()

# %%
profiles = model.profiles_
profiles[profiles["column"].isin(["bill_length", "bill_depth", "mass"])].round(2)

# %% [markdown]
# Each line is the mean or standard deviation of a column in a cluster (`probability` holds its value), with a standard error and a
# 95 % interval. The lines of other columns hold the probabilities of their states.
#
# ## What the model leaves open
#
# Inside a cluster, columns are independent of each other in this model. `bivariate_residuals` compares that with the rows: a
# residual near 1 is what chance gives.

# %%
pgm_bma.bivariate_residuals(model, birds).head(4).round(2)

# %% [markdown]
# ## Columns of noise
#
# Forty columns of noise are added: twenty numbers and twenty categories. A Gaussian mixture on standardised numbers and one-hot
# categories (missing cells filled by means) sees all columns alike.

# %%
noisy = birds.copy()
for i in range(20):
    noisy[f"number{i}"] = rng.normal(size=n)
    noisy[f"state{i}"] = rng.choice(list("abc"), n)
found = pgm_bma.EMAClusterer(3, ordered_columns=["condition"], random_state=0).fit(noisy)
wide = pd.get_dummies(noisy).astype(float)
wide = ((wide - wide.mean()) / wide.std()).fillna(0.0)
mixture = GaussianMixture(3, covariance_type="diag", n_init=10, random_state=0).fit_predict(wide)
print("EMA:             ", round(adjusted_rand_score(kind, found.labels_), 3))
print("Gaussian mixture:", round(adjusted_rand_score(kind, mixture), 3))
relevance = found.arc_posterior_
print("noise columns with an arc posterior above 1/2:", int((relevance[birds.shape[1] :] > 0.5).sum()), "of 40")

# %% [markdown]
# ## The same from the command line
#
# `pgm-bma cluster birds.csv --ordered condition --clusters 1-6` reads a file with numbers, ordered answers and categories, and
# writes a report with these tables and pictures.
