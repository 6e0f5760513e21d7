"""Write the kept files: one of every estimator, in the current format, with what it predicted when it was written.

    python -m tests.saved.make [NAME ...]

Files of earlier formats stay as they are, for ever: tests/test_saved_files.py loads them all.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma.files.storage_keys import VERSION

FOLDER = Path(__file__).parent
CLASSIFIERS = {
    "NaiveBayesClassifier": {},
    "AveragedNaiveBayesClassifier": {},
    "TANClassifier": {},
    "ForestAveragedClassifier": {},
    "AdditiveBayesClassifier": {},
    "KikuchiBayesClassifier": {},
    "FixedOrderClassifier": {},
    "OrderAveragedClassifier": {"n_orders": 5},
}
CLUSTERERS = {
    "LatentClassClusterer": {"n_init": 4},
    "EMAClusterer": {"n_init": 4},
    "StructuralEMClusterer": {"n_init": 2},
    "ForestAveragedClusterer": {"n_init": 2},
}
DISCRETIZERS = ("MDLDiscretizer", "FrequencyDiscretizer", "WidthDiscretizer", "SampleQuantileBinarizer")
NETWORK_ESTIMATORS = ("EMAEstimator", "EMEstimator", "BoundCollapseEMEstimator")


def rows(seed=0):
    """A small table with gaps, and a class."""
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
    if name in CLASSIFIERS or name in CLUSTERERS:
        return estimator.predict_proba(X)
    if name in DISCRETIZERS:
        return np.unique(estimator.transform(numbers()).astype(str), return_inverse=True)[1].astype(float)
    if name == "OrderPosterior":
        return estimator.edge_posterior_.to_numpy()
    return np.concatenate([cpd.get_values().ravel() for cpd in estimator.parameters_])


def fitted(name):
    X, y = rows()
    kind = getattr(pgm_bma, name)
    seed = {"random_state": 0} if "random_state" in kind().get_params() else {}
    if name in CLASSIFIERS:
        return kind(**CLASSIFIERS[name], **seed).fit(X, y)
    if name in CLUSTERERS:
        return kind(**CLUSTERERS[name], **seed).fit(X)
    if name in DISCRETIZERS:
        return kind().fit(numbers(), (numbers()[:, 0] > 0).astype(int))
    if name == "OrderPosterior":
        return kind(method="exact").fit(X.dropna())
    from pgmpy.models import DiscreteBayesianNetwork

    if name in NETWORK_ESTIMATORS:
        model = DiscreteBayesianNetwork([("k", column) for column in X], latents={"k"})
        estimator = kind(latent_card={"k": 2}, seed=0)
        model.fit(X, estimator=estimator)
        return estimator
    estimator = kind()
    table = X.dropna().assign(outcome=y)
    DiscreteBayesianNetwork([("outcome", column) for column in X]).fit(table, estimator=estimator)
    return estimator


ALL = (*CLASSIFIERS, *CLUSTERERS, *DISCRETIZERS, *NETWORK_ESTIMATORS, "AveragedNaiveBayesEstimator", "OrderPosterior")


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
