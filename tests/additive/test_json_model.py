"""A model as JSON: read again it predicts the same, and so does a scorer that knows nothing of Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgm_bma import AdditiveBayesClassifier
from tests.additive.test_additive import mixed

SCORER = Path(__file__).with_name("score.js")


def three_classes():
    """Numbers, whole numbers that are states, texts, truth values, missing cells; pairs and cells matter."""
    rng = np.random.default_rng(0)
    n = 300
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n) ** 3,
            "few": rng.integers(0, 5, n),
            "kind": rng.choice(["u", "v w", "x"], n),
            "flag": rng.random(n) < 0.4,
        }
    )
    X["c"] = X["a"] + rng.normal(size=n) / 2
    y = (X["a"] * X["b"] > 0).astype(int) + ((X["kind"] == "u") == X["flag"]).astype(int)
    X["kind"] = X["kind"].astype(object).where(rng.random(n) > 0.1, None)
    X.loc[rng.random(n) < 0.1, "a"] = np.nan
    return X, y.map({0: "no", 1: "some", 2: "all"})


def wide():
    """More columns than have terms: positions in the table are not those among the terms."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(40, 510))).add_prefix("x")
    X.insert(3, "kind", rng.choice(list("pq"), 40))
    return X, np.where(X["x500"] + X["x2"] > 0, 1, 0)


CASES = {"two classes": lambda: mixed(150), "three classes": three_classes, "wide": wide}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    X, y = CASES[request.param]()
    model = AdditiveBayesClassifier(n_bags=2).fit(X, y)
    return X, model, json.loads(json.dumps(model.to_dict()))


def test_a_model_read_again_predicts_and_explains_the_same(case):
    X, model, content = case
    again = AdditiveBayesClassifier.from_dict(content)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-14)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    pd.testing.assert_frame_equal(again.explain(X[:4]), model.explain(X[:4]))
    assert again.to_dict() == content


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_scorer_in_another_language_agrees(case, tmp_path):
    X, model, content = case
    rows = [
        [None if pd.isna(v) else getattr(v, "item", lambda v=v: v)() for v in row] for row in X.itertuples(index=False)
    ]
    for name, thing in (("model", content), ("rows", rows)):
        (tmp_path / f"{name}.json").write_text(json.dumps(thing))
    command = ["node", SCORER, tmp_path / "model.json", tmp_path / "rows.json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    # sums of a few hundred terms in another order
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=1e-12)


def test_what_is_no_model_raises_an_error():
    for content in ({"format": "other"}, {}, 7):
        with pytest.raises(ValueError, match="not a model of format 'pgm_bma additive model' and version 1"):
            AdditiveBayesClassifier.from_dict(content)
