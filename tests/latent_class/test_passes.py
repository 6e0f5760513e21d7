"""Latent classes in passes over blocks: one block has the bits of the loop in memory, many differ by rounding."""

import numpy as np
import pytest

from pgm_bma import EMAClusterer
from pgm_bma.foundation.numbers.starts import choose_starts
from pgm_bma.foundation.rows.blocks import Block, MappedRows, MemoryRows, Profile, table_rows
from pgm_bma.foundation.tables.table import Schema
from pgm_bma.latent_class import _kernels as kernels
from pgm_bma.latent_class.loop import N_POLISHED, LatentClassSettings, fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings, make_problem, sample_problem, split_columns

MODES = [None, "linear", "variational"]


def make_codes(n_rows, missing=0.15, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n_rows)
    cardinalities = np.array([2, 3, 4, 2, 5])
    codes = np.empty((n_rows, 5), dtype=np.int8, order="F")
    for i, n in enumerate(cardinalities):
        table = rng.dirichlet(np.ones(n), size=3) if i < 4 else np.full((3, n), 1 / n)  # the last column is noise
        codes[:, i] = (rng.random(n_rows)[:, None] > table.cumsum(axis=1)[group]).sum(axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return codes, cardinalities


def make_rows(codes, cardinalities, n_blocks, weights=None, kind=MemoryRows):
    schema = Schema(tuple("abcde"), tuple(tuple(range(n)) for n in cardinalities))
    ones = np.ones(len(codes)) if weights is None else weights
    counts = [
        np.bincount(codes[codes[:, i] >= 0, i], ones[codes[:, i] >= 0], minlength=n)
        for i, n in enumerate(cardinalities)
    ]
    profile = Profile(schema, len(codes), float(ones.sum()), np.concatenate(counts), (codes < 0).any(axis=0))
    cuts = np.array_split(np.arange(len(codes)), n_blocks)
    blocks = [Block(np.asfortranarray(codes[c]), None if weights is None else weights[c]) for c in cuts]
    return kind(profile, blocks)


def fit(rows, settings, sample=None, n_clusters=3):
    return fit_latent_class(rows, n_clusters, settings, rng=np.random.default_rng(0), sample_rows=sample)


def largest_difference(a, b):
    tables = [
        np.abs(x - y).max() for x, y in ((a.theta, b.theta), (a.theta_c, b.theta_c), (a.arc_posterior, b.arc_posterior))
    ]
    scores = [
        abs(x / y - 1)
        for x, y in (
            (a.log_likelihood, b.log_likelihood),
            (a.evidence_bound, b.evidence_bound),
            (a.cheeseman_stutz, b.cheeseman_stutz),
        )
    ]
    return max(tables + scores)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("averaging", MODES)
def test_one_block_has_the_bits_of_memory(averaging, accelerate):
    codes, cardinalities = make_codes(900)
    settings = LatentClassSettings(
        averaging=averaging, n_init=5, n_final=3, accelerate=accelerate, init="em", combine_starts="uniform"
    )
    want = fit_latent_class(table_rows(codes, cardinalities), 3, settings, rng=np.random.default_rng(0))
    got = fit(make_rows(codes, cardinalities, 1), settings)
    for field in ("theta", "theta_c", "arc_posterior", "counts", "score_path", "weights"):
        assert getattr(got, field).tobytes() == getattr(want, field).tobytes(), field
    assert (got.log_likelihood, got.cheeseman_stutz, got.n_iter) == (
        want.log_likelihood,
        want.cheeseman_stutz,
        want.n_iter,
    )
    assert got.starts.n_iter.tolist() == want.starts.n_iter.tolist()


@pytest.mark.parametrize("averaging", MODES)
def test_many_blocks_differ_by_rounding(averaging):
    codes, cardinalities = make_codes(4000)
    weights = np.random.default_rng(1).integers(1, 4, len(codes)).astype(float)
    settings = LatentClassSettings(averaging=averaging, n_init=6, tol=1e-9, combine_starts="likelihood")
    want = fit_latent_class(table_rows(codes, cardinalities, weights), 3, settings, rng=np.random.default_rng(0))
    got = fit(make_rows(codes, cardinalities, 7, weights), settings)
    # sums of 4000 terms in another order differ by 1e-14; the end of an iteration with tol 1e-9 by no more than that
    assert largest_difference(got, want) < 1e-9
    assert got.starts.n_iter.tolist() == want.starts.n_iter.tolist()


def test_mapped_blocks_have_the_bits_of_memory_and_leave_nothing():
    codes, cardinalities = make_codes(2000)
    settings = LatentClassSettings(averaging="variational", n_init=3)
    want = fit(make_rows(codes, cardinalities, 5), settings)
    rows = make_rows(codes, cardinalities, 5, kind=MappedRows)
    folder = rows.folder
    got = fit(rows, settings)
    assert got.theta.tobytes() == want.theta.tobytes() and got.log_likelihood == want.log_likelihood
    assert folder.exists()
    del rows
    assert not folder.exists()


def test_without_a_prior_and_with_one_cluster():
    codes, cardinalities = make_codes(1500, missing=0.0)
    for n_clusters, priors in ((3, PriorSettings(0.0, 0.0, 0.0)), (1, PriorSettings())):
        settings = LatentClassSettings(n_init=3, priors=priors, tol=1e-9)
        want = fit_latent_class(table_rows(codes, cardinalities), n_clusters, settings, rng=np.random.default_rng(0))
        got = fit(make_rows(codes, cardinalities, 1), settings, n_clusters=n_clusters)
        assert got.theta.tobytes() == want.theta.tobytes()
        assert got.cheeseman_stutz == want.cheeseman_stutz or np.isnan(want.cheeseman_stutz)


def test_starts_that_all_collapse_give_one_cluster():
    rng = np.random.default_rng(0)
    codes = np.asfortranarray(rng.integers(0, 2, (200, 5)).astype(np.int8))  # nothing to find
    settings = LatentClassSettings(averaging="linear", n_init=4)
    cardinalities = np.full(5, 2)
    want = fit_latent_class(table_rows(codes, cardinalities), 3, settings, rng=np.random.default_rng(0))
    got = fit(make_rows(codes, cardinalities, 4), settings)
    assert want.all_collapsed and got.all_collapsed and len(got.theta_c) == 1
    # screened: what the sample seems to show collapses on all rows
    assert fit(make_rows(codes, cardinalities, 4), settings, sample=100).all_collapsed


@pytest.mark.parametrize("averaging", MODES)
def test_screened_starts_reach_the_best_of_all(averaging):
    codes, cardinalities = make_codes(4_000)
    settings = LatentClassSettings(averaging=averaging, n_init=12, init="em", tol=1e-8)
    full = fit(make_rows(codes, cardinalities, 3), settings)
    screened = fit(make_rows(codes, cardinalities, 3), settings, sample=1000)
    score = (lambda f: f.evidence_bound) if averaging == "variational" else (lambda f: f.log_likelihood)
    assert abs(score(screened) / score(full) - 1) < 1e-6  # the line that the issue draws
    finished = screened.starts.finished
    assert 1 <= finished.sum() <= N_POLISHED and len(finished) == 12
    # the scores of starts that saw the sample only are told on the scale of all rows
    assert np.allclose(score_of_starts(screened, averaging)[~finished], score(screened), rtol=0.1)


def score_of_starts(found, averaging):
    return found.starts.evidence_bound if averaging == "variational" else found.starts.log_likelihood


def test_chosen_starts_differ_and_are_alive():
    scores = np.array([-10.0, -5.0, -5.0 - 1e-9, -7.0, np.nan, -1.0])
    alive = np.array([True, True, True, True, True, False])
    assert choose_starts(scores, alive, 2).tolist() == [1, 3]
    assert choose_starts(scores, alive, 9).tolist() == [0, 1, 3, 4]
    assert choose_starts(scores, np.zeros(6, dtype=bool), 2).tolist() == [5]


def test_split_columns_undoes_the_joining():
    codes, cardinalities = make_codes(700)
    problem = make_problem(make_rows(codes, cardinalities, 3), 2)
    parts = [split_columns(block.codes, problem.layout) for block in problem.rows.blocks]
    assert (np.concatenate(parts) == codes).all()
    small, share = sample_problem(problem, 100)
    assert share == small.rows.n_rows / 700 and 80 <= small.rows.n_rows <= 110


def test_tables_of_any_layout_are_one_type():
    """Splits, merges and copies make tables of other layouts, each of which would be compiled again: seconds of a first scan."""
    codes = np.random.default_rng(0).integers(0, 3, (60, 4))
    EMAClusterer(n_clusters=range(1, 4), n_init=2, random_state=0).fit(codes)
    for signature in kernels.step.signatures:
        assert {array.layout for array in signature[4].types} == {"C"}
