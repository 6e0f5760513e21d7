"""Structures from tables with gaps: the sampler against every completion times every structure, and what users see of it."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln
from sklearn.exceptions import ConvergenceWarning

import pgm_bma
from pgm_bma import FixedOrderClassifier, GibbsSampler, OrderAveragedClassifier, OrderPosterior, SwapSampler
from pgm_bma.orders import fitting
from pgm_bma.orders.chains import runner
from pgm_bma.orders.families.family_table import family_table
from pgm_bma.orders.gaps import augment, augment_lists, augmented_average, augmented_chains
from tests.oracles import gaps as oracle
from tests.orders.test_family_lists import by_set

PAPER = {"parameter_prior": "paper", "random_state": 0}  # K2 with alpha 1, as the oracle


def tiny(seed, n=3, n_rows=10, n_gaps=5):
    """Binary rows that share a cause, with gaps."""
    rng = np.random.default_rng(seed)
    cause = rng.integers(0, 2, (n_rows, 1))
    codes = np.where(rng.random((n_rows, n)) < 0.75, cause, 1 - cause).astype(np.int32)
    codes.ravel()[rng.choice(codes.size, n_gaps, replace=False)] = -1
    return codes


def as_lists(codes):
    return [[None if value < 0 else int(value) for value in row] for row in codes]


def as_frame(codes):
    frame = pd.DataFrame(codes, columns=[f"v{k}" for k in range(codes.shape[1])])
    return frame.astype(object).where(codes >= 0, None)


def chain(codes, weighting, exact, n_sweeps, monkeypatch=None, seed=5, pairs=()):
    """(arcs (n_sweeps, n, n), cells (n_sweeps, n_cells)) of one chain over all families."""
    n = codes.shape[1]
    limits = {"order": 12, "dag": 7} if exact else {"order": 0, "dag": 0}
    if monkeypatch is not None:
        monkeypatch.setattr(augment, "EXACT", limits)
    gaps = augment.GapTable(codes, np.ones(len(codes)), np.full(n, 2), (1.0, None))
    rng = np.random.default_rng(seed)
    filled = augment.first_filling(gaps, rng)
    table = family_table(augment.completed(gaps, filled), gaps.cardinalities)
    move = augment.make_move(augment_lists.all_families(table), gaps, weighting)
    start = np.arange(n) if weighting == "order" else np.zeros(n, dtype=np.int64)
    walker = augmented_chains.new_chain(start, rng)
    walker.filled, walker.pairs = filled, np.array(pairs).reshape(-1, 2)
    walker.shares = np.full(len(pairs), 1.0 / max(len(pairs), 1))
    arcs, cells = [], []
    for sweep in range(n_sweeps + 20):
        edges = augment.sweep(move, gaps, walker).edges
        if sweep >= 20:
            arcs.append(edges)
            cells.append(walker.filled)
    return np.array(arcs), np.array(cells), walker


def z_scores(draws, truth):
    """Difference of the means from the truth over its standard error, from 25 batch means."""
    means = np.array([part.mean(0) for part in np.array_split(draws, 25)])
    error = means.std(0, ddof=1) / 5
    return np.where(error > 1e-12, (draws.mean(0) - truth) / np.maximum(error, 1e-12), 0.0)


@pytest.mark.parametrize("exact", [True, False], ids=["draws", "gibbs"])
@pytest.mark.parametrize("weighting", ["order", "dag"])
def test_arcs_and_cells_equal_the_sum_over_all_completions_and_structures(weighting, exact, monkeypatch):
    codes = tiny(1)
    arcs, cells, _ = oracle.posterior(as_lists(codes), [2] * 3, 3, weighting)
    drawn, filled, _ = chain(codes, weighting, exact, 750, monkeypatch)
    off = ~np.eye(3, dtype=bool)
    # .003 at 1500 sweeps with draws of the state; half the sweeps, and moves instead of draws, each allow some more
    assert np.abs(drawn.mean(0) - np.array(arcs))[off].mean() < (0.005 if exact else 0.01)
    assert np.abs(z_scores(drawn, np.array(arcs))[off]).max() < 4
    assert np.abs(z_scores(filled, np.array([cell[1] for cell in cells]))).max() < 4


@pytest.mark.parametrize("missing", [2, 6])
def test_moves_of_single_arcs_have_the_same_law(missing, monkeypatch):
    codes = tiny(6, n_gaps=missing)
    arcs, cells, _ = oracle.posterior(as_lists(codes), [2] * 3, 3, "order")
    drawn, filled, _ = chain(codes, "order", True, 1500, monkeypatch, pairs=[(0, 1), (1, 2), (0, 2)])
    assert np.abs(drawn.mean(0) - np.array(arcs))[~np.eye(3, dtype=bool)].mean() < 0.005  # as above
    assert np.abs(z_scores(drawn, np.array(arcs))[~np.eye(3, dtype=bool)]).max() < 4
    assert np.abs(z_scores(filled, np.array([cell[1] for cell in cells]))).max() < 4


def test_cells_in_blocks_have_the_same_law(monkeypatch):
    monkeypatch.setattr(augment, "BLOCK", 2)
    codes = tiny(2)
    arcs, cells, _ = oracle.posterior(as_lists(codes), [2] * 3, 3, "order")
    drawn, filled, walker = chain(codes, "order", True, 750, monkeypatch)
    assert walker.cut > 0
    assert np.abs(z_scores(drawn, np.array(arcs))[~np.eye(3, dtype=bool)]).max() < 4
    assert np.abs(z_scores(filled, np.array([cell[1] for cell in cells]))).max() < 4


def test_class_posterior_sums_over_completions():
    codes = tiny(4, n_rows=12, n_gaps=4)
    codes[:, 2] = np.where(codes[:, 2] < 0, 0, codes[:, 2])
    frame = as_frame(codes)
    classifier = OrderAveragedClassifier(**PAPER, sampler=GibbsSampler(max_sweeps=320))
    classifier.fit(frame[["v0", "v1"]], frame["v2"].astype(int))
    for row in ([0, 1], [1, 1]):
        truth = oracle.class_posterior(as_lists(codes), [2] * 3, 3, "order", [*row, 0], 2)
        found = classifier.predict_proba(pd.DataFrame([row], columns=["v0", "v1"]).astype(object))[0]
        # kept states and 16 stacked tables instead of all: the prototype moved class losses by .001, tiny tables by more
        assert np.abs(found - truth).max() < 0.03


def test_families_without_gaps_are_not_scored_again():
    codes = tiny(3, n=4)
    codes[:, 0] = np.abs(codes[:, 0])
    codes[:, 3] = np.abs(codes[:, 3])
    gaps = augment.GapTable(codes, np.ones(len(codes)), np.full(4, 2), (1.0, None))
    rng = np.random.default_rng(0)
    table = family_table(augment.completed(gaps, augment.first_filling(gaps, rng)), gaps.cardinalities)
    move = augment.make_move(augment_lists.all_families(table), gaps, "order")
    marked = np.full(len(move.children), 7.0)
    filled = augment.first_filling(gaps, rng)
    found = augment.score(move, gaps, augment.completed(gaps, filled), marked)
    whole = family_table(augment.completed(gaps, filled), gaps.cardinalities).log_marginal
    full = {v for v in range(4) if (codes[:, v] >= 0).all()}
    assert {0, 3} <= full < {0, 1, 2, 3}
    for k, child in enumerate(move.children):
        parents = tuple(int(p) for p in move.lists.sets[k] if p >= 0)
        # lgamma sums of ten rows: rounding alone
        assert found[k] == 7.0 if full.issuperset({child, *parents}) else abs(found[k] - whole[k]) < 1e-10


@pytest.mark.parametrize("cards", [[30] * 4, [2, 3, 4, 2, 5]], ids=["wide", "mixed"])
@pytest.mark.parametrize("weights", [1.0, 0.5], ids=["bits", "fractions"])
@pytest.mark.parametrize(
    "prior", [{"equivalent_sample_size": 2.0}, {"alpha": 1.0, "max_total": 10.0}], ids=["bdeu", "k2"]
)
def test_chosen_families_are_scored_as_in_a_full_table(cards, weights, prior):
    rng, cards = np.random.default_rng(0), np.array(cards)
    codes = rng.integers(0, cards, (40, len(cards))).astype(np.int32)
    weights = np.full(40, weights)
    table = family_table(codes, cards, weights, **prior)
    shape = 1.0, prior.get("equivalent_sample_size"), prior.get("max_total")
    gaps = augment.GapTable(codes, weights, cards, shape)
    move = augment.make_move(augment_lists.all_families(table), gaps, "order")
    assert np.allclose(augment.score(move, gaps, codes, None), table.log_marginal, rtol=0, atol=1e-9)


def test_sets_stand_behind_their_beginnings():
    rng = np.random.default_rng(0)
    for n, width in ((6, 3), (30, 14)):  # the numbers of the second need more than 64 bits
        cards, children = rng.integers(2, 4, n), rng.integers(0, n, 40)
        parents = [sorted(rng.permutation(np.delete(np.arange(n), c))[: rng.integers(width + 1)]) for c in children]
        padded = np.array([[*some, *[-1] * (width - len(some))] for some in parents]).astype(np.int32)
        sets = augment.needed_sets(padded, children, cards)
        found, members = [], []
        for size, last in zip(sets.sizes, sets.last):
            members = [*members[: size - 1], last] if size else []
            assert len(members) == size
            found.append(members)
        pair_set = np.repeat(np.arange(len(found)), np.diff(sets.first_pair))
        for k, child in enumerate(children):
            assert found[sets.whole[k]] == sorted([*parents[k], child])
            assert found[pair_set[sets.pair[k]]] == parents[k]
            assert cards[sets.pair_child[sets.pair[k]]] == cards[child]


@pytest.fixture(scope="module")
def survey():
    """Rows of a chain a -> b -> c, complete and with a fifth of the cells missing."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 200)
    b = np.where(rng.random(200) < 0.9, a, 1 - a)
    c = np.where(rng.random(200) < 0.8, b, 1 - b)
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype(object)
    return frame, frame.mask(rng.random(frame.shape) < 0.2)


