# %% [markdown]
# # 7. Tables larger than memory
#
# A register or a log of clicks can have more rows than fit into memory. The methods of this package need only sums over rows,
# so the rows can stay in their files. This page makes such a table, clusters it twice (folded, and in passes), and writes a
# label for every row. It has 200,000 rows; set the environment variable `TUTORIAL_ROWS` to 20000000 to see the same with
# twenty million.

# %%
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma.metrics import clustering_accuracy
from pgm_bma.plotting import plot_relevance

plt.rcParams["figure.dpi"] = 90
n_rows = int(os.environ.get("TUTORIAL_ROWS", 200_000))
temporary = TemporaryDirectory()  # removed when Python ends
folder = Path(temporary.name)

# %% [markdown]
# ## A survey in many files
#
# Three hidden groups answer twelve questions. Eight answers depend on the group, four are noise, and one answer in twenty is
# missing. The files are written one after the other, so the whole table is never in memory.

# %%
rng = np.random.default_rng(0)
n_questions, answers = 12, np.array(["never", "sometimes", "often"], dtype=object)
shares = rng.dirichlet([3.0, 0.6, 0.4], size=(n_questions, 3))
shares[8:] = shares[8:, :1]  # the last four do not depend on the group


def write_parts(name, shares, n_parts=8):
    """Files of a survey with a key, a hidden group and one column per question."""
    (folder / name).mkdir()
    for part, size in enumerate(np.diff(np.linspace(0, n_rows, n_parts + 1).astype(int))):
        group = rng.integers(0, 3, size)
        columns = {"key": np.arange(size) + part * n_rows, "group": group}
        for question, table in enumerate(shares):
            codes = (rng.random(size)[:, None] > table.cumsum(axis=1)[group][:, :-1]).sum(axis=1)
            columns[f"question {question + 1}"] = pd.Series(answers[codes]).where(rng.random(size) > 0.05)
        pd.DataFrame(columns).to_parquet(folder / name / f"part-{part}.parquet")


write_parts("survey", shares)

# %% [markdown]
# ## Fold first
#
# `scan_parquet` reads nothing yet. `fit` looks at a sample to see whether rows repeat, lets DuckDB fold them into distinct
# rows with their counts, and runs on these.

# %%
survey = pgm_bma.scan_parquet(folder / "survey" / "part-*.parquet")
questions = survey.drop(["key", "group"])
folded = questions.fold()
print(f"{folded.n_rows} rows, {len(folded.frame)} different ones")
clusterer = pgm_bma.EMAClusterer(n_clusters=3, random_state=0).fit(questions)
plot_relevance(clusterer)
plt.show()

# %% [markdown]
# The four questions that do not depend on the group are found. Nothing was approximated: the fit equals a fit on the rows in
# memory bit for bit, which we can check on this small table.

# %%
in_memory = pd.concat(
    [pd.read_parquet(path) for path in sorted((folder / "survey").glob("part-*.parquet"))], ignore_index=True
)
raw = pgm_bma.EMAClusterer(n_clusters=3, random_state=0).fit(in_memory.drop(columns=["key", "group"]))
same_bits = (raw.arc_posterior_.to_numpy() == clusterer.arc_posterior_.to_numpy()).all()
print("the same bits:", same_bits, raw.log_likelihood_ == clusterer.log_likelihood_)

# %% [markdown]
# ## A label for every row
#
# `labels_` would need memory for every row. `predict_to` writes labels part by part, with any columns that you want to keep.
# A second call finds everything done.

# %%
files = clusterer.predict_to(folder / "labels", keep=["key", "group"])
labels = pd.concat([pd.read_parquet(path) for path in files], ignore_index=True)
accuracy = clustering_accuracy(labels["group"], labels["cluster"])
print(f"{len(files)} files, {accuracy:.1%} of the rows in the right group")
labels.head(3)

# %% [markdown]
# ## When rows do not repeat
#
# Rows with forty answers hardly ever repeat. With a limit of 10 MB, a method that needs the distinct rows in memory raises an
# error that says how many there are. Most methods go over the rows in passes instead (docs/howto/large_tables.md lists them).
# Thirty starts of a clusterer are screened on a sample, and the best of them see all rows: `stage` 2 in `starts_`.

# %%
write_parts("long", np.concatenate([rng.dirichlet([1.0, 1.0, 1.0], size=(40, 3))]))
long = pgm_bma.scan_parquet(folder / "long" / "part-*.parquet", memory="10MB").drop("key")
try:
    pgm_bma.OrderPosterior().fit(long)
except MemoryError as error:
    print(error)
in_passes = pgm_bma.EMAClusterer(n_clusters=3, random_state=0).fit(long.drop("group"))
in_passes.starts_[["start", "stage", "score", "n_iter", "weight"]].sort_values("score").tail(3)

# %% [markdown]
# ## On a cluster
#
# A dask DataFrame goes into `fit` as it is. Where a client is open, its workers hold the rows, and an iteration takes one
# round trip. Here the "cluster" runs in this process; give `Client` the address of a scheduler for a real one. Sums are added
# in an order that the files fix, so the number of workers does not change the result.

# %%
import dask.dataframe as dd
from distributed import Client

with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
    frame = dd.read_parquet(f"{folder}/long/part-*.parquet").drop(columns=["key", "group"])
    on_dask = pgm_bma.EMAClusterer(n_clusters=3, random_state=0).fit(pgm_bma.scan_table(frame, memory="10MB"))
difference = abs(on_dask.log_likelihood_ / in_passes.log_likelihood_ - 1)
print(f"relative difference of the log-likelihoods: {difference:.1e}")
