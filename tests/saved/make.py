"""Write the kept files: one of every estimator, in the current format, with what it predicted when it was written.

    python -m tests.saved.make [NAME ...]

From the first release on, kept files stay as they are: tests/files/test_saved_files.py loads them all.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma import catalogue
from pgm_bma.files.storage import VERSION

FOLDER = Path(__file__).parent
# parameters that keep a fit small
SMALL = {
    "OrderAveragedClassifier": {"sampler": pgm_bma.GibbsSampler(tol=0.1, max_sweeps=1024, n_orders=5)},
    "AdditiveBayesClassifier": {"n_bags": 2},
    "LatentClassClusterer": {"n_init": 4},
    "EMAClusterer": {"n_init": 4},
    "StructuralEMClusterer": {"n_init": 2},
    "ForestAveragedClusterer": {"n_init": 2},
    "OrderPosterior": {"method": "exact"},
}
ALL = [estimator.name for estimator in catalogue.ESTIMATORS]
KIND = {estimator.name: estimator.kind for estimator in catalogue.ESTIMATORS}


def rows(seed=0):
    """A small table with missing values, and a class."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, 60)
    X = pd.DataFrame(
        {
            "text": np.array(["no", "yes"])[np.where(rng.random(60) < 0.8, kind, 1 - kind)],
            "count": rng.integers(0, 2, 60) + kind,
            "flag": rng.random(60) < 0.4 + 0.2 * kind,
            "odd name": np.array(["a", "b", "c"])[rng.integers(0, 3, 60)],
        }
    )
    X.loc[3, "text"] = None
    return X, pd.Series(np.array(["bad", "good"])[kind], name="outcome")


def numbers():
    return np.random.default_rng(0).normal(size=(40, 3)).round(3)


def answers(name, estimator):
    """What a file must still say: an array of numbers."""
    X, _ = rows(1)
    if KIND[name] in ("classifier", "clusterer"):
        return estimator.predict_proba(X)
    if KIND[name] == "columns":
        return np.unique(estimator.transform(numbers()).astype(str), return_inverse=True)[1].astype(float)
    if KIND[name] == "structure":
        return estimator.edge_posterior_.to_numpy()
    return np.concatenate([cpd.get_values().ravel() for cpd in estimator.parameters_])


def fitted(name, **more):
    X, y = rows()
    make = getattr(pgm_bma, name)
    known = make().get_params()
    seed = {word: 0 for word in ("random_state", "seed") if word in known}
    if "latent_card" in known:
        seed["latent_card"] = {"k": 2}
    estimator = make(**SMALL.get(name, {}), **seed, **more)
    if KIND[name] == "classifier":
        return estimator.fit(X, y)
    if KIND[name] == "clusterer":
        return estimator.fit(X)
    if KIND[name] == "columns":
        return estimator.fit(numbers(), (numbers()[:, 0] > 0).astype(int))
    if KIND[name] == "structure":
        return estimator.fit(X.dropna())
    from pgmpy.models import DiscreteBayesianNetwork

    if "latent_card" in known:
        DiscreteBayesianNetwork([("k", column) for column in X], latents={"k"}).fit(X, estimator=estimator)
    else:
        table = X.dropna().assign(outcome=y)
        DiscreteBayesianNetwork([("outcome", column) for column in X]).fit(table, estimator=estimator)
    return estimator


def main(names):
    folder = FOLDER / f"format{VERSION}"
    folder.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    for name in names or ALL:
        estimator = fitted(name)
        pgm_bma.save(estimator, folder / f"{name}.pgm")
        np.save(folder / f"{name}.npy", answers(name, estimator))


if __name__ == "__main__":
    main(sys.argv[1:])
