"""Parameters given as numbers of numpy mean what Python's mean; absurd sizes and ranges are refused before memory is taken."""

import io
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import catalogue
from pgm_bma.commands.output import Console
from pgm_bma.foundation.faces.validation import plain_parameters
from pgm_bma.report import Report
from tests.saved.make import ALL, SMALL, answers, fitted, rows

TYPES = [np.int8, np.int64, np.uint16, np.float16, np.float32, np.float64, np.longdouble, np.bool_]


def numeric(estimator):
    """{parameter: value} of those that are numbers by default."""
    return {name: v for name, v in estimator.get_params(deep=False).items() if isinstance(v, (bool, int, float))}


@pytest.mark.parametrize("name", ALL)
def test_every_number_of_numpy_is_pythons_within_fit(name):
    estimator = getattr(pgm_bma, name)()
    for parameter in numeric(estimator):
        for kind in TYPES:
            given = kind(1)
            estimator.set_params(**{parameter: given})
            with plain_parameters(estimator):
                now = getattr(estimator, parameter)
                assert type(now) in (bool, int, float) and now == given
            assert getattr(estimator, parameter) is given  # as it was passed
    for parameter, record in getattr(estimator, "_default_records", {}).items():
        estimator.set_params(**{parameter: record.set_params(tol=np.float32(0.25))} if hasattr(record, "tol") else {})
        with plain_parameters(estimator):
            assert type(getattr(getattr(estimator, parameter), "tol", 0.0)) is float


def of_numpy(value, turn):
    """The same number of numpy: whole ones in three types by turns, others in the one that compiled code does not know."""
    if isinstance(value, bool):
        return np.bool_(value)
    return (np.int8, np.int64, np.uint16)[turn % 3](value) if isinstance(value, int) else np.longdouble(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_a_fit_with_numbers_of_numpy_is_the_same_to_the_last_bit(name):
    make = getattr(pgm_bma, name)
    given = {
        each: of_numpy(value, turn) for turn, (each, value) in enumerate(numeric(make()).items()) if 0 <= value < 100
    }
    given = {each: value for each, value in given.items() if each not in SMALL.get(name, {})}
    np.testing.assert_array_equal(answers(name, fitted(name, **given)), answers(name, fitted(name)))


CASES = [
    ("KikuchiBayesClassifier", {"level": 2}, np.int64),
    ("KikuchiBayesClassifier", {"prior_strength": 2.0}, np.longdouble),
    ("TANClassifier", {"alpha": 0.5}, np.float32),
    ("AveragedNaiveBayesClassifier", {"alpha": 2, "arc_prior": 0.5}, np.longdouble),
    ("LatentClassClusterer", {"n_clusters": 2, "n_init": 2, "random_state": 1}, np.int8),
    ("EMAClusterer", {"n_clusters": 3, "n_init": 2, "random_state": 1}, np.int8),
    ("StructuralEMClusterer", {"n_clusters": 2, "n_init": 1, "random_state": 1}, np.uint8),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "values", "kind"), CASES)
def test_the_type_of_a_number_changes_nothing(name, values, kind):
    X, y = rows()
    make, target = getattr(pgm_bma, name), [y] if name.endswith("Classifier") else []
    plain = make(**values).fit(X, *target)
    given = make(**{key: kind(value) for key, value in values.items()}).fit(X, *target)
    np.testing.assert_array_equal(given.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("LatentClassClusterer", {"n_clusters": range(2, 10**12)}, "n_clusters=range.* names more than 1000 numbers"),
        ("EMAClusterer", {"n_clusters": range(2, 10**12)}, "n_clusters=range.* names more than 1000 numbers"),
        ("StructuralEMClusterer", {"n_clusters": range(2, 10**12)}, "n_clusters=range.* names more than 1000 numbers"),
        (
            "ForestAveragedClusterer",
            {"n_clusters": range(2, 10**12)},
            "n_clusters=range.* names more than 1000 numbers",
        ),
        ("LatentClassClusterer", {"n_init": 2**31}, "n_init=2147483648 must be at most"),
        ("StructuralEMClusterer", {"n_init": 2**31}, "n_init=2147483648 must be at most"),
        ("KikuchiBayesClassifier", {"n_resamples": 2**31}, "n_resamples=2147483648 must be at most"),
        ("KikuchiBayesClassifier", {"prior_strength": 5e-324}, "prior_strength=5e-324 must be .*underflows"),
    ],
)
def test_absurd_numbers_are_refused_at_once(name, values, words):
    X, y = rows()
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=words):
        getattr(pgm_bma, name)(**values).fit(X, *([y] if name.endswith("Classifier") else []))
    assert time.perf_counter() - begin < 2


