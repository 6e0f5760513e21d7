# %% [markdown]
# # 5. Working with pgmpy: hidden variables, missing values, other tools
#
# [pgmpy](https://pgmpy.org) is a Python library for Bayesian networks. Every model of `pgm_bma` is a pgmpy network, and
# `EMEstimator` plugs into pgmpy's own `fit`. In this tutorial you
#
# 1. build a network in pgmpy,
# 2. learn its tables from patients whose illness was **never recorded** and whose files have **many missing values**,
# 3. ask the network questions, and fill in the missing values,
# 4. write it to a file and open it in another program.

# %%
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", category=FutureWarning)  # pgmpy announces changes

from pgmpy.factors.discrete import TabularCPD
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

import pgm_bma
from pgm_bma.plotting import plot_calibration, plot_network

plt.rcParams["figure.dpi"] = 90

# %% [markdown]
# ## 1. Build a network
#
# We invent a clinic, so that we know the truth and can check what is learned. Smoking and age raise the risk of an illness;
# the illness causes cough, fever, shadows on the x-ray and tiredness; smoking causes cough too.
# In a table of pgmpy, columns are the states of the parents and rows the states of the variable.

# %%
arcs = [
    ("smoker", "illness"), ("older", "illness"), ("illness", "cough"), ("smoker", "cough"),
    ("illness", "fever"), ("illness", "xray"), ("illness", "tired"),
]  # fmt: skip
states = {name: ["no", "yes"] for name in ["smoker", "older", "illness", "cough", "fever", "xray"]}
states["tired"] = ["no", "some", "much"]


def table(name, rows, parents=()):
    names = {v: states[v] for v in (name, *parents)}
    return TabularCPD(name, len(states[name]), rows, list(parents), [len(states[p]) for p in parents], names)


truth = DiscreteBayesianNetwork(arcs)
truth.add_cpds(
    table("smoker", [[0.7], [0.3]]),
    table("older", [[0.6], [0.4]]),
    table("illness", [[0.95, 0.80, 0.75, 0.40], [0.05, 0.20, 0.25, 0.60]], ["smoker", "older"]),
    table("cough", [[0.90, 0.65, 0.40, 0.20], [0.10, 0.35, 0.60, 0.80]], ["illness", "smoker"]),
    table("fever", [[0.95, 0.45], [0.05, 0.55]], ["illness"]),
    table("xray", [[0.96, 0.25], [0.04, 0.75]], ["illness"]),
    table("tired", [[0.7, 0.2], [0.2, 0.4], [0.1, 0.4]], ["illness"]),
)
print("pgmpy finds the network complete and consistent:", truth.check_model())
_ = plot_network(truth, highlight="illness")

# %% [markdown]
# ## 2. Learn it back
#
# One thousand patients. The illness is not in the files, and every fifth entry of the rest is missing.

# %%
patients = pgm_bma.simulate(truth, 1000, random_state=5)
illness = patients.pop("illness")
complete = patients.copy()
patients = patients.mask(np.random.default_rng(5).random(patients.shape) < 0.2)
print(
    f"{patients.isna().mean().mean():.0%} of the cells are missing; {len(patients.dropna())} of 1000 files are complete"
)
patients.head(4)

# %% [markdown]
# In pgmpy the hidden variable is declared by `latents=`. `EMEstimator` does the rest: it runs exact EM from 30 random
# starts and keeps the best.

# %%
model = DiscreteBayesianNetwork(arcs, latents={"illness"})
estimator = pgm_bma.EMEstimator(state_names=states, seed=0, show_progress=False)
model.fit(patients, estimator=estimator)
print(f"log-likelihood {estimator.log_likelihood_:.1f}, {estimator.n_iter_} updates, converged: {estimator.converged_}")

# %% [markdown]
# The learned table P(x-ray | illness):

# %%
pd.DataFrame(model.get_cpds("xray").values.round(3), index=states["xray"], columns=["not ill", "ill"])

# %% [markdown]
# Data cannot name hidden states. `EMEstimator` numbers the states by falling probability, so the first name, `no`, goes to the
# more common one.
#
# How near are the tables to the truth? And would the complete files alone have been enough? The numbers are mean absolute errors
# of the probabilities.

# %%
few = DiscreteBayesianNetwork(arcs, latents={"illness"})
few.fit(patients.dropna(), estimator=pgm_bma.EMEstimator(state_names=states, seed=0, show_progress=False))


def errors(network):
    return pd.Series({v: np.abs(network.get_cpds(v).values - truth.get_cpds(v).values).mean() for v in states})


comparison = pd.DataFrame({"all files": errors(model), "complete files only": errors(few)})
comparison.loc["mean"] = comparison.mean()
comparison.round(3)

