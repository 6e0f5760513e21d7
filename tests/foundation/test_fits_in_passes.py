"""Every estimator on rows that do not fit: the fit in passes is that in memory, or a refusal that tells size and cure."""

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.rows import blocks
from tests.foundation.scanned import CLASSIFIERS, CLUSTERERS, cut, differences, make_table, write_parts

# what counts whole numbers has the bits of memory: block sums of those are exact
EXACT = {
    "TAN": {},
    "forest classifier": {},
    "forest classifier, selective": {"class_arcs": "selective"},
    "Kikuchi, counting": {},
    "Kikuchi, tree": {"weights": "tree"},
    "Kikuchi, TAN": {"preset": "TAN"},
    "Kikuchi, state": {"weights": "counting", "missing": "state", "level": 3, "significance_level": 1.0},
    "Kikuchi, laplace": {"weights": "counting", "prior": "laplace", "cycles": "gated"},
}
CLASSES = {"TAN": pgm_bma.TANClassifier, "forest classifier": pgm_bma.ForestAveragedClassifier}
MEMORY = r"needs the distinct rows in memory[, ].*but the 900 rows have .* memory= more"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)


@pytest.fixture(scope="module")
def parts():
    weighted = cut(make_table(900, missing=0.15), 3)
    # texts: in memory, classifiers would cut fractions
    return [part.assign(w=np.arange(len(part)) % 3, half=part["half"].astype(str)) for part in weighted]


@pytest.fixture(scope="module")
def frame(parts):
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def pattern(parts, tmp_path_factory):
    return write_parts(parts, tmp_path_factory.mktemp("parts"))


def scan(pattern, **options):
    return pgm_bma.scan_parquet(pattern, memory=1000, **options)


def classifier(name, **options):
    kind = CLASSES.get(name.split(",")[0], pgm_bma.KikuchiBayesClassifier)
    seed = {} if kind is pgm_bma.TANClassifier else {"random_state": 0}
    if kind is pgm_bma.KikuchiBayesClassifier:
        seed["categorical_columns"] = ["number"]  # else the column of fractions would be cut in memory
    base = CLASSIFIERS[name]().get_params() if name in CLASSIFIERS else {}
    return kind(**{**base, **seed, **EXACT.get(name, {}), **options})


@pytest.mark.filterwarnings("ignore:.*unseen in fit")  # expected of these rows
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_counts_of_passes_have_the_bits_of_memory(name, weight, frame, pattern):
    X, rows = (frame, scan(pattern)) if weight else (frame.drop(columns="w"), scan(pattern).drop("w"))
    weights = None if weight is None else X["w"]
    want = classifier(name).fit(X.drop(columns="w", errors="ignore"), "class", sample_weight=weights)
    got = classifier(name).fit(rows, "class", sample_weight=weight)
    assert got.n_samples_ == want.n_samples_ and got.schema_ == want.schema_
    found = {path for path in differences(vars(want), vars(got)) if not path.startswith(".schema_")}
    assert found <= {"._information"}  # made of tables in memory one after the other: the last digit may differ
    if found:
        np.testing.assert_allclose(got.interaction_strength_, want.interaction_strength_, atol=1e-12)
    X = X.drop(columns="w", errors="ignore").drop(columns="class")
    assert got.predict_proba(X).tobytes() == want.predict_proba(X).tobytes()


@pytest.mark.parametrize("many_terms", [False, True])
@pytest.mark.parametrize("ridge", [5.0, "cv"])
def test_learned_weights_by_sums_of_slope_and_curvature(ridge, many_terms, frame, pattern, monkeypatch):
    if many_terms:  # steps by the gradient alone
        monkeypatch.setattr("pgm_bma.foundation.numbers.softmax_ridge.NEWTON_TERMS", 3)
    monkeypatch.setattr("pgm_bma.kikuchi.weights._CONTRASTS_AT_ONCE", 400)
    rows, X = scan(pattern, sample_rows=900).drop("w"), frame.drop(columns=["w", "class"])
    want = classifier("Kikuchi", ridge=ridge).fit(frame.drop(columns="w"), "class")
    got = classifier("Kikuchi", ridge=ridge).fit(rows, "class")
    assert got.ridge_ == want.ridge_ and got.prior_strength_ == want.prior_strength_  # the sample is all rows
    # L-BFGS ends where a step gains 1e-11 of the loss: its own rounding may end it elsewhere
    np.testing.assert_allclose(got.term_weights_, want.term_weights_, atol=1e-4 if many_terms else 1e-9)
    np.testing.assert_allclose(got.predict_proba(X), want.predict_proba(X), atol=1e-4 if many_terms else 1e-9)


@pytest.mark.filterwarnings("ignore:the best start did not converge")  # few updates do here
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"completion": "most_probable", "search": "hill_climb"},
        {"n_clusters": [1, 3], "convergence": "completed_score"},
    ],
)
def test_structural_em(options, frame, pattern):
    make = lambda: CLUSTERERS["structural EM"]().set_params(n_init=2, **options)  # noqa: E731
    want = make().fit(frame.drop(columns="w"))
    got = make().fit(scan(pattern, sample_rows=None).drop("w"))
    assert got.structure_path_ == want.structure_path_ and got.n_em_updates_ == want.n_em_updates_
    assert got.cheeseman_stutz_ == pytest.approx(want.cheeseman_stutz_, rel=1e-9)
    np.testing.assert_allclose(got.starts_["score"], want.starts_["score"], rtol=1e-9)
    np.testing.assert_allclose(got.predict_proba(frame), want.predict_proba(frame), atol=1e-9)


