"""Do 95 % intervals of a latent-class model cover 95 %, and do its bootstrap tests alarm falsely in 5 %?

Tables of 500 rows and six binary columns drawn from a model with two clusters. Intervals: `profiles_`, of cluster sizes and
probabilities, over 500 tables. False alarms at 5 %: the pairs of `bivariate_residuals`, and `likelihood_ratio_test` of two clusters
against three, whose p-values come in steps of 1/40.
"""

import numpy as np

from pgm_bma.foundation.rows.blocks import Block, table_rows
from pgm_bma.latent_class.loop import LatentClassSettings, fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings, make_problem
from pgm_bma.latent_class.profiles import uncertainty
from pgm_bma.latent_class.statistics import (
    bootstrap,
    expected_pairs,
    likelihood_ratio,
    p_value,
    pair_residuals,
    refit,
    simulated,
)

from ._common import parser, print_table, run, save_csv

ALPHA = 0.1
N_COLUMNS, N_BOOTSTRAP = 6, 39
CARDINALITIES = np.full(N_COLUMNS, 2)
SETTINGS = LatentClassSettings(
    priors=PriorSettings(ALPHA, ALPHA, ALPHA), n_init=8, n_final=3, accelerate=True, tol=1e-5
)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=500, help="tables for the intervals")
    options.add_argument("--tests", type=int, default=100, help="tables for the tests")
    chosen = options.parse_args(argv)
    truth = true_model()
    covered = np.array([coverage(truth, np.random.default_rng([chosen.seed, s])) for s in range(chosen.tables)])
    residuals = np.array([false_residuals(truth, np.random.default_rng([1, s])) for s in range(chosen.tests)])
    ratios = np.array([false_ratio(truth, np.random.default_rng([2, s])) for s in range(chosen.tests)])
    lines = [
        {"what": "95 % intervals, coverage", "tables": chosen.tables, "share": covered.mean()},
        {
            "what": "95 % intervals, the parameter covered least",
            "tables": chosen.tables,
            "share": covered.mean(axis=0).min(),
        },
        {"what": "bivariate residuals, false alarms at 5 %", "tables": chosen.tests, "share": residuals.mean()},
        {"what": "likelihood-ratio test, false alarms at 5 %", "tables": chosen.tests, "share": ratios.mean()},
    ]
    print_table(lines, "500 rows, six binary columns, two clusters", 3)
    save_csv(lines, "ema_coverage", chosen.out)


def true_model():
    """A fit record that holds the true tables."""
    tables = [np.array([[0.8, 0.2], [0.25, 0.75]])] * 3 + [np.array([[0.85, 0.15], [0.3, 0.7]])] * 3
    codes = np.asfortranarray(np.random.default_rng(0).integers(0, 2, (50, N_COLUMNS)).astype(np.int8))
    init = np.array([0.6, 0.4]), tables
    return fit_latent_class(
        table_rows(codes, CARDINALITIES), 2, SETTINGS, init=init, n_init=1, max_iter=0, collapse="ignore"
    )


def draw(truth, rng):
    return simulated(np.zeros((1, N_COLUMNS), dtype=np.int8), np.array([500.0]), CARDINALITIES, truth, rng)


def coverage(truth, rng):
    codes, weights = draw(truth, rng)
    fit = refit(codes, weights, CARDINALITIES, truth, SETTINGS)
    priors = make_problem(table_rows(codes, CARDINALITIES, weights), 2, SETTINGS.priors).priors
    found = uncertainty(Block(codes, weights), fit, priors)
    sizes = (found.size_low <= truth.theta_c) & (truth.theta_c <= found.size_high)
    return np.concatenate([sizes, ((found.low <= truth.theta) & (truth.theta <= found.high)).ravel()])


def false_residuals(truth, rng):
    """(n_pairs,) whether the p-value of a pair is at most 5 %."""
    codes, weights = draw(truth, rng)
    fit = refit(codes, weights, CARDINALITIES, truth, SETTINGS)

    def statistic(rows, counts, _=None, given=None):
        renewed = refit(rows, counts, CARDINALITIES, fit, SETTINGS) if given is None else given
        return pair_residuals(rows, counts, CARDINALITIES, expected_pairs(renewed.theta_c, renewed.theta)).x2

    drawn = bootstrap(codes, weights, CARDINALITIES, fit, statistic, N_BOOTSTRAP, rng)
    p_values = (1 + (drawn >= statistic(codes, weights, given=fit)).sum(axis=0)) / (1 + N_BOOTSTRAP)
    return p_values[np.triu_indices(N_COLUMNS, 1)] <= 0.05


def false_ratio(truth, rng):
    codes, weights = draw(truth, rng)
    value, small = likelihood_ratio(codes, weights, CARDINALITIES, truth, SETTINGS, rng.spawn(1)[0])

    def again(rows, counts, child):
        return likelihood_ratio(rows, counts, CARDINALITIES, small, SETTINGS, child)[0]

    drawn = bootstrap(codes, weights, CARDINALITIES, small, again, N_BOOTSTRAP, rng, seen=value)
    return p_value(drawn, value, N_BOOTSTRAP) <= 0.05


if __name__ == "__main__":
    run(main)
