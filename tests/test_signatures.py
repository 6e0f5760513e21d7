"""Same word, same meaning: parameters of all public classes, read from their signatures, and what a bad value gets."""

import inspect
import warnings

import numpy as np
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgm_bma
from tests.test_contracts import ALL, CLASSIFIERS, frame

CLASSES = sorted(name for name in pgm_bma.__all__ if inspect.isclass(getattr(pgm_bma, name)))
PGMPY_FACES = [name for name in CLASSES if name.endswith("Estimator")]
DISCRETIZERS = [name for name in CLASSES if name.endswith(("Discretizer", "Binarizer"))]
SAMPLERS = [name for name in CLASSES if name.endswith("Sampler")]
STARTS = ["Starts"]
SCORES = ["FamilyScore"]  # of pgmpy: data are a parameter
LEARNERS = ["StructureLearner"]  # of pgmpy, around an estimator
ESTIMATORS = [
    name for name in CLASSES if name not in PGMPY_FACES + DISCRETIZERS + SAMPLERS + STARTS + SCORES + LEARNERS
]
PREDICTING = [name for name in ESTIMATORS if hasattr(getattr(pgm_bma, name), "predict")]

# word -> default, the same wherever it occurs
DEFAULTS = {
    "n_jobs": None,
    "random_state": None,
    "seed": None,
    "state_names": None,
    "target_name": None,
    "cluster_name": "cluster",
    "handle_unknown": "missing",
    "preset": None,
    "parameter_prior": "consistent",
    "arc_prior": 0.5,
    "alpha": 1.0,
    "equivalent_sample_size": None,
    "verbose": 0,
}
# (class, word): why it differs
OTHER_DEFAULTS = {
    ("EMEstimator", "alpha"): "maximum likelihood: no prior unless one is given",
    ("BoundCollapseEMEstimator", "alpha"): "the same",
    ("OrderPosterior", "alpha"): "the prior of most evidence unless one is given",
    ("OrderPosterior", "parameter_prior"): "the same",
    ("OrderPosterior", "arc_prior"): "arcs between all columns: the structure prior alone unless a price is given",
}
# parameters that no rule of one value can check: with another parameter or the data, where they are used
CHECKED_ELSEWHERE = {
    "alpha", "equivalent_sample_size", "arc_prior",  # foundation.numbers.priors
    "preset", "random_state", "seed", "n_clusters", "latent_card", "init_cpds", "fixed_cpds", "state_names",
    "regions", "forbidden_arcs", "required_arcs", "expert_knowledge", "order", "init",  # columns, networks
    "terms", "numeric_columns", "ordered_columns", "categorical_columns",  # the same
}  # fmt: skip
# (class, parameter) that nothing reads here: no bad value is seen
NOT_READ = {
    ("KikuchiBayesClassifier", "random_state"): "draws only for resampled losses",
    ("AdditiveBayesClassifier", "random_state"): "folds follow from the data",
    **{
        ("AveragedNaiveBayesClassifier", word): 'read under numeric="average" and "mdl" only'
        for word in ("numeric_columns", "ordered_columns", "categorical_columns")
    },
    **{(name, "init"): "a start of chains; few columns are summed exactly" for name in ("GibbsSampler", "SwapSampler")},
}

MOST_PARAMETERS = 20
# class: why it has more
LONGER = {"EMAClusterer"}  # 23: kinds of columns came, and the words of every clusterer stay


def parameters(name):
    return {n: p.default for n, p in inspect.signature(getattr(pgm_bma, name)).parameters.items()}


@pytest.mark.parametrize("name", CLASSES)
def test_same_word_same_default(name):
    for word, default in parameters(name).items():
        if word in DEFAULTS and (name, word) not in OTHER_DEFAULTS:
            given = default if word != "verbose" or default is not False else 0
            assert given == DEFAULTS[word] or given is DEFAULTS[word], f"{name}({word}={default!r})"


def test_no_constructor_has_more_than_twenty_parameters():
    long = {name for name in CLASSES if len(parameters(name)) > MOST_PARAMETERS}
    assert long <= LONGER, "put what belongs together into a record (foundation.faces.validation)"


@pytest.mark.parametrize("name", CLASSES)
def test_words_of_the_face(name):
    """scikit-learn's words in its faces, pgmpy's in the others."""
    words = set(parameters(name))
    if name in PGMPY_FACES:
        assert not words & {"verbose", "random_state", "tol", "handle_unknown"}
        assert "show_progress" in words or "n_init" not in words
    else:
        assert not words & {"show_progress", "seed", "atol", "latent_card"}
    if name in PREDICTING:
        assert {"handle_unknown", "state_names"} <= words
        assert ("target_name" in words) == (name in CLASSIFIERS)


@pytest.mark.parametrize("system", ["naive_bayes", "latent_class", "augmented", "forests", "orders", "kikuchi"])
def test_every_system_has_the_papers_settings(system):
    kinds = [getattr(pgm_bma, name) for name in CLASSES]
    kinds = [k for k in kinds if k.__module__.startswith(f"pgm_bma.{system}.") and "preset" in parameters(k.__name__)]
    assert kinds
    for kind in kinds:
        with pytest.raises(ValueError, match=r"preset='newspaper' is not one of .*'paper'"):
            fit(kind.__name__, preset="newspaper")


@pytest.mark.parametrize("name", [*ESTIMATORS, *PGMPY_FACES, *SAMPLERS, *STARTS])
def test_the_table_of_rules_covers_every_parameter(name):
    rules = {}
    for kind in getattr(pgm_bma, name).__mro__:
        rules |= vars(kind).get("_rules", {})
    assert set(parameters(name)) - set(rules) <= CHECKED_ELSEWHERE


class Bad:
    """No number, no text, no list, and not hashable."""

    __hash__ = None

    def __repr__(self):
        return "<bad>"


@pytest.mark.parametrize("name", CLASSES)
def test_a_bad_value_gets_an_error_that_names_its_parameter(name):
    for word in parameters(name):
        if (name, word) not in NOT_READ:
            with pytest.raises((ValueError, TypeError), match=word):
                fit(name, **{word: Bad()})


def fit(name, **given):
    """A fit on a small table with these parameters."""
    X, y = frame(40)
    kind = getattr(pgm_bma, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in DISCRETIZERS:
            return kind(**given).fit(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2)
        if name in SAMPLERS:
            return pgm_bma.OrderPosterior(sampler=kind(**given)).fit(X)
        if name in SCORES:
            return kind(**{"data": X, **given}).local_score(X.columns[0], ())
        if name in LEARNERS:
            classifier = {"estimator": pgm_bma.ForestAveragedClassifier(), "class_node": "outcome"}
            return kind(**classifier | given).fit(X.assign(outcome=y))
        if name in STARTS:
            return pgm_bma.EMAClusterer(starts=kind(**given)).fit(X)
        if name in ESTIMATORS:
            return kind(**{**ALL.get(name, {}), **given}).fit(X, y if name in CLASSIFIERS else None)
        if name == "AveragedNaiveBayesEstimator":
            network = DiscreteBayesianNetwork([("outcome", column) for column in X])
            return kind(**given).fit(network, X.assign(outcome=y))
        network = DiscreteBayesianNetwork([("k", column) for column in X], latents={"k"})
        return kind(**{"latent_card": {"k": 2}, **given}).fit(network, X)