# %% [markdown]
# With all files the tables are about twice as accurate as with the complete ones only (last line).
#
# ## 3. Ask questions
#
# pgmpy answers questions about one patient at a time:

# %%
print(VariableElimination(model).query(["illness"], evidence={"cough": "yes", "fever": "yes"}, show_progress=False))

# %% [markdown]
# `pgm_bma.predict_proba` answers for a whole table at once, each row with what is known about it. The answers are the same.

# %%
risk = pgm_bma.predict_proba(model, patients, "illness")
asked = pgm_bma.predict_proba(model, pd.DataFrame({"cough": ["yes"], "fever": ["yes"]}), "illness")
asked.round(4)

# %%
best_possible = pgm_bma.predict_proba(truth, patients, "illness")
for name, answer in {"learned": risk, "true": best_possible}.items():
    print(
        f"{name} network: {((answer['yes'] > 0.5) == (illness == 'yes')).mean():.1%} of the patients classified correctly"
    )

# %% [markdown]
# The learned network does as well as the true one; that it is a little ahead is chance.
#
# Can the probabilities be trusted? Of the patients with a predicted risk of 80 %, about 80 % should be ill.

# %%
judged = {"learned": risk.to_numpy(), "true network": best_possible.to_numpy()}
_ = plot_calibration(illness, judged, classes=["no", "yes"], n_bins=5)

# %% [markdown]
# They can: the mean distance from the diagonal is 0.009, that of the true network 0.008.
#
# ## Fill in missing values
#
# `impute` puts the most probable state into every empty cell. The simple alternative is the most frequent value of the column.

# %%
empty = patients.isna()
filled = pgm_bma.impute(model, patients)
simple = patients.fillna(patients.mode().iloc[0])
right = pd.DataFrame(
    {
        "missing": empty.sum(),
        "right: impute": ((filled == complete) & empty).sum() / empty.sum(),
        "right: most frequent": ((simple == complete) & empty).sum() / empty.sum(),
    }
)
right.round(3)

# %% [markdown]
# The network guesses better in every column, by one to five points: five other answers about a patient say something about the
# sixth, but not everything.
#
# A filled table looks more certain than the data are; do not treat its values as observed. `method="sample"` draws from the
# possible values instead of taking the most probable, for statistics over several filled tables.
#
# ## Known tables stay fixed
#
# Often a table is known from elsewhere, such as the error rates of a test. Pass it as `fixed_cpds`, and EM does not change it.

# %%
known = pgm_bma.EMEstimator(state_names=states, fixed_cpds=[truth.get_cpds("xray")], seed=0, show_progress=False)
with_known = DiscreteBayesianNetwork(arcs, latents={"illness"}).fit(patients, estimator=known)
print("x-ray table as given:", bool((with_known.get_cpds("xray").values == truth.get_cpds("xray").values).all()))
print(f"mean error of the other tables: {errors(with_known).drop('xray').mean():.3f}, ", end="")
print(f"without that knowledge {errors(model).drop('xray').mean():.3f}")

# %% [markdown]
# Here the data already determined the x-ray table well, so the other tables hardly change.
#
# ## 4. Take it elsewhere
#
# `write_bif` writes the network as a BIF file, a text format that many programs read. It reads the file back and compares before
# it returns. `read_bif` restores the same network, hidden variables included.

# %%
temporary = TemporaryDirectory()  # removed when Python ends
folder = Path(temporary.name)
path = pgm_bma.write_bif(model, folder / "clinic.bif")
back = pgm_bma.read_bif(path)
same = all(np.array_equal(back.get_cpds(v).values, model.get_cpds(v).values) for v in model.nodes())
print("...", path.read_text()[-330:])
print("read back, same tables:", same, "| hidden:", set(back.latents))

# %% [markdown]
# Now another program: [pyAgrum](https://agrum.gitlab.io), if it is installed.

# %%
try:
    import pyagrum
except ImportError:
    print("pyAgrum is not installed: pip install pyagrum")
else:
    other = pyagrum.loadBN(str(path))
    engine = pyagrum.LazyPropagation(other)
    engine.setEvidence({"cough": "yes", "fever": "yes"})
    print(other)
    print(engine.posterior("illness"))
    print(f"pgm_bma's own answer: {asked['yes'][0]:.4f}")

# %% [markdown]
# Graph tools such as Gephi or Cytoscape read GraphML. A plain copy of the structure is enough:

# %%
nx.write_graphml(nx.DiGraph(list(model.edges())), folder / "clinic.graphml")
print(nx.read_graphml(folder / "clinic.graphml"))
