"""Every method in passes has the bits of the fit from files on 1, 2 and 4 workers of a dask cluster."""

import numpy as np
import pytest

import pgm_bma
from pgm_bma.foundation.rows import blocks
from tests.foundation.scanned import cut, differences, make_table, write_parts

SOME = ["text", "category", "half", "class"]
COLUMNS = {"forest clusters": ["half", "class", "differs"], "Kikuchi": ["text", "half", "class"]}
OPTIONS = {"memory": 1000, "sample_rows": 300}
COUNTED = {
    "averaged naive Bayes": pgm_bma.AveragedNaiveBayesClassifier,
    "TAN": pgm_bma.TANClassifier,
    "forest classifier": lambda: pgm_bma.ForestAveragedClassifier(random_state=0),
    "Kikuchi": lambda: pgm_bma.KikuchiBayesClassifier(ridge=5.0, random_state=0),
    "orders": lambda: pgm_bma.OrderAveragedClassifier(missing="state", max_indegree=2, random_state=0),
}
ITERATED = {
    "EMA": lambda: pgm_bma.EMAClusterer(2, n_init=2, max_iter=8, random_state=0),
    "structural EM": lambda: pgm_bma.StructuralEMClusterer(2, n_init=1, max_iter=2, random_state=0),
    "forest clusters": lambda: pgm_bma.ForestAveragedClusterer(2, n_init=2, max_iter=3, random_state=0),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    monkeypatch.setattr(blocks, "MAX_RESULTS", 3)  # workers add up the sums of three partitions and more


@pytest.fixture(scope="module")
def parts():
    return cut(make_table(1100, missing=0.15), 5)


@pytest.fixture(scope="module")
def pattern(parts, tmp_path_factory):
    return write_parts(parts, tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module", params=[1, 2, 4])
def client(request):
    """Workers in this process: they hold their own partitions, and nothing is imported again."""
    from distributed import Client

    with Client(processes=False, n_workers=request.param, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


def _part(number, parts):
    return parts[number]


@pytest.fixture(scope="module")
def from_files(pattern):
    """name -> the fit from files, made once."""
    made = {}

    def find(name):
        if name not in made:
            made[name] = fitted(name, pgm_bma.scan_parquet(pattern, **OPTIONS))
        return made[name]

    return find


@pytest.fixture(scope="module")
def on_dask(parts):
    import dask.dataframe as dd

    frame = dd.from_map(_part, list(range(len(parts))), parts=parts, meta=parts[0].iloc[:0])
    return pgm_bma.scan_table(frame, **OPTIONS)


def fitted(name, rows):
    """What a method makes of a scan, as something to compare."""
    rows = rows.select(COLUMNS.get(name, SOME))
    if name != "network EM":
        return vars({**COUNTED, **ITERATED}[name]().fit(rows, *(["class"] if name in COUNTED else [])))
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork([("h", "text"), ("text", "half"), ("h", "half"), ("half", "class")], latents={"h"})
    found = pgm_bma.EMEstimator(latent_card={"h": 2}, n_init=1, max_iter=3, seed=0, show_progress=False).fit(
        model, rows
    )
    return {"tables": [cpd.values for cpd in found.parameters_], "score": found.log_likelihood_}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [*COUNTED, *ITERATED, "network EM"])
def test_any_number_of_workers_has_the_bits_of_files(name, client, from_files, on_dask):
    assert differences(from_files(name), fitted(name, on_dask)) == []


def test_shards_are_summed_in_the_tree_over_all_blocks():
    """However blocks are dealt out to shards, and shards joined: the bits of the plain tree."""
    rng = np.random.default_rng(0)
    values = (rng.random(53) * 10.0 ** rng.integers(-8, 8, 53)).tolist()
    want = blocks.tree_sum((x,) for x in values)
    for trial in range(20):
        cuts = np.sort(rng.integers(0, 54, trial))
        shards = np.split(np.arange(53), cuts)
        trees = [blocks.sum_shard([values[i] for i in s], s[0] if len(s) else 0, _one, ()) for s in shards]
        while len(trees) > 2:
            trees = [blocks.join_trees(trees[i : i + 3]) for i in range(0, len(trees), 3)]
        assert blocks.finish_tree(blocks.join_trees(trees)) == want


def _one(block):
    return (block,)