def test_auto_is_what_it_was_where_nothing_is_missing(survey):
    frame, _ = survey
    auto, drop = (OrderPosterior(missing=how, random_state=0).fit(frame) for how in ("auto", "drop"))
    assert auto.method_ == "exact"
    assert (auto.edge_posterior_ == drop.edge_posterior_).all(axis=None)
    assert auto.gaps_.attrs["treatment"] == "none"


def test_what_was_missing_and_what_was_done_is_told(survey):
    _, holes = survey
    posterior = OrderPosterior(random_state=0).fit(holes)
    assert posterior.gaps_["missing"].tolist() == holes.isna().sum().tolist()
    told = posterior.gaps_.attrs
    assert told["treatment"] == "augment" and told["incomplete_rows"] == holes.isna().any(axis=1).sum()
    assert 0 < told["arc_spread"] == posterior.arc_spread_.to_numpy().max()
    assert posterior.converged_ and posterior.n_sweeps_ >= 40
    with pytest.warns(UserWarning, match="left out of the scores; missing='augment'"):
        dropped = OrderPosterior(missing="drop").fit(holes)
    assert dropped.gaps_.attrs["treatment"] == "drop" and dropped.n_sweeps_ == 0


def test_repetition_and_fractions(survey):
    _, holes = survey
    weights = np.ones(200)
    weights[:5] = 2
    weighted = OrderPosterior(random_state=3).fit(holes, sample_weight=weights)
    repeated = OrderPosterior(random_state=3).fit(pd.concat([holes, holes[:5]]))
    assert (weighted.edge_posterior_ == repeated.edge_posterior_).all(axis=None)
    with pytest.raises(ValueError, match=r"fractions for rows with missing cells \(most in .*whole numbers"):
        OrderPosterior().fit(holes, sample_weight=weights / 2)


