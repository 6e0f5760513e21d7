"""Forest averages of tables with gaps under missing="augment"."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from pgm_bma import ForestAveragedClassifier, load
from pgm_bma.forests import augment
from pgm_bma.forests.average import complete_log_joint, fit_forest_average
from tests.oracles import forests as oracle
from tests.oracles import gaps
from tests.oracles.orders import Problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def chain_of_columns(n_rows, seed, gaps=0.0):
    """Eight columns, each a noisy copy of the one before; the class shows in the first and, reversed, in how the others copy."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    columns = [np.where(rng.random(n_rows) < 0.75, y, 1 - y)]
    for _ in range(7):
        columns.append(np.where(rng.random(n_rows) < np.where(y == 1, 0.9, 0.75), columns[-1], 1 - columns[-1]))
    X = pd.DataFrame(np.column_stack(columns), columns=[f"c{i}" for i in range(8)])
    return X.astype(float).mask(rng.random(X.shape) < gaps), y


def log_loss(classifier, X, y):
    return -np.log(classifier.predict_proba(X)[np.arange(len(y)), y]).mean()


@pytest.fixture(scope="module")
def fitted():
    X, y = chain_of_columns(150, 0, 0.45)
    return ForestAveragedClassifier(missing="augment", random_state=0).fit(X, y), X, y


def test_without_gaps_nothing_changes():
    X, y = chain_of_columns(60, 1)
    plain, other = (ForestAveragedClassifier(missing=how, random_state=3).fit(X, y) for how in ("auto", "augment"))
    assert np.array_equal(plain.predict_proba(X), other.predict_proba(X))
    assert plain.edge_posterior_.equals(other.edge_posterior_) and plain.log_evidence_ == other.log_evidence_
    assert not other._tables
    X["constant"] = np.where(np.arange(60) < 5, np.nan, 1.0)  # a cell with one possible value is not missing
    with pytest.warns(UserWarning, match="one value only"):
        assert not ForestAveragedClassifier(missing="augment").fit(X, y)._tables


def test_log_loss_falls(fitted):
    losses = {"auto": [], "augment": [], "complete": []}
    X_test, y_test = chain_of_columns(3000, 100)
    for seed in range(2):
        X, y = chain_of_columns(150, seed, 0.45)
        losses["auto"].append(log_loss(ForestAveragedClassifier().fit(X, y), X_test, y_test))
        own = fitted[0] if seed == 0 else ForestAveragedClassifier(missing="augment", random_state=0).fit(X, y)
        losses["augment"].append(log_loss(own, X_test, y_test))
        full = ForestAveragedClassifier().fit(chain_of_columns(150, seed)[0], y)
        losses["complete"].append(log_loss(full, X_test, y_test))
    mean = {how: np.mean(found) for how, found in losses.items()}
    assert mean["complete"] < mean["augment"] < mean["auto"]


def test_all_completions_times_all_forests(monkeypatch):
    """Four columns, five missing cells: every completion with its probability under all networks, and all forests on each.

    4 chains keep 20 tables each. The standard error of a mean over 80 independent tables is the spread over completions / sqrt(80);
    neighbours in a chain are alike: five times 1.5 such errors. Completions of equal weight would be found out.
    """
    monkeypatch.setattr(augment, "KEPT", 20)
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 64)  # 64 rows: the pseudo-counts of no table are cut
    columns = [np.where(rng.random(64) < 0.75, y, 1 - y)]
    for _ in range(3):
        columns.append(np.where(rng.random(64) < 0.72, columns[-1], 1 - columns[-1]))
    codes, query = np.column_stack(columns), [1, 0, 1, 1]
    codes[[3, 8, 8, 20, 30], [0, 1, 2, 3, 1]] = -1
    names = ["c0", "c1", "c2", "c3", "class"]
    found = augment.augmented_forests(names, codes, np.full(4, 2), y, 2, None, None, np.random.default_rng(0))
    rows = [[None if v < 0 else int(v) for v in row] for row in np.column_stack([codes, y])]
    parts = []
    for table, _ in gaps.completed_tables(rows, [2] * 5):
        # every table of a column has the mass 2 per cell below the class alone, spread over its lines
        given = [row[:4] for row in table], [row[4] for row in table], [2] * 4, 2, lambda q, r: 4 / q, -np.log(4), None
        joint, arcs, *_ = oracle.class_joint(*given, query, 1.0)
        parts.append((Problem(table, [2] * 5, 3).evidence("order"), np.append(joint, arcs)))
    logs, values = (np.array(part) for part in zip(*parts))
    shares = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    truth = shares @ values
    tolerance = 5 * 1.5 * np.sqrt(shares @ (values - truth) ** 2 / 80) + 1e-9
    joint = np.mean([np.exp(complete_log_joint(one, np.array([query]))[0]) for one in found.tables], axis=0)
    assert (np.abs(np.append(joint, found.average.arc_posterior) - truth) < tolerance).all()
    assert (np.abs(values.mean(0) - truth) > 2 * tolerance).any()


