"""The methods that the command line offers: the estimators of the catalogue that have a name there."""

import pgm_bma
from pgm_bma import catalogue


def offered(kind):
    """{value of ``--method``: `catalogue.Estimator`} of a kind."""
    return {each.method: each for each in catalogue.ESTIMATORS if each.kind == kind and each.method}


CLUSTERERS, CLASSIFIERS, STRUCTURES = offered("clusterer"), offered("classifier"), offered("structure")


def make(name, **wanted):
    """The estimator of a name with those of the `wanted` parameters that it has."""
    build = getattr(pgm_bma, name)
    known = build().get_params(deep=False)
    return build(**{name: value for name, value in wanted.items() if name in known})


def default(command, offered):
    """(name, parameters as NAME=VALUE) of the method taken without ``--method``: the package's default estimator."""
    if command in ("structure", "impute"):
        return next(iter(offered)), []
    estimator = pgm_bma.default_classifier() if command == "classify" else pgm_bma.default_clusterer()
    name = next(name for name, method in offered.items() if method.name == type(estimator).__name__)
    plain = type(estimator)().get_params(deep=False)
    given = estimator.get_params(deep=False).items()
    return name, [f"{key}={value!r}" for key, value in given if repr(value) != repr(plain[key])]