def test_rows_without_a_class_are_used_when_asked_for(survey):
    _, holes = survey
    with pytest.raises(ValueError, match=r"target 'c' has 36 missing values.*missing='augment'"):
        OrderAveragedClassifier().fit(holes[["a", "b"]], holes["c"])
    classifier = OrderAveragedClassifier(missing="augment", random_state=0).fit(holes[["a", "b"]], holes["c"])
    assert classifier.gaps_.loc["c", "missing"] == 36
    assert classifier.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"method": "exact", "missing": "augment"},
            r"method='exact' needs complete rows, but \d+ cells are missing \(most in",
        ),
        ({"sampler": SwapSampler(), "missing": "augment"}, r"SwapSampler needs complete rows"),
        ({"missing": "sum_out"}, r"missing='sum_out' is not one of 'auto', 'augment', 'drop', 'state'"),
        ({"missing": "sometimes"}, r"missing='sometimes' is not one of 'auto', 'augment', 'drop', 'state'"),
        ({"unobserved": "drop"}, r"unobserved='drop' is not one of 'sum_out', 'fill'"),
    ],
)
def test_refusals(survey, settings, message):
    with pytest.raises(ValueError, match=message):
        OrderPosterior(**settings).fit(survey[1])


def test_given_orders_and_fixed_orders(survey):
    _, holes = survey
    given = OrderAveragedClassifier(
        method="given", sampler=GibbsSampler(init=[["a", "b", "c"], ["c", "b", "a"]]), random_state=0
    )
    given.fit(holes[["a", "b"]], holes["c"].fillna(0))
    assert given.method_ == "given" and set(given.orders_) == {("a", "b", "c"), ("c", "b", "a")}
    assert given.edge_posterior_.loc["a", "b"] == pytest.approx(given.edge_posterior_.loc["b", "a"], abs=0.02)
    fixed = FixedOrderClassifier(order=["a", "b", "c"], random_state=0).fit(holes[["a", "b"]], holes["c"].fillna(0))
    assert not fixed.model_is_exact_ and fixed.edge_posterior_.loc["b", "a"] == 0
    with pytest.raises(ValueError, match="no single network"):
        fixed.to_network()


