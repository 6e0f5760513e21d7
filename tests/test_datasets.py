"""Data sets and networks by name: what is in them, where they are looked for, and what the errors say."""

import gzip
import hashlib
import os
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from pgm_bma import datasets, list_datasets, list_networks, load_dataset, load_network

# rows, columns with the class, missing cells, class counts
FACTS = {
    "breast-LJ": (286, 10, 9, {"no-recurrence-events": 201, "recurrence-events": 85}),
    "breast-wisc": (683, 10, 0, {"benign": 444, "malignant": 239}),
    "car": (1728, 7, 0, {"unacc": 1210, "acc": 384, "v-good": 65, "good": 69}),
    "iris": (150, 5, 0, {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50}),
    "krkp": (3196, 37, 0, {"won": 1669, "nowin": 1527}),
    "lymphography": (148, 19, 0, {"malign lymph": 61, "metastases": 81, "fibrosis": 4, "normal": 2}),
    "monk1": (556, 7, 0, {"1": 278, "0": 278}),
    "monk2": (601, 7, 0, {"0": 395, "1": 206}),
    "monk3": (554, 7, 0, {"1": 288, "0": 266}),
    "nursery": (
        12960,
        9,
        0,
        {"recommend": 2, "priority": 4266, "not_recom": 4320, "very_recom": 328, "spec_prior": 4044},
    ),
    "tic-tac-toe": (958, 10, 0, {"p": 626, "n": 332}),
    "titanic": (2201, 4, 0, {"yes": 711, "no": 1490}),
    "voting": (435, 17, 392, {"republican": 168, "democrat": 267}),
    "wine": (178, 14, 0, {"1": 59, "2": 71, "3": 48}),
    "zoo": (
        101,
        17,
        0,
        {"mammal": 41, "fish": 13, "bird": 20, "invertebrate": 10, "insect": 8, "amphibian": 4, "reptile": 5},
    ),
}
# sha256 of the sorted rows of the well-known files, computed once from them: any wrong row changes it
RULE_DIGESTS = {
    "tic-tac-toe": "3ba28bcd1a1a2518f367abe7580440f44e50750924a30d413498e7a7633894bb",
    "nursery": "73da96ab5daf277541206019b6f0a40372fd9a504dc15dff5a00f0a3e0350f55",
    "car": "a8cf9d85ccc0cd9e8cbae409c9d314c063ec95e714886379bd9d7bc2ca1ddc66",
    "titanic": "0448a04ab77a8e8898ca40dec240f3b7c934e1a0bf76d53b42b6b411281c09f4",
}
NETWORK_SIZES = {
    "asia": (8, 8),
    "cancer": (5, 4),
    "earthquake": (5, 4),
    "survey": (6, 6),
    "sachs": (11, 17),
    "child": (20, 25),
    "insurance": (27, 52),
    "alarm": (37, 46),
    "hailfinder": (56, 66),
    "win95pts": (76, 112),
}


def test_the_list_is_complete():
    assert set(list_datasets()) == set(FACTS)
    assert set(list_networks()) == set(NETWORK_SIZES)


@pytest.mark.parametrize("name", FACTS)
def test_contents(name):
    data, target = load_dataset(name)
    n_rows, n_columns, n_missing, classes = FACTS[name]
    assert target == "class" == data.columns[-1]
    assert data.shape == (n_rows, n_columns)
    assert int(data.isna().sum().sum()) == n_missing
    assert data[target].value_counts().to_dict() == classes
    for column in data.columns:
        values = data[column].dropna()
        if name in ("iris", "wine") and column != target:
            assert values.dtype == float
        else:
            assert all(type(value) is str and value for value in values)


@pytest.mark.parametrize("name", RULE_DIGESTS)
def test_generated_rows_equal_the_known_files(name):
    assert digest(load_dataset(name)[0]) == RULE_DIGESTS[name]


def digest(data):
    lines = sorted(",".join(row) for row in data.itertuples(index=False))
    return hashlib.sha256("\n".join([",".join(data.columns), *lines]).encode()).hexdigest()


@pytest.mark.skipif("PGM_BMA_DATA" not in os.environ, reason="PGM_BMA_DATA names no folder with the original files")
@pytest.mark.parametrize("name", ["tic-tac-toe", "nursery", "car", "titanic"])
def test_generated_rows_equal_the_files_in_the_folder(name):
    path = Path(os.environ["PGM_BMA_DATA"]) / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{name}.csv is not in PGM_BMA_DATA")
    known = pd.read_csv(path, dtype=str, keep_default_na=False)
    data, _ = load_dataset(name)
    assert list(data.columns) == list(known.columns)
    assert Counter(data.itertuples(index=False, name=None)) == Counter(known.itertuples(index=False, name=None))


