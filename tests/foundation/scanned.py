"""Tables cut into files, and the comparison of two fitted estimators, for the tests of scans."""

import numpy as np
import pandas as pd

import pgm_bma

CLUSTERERS = {
    "EM": lambda **k: pgm_bma.LatentClassClusterer(2, n_init=4, random_state=0, categorical_columns=["half"], **k),
    "EMA variational": lambda **k: pgm_bma.EMAClusterer(2, n_init=4, random_state=0, categorical_columns=["half"], **k),
    "EMA linear": lambda **k: pgm_bma.EMAClusterer(
        2, averaging="linear", n_init=4, random_state=0, categorical_columns=["half"], **k
    ),
    "structural EM": lambda **k: pgm_bma.StructuralEMClusterer(2, n_init=2, random_state=0, **k),
    "bound and collapse": lambda **k: pgm_bma.StructuralEMClusterer(
        2, parameters="bound_collapse", n_init=2, random_state=0, **k
    ),
    "forest clusters": lambda **k: pgm_bma.ForestAveragedClusterer(2, n_init=2, random_state=0, **k),
}
CLASSIFIERS = {
    "naive Bayes": lambda **k: pgm_bma.NaiveBayesClassifier(**k),
    "averaged naive Bayes": lambda **k: pgm_bma.AveragedNaiveBayesClassifier(**k),
    "TAN": lambda **k: pgm_bma.TANClassifier(**k),
    "forest classifier": lambda **k: pgm_bma.ForestAveragedClassifier(random_state=0, **k),
    "Kikuchi": lambda **k: pgm_bma.KikuchiBayesClassifier(random_state=0, **k),
    "Kikuchi, counting": lambda **k: pgm_bma.KikuchiBayesClassifier(weights="counting", random_state=0, **k),
    "fixed order": lambda **k: pgm_bma.FixedOrderClassifier(random_state=0, **k),
    "orders": lambda **k: pgm_bma.OrderAveragedClassifier(random_state=0, **k),
}
STRUCTURES = {"order posterior": lambda **k: pgm_bma.OrderPosterior(random_state=0, **k)}


def make_table(n_rows, seed=0, missing=0.1):
    """Columns of every kind, two hidden groups, missing cells; `class` has none."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n_rows)

    def draw(states, sharpness):
        weights = np.where(group[:, None] == 0, np.arange(1, len(states) + 1) ** sharpness, 1.0)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.array(states, dtype=object)[(rng.random(n_rows)[:, None] > weights.cumsum(axis=1)).sum(axis=1)]

    columns = {
        "text": draw(["low", "mid", "high"], 2.0),
        "number": draw([3, 1, 2], 1.5),
        "flag": draw([True, False], 1.0),
    }
    frame = pd.DataFrame(
        {name: pd.Series(values).where(rng.random(n_rows) >= missing) for name, values in columns.items()}
    )
    frame["number"] = frame["number"].astype("Int64")
    frame["flag"] = frame["flag"].astype("boolean")
    shared = pd.Series(draw(["b", "a"], 2.0)).where(rng.random(n_rows) >= missing)
    frame["category"] = pd.Categorical(shared, categories=["never", "b", "a"])
    frame["half"] = draw([0.5, 1.0, 2.5], 2.0).astype(float)
    frame["class"] = np.where(rng.random(n_rows) < 0.8, group, 1 - group).astype(np.int64)
    return frame


def cut(frame, n_parts):
    """Parts of a table; the column `differs` is a categorical whose categories are others in every part."""
    parts = [frame.iloc[rows].reset_index(drop=True) for rows in np.array_split(np.arange(len(frame)), n_parts)]
    for i, part in enumerate(parts):
        values = part["text"].fillna("mid").astype(object).to_numpy(copy=True)
        values[: i + 1] = [f"only {i}"] * (i + 1)
        part["differs"] = pd.Categorical(values)
    return parts


def write_parts(parts, folder):
    """Parquet files of the parts; returns their pattern."""
    for i, part in enumerate(parts):
        part.to_parquet(folder / f"part-{i}.parquet")
    return str(folder / "part-*.parquet")


def differences(a, b, path=""):
    """Paths at which two values are not bit-equal, looking into containers and objects of this package."""
    if isinstance(a, dict) and isinstance(b, dict):
        keys = [k for k in {**a, **b} if not str(k).startswith("_cached_") and k not in ("labels_",)]
        return [d for k in keys for d in differences(a.get(k), b.get(k), f"{path}.{k}")]
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        same = np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        if same and a.dtype == object:
            return [d for x, y in zip(a.ravel(), b.ravel()) for d in differences(x, y, path)]
        return [] if same and a.tobytes() == b.tobytes() else [path]
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return [path]
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}[{i}]")]
    if isinstance(a, (pd.DataFrame, pd.Series)):
        return [] if a.equals(b) else [path]
    if hasattr(a, "__dict__") and not callable(a) and type(a) is type(b):
        return differences(vars(a), vars(b), path)
    return [] if a is b or a == b or (a != a and b != b) else [path]
