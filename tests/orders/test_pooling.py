"""Rubin's rules over completed copies."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from pgm_bma import OrderPosterior
from pgm_bma.orders.pooling import as_estimates, pool


def test_rules_worked_by_hand():
    # three copies: mean 2, within 1, between 1; total 1 + 4/3, of which the missing cells have 4/7
    found = pool([(pd.Series({"b": value}), np.ones(1), np.inf) for value in (1.0, 2.0, 3.0)], 0.9).loc["b"]
    assert found.estimate == 2.0
    assert found.std_error == pytest.approx(np.sqrt(7 / 3))
    assert found.df == pytest.approx(2 / (4 / 7) ** 2)
    assert found.high - 2 == pytest.approx(t.ppf(0.95, 6.125) * np.sqrt(7 / 3))
    r = 4 / 3
    assert found.missing_information == pytest.approx((r + 2 / (6.125 + 3)) / (1 + r))


def test_degrees_of_freedom_of_complete_rows_count():
    found = pool([(pd.Series([value]), np.ones(1), 10.0) for value in (1.0, 2.0, 3.0)], 0.95).iloc[0]
    seen = 11 / 13 * 10 * (3 / 7)
    assert found.df == pytest.approx(1 / (1 / 6.125 + 1 / seen))


def test_equal_copies_have_the_error_of_one():
    found = pool([(pd.Series([0.3]), np.array([0.04]), np.inf)] * 5, 0.95).iloc[0]
    assert found.std_error == pytest.approx(0.2) and found.df == np.inf and found.missing_information == 0.0
    assert found.high == pytest.approx(0.3 + 1.959964 * 0.2, abs=1e-6)


def test_forms_of_estimates():
    words = "wrong"
    want = pd.Series({"a": 1.0, "b": 2.0})
    fit = SimpleNamespace(params=want, bse=[3.0, 4.0], df_resid=7)
    for given in (({"a": 1, "b": 2}, {"b": 16, "a": 9}), (want, [9, 16]), fit):
        values, variances, df = as_estimates(given, words)
        assert values.equals(want) and variances.tolist() == [9, 16]
    assert df == 7.0
    assert as_estimates((0.5, 0.1), words)[0].tolist() == [0.5]
    for bad in (3, (1,), ([1], [1, 2]), ([np.nan], [1]), ([1], [-1]), ("x", "y")):
        with pytest.raises(ValueError, match="wrong"):
            as_estimates(bad, words)


def half_missing(seed=0, n_rows=200):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n_rows)
    X = pd.DataFrame({"a": a, "b": np.where(rng.random(n_rows) < 0.9, a, 1 - a)}).astype(str)
    return X.mask(rng.random(X.shape) < [0.0, 0.3])


def share(table):
    p = (table["b"] == "1").mean()
    return p, p * (1 - p) / len(table)


def test_an_analysis_over_copies():
    X = half_missing()
    posterior = OrderPosterior(random_state=0).fit(X)
    given = posterior.with_copies(share, 20, X).iloc[0]
    own = posterior.with_copies(share, 20).iloc[0]  # the rows of the fit, in another order
    assert own.estimate == pytest.approx(given.estimate, abs=3 * own.std_error * own.missing_information)
    alone = share(X.dropna())
    assert own.std_error**2 < alone[1]  # complete rows alone know less
    assert own.std_error**2 > share(posterior.complete(X)[0])[1]  # and a filled table pretends to know more
    assert posterior.with_copies(share, 5).equals(posterior.with_copies(share, 5))
    assert 0.0 < own.missing_information < 0.3  # of the cells, .3 are missing; a knows most of b


def test_messages():
    X = half_missing()
    posterior = OrderPosterior(random_state=0).fit(X)
    with pytest.raises(ValueError, match="n=1"):
        posterior.with_copies(share, 1)
    with pytest.raises(ValueError, match="must be a function"):
        posterior.with_copies(3)
    with pytest.raises(ValueError, match="analysis must return"):
        posterior.with_copies(len, 2)
    numbers = iter(range(9))
    with pytest.raises(ValueError, match="other estimates on other copies"):
        posterior.with_copies(lambda table: ({next(numbers): 1.0}, [1.0]), 2)
    complete = OrderPosterior(random_state=0).fit(X.dropna())
    with pytest.raises(ValueError, match="pass the table as X"):
        complete.with_copies(share)
    assert complete.with_copies(share, 3, X).shape == (1, 6)
