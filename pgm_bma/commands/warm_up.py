"""``pgm-bma warm-up``: compile every kernel now, so that no later call waits for it.

numba compiles a function for the types it is called with. So every estimator is fitted to small tables of the kinds that
occur: complete, with missing cells, with weights. What is compiled goes to the user's cache folder (`foundation.runtime.compiling`)
and is there for all later processes.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma.commands.session import make
from pgm_bma.foundation.runtime.compiling import announcing, cache_folder

N_ROWS, N_COLUMNS = 40, 8
MANY_COLUMNS = 22  # more families than are all kept


def warm_up(console):
    """Run every job, showing how far it is; one that fails is named and does not stop the others."""
    began, jobs = time.perf_counter(), jobs_to_do()
    console.say(f"compiling {len(jobs)} methods, once per installation; the first time this takes minutes")
    with warnings.catch_warnings(), announcing(lambda line: None):
        warnings.simplefilter("ignore")
        for name, problem in console.progress(_done(jobs), len(jobs), "warm-up"):
            if problem is not None:
                console.warn(f"{name}: {problem}")
    console.item("done", f"{time.perf_counter() - began:.0f} s; kept in {cache_folder()}")


def _done(jobs):
    """(name, None or what went wrong) after each job."""
    for name, job in jobs.items():
        problem = None
        try:
            job()
        except Exception as error:  # the fit that needs this kernel will say it again, to its user
            problem = error
        yield name, problem


def jobs_to_do():
    """Name of a public estimator -> function that fits and uses it in all ways that have their own kernels."""
    jobs: dict[str, Callable[[], None]] = {}
    for name in (
        "NaiveBayes",
        "AveragedNaiveBayes",
        "TAN",
        "ForestAveraged",
        "FixedOrder",
        "KikuchiBayes",
        "AdditiveBayes",
    ):
        jobs[f"{name}Classifier"] = partial(_classify, f"{name}Classifier")
    jobs["AdditiveBayesClassifier, trees"] = _numbers
    jobs["OrderAveragedClassifier"] = partial(_classify, "OrderAveragedClassifier", {"method": "exact"}, _short_chain())
    for name in ("LatentClass", "EMA", "StructuralEM", "ForestAveraged"):
        jobs[f"{name}Clusterer"] = partial(_cluster, f"{name}Clusterer")
    jobs["EMAClusterer, variational"] = partial(
        _cluster, "EMAClusterer", {"updates": "linear"}, {"n_clusters": range(1, 3)}
    )
    jobs["OrderPosterior"] = _order_posterior
    jobs["OrderPosterior, missing cells"] = _missing_cells
    jobs["MDLDiscretizer"] = _discretize
    jobs["simulate, EMEstimator"] = _networks
    return jobs


def _short_chain(**more):
    return {"method": "mcmc", "sampler": pgm_bma.GibbsSampler(n_orders=4, **more)}


def _classify(name, *settings):
    _fit_all(name, _table()[1], settings or ({},))


def _cluster(name, *settings):
    _fit_all(name, None, [{"n_clusters": 2, "n_init": 3, **parameters} for parameters in settings or ({},)])


def _fit_all(name, y, settings):
    """Fit complete rows, rows with missing values and weighted rows, under every setting."""
    X, _ = _table()
    for parameters in settings:
        for rows, weights in ((X, None), (_with_gaps(X), None), (X, np.linspace(0.5, 1.5, N_ROWS))):
            _build(name, parameters).fit(rows, y, sample_weight=weights).predict_proba(rows)


def _order_posterior():
    X, _ = _table()
    for parameters in ({"method": "exact"}, _short_chain(n_chains=2)):
        _build("OrderPosterior", {"max_indegree": 2, **parameters}).fit(X)


def _missing_cells():
    """Structures sampled with missing cells: draws of the state where columns are few, lists and moves where they are many."""
    from pgm_bma.orders.gaps.augment import GapTable, toggle

    few, many = _with_gaps(_table()[0]), _with_gaps(_table(MANY_COLUMNS)[0])
    weights = np.where(few.isna().any(axis=1), 1.0, 1.5)
    for weighting in ("order", "dag"):
        sampler = pgm_bma.GibbsSampler(max_sweeps=2, n_chains=1)
        common = {"structure_weighting": weighting, "missing": "augment", "sampler": sampler}
        _build("OrderPosterior", common).fit(few, sample_weight=weights)
        _build("OrderPosterior", common).fit(many).complete(many)
    codes = few.isna().to_numpy().astype(np.int32) * -1
    gaps = GapTable(codes, np.ones(len(codes)), np.full(N_COLUMNS, 3, dtype=np.int64), (1.0, None))
    toggle(gaps, np.maximum(codes, 0), [()] * N_COLUMNS, lambda v, some: 0.0, (0, 1), np.random.default_rng(0))


def _discretize():
    X = np.random.default_rng(0).normal(size=(N_ROWS, 2))
    pgm_bma.MDLDiscretizer().fit(X, X[:, 0] > 0)


def _numbers():
    x = np.random.default_rng(0).normal(size=(1000, 3))  # fewer rows have no trees
    pgm_bma.AdditiveBayesClassifier().fit(x, x.sum(axis=1) > 0)


def _networks():
    from pgmpy.models import DiscreteBayesianNetwork

    X, _ = _table()
    names = list(X)
    loop = [("k", name) for name in names] + [(names[0], names[1]), (names[1], names[2])]
    for arcs in (loop, loop[: len(names)]):
        estimator = pgm_bma.EMEstimator(latent_card={"k": 2}, seed=0, max_iter=3, show_progress=False)
        model = DiscreteBayesianNetwork(arcs, latents={"k"}).fit(_with_gaps(X), estimator=estimator)
        rows = pgm_bma.simulate(model, 20, random_state=0)
        pgm_bma.predict_proba(model, _with_gaps(rows), names[0])


def _build(name, parameters):
    """The estimator with those parameters that it has, a seed, and few steps where it takes many."""
    return make(name, random_state=0, **{"max_iter": 5, **parameters})


def _table(n_columns=N_COLUMNS):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N_ROWS)
    cells = {f"x{i}": (kind + (rng.random(N_ROWS) < 0.3) + i * (kind > 0)) % 3 for i in range(n_columns)}
    return pd.DataFrame(cells), pd.Series(kind, name="kind")


def _with_gaps(X):
    return X.mask(np.random.default_rng(1).random(X.shape) < 0.1)