def wide(n_rows=60, n=14, seed=0):
    """More variables than are summed over: lists and Gibbs moves."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n_rows, n), dtype=int)
    codes[:, 0] = rng.integers(0, 2, n_rows)
    for k in range(1, n):
        codes[:, k] = np.where(rng.random(n_rows) < 0.85, codes[:, k - 1], rng.integers(0, 3, n_rows))
    frame = pd.DataFrame(codes, columns=[f"v{k}" for k in range(n)]).astype(object)
    return frame.mask(rng.random(frame.shape) < 0.15)


@pytest.mark.parametrize("scored", [0, 10**6], ids=["grown", "pruned"])
@pytest.mark.parametrize("weighting", ["order", "dag"])
def test_a_resumed_run_is_the_same_to_the_last_bit(weighting, scored, tmp_path, monkeypatch):
    """Killed after lists have grown once more."""
    monkeypatch.setattr(augment_lists, "ALL_FAMILIES", 0)
    monkeypatch.setattr(augment_lists, "SCORED", scored)
    monkeypatch.setattr(augment_lists, "LOST", 0.0)
    frame = wide(n=13 if weighting == "order" else 8)
    settings = {
        "structure_weighting": weighting,
        "sampler": GibbsSampler(max_sweeps=24, n_chains=2, checkpoint_every=200),
        "max_indegree": 2,
        "random_state": 1,
    }
    kept = {**settings, "sampler": settings["sampler"].set_params(checkpoint=tmp_path / "run")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        whole = OrderPosterior(**settings).fit(frame)
        assert whole.n_sweeps_ == 24

        def stop(file, chains, moves, write=runner.Checkpoint.write):
            write(file, chains, moves)
            if file.written >= 15:
                raise RuntimeError("killed")

        with monkeypatch.context() as killed, pytest.raises(RuntimeError):
            killed.setattr(runner.Checkpoint, "write", stop)
            killed.setattr(runner, "WRITING", np.inf)
            OrderPosterior(**kept).fit(frame)
        resumed = OrderPosterior(**kept, n_jobs=2).fit(frame)
    assert (resumed.edge_posterior_ == whole.edge_posterior_).all(axis=None)
    assert resumed.orders_ == whole.orders_
    assert (resumed._average.gaps.filled == whole._average.gaps.filled).all()
    assert (resumed._average.table.sets == whole._average.table.sets).all()
    assert np.array_equal(resumed._average.table.lost_mass, whole._average.table.lost_mass, equal_nan=True)


def test_chains_that_disagree_are_not_averaged_silently(monkeypatch):
    monkeypatch.setattr(augment_lists, "ALL_FAMILIES", 0)
    with pytest.warns(ConvergenceWarning, match="have not converged after 4 sweeps: arc posteriors may be off") as told:
        posterior = OrderPosterior(sampler=GibbsSampler(max_sweeps=4), max_indegree=2, random_state=0).fit(wide())
    worst = re.search(r"most '(v\d+)' -> '(v\d+)' by ([\d.]+)", str(told[0].message)).groups()
    assert float(worst[2]) == pytest.approx(
        posterior.diagnostics_["difference_of_chains"].max(), abs=0.006
    )  # two digits
    assert not posterior.converged_
    assert posterior.diagnostics_.attrs["n_apart"] > 0


@pytest.mark.parametrize("scored", [0, 10**6], ids=["grown", "pruned"])
@pytest.mark.filterwarnings("ignore:.*the chains have not converged")  # short runs
def test_what_families_left_out_had_is_told(scored, monkeypatch):
    monkeypatch.setattr(augment_lists, "ALL_FAMILIES", 0)
    monkeypatch.setattr(augment_lists, "SCORED", scored)
    monkeypatch.setattr(augment_lists, "FINE", 0)
    settings = {"max_indegree": 2, "random_state": 0}
    message = r"parent sets of 'v\d+' that were left out have .*more than 0.05.*lower eps"
    # lists that were grown lack .03 in the states of these chains, which is not worth a warning
    with pytest.warns(UserWarning, match=message if scored else "the chains have not converged"):
        loose = OrderPosterior(**settings, sampler=GibbsSampler(max_sweeps=6, eps=1.0)).fit(wide())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        posterior = OrderPosterior(**settings, sampler=GibbsSampler(max_sweeps=6, eps=1e-6)).fit(wide())
    assert not any("left out" in str(one.message) for one in told)
    found = posterior.gaps_.attrs["lost_mass"]
    assert len(found) == (12 if scored else 4)  # looks of four chains in the sweeps that count, or the last ones
    assert max(found) == posterior.lost_mass_ < loose.lost_mass_
    assert not loose.converged_


def test_looks_find_what_lists_lack(monkeypatch):
    """Lists that begin with next to nothing come to hold what counts, and say what they lacked."""
    monkeypatch.setattr(augment_lists, "ALL_FAMILIES", 0)
    monkeypatch.setattr(augment_lists, "FIRST", 0)
    seen = []
    look = augment_lists.Pruned.look
    monkeypatch.setattr(augment_lists.Pruned, "look", lambda self, chain: seen.append(look(self, chain)) or seen[-1])
    settings = {"max_indegree": 2, "random_state": 0, "sampler": GibbsSampler(max_sweeps=50, n_chains=1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        OrderPosterior(**settings).fit(wide())
    lost = np.max(seen, axis=1)
    assert lost[0] > 0.1 and lost[-2:].mean() < 0.1 * lost[0]


def test_pruned_families_have_the_law_of_all_of_them(monkeypatch):
    """Up to what the pruning leaves out: nothing to speak of at eps = 1e-12, so the same draws to rounding."""
    sampler = GibbsSampler(max_sweeps=6, eps=1e-12)
    settings = {"sampler": sampler, "max_indegree": 2, "random_state": 0, "required_arcs": [("v0", "v3")]}
    arcs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        monkeypatch.setattr(augment_lists, "FIRST", 0)  # sweeps before would be other draws
        for most in (30_000, 0):
            monkeypatch.setattr(augment_lists, "ALL_FAMILIES", most)
            arcs.append(OrderPosterior(**settings, forbidden_arcs=[("v5", "v2")]).fit(wide()).edge_posterior_)
    assert arcs[0].loc["v0", "v3"] == pytest.approx(1.0) and arcs[0].loc["v5", "v2"] == 0
    # families of 1e-12 of a node's weight on the first tables, some hundred of them, and some more on the next
    np.testing.assert_allclose(*arcs, rtol=0, atol=1e-6)


def test_small_tables_leave_out_less(monkeypatch):
    frame, lost = wide(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        monkeypatch.setattr(augment_lists, "ALL_FAMILIES", 0)
        for fine in (0, 30_000):
            monkeypatch.setattr(augment_lists, "FINE", fine)
            posterior = OrderPosterior(sampler=GibbsSampler(max_sweeps=2, eps=0.1), max_indegree=2, random_state=0)
            lost[fine] = posterior.fit(frame).lost_mass_
    assert 0 < lost[30_000] < lost[0] / 2


@pytest.mark.parametrize(
    ("n", "n_rows", "count"), [(20, 300, 1), (20, 1000, 1), (20, 2000, 2), (20, 9000, 4), (37, 1000, 4)]
)
def test_a_sweep_counts_by_families_and_rows(n, n_rows, count):
    assert augmented_average.counts_for(table_of(n, n_rows), 3) == count


def test_default_fits_end_and_say_how_far_off_arcs_may_be(monkeypatch):
    monkeypatch.setattr(fitting, "GAP_SECONDS", 0.1)
    with pytest.warns(ConvergenceWarning, match=r"after 10 sweeps: arc posteriors may be off by 0\.\d\d \(tol=0.05\)"):
        posterior = OrderPosterior(random_state=0).fit(wide())
    assert not posterior.converged_ and posterior.n_sweeps_ == 10
    long, wider = (augmented_average.affordable_sweeps(40, gaps, 4) for gaps in (table_of(20), table_of(37)))
    assert 72 < wider < long / 2  # at least so many as a run needs before it may converge


def table_of(n, n_rows=1000):
    return augment.GapTable(np.zeros((n_rows, n), dtype=np.int32), np.ones(n_rows), np.full(n, 2), (1.0, None))


def test_columns_that_are_never_seen_together():
    """Nothing says how they depend, and a chain that has filled one in by the other hardly left: the hard case in small. Against
    the integral over the tables, which is the mean over draws of them: of a's from their posterior, of b's from their prior."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 2, 600) for name in "ab"})
    a, b, size = frame["a"][300:].sum(), frame["b"][:300].sum(), 10.0
    first, draws = rng.beta(size / 2 + a, size / 2 + 300 - a, 200_000), rng.beta(size / 4, size / 4, (2, 200_000))
    chance = first * draws[0] + (1 - first) * draws[1]
    log_terms = b * np.log(chance) + (300 - b) * np.log1p(-chance)
    alone = betaln(size / 2 + b, size / 2 + 300 - b) - betaln(size / 2, size / 2)
    factor = np.exp(log_terms - alone).mean() / 2  # an arc has half the prior of none: "mdl" with two columns
    frame = frame.astype(object)
    frame.loc[:299, "a"] = None
    frame.loc[300:, "b"] = None
    for seed in range(3):
        posterior = OrderPosterior(equivalent_sample_size=size, random_state=seed).fit(frame)
        assert posterior.converged_
        # half of the orders have a first; `tol` is .05
        assert abs(posterior.edge_posterior_.loc["a", "b"] - 0.5 * factor / (1 + factor)) < 0.05


