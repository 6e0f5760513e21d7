"""Number of clusters: a scan over several numbers.

The score is the Cheeseman-Stutz approximation of log p(D) for EM and EMA (its EMA version averages every column's factor
over the two structures), and the evidence bound for variational EMA. Both are in nats, higher is better. The scan fits every number
from many starts. On rows in memory it also goes on, unless the settings say otherwise, from splits of the solution with one cluster
less (each refits one cluster's rows as two) and merges of the one with one more. On tables that are not large its random starts are
more, their first updates have a weak prior (a strong one empties clusters before they have found their rows), and it goes on from
crosses: clusters drawn from two of the best solutions found so far.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.starts import choose_starts
from pgm_bma.foundation.rows.blocks import Rows, table_rows
from pgm_bma.foundation.runtime.jobs import fresh
from pgm_bma.latent_class.loop import (
    LatentClassFit,
    LatentClassSettings,
    conclude,
    draw,
    fit_latent_class,
    fit_problem,
    join,
    run_starts,
    soften,
    warn_of_fewer_starts,
)
from pgm_bma.latent_class.problem import (
    LatentClassProblem,
    flatten,
    log_joint,
    make_problem,
    sample_problem,
    split_tables,
)
from pgm_bma.latent_class.statistics import FitStatistics, rows_statistics

SPLIT_STARTS = 4  # starts of the two-cluster fit inside a cluster
MERGE_PAIRS = 6  # most alike pairs that are tried as merges
MOVES_MIDDLE, MOVES_FINISHED = 4, 2  # starts from splits (or merges) at each number: taken on, and run to the end
SCAN_STARTS = 4  # times n_init random starts at each number of a scan
CROSSES, CROSSES_MIDDLE, CROSSES_FINISHED = 60, 20, 6  # starts of a round, those taken on, and to the end
PARENTS = 8  # best solutions that are crossed
CROSS_PATIENCE, CROSS_ROUNDS = 2, 10  # rounds in a row that may gain nothing, rounds at most
CROSS_GAIN = 0.01  # nats; smaller differences are what `tol` leaves open
MOST_CELLS = 1_000_000  # of a table on which so much is done: larger ones have few optima, and take long
GAIN = 1e-6  # nats; smaller differences are rounding


def scan_clusters(rows, candidates, settings=None, *, rng, sample_rows=None, **changes):
    """Fit every number in `candidates`, keep the one of highest score; ties go to the smaller number.

    rows, settings, changes, rng, sample_rows : as for `fit_latent_class`; every number starts from the same generator, so that the
    fit at k is the fit that k alone would give, but for the moves. Returns a `NumberFit`.
    """
    settings = (LatentClassSettings() if settings is None else settings)._replace(**changes)
    search, numbers = make_search(rows, settings, rng, sample_rows), sorted({int(k) for k in candidates})
    if not search.is_thorough:
        warn_of_fewer_starts(search.problem if search.screen is None else search.screen[0], settings, numbers[-1])
    path, fits = [], {}
    best: tuple[float, LatentClassFit] | None = None
    for k, fit in search.fit_numbers(numbers).items():
        score = number_score(fit, settings.averaging)
        path.append(NumberTried(k, score, fit.log_likelihood, len(fit.theta_c), rows_statistics(rows, fit)))
        fits[k] = fit._replace(starts=None)
        if best is None or score > best[0] + GAIN:
            best = score, fit
    assert best is not None  # nosec B101 # for the type checker, candidates are never empty
    return NumberFit(best[1], tuple(path), fits)


def make_search(rows, settings, rng, sample_rows=None):
    """The `NumberSearch` of rows; rows that are visited in passes allow no moves, which look at them one by one."""
    settings = settings._replace(moves=settings.moves and rows.in_memory)
    problem = make_problem(rows, 1, settings.priors, settings.averaging)
    screen = None if sample_rows is None else sample_problem(problem, sample_rows)
    return NumberSearch(rows, problem, screen, fresh(rng), settings)


def number_score(fit, averaging):
    """Return what chooses the number of clusters, nats, higher is better."""
    return fit.evidence_bound if averaging == "variational" else fit.cheeseman_stutz


def _alike(fit):
    """The pairs of clusters whose tables differ least, weighted by the smaller cluster."""
    distance = {}
    for a, b in combinations(range(len(fit.theta_c)), 2):
        distance[a, b] = np.abs(fit.theta[:, a] - fit.theta[:, b]).sum() * min(fit.theta_c[a], fit.theta_c[b])
    return sorted(distance, key=distance.__getitem__)[:MERGE_PAIRS]


class NumberSearch(NamedTuple):
    """The data and settings of a scan: fits from given tables, and the starts that a split or a merge makes."""

    rows: Rows
    problem: LatentClassProblem  # with any number of clusters
    screen: tuple | None  # see `sample_problem`
    rng: np.random.Generator
    settings: LatentClassSettings

    def fit_numbers(self, numbers):
        """{number: fit}: upwards with splits of the number below, downwards with merges of the number above, each with crosses."""
        fits: dict[int, LatentClassFit] = {}
        for k in numbers:
            fits[k] = self.improve(k, self.fit_number(k, self.splits(fits.get(k - 1), k)))
        for k in reversed(numbers if self.settings.moves else []):
            merged = self.fit_number(k, self.merges(fits.get(k + 1), k), fits[k])
            fits[k] = self.improve(k, merged) if self.has_gained(fits[k], merged) else merged
        return fits

    def has_gained(self, before, after):
        return self.start_scores(after).max() > self.start_scores(before).max() + CROSS_GAIN

    @property
    def is_thorough(self):
        """Return whether a scan has more starts than asked for, and crosses."""
        settings = self.settings
        is_staged = settings.n_final is not None and not isinstance(settings.n_init, str)
        return settings.moves and is_staged and self.rows.n_rows * len(self.problem.priors.log_arc) <= MOST_CELLS

    def improve(self, n_clusters, fit):
        """`fit` with further starts from crosses, until some rounds in a row gain nothing."""
        failures = n_rounds = 0
        while failures < CROSS_PATIENCE and n_rounds < CROSS_ROUNDS and self.is_thorough:
            tables = self.crosses(fit, np.random.default_rng([len(fit.starts.finished), n_clusters]))
            if not tables or len(fit.theta_c) < n_clusters:
                break
            before, fit = fit, self.fit_number(n_clusters, tables, fit, CROSSES_MIDDLE, CROSSES_FINISHED)
            failures, n_rounds = 0 if self.has_gained(before, fit) else failures + 1, n_rounds + 1
        return fit

    def start_scores(self, fit):
        """Score of every start, -inf for those that were not finished or collapsed."""
        starts = fit.starts
        score = starts.evidence_bound if self.settings.averaging == "variational" else starts.log_likelihood
        return np.where(starts.finished & ~starts.collapsed, score, -np.inf)

    def fit_number(self, n_clusters, tables, fit=None, n_middle=MOVES_MIDDLE, n_final=MOVES_FINISHED):
        """Random starts (or those of `fit`), and further ones from given tables, the best `n_final` of which are finished."""
        problem = self.problem.with_clusters(n_clusters)
        fit = self.fit_random(problem) if fit is None else fit
        if not tables:
            return fit
        begin = [np.stack(parts) for parts in zip(*(flatten(*given) for given in tables))]
        settings = self.settings._replace(n_middle=n_middle, n_final=n_final, progress=None)
        return conclude(problem, join([fit.starts, run_starts(problem, settings, begin)]), self.settings)

    def fit_random(self, problem):
        """As many random starts as the settings say; more, the first updates with a weak prior, where a scan is thorough."""
        settings = self.settings
        if not self.is_thorough or problem.n_clusters == 1:
            screen = None if self.screen is None else (self.screen[0].with_clusters(problem.n_clusters), self.screen[1])
            return fit_problem(problem, settings, fresh(self.rng), screen)
        n_init = int(settings.n_init)  # a thorough scan has a number
        tables = draw(problem, settings, SCAN_STARTS * n_init, fresh(self.rng))
        if settings.averaging is None or settings.init == "em":
            tables = soften(problem, settings, tables)
        return conclude(problem, run_starts(problem, settings._replace(n_middle=n_init), tables), settings)

    def splits(self, fit, n_clusters):
        """Tables for `n_clusters` from the fit with one cluster less."""
        if fit is None or not self.settings.moves or len(fit.theta_c) != n_clusters - 1:
            return []
        found = [self.split(fit, k) for k in range(len(fit.theta_c))]
        return [tables for tables in found if tables is not None]

    def merges(self, fit, n_clusters):
        """Tables for `n_clusters` from the fit with one cluster more."""
        if fit is None or len(fit.theta_c) != n_clusters + 1:
            return []
        return [self.merge(fit, *pair) for pair in _alike(fit)]

    def crosses(self, fit, rng):
        """Tables whose clusters are drawn from those of two of the best starts; none where all starts ended in one optimum."""
        scores, starts = self.start_scores(fit), fit.starts
        parents = choose_starts(scores, scores > -np.inf, PARENTS)
        n_clusters = starts.theta_c.shape[1]
        found: list[tuple] = []
        if len(parents) < 2 or n_clusters == 1:
            return found
        for _ in range(CROSSES):
            pair = rng.choice(parents, 2, replace=False)
            kept = rng.choice(2 * n_clusters, n_clusters, replace=False)
            theta_c = np.concatenate(starts.theta_c[pair])[kept]
            theta = np.concatenate(starts.theta[pair], axis=1)[:, kept]
            found.append((theta_c / theta_c.sum(), split_tables(theta, fit.line_start)))
        return found

    def split(self, fit, k):
        """Tables with cluster k replaced by the two clusters of its own rows; None where that finds only one."""
        (block,) = self.rows.blocks
        log_p = log_joint(block.codes, fit.theta_c, fit.theta, fit.state_start, block.numbers, fit.log_scale)
        inside = np.exp(log_p[:, k] - np.logaddexp.reduce(log_p, axis=1))
        inside = inside if block.weights is None else inside * block.weights
        keep = inside > 1e-9 * inside.sum()
        numbers = None if block.numbers is None else block.numbers[keep]
        cluster = table_rows(block.codes[keep], self.rows.schema.cardinalities, inside[keep], numbers, fit.log_scale)
        settings = LatentClassSettings(
            priors=self.settings.priors, n_init=SPLIT_STARTS, n_final=2, accelerate=True, tol=1e-3
        )
        two = fit_latent_class(cluster, 2, settings, rng=fresh(self.rng))
        if len(two.theta_c) < 2:
            return None
        others = [c for c in range(len(fit.theta_c)) if c != k]
        theta_c = np.concatenate([fit.theta_c[others], fit.theta_c[k] * two.theta_c])
        theta = np.concatenate([fit.theta[:, others], two.theta], axis=1)
        return theta_c, split_tables(theta, fit.line_start)

    def merge(self, fit, a, b):
        """Tables with clusters a and b poured together."""
        others = [c for c in range(len(fit.theta_c)) if c not in (a, b)]
        weight = fit.theta_c[[a, b]]
        merged = fit.theta[:, [a, b]] @ (weight / weight.sum())
        theta_c = np.append(fit.theta_c[others], weight.sum())
        theta = np.column_stack([fit.theta[:, others], merged])
        return theta_c, split_tables(theta, fit.line_start)


class NumberTried(NamedTuple):
    """One number: asked for, its score, and how many clusters the fit kept."""

    n_clusters: int
    score: float
    log_likelihood: float
    n_effective: int
    statistics: FitStatistics


class NumberFit(NamedTuple):
    """The best fit, the numbers tried, and the fit of each number without its starts."""

    fit: LatentClassFit
    path: tuple
    fits: dict
