"""Files outlive the code: every file kept in tests/saved loads and predicts as when it was written; damage is found."""

import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pgm_bma
from pgm_bma import catalogue
from pgm_bma.files import storage
from tests.saved.make import ALL, answers, fitted, rows

KEPT = sorted(Path(__file__).parents[1].joinpath("saved").glob("format*/*.pgm"))
N_FLIPS = 40  # for each estimator


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kept_files_load_and_say_the_same(path):
    estimator = pgm_bma.load(path)
    assert type(estimator).__name__ == path.stem
    # other processors round sums of logarithms otherwise
    np.testing.assert_allclose(answers(path.stem, estimator), np.load(path.with_suffix(".npy")), rtol=1e-9, atol=1e-12)


def test_every_estimator_has_a_kept_file_of_this_format():
    newest = {path.stem for path in KEPT if path.parent.name == f"format{storage.VERSION}"}
    assert newest == set(storage.ESTIMATORS) == set(ALL)


@pytest.mark.parametrize("name", sorted(storage.ESTIMATORS))
def test_a_new_attribute_needs_a_new_format(name):
    """What a fit sets today is what the kept file of this format has: else make the kept files anew."""
    kept = pgm_bma.load(Path(__file__).parents[1] / "saved" / f"format{storage.VERSION}" / f"{name}.pgm")
    today = {key for key in fitted(name).__getstate__() if not key.startswith("_cached_")}
    assert today == set(kept.__getstate__()) - {"_sklearn_version"} or today == set(kept.__getstate__())


@pytest.mark.parametrize("name", sorted(storage.ESTIMATORS))
def test_a_flipped_byte_is_found_or_harmless(name, tmp_path):
    content = (Path(__file__).parents[1] / "saved" / f"format{storage.VERSION}" / f"{name}.pgm").read_bytes()
    path = tmp_path / "damaged.pgm"
    expected = answers(name, pgm_bma.load(_write(path, content)))
    places = random.Random(name).sample(range(len(content)), N_FLIPS)
    refused = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= random.Random(place).randrange(1, 256)
        try:
            found = pgm_bma.load(_write(path, damaged))
        except ValueError as error:
            refused += 1
            assert str(path) in str(error)
        else:
            np.testing.assert_array_equal(answers(name, found), expected)
    assert refused > N_FLIPS / 2  # compressed content and its checksums are most of a file


def _write(path, content):
    path.write_bytes(content)
    return path


def change_document(path, change):
    """Rewrite a saved file with its document changed, checksums made anew: what a stranger could do."""
    from pgm_bma.foundation.runtime.archive import read_archive, write_archive

    archive = read_archive(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        arrays = [archive.array(i) for i in range(len(file.namelist()) - 2)]
    write_archive(path, change(archive.document), arrays)


def test_swapped_fields_come_back_by_name(tmp_path):
    path = tmp_path / "file.pgm"
    estimator = pgm_bma.LatentClassClusterer(n_init=2, random_state=0).fit(rows()[0])
    pgm_bma.save(estimator, path)

    def swap(node):
        if isinstance(node, dict) and node.get("t") == "record":
            return {"t": "record", "v": [node["v"][0], [[name, swap(v)] for name, v in node["v"][1][::-1]]]}
        if isinstance(node, dict):
            return {key: swap(value) for key, value in node.items()}
        return [swap(item) for item in node] if isinstance(node, list) else node

    change_document(path, swap)
    assert pgm_bma.load(path).log_likelihood_ == estimator.log_likelihood_


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["alpha",1.0]', '["alfa",1.0]', "TANClassifier in the file lacks alpha"),
        ('["alpha",1.0]', '["alpha",1.0],["beta",1]', "has unknown beta"),
        ('["alpha",1.0]', '["alpha",1.0],["predict_",1],["_fit",1]', "'_fit' is a part of TANClassifier"),
        ('"TANClassifier"', '"os.system"', "names 'os.system'"),
        ('"TANClassifier"', '"schema"', "names 'schema'"),
    ],
)
def test_fields_and_keys_that_do_not_fit_are_named(tmp_path, old, new, message):
    path = tmp_path / "file.pgm"
    pgm_bma.save(pgm_bma.TANClassifier(), path)

    def change(document):
        text = json.dumps(document, separators=(",", ":"))
        assert old in text
        return json.loads(text.replace(old, new))

    change_document(path, change)
    with pytest.raises(ValueError, match=message):
        pgm_bma.load(path)


def test_keys_mean_classes_that_are_there():
    for table in (storage.ESTIMATORS, catalogue.RECORDS):
        for key in table:
            assert storage._key(storage._find_class(key, table)) == key


def test_a_file_cannot_make_memory_run_out(tmp_path):
    path = tmp_path / "bomb.pgm"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sha256.json", b"[" + b" " * (1 << 27))
    with pytest.raises(ValueError, match="says that it has"):
        pgm_bma.load(path)