def test_save_and_load_keep_the_tables(survey, tmp_path):
    _, holes = survey
    posterior = OrderPosterior(random_state=0).fit(holes)
    posterior.save(tmp_path / "p.pgm")
    loaded = pgm_bma.load(tmp_path / "p.pgm")
    rows = holes.head(20)
    assert (loaded.score_samples(rows) == posterior.score_samples(rows)).all()
    assert loaded.gaps_.equals(posterior.gaps_)
    for one, two in zip(posterior.complete(holes, 2), loaded.complete(holes, 2)):
        assert one.equals(two)


def test_completed_tables_keep_cells_dtypes_and_law(survey):
    frame, holes = survey
    typed = holes.assign(a=holes["a"].astype("float"), b=holes["b"].astype("category"), c=holes["c"].astype("Int64"))
    typed.index = typed.index + 100
    posterior = OrderPosterior(random_state=0).fit(typed)
    tables = posterior.complete(typed, 40)
    for one in tables:
        assert (one.dtypes == typed.dtypes).all() and (one.index == typed.index).all()
        assert one.notna().all(axis=None)
        assert one[typed.notna()].equals(typed[typed.notna()])
    drawn = np.mean([one["b"].astype(int).to_numpy() for one in tables], axis=0)
    empty = holes["b"].isna().to_numpy() & (holes["a"] == 1).to_numpy() & (holes["c"] == 1).to_numpy()
    truth = frame[(frame["a"] == 1) & (frame["c"] == 1)]["b"].mean()
    assert abs(drawn[empty].mean() - truth) < 0.05  # 40 draws of some ten cells near .97
    assert posterior.complete(typed, 3)[0].equals(posterior.complete(typed, 3)[0])
    assert not posterior.complete(typed, 1, random_state=1)[0].equals(posterior.complete(typed, 1, random_state=2)[0])


