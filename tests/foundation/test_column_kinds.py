"""Columns that are nothing to learn from, pointed out in Python: ids, dates, free text."""

import warnings

import numpy as np
import pandas as pd
import pytest

from pgm_bma import EMAClusterer, OrderPosterior


def questionnaire(n_rows=60):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, n_rows)
    answers = {f"q{i}": np.where(rng.random(n_rows) < 0.9, z, 1 - z) for i in range(4)}
    words = "the question was not clear to me and I would rather not say so here".split()
    aside = {
        "case": np.arange(4711, 4711 + n_rows),
        "day": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(n_rows)],
        "seen": pd.date_range("2024-03-01", periods=n_rows),
        "remark": [" ".join(rng.choice(words, 5)) for _ in range(n_rows)],
        "age": rng.integers(20, 70, n_rows),
    }
    return pd.DataFrame({**answers, **aside})


def test_ids_dates_and_free_text_are_pointed_out_with_the_cure():
    X = questionnaire()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        EMAClusterer(2, n_init=2, random_state=0).fit(X)
    told = [str(each.message) for each in caught]
    for name, what in (
        ("case", "names the rows"),
        ("day", "holds dates"),
        ("seen", "holds dates"),
        ("remark", "holds free text"),
    ):
        (line,) = [text for text in told if f"column {name!r} {what}" in text]
        assert f"X.drop(columns=[{name!r}])" in line and f"X[{name!r}].astype('category')" in line
    assert not [text for text in told if "'age'" in text or "'q0'" in text]


def test_what_is_declared_or_repeated_is_not_pointed_out():
    X = questionnaire()
    declared = X.assign(case=X["case"].astype("category"))[["q0", "q1", "case"]]
    repeated = X[["q0", "q1", "case"]].assign(case=np.arange(60) % 30 + 4711)  # half as many values as rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EMAClusterer(2, n_init=2, random_state=0).fit(declared)
        EMAClusterer(2, n_init=2, random_state=0, state_names={"case": list(range(4711, 4771))}).fit(
            X[["q0", "q1", "case"]]
        )
        EMAClusterer(2, n_init=2, random_state=0).fit(repeated)
        EMAClusterer(2, n_init=2, random_state=0).fit(X[["q0", "q1", "case"]], sample_weight=np.full(60, 2.0))


def test_a_table_of_nothing_but_ids_and_dates_is_refused():
    with pytest.raises(ValueError, match=r"'case' names the rows.*'day' holds dates.*nothing to learn from"):
        EMAClusterer(2).fit(questionnaire()[["case", "day"]])


def test_measured_numbers_as_states_are_pointed_out():
    rng = np.random.default_rng(0)
    answers = pd.DataFrame({"q0": rng.integers(0, 2, 45), "q1": rng.integers(0, 2, 45)})
    X = answers.assign(size=rng.normal(size=45), weight=rng.normal(size=45))
    with pytest.warns(UserWarning, match="taken as states, which says little: 'size', 'weight'; cut them first"):
        OrderPosterior().fit(X)
    few = answers.assign(size=rng.integers(0, 9, 45) / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OrderPosterior().fit(X.astype({"size": "category", "weight": "category"}))
        OrderPosterior().fit(few[["q0", "q1", "size"]])
        EMAClusterer(2, n_init=2, random_state=0).fit(X)  # takes numbers as they are