def test_structural_em_screens_its_starts(pattern):
    make = lambda: CLUSTERERS["structural EM"]().set_params(n_init=6)  # noqa: E731
    got = make().fit(scan(pattern, sample_rows=450).drop("w"))
    assert set(got.starts_["stage"]) == {1, 2} and got.starts_.loc[got.starts_["weight"] > 0, "stage"].tolist() == [2]
    # the scores of starts that saw half of the rows are told on the scale of all
    assert got.starts_["log_likelihood"].max() == pytest.approx(got.starts_["log_likelihood"].min(), rel=0.1)


COMPLETE = ["half", "class", "differs", "w"]


@pytest.mark.parametrize(
    "options", [{}, {"n_final": None, "init": "em", "combine_starts": "best"}, {"n_clusters": [1, 3]}]
)
def test_forest_clusters_of_complete_rows(options, frame, pattern):
    fit = {"n_init": 4, "n_final": 2, "tol": 1e-4, **options}  # equal numbers of updates are compared, not their end
    make = lambda: CLUSTERERS["forest clusters"]().set_params(**fit)  # noqa: E731
    want = make().fit(frame[COMPLETE])
    got = make().fit(scan(pattern, sample_rows=None).select(COMPLETE))
    assert got.n_iter_ == want.n_iter_ and got.n_clusters_ == want.n_clusters_
    assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)
    assert got.evidence_bound_ == pytest.approx(want.evidence_bound_, rel=1e-9)
    np.testing.assert_allclose(got.starts_["score"], want.starts_["score"], rtol=1e-9)
    np.testing.assert_allclose(got.edge_posterior_, want.edge_posterior_, atol=1e-9)
    np.testing.assert_allclose(got.predict_proba(frame[COMPLETE]), want.predict_proba(frame[COMPLETE]), atol=1e-9)
    screened = make().fit(scan(pattern, sample_rows=450).select(COMPLETE))
    assert set(screened.starts_["stage"]) == {1, 2}
    assert screened.evidence_bound_ == pytest.approx(want.evidence_bound_, rel=0.01)


REFUSED = {
    "forest clusters with gaps": CLUSTERERS["forest clusters"],
    "forest clusters at random": lambda: pgm_bma.ForestAveragedClusterer(2, init="random"),
    "bound and collapse": CLUSTERERS["bound and collapse"],
    "any network": lambda: pgm_bma.StructuralEMClusterer(2, structures="general"),
    "all completions": lambda: pgm_bma.StructuralEMClusterer(2, completion="expectation"),
    "forest classifier, augment": lambda: pgm_bma.ForestAveragedClassifier(missing="augment"),
    "Kikuchi by error": lambda: pgm_bma.KikuchiBayesClassifier(criterion="error"),
    "Kikuchi, marginal": lambda: pgm_bma.KikuchiBayesClassifier(prior="marginal"),
    "Kikuchi, loo": lambda: pgm_bma.KikuchiBayesClassifier(ridge="loo"),
    "Kikuchi, numbers": lambda: pgm_bma.KikuchiBayesClassifier(numeric_columns=["number"]),
    "additive": lambda: pgm_bma.AdditiveBayesClassifier(),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_stays_in_memory_says_so(name, pattern):
    estimator, rows = REFUSED[name](), scan(pattern)
    rows = rows.select(COMPLETE) if name == "forest clusters at random" else rows
    with pytest.raises(MemoryError, match=MEMORY):
        estimator.fit(rows, "class")
    assert not hasattr(estimator, "schema_")


def test_complete_columns_need_no_sampling_in_passes(frame, pattern):
    want, got = (
        pgm_bma.ForestAveragedClassifier(missing="augment").fit(rows, "class")
        for rows in (frame[COMPLETE], scan(pattern).select(COMPLETE))
    )
    X = frame[COMPLETE].drop(columns="class")
    assert got.predict_proba(X).tobytes() == want.predict_proba(X).tobytes()


def test_targets_of_passes(pattern, parts, tmp_path):
    for make in (pgm_bma.TANClassifier, pgm_bma.AveragedNaiveBayesClassifier):
        with pytest.raises(ValueError, match="y='nothing' is not a column of X; its columns are 'text'"):
            make().fit(scan(pattern), "nothing")
        with pytest.raises(ValueError, match=r"target 'text' has \d+ missing values \(NaN\); drop those rows"):
            make().fit(scan(pattern), "text")
    with pytest.raises(ValueError, match="target 'flag' is also a column of X"):
        pgm_bma.TANClassifier(target_name="flag").fit(scan(pattern), "class")
    got = pgm_bma.TANClassifier(target_name="group", state_names={"group": [1, 0, 7]}).fit(scan(pattern), "class")
    assert got.classes_.tolist() == [0, 1, 7] and got.target_name_ == "group"


def test_starts_go_where_joblib_sends_them(frame):
    """On dask's workers, with equal answers: starts of every clusterer are tasks of joblib."""
    import joblib
    from distributed import Client

    X = frame[COMPLETE]
    makers = [CLUSTERERS[name] for name in ("EM", "EMA variational", "structural EM", "forest clusters")]
    want = [make().set_params(n_init=9 if i < 2 else 2).fit(X) for i, make in enumerate(makers)]
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        client.get_task_stream()  # from now on it is recorded
        with joblib.parallel_config("dask"):
            got = [make().set_params(n_init=9 if i < 2 else 2).fit(X) for i, make in enumerate(makers)]
        assert len(client.get_task_stream()) >= len(makers)  # they were not run here
    for a, b in zip(want, got):
        assert differences(vars(a), vars(b)) == []
