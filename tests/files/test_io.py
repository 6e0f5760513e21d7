"""Saved estimators come back as they were, value by value and type by type; nothing else can be loaded."""

import datetime
import decimal
import fractions
import io
import json
import zipfile
import zoneinfo
from collections import OrderedDict
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pgm_bma
from pgm_bma.files import storage
from pgm_bma.foundation.runtime import archive
from pgm_bma.foundation.runtime.archive import read_archive, write_archive
from pgm_bma.foundation.runtime.atomic import replacing
from pgm_bma.foundation.tables.table import Schema
from pgm_bma.networks.objects import NetworkArrays, bayesian_network, network_arrays


def carrier(value):
    """An estimator of ours with `value` among its attributes."""
    estimator = pgm_bma.NaiveBayesClassifier()
    estimator.value_ = value
    return estimator


def round_trip(value, path):
    pgm_bma.save(carrier(value), path)
    return pgm_bma.load(path).value_


def same(a, b):
    """Equality that also compares types, NaN with NaN, -0.0 apart from 0.0, order of dicts and memory order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, (set, frozenset)):
        return a == b and sorted(map(repr, a)) == sorted(map(repr, b))
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        layout = a.flags.f_contiguous == b.flags.f_contiguous or not (a.flags.c_contiguous or a.flags.f_contiguous)
        return layout and (same(a.tolist(), b.tolist()) if a.dtype == object else a.tobytes() == b.tobytes())
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    return a is b or bool(a == b)  # None, NaT and NA are single objects


atoms = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.binary(max_size=6), st.dates(),
    st.datetimes(), st.timedeltas(), st.datetimes(timezones=st.sampled_from([zoneinfo.ZoneInfo("Europe/Madrid")])),
    st.complex_numbers(), st.decimals(allow_nan=False), st.fractions(), st.datetimes().map(pd.Timestamp),
    st.sampled_from([np.float32(0.1), np.int8(-3), np.str_("é"), np.bool_(True), np.datetime64("2020-01-01", "D")]),
    st.sampled_from([pd.NaT, pd.NA, pd.Interval(0, 1.5), pd.Period("2020-03", "M"), pd.Timedelta("3h"), range(1, 9, 2)]),
)  # fmt: skip
keys = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.tuples(st.text(max_size=2), st.integers())
)
trees = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.sets(keys, max_size=3),
        st.frozensets(keys, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=trees)
def test_any_tree_of_python_values_comes_back(tmp_path, value):
    assert same(round_trip(value, tmp_path / "file"), value)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f4", "f8", ">f8", "c16", "S3", "U3", "M8[s]", "m8[ns]", "O"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (40, 50)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back(tmp_path, dtype, shape, order):
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 100, size=shape)
    array = np.array(numbers.astype(str) if dtype in ("S3", "U3") else numbers).astype(dtype, order=order)
    found = round_trip(array, tmp_path / "file")
    if dtype == "O":  # the layout of labels carries no meaning
        found = np.asarray(found, order=order)
    assert same(found, array)
    found[...] = found  # still writable


def test_object_arrays_hold_labels_of_any_kind(tmp_path):
    array = np.empty((2, 2), dtype=object)
    array[:] = [["a", (1, 2)], [None, datetime.date(2020, 1, 1)]]
    assert same(round_trip(array, tmp_path / "file"), array)


FRAMES = {
    "numbers": pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]}),
    "strings": pd.DataFrame({"s": ["x", None], "t": pd.Series(["u", None], dtype="string"), "o": [1, "x"]}),
    "categories": pd.DataFrame({"c": pd.Categorical(["x", None, "z"], categories=["z", "y", "x"], ordered=True)}),
    "nullable": pd.DataFrame({"i": pd.array([1, None], dtype="Int8"), "b": pd.array([True, None], dtype="boolean")}),
    "repeated": pd.DataFrame([[1, "a"], [2, "b"]], columns=["x", "x"]),
    "dates": pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None])}),
    "zones": pd.DataFrame({"d": pd.to_datetime(["2020-01-01", None]).tz_localize("Europe/Madrid")}),
    "multi": pd.DataFrame([[1.0]], index=pd.MultiIndex.from_tuples([("a", 1)], names=["n", None]), columns=[("u", 2)]),
    "intervals": pd.DataFrame({"i": pd.cut([0.5, 1.5], [0, 1, 2])}),
    "empty": pd.DataFrame(index=pd.Index(["r"], name="rows")),
    "no rows": pd.DataFrame({"a": pd.Series([], dtype="int8"), "s": pd.Series([], dtype="str")}),
    "large": pd.DataFrame(np.random.default_rng(0).random((300, 3)), columns=list("abc")),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_come_back(tmp_path, name):
    frame = FRAMES[name]
    found = round_trip(frame, tmp_path / "file")
    pd.testing.assert_frame_equal(found, frame, check_exact=True, check_freq=False)
    assert list(found.dtypes) == list(frame.dtypes)
    assert type(found.index) is type(frame.index)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["a", "b"], name="n"), pd.RangeIndex(1, 9, 4), pd.Index([1.5, 2.5]), pd.Index([("a", 1), ("b", 2)]),
        pd.CategoricalIndex(["x", "y"]), pd.DatetimeIndex(["2020-01-01", "2021-01-01"]), pd.Index([1, "a"], dtype=object),
        pd.Index(["a", None], dtype=object), pd.PeriodIndex(["2020-01", "2020-02"], freq="M"), pd.Index([True, False]),
        pd.TimedeltaIndex(["1h", "2h"]), pd.IntervalIndex.from_breaks([0, 1, 2]),
    ],
    ids=repr,
)  # fmt: skip
def test_series_and_indices_come_back(tmp_path, index):
    pd.testing.assert_index_equal(round_trip(index, tmp_path / "file"), index, exact=True)
    value = pd.Series([0.1, -0.0], index=index, name=("a", 1))
    found = round_trip(value, tmp_path / "file")
    pd.testing.assert_series_equal(found, value, check_exact=True)
    assert found.name == ("a", 1)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_graphs_come_back(tmp_path, kind):
    graph = kind(name="g", made=datetime.date(2020, 1, 1))
    graph.add_node(frozenset({"a", "b"}), counting_number=np.int64(1), roles={"x"})
    graph.add_edge("z", ("y", 1), posterior=0.5)
    graph.add_edge(("y", 1), "a", posterior=float("nan"))
    found = round_trip(graph, tmp_path / "file")
    assert type(found) is kind
    assert same(dict(found.graph), dict(graph.graph))
    assert same(list(found.nodes(data=True)), list(graph.nodes(data=True)))
    assert same(list(found.edges(data=True)), list(graph.edges(data=True)))


def test_pgmpy_networks_and_dags_come_back(tmp_path):
    from pgmpy.base import DAG

    model = bayesian_network(
        ["a b", 2], [("x", 1), (True, None)], [(1,), ()], [[[0.1, 0.9], [1, 0]], [[0.3, 0.7]]], [2]
    )
    found = round_trip(model, tmp_path / "file")
    assert type(found) is type(model)
    assert found.check_model()
    assert same(tuple(network_arrays(found)), tuple(network_arrays(model)))
    dag = DAG([("u", "v"), ("u", "w")], latents={"u"})
    found = round_trip(dag, tmp_path / "file")
    assert type(found) is DAG
    assert found == dag
    assert found.latents == {"u"}


def test_records_and_nested_estimators_come_back(tmp_path):
    schema = Schema(("a",), (("x", 2),))
    arrays = NetworkArrays(("a",), (("x", 2),), ((),), (np.array([[0.5, 0.5]]),))
    found = round_trip({"schema": schema, "arrays": [arrays], "bins": pgm_bma.WidthDiscretizer()}, tmp_path / "file")
    assert found["schema"] == schema
    assert type(found["schema"]) is Schema
    assert list(found["schema"].cardinalities) == [2]
    assert same(found["arrays"], [arrays])
    assert type(found["bins"]) is pgm_bma.WidthDiscretizer
    assert found["bins"].get_params() == pgm_bma.WidthDiscretizer().get_params()


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_generators_go_on_where_they_were(tmp_path, name):
    rng = np.random.Generator(getattr(np.random, name)(7))
    rng.spawn(2)
    rng.random(3, dtype=np.float32)
    found = round_trip(rng, tmp_path / "file")
    assert np.array_equal(found.random(5), rng.random(5))
    assert np.array_equal(found.spawn(1)[0].random(5), rng.spawn(1)[0].random(5))


def test_random_state_and_seed_sequence_come_back(tmp_path):
    old = np.random.RandomState(3)
    old.standard_normal()  # leaves a second normal in store
    found = round_trip(old, tmp_path / "file")
    assert np.array_equal(found.standard_normal(5), old.standard_normal(5))
    seeds = np.random.SeedSequence(5)
    seeds.spawn(2)
    found = round_trip(seeds, tmp_path / "file")
    assert np.array_equal(found.spawn(1)[0].generate_state(4), seeds.spawn(1)[0].generate_state(4))


def fitted():
    X = pd.DataFrame({"a": ["x", "y", "x", None], "b": [1, 2, 2, 1], "c": [True, False, True, True]})
    return pgm_bma.AveragedNaiveBayesClassifier().fit(X, pd.Series(["n", "p", "n", "p"], name="t")), X


def test_a_fitted_estimator_predicts_bit_for_bit(tmp_path):
    estimator, X = fitted()
    before = estimator.predict_proba(X)
    assert estimator.model_.check_model()  # now there is a cached network, which must not be stored
    assert pgm_bma.save(estimator, tmp_path / "file") is None
    found = pgm_bma.load(tmp_path / "file")
    assert type(found) is type(estimator)
    assert found.get_params() == estimator.get_params()
    assert not any(name.startswith("_cached_") for name in vars(found))
    assert set(vars(found)) == {name for name in vars(estimator) if not name.startswith("_cached_")}
    assert np.array_equal(found.predict_proba(X), before)
    assert np.array_equal(found.predict(X), estimator.predict(X))
    assert same(tuple(network_arrays(found.model_)), tuple(network_arrays(estimator.model_)))
    assert repr(found) == repr(estimator)


def test_methods_of_the_estimator_do_the_same(tmp_path):
    estimator, X = fitted()
    estimator.save(tmp_path / "file")
    found = pgm_bma.AveragedNaiveBayesClassifier.load(tmp_path / "file")
    assert np.array_equal(found.predict_proba(X), estimator.predict_proba(X))
    with pytest.raises(TypeError, match="AveragedNaiveBayesClassifier"):
        pgm_bma.TANClassifier.load(tmp_path / "file")


def test_equal_estimators_give_equal_bytes(tmp_path):
    one, two = {0, 8}, {8, 0}
    assert list(one) != list(two)  # equal sets that are walked in different orders, as hash seeds make them
    pgm_bma.save(carrier({"set": one, "array": np.arange(500)}), tmp_path / "one")
    pgm_bma.save(carrier({"set": two, "array": np.arange(500)}), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_saved_file_is_json_and_npy(tmp_path):
    pgm_bma.save(carrier(np.arange(1000.0)), tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as archive:
        assert sorted(archive.namelist()) == ["0.npy", "document.json", "sha256.json"]
        assert json.loads(archive.read("document.json"))["format"] == "pgm_bma estimator"
    assert np.array_equal(np.load(tmp_path / "file", allow_pickle=False)["0"], np.arange(1000.0))


class Outsider(NamedTuple):
    x: int


@pytest.mark.parametrize(
    "value",
    [lambda: 1, object(), Outsider(1), OrderedDict(a=1), np.ma.array([1]), np.zeros(2, dtype="i4,f8"), len, nx.Graph],
    ids=lambda v: type(v).__name__,
)
def test_what_cannot_be_stored_is_named(tmp_path, value):
    (tmp_path / "file").write_text("old")
    nested = carrier(None)
    nested.inner_ = carrier([{"deep": value}])
    message = (
        "attribute 'inner_' of NaiveBayesClassifier: attribute 'value_' of NaiveBayesClassifier: .*cannot be stored"
    )
    with pytest.raises(TypeError, match=message):
        pgm_bma.save(nested, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_only_our_estimators_are_saved(tmp_path):
    from sklearn.naive_bayes import CategoricalNB

    for value in (CategoricalNB(), {"a": 1}, pgm_bma.NaiveBayesClassifier):
        with pytest.raises(TypeError, match="estimator of pgm_bma"):
            pgm_bma.save(value, tmp_path / "file")


def write_document(path, **changes):
    """A saved estimator with some of its document changed, its checksums made anew."""
    pgm_bma.save(carrier(np.arange(500.0)), path)
    saved = read_archive(path.read_bytes())
    write_archive(path, saved.document | changes, [saved.array(0)])


@pytest.mark.parametrize("key", ["NoSuchClassifier", "os.system", "naive_bayes.classifier", "schema", 3, ["a"]])
def test_a_file_cannot_name_other_classes(tmp_path, key):
    write_document(tmp_path / "file", estimator={"t": "estimator", "v": [key, []]})
    with pytest.raises(ValueError, match="file is damaged"):
        pgm_bma.load(tmp_path / "file")
    write_document(tmp_path / "file", estimator={"t": "record", "v": ["TANClassifier", []]})
    with pytest.raises(ValueError, match="names 'TANClassifier'"):
        pgm_bma.load(tmp_path / "file")


def test_load_explains_what_is_wrong(tmp_path):
    path = tmp_path / "file"
    write_document(path, version=storage.VERSION + 1, pgm_bma="9.9")
    with pytest.raises(ValueError, match=rf"version {storage.VERSION + 1}, written by pgm_bma 9\.9.*update"):
        pgm_bma.load(path)
    write_document(path, format="else")
    with pytest.raises(ValueError, match="not a file that pgm_bma"):
        pgm_bma.load(path)
    write_document(path, estimator={"t": "martian", "v": 1})
    with pytest.raises(ValueError, match="unknown kind of value 'martian'"):
        pgm_bma.load(path)
    write_document(path, estimator={"t": "npy", "v": 7})
    with pytest.raises(ValueError, match="damaged"):
        pgm_bma.load(path)
    write_document(path, estimator={"t": "record", "v": ["schema", [["names", []]]]})
    with pytest.raises(ValueError, match="another version"):
        pgm_bma.load(path)
    path.write_text("hello")
    with pytest.raises(ValueError, match="not a file that pgm_bma"):
        pgm_bma.load(path)
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(ValueError, match="not a file that pgm_bma"):
        pgm_bma.load(tmp_path / "other.npz")
    (tmp_path / "net.bif").write_text("network net {}")
    with pytest.raises(ValueError, match="read_bif reads networks"):
        pgm_bma.load(tmp_path / "net.bif")
    with pytest.raises(FileNotFoundError):
        pgm_bma.load(tmp_path / "none")
    for changes in (
        {"version": "one"},
        {"version": 0},
        {"estimator": 3},
        {"estimator": {"t": "Decimal", "v": "martian"}},
    ):
        write_document(path, **changes)
        with pytest.raises(ValueError, match="damaged"):
            pgm_bma.load(path)


def test_pickled_arrays_are_refused(tmp_path):
    path = tmp_path / "file"
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([object()]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        archive._as_array(bytearray(buffer.getvalue()))
    code = {"t": "ndarray", "v": ["O", [1], "C", "AAAAAAAAAAA="]}
    write_document(path, estimator=code)
    with pytest.raises(ValueError, match="not a type of plain values"):
        pgm_bma.load(path)


def test_decimals_and_fractions_are_themselves(tmp_path):
    for value in (decimal.Decimal("1.50"), fractions.Fraction(1, 3)):
        found = round_trip(value, tmp_path / "file")
        assert (type(found), str(found)) == (type(value), str(value))


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with pytest.raises(ValueError, match="cannot have 0 bytes"):
        archive._as_array(bytearray(buffer.getvalue()))
    for text in ("1e30000000", "1" * 5000):
        write_document(tmp_path / "file", estimator={"t": "Fraction", "v": text})
        with pytest.raises(ValueError, match="damaged"):
            pgm_bma.load(tmp_path / "file")


def test_zeros_that_deflate_far_are_stored_as_they_are(tmp_path):
    zeros = np.zeros(3 * archive.FREE_BYTES // 8)
    write_archive(tmp_path / "file", {}, [zeros])
    np.testing.assert_array_equal(read_archive((tmp_path / "file").read_bytes()).array(0), zeros)


def test_writers_of_one_path_do_not_mix_and_leave_nothing_else(tmp_path):
    path = tmp_path / "file"
    (tmp_path / "file.part").write_text("mine")
    with replacing(path) as one, replacing(path) as two:
        one.write(b"1" * 10)
        two.write(b"2" * 5)
    assert path.read_bytes() == b"1" * 10  # the outer block ended last
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write(b"3")
        raise RuntimeError
    assert path.read_bytes() == b"1" * 10
    assert (tmp_path / "file.part").read_text() == "mine"
    assert {p.name for p in tmp_path.iterdir()} == {"file", "file.part"}
    with (
        pytest.raises(OSError, match=r"other could not be written in .*nowhere"),
        replacing(tmp_path / "nowhere" / "other"),
    ):
        pass