def test_names_do_not_steer_the_terminal_or_hide_in_reports(tmp_path):
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)
    console.say("column \x1b[31mred\x07 \u202eback")
    console.note("column \x1b]0;title\x9b")
    assert out.getvalue() == "column \\x1b[31mred\\x07 \\u202eback\n" and "\\x1b]0;title\\x9b" in err.getvalue()
    report = Report("title \x1b[2J")
    report.write(tmp_path / "page.html")
    assert "\x1b" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_spreadsheets_find_no_formula_in_full_width(tmp_path):
    from pgm_bma.commands.output import write_csv

    cells = ["\uff1d1+1", "\uff0bx", "\uff0dx", "\uff20x", "|cmd", "%x", "\tx", "a|b"]
    write_csv(tmp_path / "t.csv", pd.DataFrame({"a": cells}))
    found = pd.read_csv(tmp_path / "t.csv", dtype=str)["a"].tolist()
    assert found == [f"'{cell}" for cell in cells[:-1]] + ["a|b"]


@pytest.mark.filterwarnings("ignore")
def test_a_record_batch_of_arrow_is_a_table():
    pa = pytest.importorskip("pyarrow")
    X, y = rows()
    batch = pa.RecordBatch.from_pandas(X.assign(outcome=y), preserve_index=False)
    table = pa.Table.from_batches([batch])
    want = pgm_bma.NaiveBayesClassifier().fit(table, "outcome")
    got = pgm_bma.NaiveBayesClassifier().fit(batch, "outcome")
    np.testing.assert_array_equal(got.predict_proba(batch), want.predict_proba(table))
    clusterer = pgm_bma.LatentClassClusterer(2, n_init=1, random_state=0)
    np.testing.assert_array_equal(clusterer.fit(batch).predict_proba(batch), clusterer.fit(table).predict_proba(table))


def test_a_likelihood_ratio_test_of_an_absurd_size_is_refused():
    X, _ = rows()
    with pytest.raises(ValueError, match="n_bootstrap=2147483648 must be at most"):
        pgm_bma.likelihood_ratio_test(pgm_bma.LatentClassClusterer(2), X, n_bootstrap=2**31)


@pytest.mark.parametrize("name", catalogue.named("classifier", "clusterer", "structure"))
def test_a_seed_of_the_wrong_type_is_refused(name):
    X, y = rows()
    if "random_state" not in (estimator := getattr(pgm_bma, name)()).get_params():
        pytest.skip("nothing in it is random")
    for seed in ("0", 1.5, -1, [1], True):
        with pytest.raises(ValueError, match="random_state="):
            estimator.set_params(random_state=seed).fit(X, *([y] if name.endswith("Classifier") else []))


@pytest.mark.parametrize("name", catalogue.named("classifier", "clusterer", "structure"))
def test_a_table_of_no_rows_and_many_columns_is_refused_at_once(name):
    X = pd.DataFrame(np.empty((0, 20_000)))
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"no rows|0 sample"):
        getattr(pgm_bma, name)().fit(X, *([np.empty(0)] if name.endswith("Classifier") else []))
    assert time.process_time() - begin < 2


def test_numbers_of_clusters_in_an_array_of_small_integers_do_not_overflow():
    X = pd.DataFrame({"a": list("0101"), "b": list("0011")})
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", "all .* starts collapsed")
        found = pgm_bma.LatentClassClusterer(np.array([127], dtype=np.int8), n_init=2, random_state=0).fit(X)
    assert isinstance(found.n_clusters_, int)