def test_monks_follow_their_rules():
    """The test part of every MONK's problem is the full grid with a known rule; only monk3's training part has noise."""
    rules = {
        "monk1": (124, lambda r: r.a == r.b or r.e == "1"),
        "monk2": (169, lambda r: [r.a, r.b, r.c, r.d, r.e, r.f].count("1") == 2),
        "monk3": (122, lambda r: (r.e == "3" and r.d == "1") or (r.e != "4" and r.b != "3")),
    }
    for name, (n_train, rule) in rules.items():
        data, target = load_dataset(name)
        wrong = [str(int(rule(row))) != value for row, value in zip(data.itertuples(), data[target])]
        assert sum(wrong[n_train:]) == 0
        assert sum(wrong[:n_train]) == (6 if name == "monk3" else 0)
        assert not data.iloc[n_train:, :-1].duplicated().any()
        assert len(data) - n_train == 432


def test_every_call_gives_a_fresh_frame():
    data, _ = load_dataset("zoo")
    data.iloc[0, 0] = "changed"
    assert load_dataset("zoo")[0].iloc[0, 0] != "changed"


def test_folder_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("PGM_BMA_DATA", str(tmp_path))
    (tmp_path / "mine.csv").write_text("a,class,b\nNA,1,\nNone,0,x\n")
    data, target = load_dataset("mine")
    assert target == "class"
    assert data["a"].tolist() == ["NA", "None"]  # labels, not missing values
    assert data["b"].isna().tolist() == [True, False]
    with gzip.open(tmp_path / "packed.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n")
    data, target = load_dataset("packed")
    assert target == "b" and data.iloc[0].tolist() == ["1", "2"]
    (tmp_path / "golub.csv").write_text("g1,g2,class\n-3,2.5,ALL\n")
    data, target = load_dataset("golub")
    assert data["g1"].dtype == float and data["g2"].iloc[0] == 2.5 and data[target].tolist() == ["ALL"]
    (tmp_path / "iris.csv").write_text("nonsense\n")
    assert len(load_dataset("iris")[0]) == 150  # embedded sets cannot be replaced by accident


def test_openml_is_the_last_resort(monkeypatch):
    asked = []

    def fetch_openml(name, **options):
        asked.append((name, options["version"]))
        data = pd.DataFrame({"bruises%3F": pd.Categorical(["t", None], categories=["f", "t"]), "odor": [1, 2]})
        return type("Bunch", (), {"data": data, "target": pd.Series(pd.Categorical(["e", "p"]))})

    monkeypatch.delenv("PGM_BMA_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.warns(UserWarning, match=r"'mushroom' is not embedded \(PGM_BMA_DATA is not set\); asking openml.org"):
        data, target = load_dataset("mushroom")
    assert asked == [("mushroom", 1)]
    assert list(data.columns) == ["bruises", "odor", "class"] and target == "class"
    assert data["bruises"].isna().tolist() == [False, True]
    assert [data["bruises"].iloc[0], *data["odor"], *data["class"]] == ["t", "1", "2", "e", "p"]


@pytest.mark.filterwarnings("ignore:data set")
def test_the_error_names_all_that_was_tried(monkeypatch, tmp_path):
    def fetch_openml(name, **options):
        raise OSError("no network")

    monkeypatch.setenv("PGM_BMA_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("soybean-small")
    message = str(caught.value)
    for part in ("soybean-small.csv", "soybean-small.csv.gz", repr(str(tmp_path)), "openml.org", "no network"):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "name, hint",
    [("tictactoe", "'tic-tac-toe'"), ("Iris", "'iris'"), ("breast_wisc", "'breast-wisc'"), ("qqq", "there are .*zoo")],
)
def test_unknown_data_sets(name, hint, monkeypatch):
    monkeypatch.delenv("PGM_BMA_DATA", raising=False)
    with pytest.raises(ValueError, match=f"no data set '{name}': .*{hint}"):
        load_dataset(name)


@pytest.mark.parametrize("name", NETWORK_SIZES)
def test_networks(name):
    model = load_network(name)
    assert (len(model.nodes()), len(model.edges())) == NETWORK_SIZES[name]
    assert model.check_model()


def test_unknown_network():
    with pytest.raises(ValueError, match="no network 'alarn': did you mean 'alarm'"):
        load_network("alarn")


def test_files_are_found_in_both_layouts(tmp_path, monkeypatch):
    """An installed package has _data inside, a checkout has data beside; what is missing is said."""
    assert datasets._data_folder().is_dir()
    package = tmp_path / "installed"
    (package / "_data").mkdir(parents=True)
    (package / "_data" / "zoo.csv").write_text("legs,class\n4,mammal\n")
    monkeypatch.setattr(datasets.resources, "files", lambda name: package)
    assert load_dataset("zoo")[0].shape == (1, 2)
    (package / "_data" / "zoo.csv").unlink()
    (package / "_data").rmdir()
    checkout = tmp_path / "checkout"
    (checkout / "data").mkdir(parents=True)
    (checkout / "data" / "zoo.csv").write_text("legs,class\n4,mammal\n2,bird\n")
    monkeypatch.setattr(datasets, "__file__", str(checkout / "pgm_bma" / "datasets.py"))
    assert load_dataset("zoo")[0].shape == (2, 2)
    monkeypatch.setattr(datasets, "__file__", str(tmp_path / "elsewhere" / "pgm_bma" / "datasets.py"))
    with pytest.raises(FileNotFoundError, match="reinstall"):
        load_dataset("zoo")