def test_joints_are_means_over_tables(fitted):
    classifier, X, _ = fitted
    assert len(classifier._tables) == augment.N_CHAINS * augment.KEPT
    codes = classifier._encode(X.fillna(0.0)[:5])
    joints = []
    for table in classifier._tables:
        single = ForestAveragedClassifier().fit(X.fillna(0.0), fitted[2])
        single._result = table
        joints.append(np.exp(single._log_joint(codes)))
    np.testing.assert_allclose(np.exp(classifier._log_joint(codes)), np.mean(joints, axis=0), rtol=1e-10)
    arcs = np.mean([table.arc_posterior for table in classifier._tables], axis=0).T
    np.testing.assert_allclose(classifier.edge_posterior_, arcs, rtol=1e-12)
    assert np.isnan(classifier.log_evidence_)


def test_tables_keep_the_observed_cells(fitted):
    """Counts of a column pair of a completed table lie between those seen and those seen plus the rows with a gap."""
    _, X, y = fitted
    codes = X.fillna(-1).to_numpy().astype(int)
    rows = [f"c{i}" for i in range(8)] + ["class"], codes, np.full(8, 2), y, 2, None
    found = augment.augmented_forests(*rows, None, np.random.default_rng(0))
    seen = fit_forest_average(codes, np.full(8, 2), y, 2)
    np.testing.assert_allclose(found.average.class_probability, seen.class_probability, rtol=1e-12)
    shares = [np.exp(table.log_singles) for table in found.tables]
    # prior mass 4 of a column below the class (consistent): posterior mean x (rows + 4) - 2 counts the cells
    n = np.bincount(y)[:, None]
    counts = np.array([share * (n + 4) - 2 for share in shares])
    least = np.array([[((codes[y == c, i] == s).sum()) for i in range(8) for s in (0, 1)] for c in (0, 1)])
    most = least + np.array([[(codes[y == c, i] < 0).sum() for i in range(8) for s in (0, 1)] for c in (0, 1)])
    assert (counts > least - 1e-6).all() and (counts < most + 1e-6).all()
    assert np.ptp(counts, axis=0).max() > 1  # tables differ


def test_seeds_and_repetitions(monkeypatch):
    monkeypatch.setattr(augment, "SWEEPS", 8)
    X, y = chain_of_columns(60, 2, 0.3)
    X = X.iloc[:, :4]
    first, again, other = (
        ForestAveragedClassifier(missing="augment", random_state=s).fit(X, y).predict_proba(X) for s in (0, 0, 1)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    times = np.arange(60) % 3
    weighted = ForestAveragedClassifier(missing="augment", random_state=0).fit(X, y, sample_weight=times)
    repeated = ForestAveragedClassifier(missing="augment", random_state=0).fit(
        X.loc[np.repeat(np.arange(60), times)].reset_index(drop=True), np.repeat(y, times)
    )
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    with pytest.raises(ValueError, match=r"sample_weight has fractions .*missing='auto'"):
        ForestAveragedClassifier(missing="augment").fit(X, y, sample_weight=np.full(60, 0.5))


def test_save_and_load(fitted, tmp_path):
    classifier, X, _ = fitted
    classifier.save(tmp_path / "gaps.pgm")
    again = load(tmp_path / "gaps.pgm")
    assert np.array_equal(classifier.predict_proba(X), again.predict_proba(X))
    assert again.missing == "augment" and len(again._tables) == len(classifier._tables)


def test_other_results(fitted):
    classifier, X, _ = fitted
    row = X.fillna(1.0)[:1]
    evidence = classifier._evidence(classifier._encode(row))
    np.testing.assert_allclose(evidence.sum(0), classifier._log_joint(classifier._encode(row))[0], rtol=1e-9)
    assert classifier.model_.check_model() and len(classifier.sample_models(20, random_state=0)) == 20
    assert (classifier.feature_importances_ >= 0).all()
    empty = pd.DataFrame(np.nan, index=[0], columns=X.columns)  # 256 completions: forests of all tables are sampled
    proba, error = classifier.predict_proba_with_error(empty)
    np.testing.assert_allclose(proba[0], classifier._result.class_probability, atol=5 * error.max() + 1e-9)


def test_refusals_and_warning(monkeypatch):
    X, y = chain_of_columns(60, 2, 0.3)
    monkeypatch.setattr("pgm_bma.forests.classifier.MAX_COLUMNS", 7)
    with pytest.raises(ValueError, match="8 columns; missing='augment'"):
        ForestAveragedClassifier(missing="augment").fit(X, y)
    with pytest.raises(ValueError, match="missing='drop'"):
        ForestAveragedClassifier(missing="drop").fit(X, y)
    monkeypatch.undo()
    monkeypatch.setattr("pgm_bma.forests.classifier.MAX_CELLS", 1000)
    with pytest.raises(ValueError, match="16 completed tables"):
        ForestAveragedClassifier(missing="augment").fit(X, y)
    monkeypatch.undo()
    X, found = X.iloc[:, :3], augment.augmented_forests
    monkeypatch.setattr(augment, "SWEEPS", 8)
    monkeypatch.setattr("pgm_bma.forests.classifier.augmented_forests", lambda *a: found(*a)._replace(n_apart=3))
    with pytest.warns(ConvergenceWarning, match="differ on 3 arcs"):
        ForestAveragedClassifier(missing="augment", random_state=0).fit(X, y)
