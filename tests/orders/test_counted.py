"""Orders on rows that are visited in passes: counts of sets of variables, and everything that is made of them."""

import warnings
from collections import Counter
from itertools import combinations, product

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import pgm_bma
from pgm_bma import GibbsSampler, SwapSampler
from pgm_bma.foundation.rows import blocks
from pgm_bma.foundation.rows.blocks import Block, MemoryRows, Profile
from pgm_bma.foundation.tables.table import Schema
from pgm_bma.orders.families import counted, family_table
from pgm_bma.orders.sums.fixed_order import Training
from tests.foundation.scanned import cut, make_table, write_parts

CARDS = np.array([2, 3, 2, 4])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)


def some_rows(weights=None, n_rows=300, seed=0):
    """(codes, weights, `Rows` of four blocks) of random rows."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, CARDS, (n_rows, 4)).astype(np.int8)
    codes[:, 1] = np.where(rng.random(n_rows) < 0.7, codes[:, 0], codes[:, 1])
    weights = {None: None, "whole": rng.integers(1, 4, n_rows).astype(float), "fractions": rng.random(n_rows)}[weights]
    cuts = [slice(a, a + 80) for a in range(0, n_rows, 80)]
    parts = [Block(np.asfortranarray(codes[c]), None if weights is None else weights[c]) for c in cuts]
    schema = Schema(tuple("abcd"), tuple(tuple(range(n)) for n in CARDS))
    total = float(n_rows if weights is None else weights.sum())
    return codes, weights, MemoryRows(Profile(schema, n_rows, total, np.zeros(0), np.zeros(4, dtype=bool)), parts)


def training(rows, max_indegree, prior):
    sets, first, _, _ = counted.count_rows(rows, CARDS, max_indegree)
    return counted.CountedTraining(sets, max_indegree + 1, first, sets.counts[:1], CARDS, *prior)


@pytest.mark.parametrize("weights", [None, "whole", "fractions"])
@pytest.mark.parametrize("cells_a_pass", [30, 10**6])
def test_counts_of_every_family_are_those_of_the_rows(weights, cells_a_pass, monkeypatch):
    monkeypatch.setattr(counted, "CELLS_A_PASS", cells_a_pass)
    codes, w, rows = some_rows(weights)
    found = training(rows, 2, (1.0, None))
    for child in range(4):
        for parents in [z for k in range(3) for z in combinations([v for v in range(4) if v != child], k)]:
            count = Counter()
            for row, weight in zip(codes.tolist(), np.ones(len(codes)) if w is None else w):
                count[tuple(row[v] for v in (*parents, child))] += weight
            cells = product(*(range(CARDS[v]) for v in (*parents, child)))
            want = np.array([count[cell] for cell in cells]).reshape(-1, CARDS[child])
            # sums of fractions in another order
            np.testing.assert_allclose(
                found.family_counts(child, parents), want, rtol=1e-13 if weights == "fractions" else 0
            )
    assert found.first_rows.tolist() == [list(row) for row in sorted(set(map(tuple, codes.tolist())))][:50]


@pytest.mark.parametrize("weights", [None, "whole", "fractions"])
@pytest.mark.parametrize("prior", [(1.0, None, None), (1.0, 2.0, None), (0.5, None, 20.0)])
def test_scores_and_means_have_the_bits_of_rows(weights, prior, monkeypatch):
    monkeypatch.setattr(family_table, "_bits_pay", lambda *_: False)  # bitsets add up two states at a time
    codes, w, rows = some_rows(weights)
    scoring = family_table.Scoring(2, *prior, "mdl", [(0, 1)], [(2, 3), (3, 0)])
    want = family_table.family_table(codes, CARDS, w, scoring)
    found = training(rows, 2, prior)
    got = counted.counted_table(found, scoring)
    close = {"rtol": 1e-12 if weights == "fractions" else 0}
    np.testing.assert_allclose(got.log_marginal, want.log_marginal, **close)
    assert got.log_prior.tolist() == want.log_prior.tolist() and got.offsets.tolist() == want.offsets.tolist()
    memory = Training(np.asfortranarray(codes, dtype=np.int32), np.ones(len(codes)) if w is None else w, CARDS, *prior)
    children, parents = np.array([1, 0, 3, 2]), np.array([[0, 3], [2, -1], [-1, -1], [1, 3]])
    some = np.asfortranarray(codes[:60], dtype=np.int32)
    kept = found.only(children, parents)
    assert len(kept.sets.keys) == 4
    for record in (found, kept):
        predicted = record.predict(children, parents, some)
        np.testing.assert_allclose(predicted, memory.predict(children, parents, some), **close)
    starts, tables = found.mean_tables(np.array([1, 1]), parents[:2])
    np.testing.assert_allclose(tables, memory.mean_tables(np.array([1, 1]), parents[:2])[1], **close)
    assert starts.tolist() == [0, 24, 30]


# ------------------------------------------------------------------------------------------------------ estimators

WHOLE = ["half", "class", "differs", "w", "again", "other"]


@pytest.fixture(scope="module")
def parts():
    found = []
    for i, part in enumerate(cut(make_table(900, missing=0.15), 3)):
        rng = np.random.default_rng(i)
        again = np.where(rng.random(len(part)) < 0.7, part["half"].astype(str), "none")
        half = part["half"].astype(str)  # in memory, classifiers would cut fractions
        found.append(
            part.assign(w=np.arange(len(part)) % 3, half=half, again=again, other=rng.integers(0, 2, len(part)))
        )
    return found


@pytest.fixture(scope="module")
def frame(parts):
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def scan(parts, tmp_path_factory):
    return pgm_bma.scan_parquet(write_parts(parts, tmp_path_factory.mktemp("parts")), memory=1000)


def average(sampler=GibbsSampler, chain=(), **options):
    return pgm_bma.OrderAveragedClassifier(random_state=0, sampler=sampler(n_orders=5, **dict(chain)), **options)


SHORT = {"method": "mcmc", "chain": {"max_sweeps": 16, "tol": 0.9}}
ORDER = ["again", "half", "other", "differs", "class"]
CLASSIFIERS = {
    "exact": average,
    "chains": lambda **k: average(**SHORT, **k),
    "layers": lambda **k: average(structure_weighting="dag", **SHORT, **k),
    "swaps": lambda **k: average(SwapSampler, {"burn_in": 50, "thin": 10}, method="mcmc", **k),
    "given": lambda **k: average(method="given", chain={"init": [ORDER]}, **k),
    "best order": lambda **k: pgm_bma.FixedOrderClassifier(random_state=0, **k),
    "random order": lambda **k: pgm_bma.FixedOrderClassifier("random", equivalent_sample_size=5.0, random_state=0, **k),
}


@pytest.mark.filterwarnings("ignore:the chains have not converged")
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("name", sorted(CLASSIFIERS))
@pytest.mark.filterwarnings("ignore:column 'differs' holds 1 value unseen")  # a state that only the scan has
@pytest.mark.filterwarnings("ignore:the chains disagree")  # short runs of swaps
def test_classifiers(name, weight, frame, scan):
    X, rows = frame[WHOLE], scan.select(WHOLE)
    weights, rows = (X["w"], rows) if weight else (None, rows.drop("w"))
    X = X.drop(columns="w")
    want = CLASSIFIERS[name]().fit(X, "class", sample_weight=weights)
    got = CLASSIFIERS[name]().fit(rows, "class", sample_weight=weight)
    assert got.n_samples_ == want.n_samples_ and got.schema_ == want.schema_ and got.orders_ == want.orders_
    np.testing.assert_allclose(got.edge_posterior_, want.edge_posterior_, atol=1e-9)
    np.testing.assert_allclose(got.order_log_scores_, want.order_log_scores_, rtol=1e-12)
    holes = X.drop(columns="class").mask(np.random.default_rng(0).random((len(X), 4)) < 0.1)
    for some in (X.drop(columns="class"), holes[:200].astype(object)):
        np.testing.assert_allclose(got.predict_proba(some), want.predict_proba(some), atol=1e-9)
    pd.testing.assert_frame_equal(got.diagnostics_, want.diagnostics_, rtol=1e-6)
    assert sorted(got.model_.edges()) == sorted(want.model_.edges())
    for a, b in zip(got.model_.get_cpds(), want.model_.get_cpds()):
        np.testing.assert_allclose(a.values, b.values, atol=1e-12)
    for a, b in zip(got.sample_dags(3), want.sample_dags(3)):
        assert sorted(a.edges()) == sorted(b.edges())


@pytest.mark.parametrize("missing", ["drop", "state"])
def test_missing_cells_and_declared_states(missing, frame, scan):
    states = {"text": ["high", "never seen", "low", "mid"], "class": [1, 0, 7]}
    make = lambda: average(missing=missing, state_names=states)  # noqa: E731
    names, told = ["text", "number", "category", "class", "w"], []
    for X, weights in ((frame[names].drop(columns="w"), frame["w"]), (scan.select(names), "w")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            told.append(make().fit(X, "class", sample_weight=weights))
        left_out = [str(w.message) for w in said if "are left out of the scores" in str(w.message)]
        assert len(left_out) == (missing == "drop") and all("of 600 rows have missing" in text for text in left_out)
    want, got = told
    assert got.classes_.tolist() == [0, 1, 7] and got.schema_ == want.schema_
    pd.testing.assert_frame_equal(got.gaps_, want.gaps_)
    assert got.gaps_.attrs == want.gaps_.attrs and got.gaps_.attrs["treatment"] == missing
    np.testing.assert_allclose(got.edge_posterior_, want.edge_posterior_, atol=1e-9)
    np.testing.assert_allclose(got.predict_proba(frame), want.predict_proba(frame), atol=1e-9)


def test_structures_without_a_class(frame, scan, tmp_path):
    X = frame[WHOLE].drop(columns="w")
    want = pgm_bma.OrderPosterior(random_state=0).fit(X)
    got = pgm_bma.OrderPosterior(random_state=0).fit(scan.select(WHOLE).drop("w"))
    np.testing.assert_allclose(got.edge_posterior_, want.edge_posterior_, atol=1e-9)
    assert got.log_evidence_ == pytest.approx(want.log_evidence_, rel=1e-12)
    assert got.equivalent_sample_size_ == want.equivalent_sample_size_ > 0
    np.testing.assert_allclose(got.log_joint(X), want.log_joint(X), rtol=1e-9)
    holes = X.assign(half=X["half"].where(X.index % 3 > 0))
    for a, b in zip(got.complete(holes, 2), want.complete(holes, 2)):
        pd.testing.assert_frame_equal(a, b)
    got.save(tmp_path / "kept.pgm")
    kept = pgm_bma.load(tmp_path / "kept.pgm")
    assert kept.log_joint(X).tobytes() == got.log_joint(X).tobytes()
    assert sorted(kept.model_.edges()) == sorted(want.model_.edges())


def test_predictions_go_to_files(frame, scan, tmp_path):
    got = CLASSIFIERS["chains"]().fit(scan.select(WHOLE).drop("w"), "class")
    assert len(got._average.training.sets.counts) < counted.set_cells(got._variables.cardinalities, 4)  # what is used
    written = got.predict_proba_to(tmp_path / "out")
    found = np.concatenate([np.column_stack(pq.read_table(path).columns) for path in written])
    np.testing.assert_allclose(found, got.predict_proba(frame), atol=1e-12)
    got.save(tmp_path / "kept.pgm")
    np.testing.assert_allclose(pgm_bma.load(tmp_path / "kept.pgm").predict_proba(frame), found, atol=1e-12)


MEMORY = "needs the distinct rows in memory .*but the 900 rows have .* memory= more"


@pytest.mark.parametrize("make", [average, pgm_bma.OrderPosterior, pgm_bma.FixedOrderClassifier])
def test_what_needs_rows_says_so(make, scan, monkeypatch):
    y = () if make is pgm_bma.OrderPosterior else ("class",)
    with pytest.raises(MemoryError, match=f"missing='auto' with missing cells .most in '.*'. {MEMORY}") as error:
        make().fit(scan, *y)
    assert "in passes: missing='drop' or 'state'" in str(error.value)
    monkeypatch.setattr(counted, "MAX_SET_CELLS", 500)
    whole = scan.select(WHOLE).drop("w")
    with pytest.raises(MemoryError, match="counts of 972 cells, more than 500; 'differs' has 6 states"):
        make().fit(whole, *y)
    monkeypatch.setattr(counted, "MAX_FAMILIES", 10)
    with pytest.raises(MemoryError, match=f"75 families, more than 10, .* {MEMORY}"):
        make().fit(whole, *y)
