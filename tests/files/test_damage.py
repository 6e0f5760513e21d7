"""Damaged files of every kind: a ValueError that names the file, or what can still be read; nothing else, and no surprise.

Saved estimators and compressed networks have checksums, so damage is found or changes nothing; texts have none.
"""

import gzip
import json
import random

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands.repeat import read_record
from pgm_bma.commands.tabular_files import read_table
from pgm_bma.networks.objects import bayesian_network, network_arrays
from tests.saved.make import FOLDER, VERSION, answers

N_FLIPS, N_CUTS = 60, 25


def network(path):
    cpts = [[[0.25, 0.75]], [[0.1, 0.9], [0.3, 0.7]]]
    states = [(1, 2), ("no", (True, None))]
    pgm_bma.write_bif(bayesian_network(["a b", "c"], states, [(), (0,)], cpts, latents={"c"}), path)


def table(path):
    frame = pd.DataFrame({"leaf": ["long", "short", "été"] * 10, "height": np.arange(30) / 4, "n": range(3, 33)})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep=";")


def record(path):
    source = {"source": "zoo", "sha256": "0" * 64, "path": "x.csv"}
    arguments = {"file": "zoo", "target": "class", "drop": ["a"], "cv": 3}
    document = {
        "pgm_bma": "0.2",
        "command": "classify",
        "arguments": arguments,
        "data": source,
        "files": {"a.csv": "0"},
    }
    path.write_text(json.dumps(document), encoding="utf-8")


# kind -> (name of the file, function that writes it, function that reads it)
KINDS = {
    "network": ("net.bif", network, lambda path: network_arrays(pgm_bma.read_bif(path))),
    "packed network": ("net.bif.gz", network, lambda path: network_arrays(pgm_bma.read_bif(path))),
    "table": ("table.csv", table, read_table),
    "packed table": ("table.csv.gz", table, read_table),
    "parquet": ("table.parquet", table, read_table),
    "record": ("run.json", record, read_record),
}


def damaged(content, seed):
    """Single bytes changed, and the file cut short."""
    rng = random.Random(seed)
    for place in rng.sample(range(len(content)), min(N_FLIPS, len(content))):
        yield content[:place] + bytes([content[place] ^ rng.randrange(1, 256)]) + content[place + 1 :]
    for end in rng.sample(range(len(content)), min(N_CUTS, len(content))):
        yield content[:end]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_a_value_error_that_names_the_file(kind, tmp_path):
    name, write, read = KINDS[kind]
    path = tmp_path / name
    write(path)
    content, refused = path.read_bytes(), 0
    for bad in damaged(content, kind):
        path.write_bytes(bad)
        try:
            read(path)
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) or path.name in str(error), error
    assert refused > 5


def test_a_packed_network_is_whole_or_refused(tmp_path):
    path = tmp_path / "net.bif.gz"
    network(path)
    content, expected = path.read_bytes(), gzip.decompress(path.read_bytes())
    for bad in damaged(content, "gz"):
        path.write_bytes(bad)
        try:
            pgm_bma.read_bif(path)
        except ValueError:
            continue
        assert gzip.decompress(bad) == expected  # the time or the name in the header of the archive


@pytest.mark.parametrize("name", ["TANClassifier", "EMAClusterer", "OrderPosterior"])
def test_a_saved_estimator_that_is_cut_short_is_refused(name, tmp_path):
    whole, path = FOLDER / f"format{VERSION}" / f"{name}.pgm", tmp_path / "cut.pgm"
    content = whole.read_bytes()
    for end in random.Random(name).sample(range(len(content)), N_CUTS):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"cut\.pgm"):
            pgm_bma.load(path)
    path.write_bytes(content + b"more")  # zip takes what stands behind its end; so the checksums must hold
    assert np.array_equal(answers(name, pgm_bma.load(path)), answers(name, pgm_bma.load(whole)))
