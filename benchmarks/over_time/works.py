"""Works whose speed is followed from commit to commit, through public names only, so that they run on other commits too.

`WORKS` has a function per work. It prepares everything and returns the function that is timed.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import pgm_bma


def table(n_rows, n_columns, n_states=3, seed=0):
    """Columns of text that depend on two hidden groups, and the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n_rows)
    shares = rng.dirichlet(np.ones(n_states), size=(n_columns, 2)).cumsum(axis=2)
    draws = rng.random((n_rows, n_columns))
    codes = (draws[:, :, None] > shares[np.arange(n_columns), group[:, None]]).sum(axis=2).clip(0, n_states - 1)
    labels = np.array([f"state {k}" for k in range(n_states)], dtype=object)
    return pd.DataFrame(labels[codes], columns=[f"column {i}" for i in range(n_columns)]), pd.Series(
        group, name="group"
    )


def rows_of(network, n_rows):
    """Simulated rows of an embedded network."""
    return pgm_bma.simulate(pgm_bma.load_network(network), n_rows, random_state=0)


def em_iterations(n_rows=10_000):
    X, _ = table(n_rows, 20)
    starts = {"n_init": 1, "max_iter": 20, "tol": 0.0, "starts": pgm_bma.Starts(n_final=None, accelerate=False)}
    return lambda: pgm_bma.LatentClassClusterer(4, **starts, random_state=0).fit(X)


def averaged_iterations(n_rows=10_000):
    X, _ = table(n_rows, 20)
    starts = {"n_init": 1, "max_iter": 20, "tol": 0.0, "starts": pgm_bma.Starts(n_final=None, accelerate=False)}
    return lambda: pgm_bma.EMAClusterer(4, **starts, init="random", random_state=0).fit(X)


def e_step(n_rows=10_000):
    X, _ = table(n_rows, 20)
    clusterer = pgm_bma.LatentClassClusterer(4, n_init=1, max_iter=5, random_state=0).fit(X)
    return lambda: clusterer.predict_proba(X)


def structural_em(n_rows=10_000):
    X, _ = table(n_rows, 10)
    return lambda: pgm_bma.StructuralEMClusterer(2, n_init=1, max_iter=10, random_state=0).fit(X)


def family_table(n_rows=1000):
    rows = rows_of("alarm", n_rows)
    few = pgm_bma.SwapSampler(n_orders=1, burn_in=1, thin=1, n_chains=1)
    return lambda: pgm_bma.OrderPosterior(method="mcmc", sampler=few, random_state=0).fit(rows)


def swaps(n_steps=50_000):
    rows = rows_of("child", 1000)
    chain = pgm_bma.SwapSampler(n_orders=10, burn_in=1, thin=n_steps // 10, n_chains=1)
    return lambda: pgm_bma.OrderPosterior(method="mcmc", sampler=chain, random_state=0).fit(rows)


def gibbs_sweeps(n_sweeps=128):
    rows = rows_of("child", 1000)
    chain = pgm_bma.GibbsSampler(tol=1e-6, max_sweeps=n_sweeps, n_chains=2, n_temperatures=3)
    return lambda: pgm_bma.OrderPosterior(method="mcmc", sampler=chain, random_state=0).fit(rows)


def exact_sum(n_columns=16):
    rows = rows_of("child", 500).iloc[:, :n_columns]
    return lambda: pgm_bma.OrderPosterior(method="exact").fit(rows).edge_posterior_


def forest_fit(n_rows=2000):
    X, y = table(n_rows, 30)
    return lambda: pgm_bma.ForestAveragedClassifier().fit(X, y)


def forest_predict(n_rows=2000):
    X, y = table(n_rows, 30)
    classifier = pgm_bma.ForestAveragedClassifier().fit(X.head(500), y.head(500))
    return lambda: classifier.predict_proba(X)


def additive_fit():
    X, target = pgm_bma.load_dataset("wine")
    return lambda: pgm_bma.AdditiveBayesClassifier().fit(X.drop(columns=target), X[target])


def network_em(n_rows=300):
    from pgmpy.models import DiscreteBayesianNetwork

    rows = rows_of("asia", n_rows).drop(columns="either")
    edges = list(pgm_bma.load_network("asia").edges())
    settings = {"latent_card": {"either": 2}, "n_init": 1, "max_iter": 20, "seed": 0, "show_progress": False}

    def run():
        model = DiscreteBayesianNetwork(edges, latents={"either"})
        return model.fit(rows, estimator=pgm_bma.EMEstimator(**settings))

    return run


def encode(n_rows=50_000):
    X, y = table(n_rows, 10, n_states=12)
    return lambda: pgm_bma.NaiveBayesClassifier().fit(X, y)


def bif():
    model, folder = pgm_bma.load_network("alarm"), Path(tempfile.mkdtemp())
    return lambda: pgm_bma.read_bif(pgm_bma.write_bif(model, folder / "alarm.bif"))


WORKS = {
    "EM, 20 iterations": em_iterations,
    "EMA, 20 iterations": averaged_iterations,
    "E step": e_step,
    "structural EM, one start": structural_em,
    "family table of alarm": family_table,
    "swaps of child": swaps,
    "Gibbs sweeps of child": gibbs_sweeps,
    "exact sum of 16 variables": exact_sum,
    "forest fit": forest_fit,
    "forest predict": forest_predict,
    "additive fit": additive_fit,
    "network EM": network_em,
    "encode": encode,
    "BIF": bif,
}
# the kernels whose instructions are counted, with inputs that a simulated processor can take
SMALL = {
    "EM, 20 iterations": lambda: em_iterations(1000),
    "E step": lambda: e_step(1000),
    "swaps of child": lambda: swaps(5000),
    "exact sum of 16 variables": lambda: exact_sum(10),
    "forest fit": lambda: forest_fit(300),
}


def prepared(work):
    """The function of a work, called once, so that compiled code is there; without warnings: few iterations do not converge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = work()
        function()

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()

    return run