def test_joined_lists_hold_what_any_of_them_holds():
    table = family_table(np.random.default_rng(0).integers(0, 2, (50, 6)), np.full(6, 2), max_indegree=2)
    whole = augment_lists.all_families(table)
    some = augment_lists.prune_table(table, 0.5)
    joined = augment_lists.join_lists([some, whole])
    assert (joined.sets == whole.sets).all() and (joined.offsets == whole.offsets).all()
    numbers = np.array([*range(6), -1])  # the order 0, 1, .. 5
    lost, nothing = (
        augment_lists.lost_on(augment_lists.held_by(lists, table), table, numbers, False) for lists in (some, whole)
    )
    for child in range(6):
        full, kept = by_set(table, child), by_set(some, child)
        weights = {members: np.exp(score) for members, score in full.items() if all(v < child for v in members)}
        left_out = sum(weight for members, weight in weights.items() if members not in kept)
        assert lost[child] == pytest.approx(left_out / sum(weights.values()), abs=1e-12)
    assert lost.max() > 0 and nothing.max() == 0


def test_stacked_tables_count_every_row_once():
    codes = tiny(5)
    gaps = augment.GapTable(codes, np.ones(len(codes)), np.full(3, 2), (1.0, None))
    filled = np.array([augment.first_filling(gaps, np.random.default_rng(k)) for k in range(40)])
    training = augmented_average.stacked(gaps, filled)
    assert training.weights.sum() == pytest.approx(len(codes)) and (training.codes >= 0).all()
