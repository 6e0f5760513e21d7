"""How many clusters: a scan over a range, or a search that splits clusters and merges pairs while the score rises.

The score is the Cheeseman-Stutz approximation of log p(D) for EM and EMA (its EMA version averages every column's factor
over the two structures), and the evidence bound for the variational twin. Both are in nats, higher is better. The scan
fits every number from many starts, and, unless told otherwise, goes on from splits of the solution with one cluster less and
merges of the one with one more. On tables that are not large its random starts are more, their first updates have a weak prior
(a strong one empties clusters before they have found their rows), and it goes on from crosses: clusters drawn from two of
the best solutions found so far. The search (the EMA paper's future work) walks: each split refits one cluster's rows as
two, each merge pours two clusters together, and the whole model is iterated on from there; when no move gains, one more
step is tried from the best split before it stops; at the end all starts are run at the number found.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.starts import choose_starts
from pgm_bma.foundation.runtime.seeds import fresh
from pgm_bma.latent_class.loop import (
    LatentClassFit,
    Settings,
    conclude,
    draw,
    fit_latent_class,
    join,
    run_all_starts,
    run_starts,
    soften,
)
from pgm_bma.latent_class.problem import flatten, log_joint, make_problem, split_tables
from pgm_bma.latent_class.statistics import FitStatistics, fit_statistics, size_statistics

SPLIT_STARTS = 4  # starts of the two-cluster fit inside a cluster
MERGE_PAIRS = 6  # most alike pairs that are tried as merges
MOVES_MIDDLE, MOVES_FINISHED = 4, 2  # starts from splits (or merges) at each number: taken on, and run to the end
SCAN_STARTS = 4  # times n_init random starts at each number of a scan
CROSSES, CROSSES_MIDDLE, CROSSES_FINISHED = 60, 20, 6  # starts of a round, those taken on, and to the end
PARENTS = 8  # best solutions that are crossed
CROSS_PATIENCE, CROSS_ROUNDS = 2, 10  # rounds in a row that may gain nothing, rounds at most
CROSS_GAIN = 0.01  # nats; smaller differences are what `tol` leaves open
MOST_CELLS = 1_000_000  # of a table on which so much is done: larger ones have few optima, and take long
PATIENCE = 1  # splits that may fail to gain before the search gives up
GAIN = 1e-6  # nats; smaller differences are rounding


def scan_clusters(codes, cardinalities, candidates, settings=None, *, rng, weights=None, **changes):
    """Fit every number in `candidates`, keep the one of highest score; ties go to the smaller number.

    settings, changes, weights, rng : as for `fit_latent_class`; every number starts from the same generator, so that the fit at
    k is the fit that k alone would give. Returns a `NumberFit`.
    """
    search = _search(codes, cardinalities, settings, weights, rng, changes)
    fits = search.fit_numbers(sorted({int(k) for k in candidates}))
    found = [(k, fit, search.statistics(fit)) for k, fit in fits.items()]
    return _best_number(found, search.settings.averaging)


def _search(codes, cardinalities, settings, weights, rng, changes):
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    settings = (Settings() if settings is None else settings)._replace(**changes)
    return Search(np.asfortranarray(codes), np.asarray(cardinalities, dtype=np.int64), weights, fresh(rng), settings)


def scan_numbers(fit_number, candidates, averaging, cardinalities, total):
    """As `scan_clusters` for rows that are not in memory: the best of ``fit_number(k)``; `total` is the weight of all rows."""
    fits = [(k, fit_number(k)) for k in sorted({int(k) for k in candidates})]
    found = [(k, fit, size_statistics(fit.log_likelihood, fit.theta_c, cardinalities, total)) for k, fit in fits]
    return _best_number(found, averaging)


def _best_number(found, averaging):
    """`NumberFit` of (number asked for, fit, statistics) by rising number."""
    path, best, fits = [], None, {}
    for k, fit, statistics in found:
        score = number_score(fit, averaging)
        path.append(Step(k, score, fit.log_likelihood, len(fit.theta_c), "fit", statistics))
        fits[k] = fit._replace(starts=None)
        if best is None or score > best[0] + GAIN:
            best = score, fit
    return NumberFit(best[1], tuple(path), fits)


def search_clusters(codes, cardinalities, settings=None, *, rng, max_clusters=None, weights=None, **changes):
    """Find the number of clusters by splits and merges; `max_clusters` defaults to the number of rows.

    Returns a `NumberFit`; its path holds every number at which the search stood, with the best score found there.
    """
    search = _search(codes, cardinalities, settings, weights, rng, changes)
    max_clusters = len(codes) if max_clusters is None else max_clusters
    current = search.fit(1, None)
    best, failures = current, 0
    path = [search.step(current, "one cluster")]
    seen = {1: current.score}
    while failures <= PATIENCE:
        n_clusters = len(current.fit.theta_c)
        moves = [(search.split(current.fit, k), "split") for k in range(n_clusters) if n_clusters < max_clusters]
        moves += [(search.merge(current.fit, *pair), "merge") for pair in _alike(current.fit)]
        moves = [(search.fit(len(start[0]), start), name) for start, name in moves if start is not None]
        # a start that collapsed is not at its number any more
        moves = [(found, name) for found, name in moves if seen.get(found.n_clusters, -np.inf) + GAIN < found.score]
        if not moves:
            break
        current, name = max(moves, key=lambda move: move[0].score)
        seen[current.n_clusters] = current.score
        path.append(search.step(current, name))
        if current.score > best.score + GAIN:
            best, failures = current, 0
        else:
            failures += 1
    chosen = best.fit if best.n_clusters == 1 else search.polish(best.fit)
    path.append(search.step(Scored(search.score(chosen), chosen), "all starts")._replace(n_clusters=best.n_clusters))
    return NumberFit(chosen, tuple(path))


def number_score(fit, averaging):
    """What chooses the number of clusters, nats, higher is better."""
    return fit.evidence_bound if averaging == "variational" else fit.cheeseman_stutz


def _alike(fit):
    """The pairs of clusters whose tables differ least, weighted by the smaller cluster."""
    distance = {}
    for a, b in combinations(range(len(fit.theta_c)), 2):
        distance[a, b] = np.abs(fit.theta[:, a] - fit.theta[:, b]).sum() * min(fit.theta_c[a], fit.theta_c[b])
    return sorted(distance, key=distance.get)[:MERGE_PAIRS]


class Search(NamedTuple):
    """The data and settings of a search: fits from given tables, and the starts that a split or a merge makes."""

    codes: np.ndarray
    cardinalities: np.ndarray
    weights: np.ndarray
    rng: np.random.Generator
    settings: Settings

    def fit(self, n_clusters, start):
        """One start, from given tables or a random one."""
        init = "random" if start is None else start
        fit = self._run(n_clusters, n_init=1, combine_starts="best", init=init)
        return Scored(self.score(fit), fit)

    def polish(self, fit):
        """All starts at the number found, the found tables as start 0."""
        return self._run(len(fit.theta_c), init=(fit.theta_c, fit.tables), keep_order=False)

    def _run(self, n_clusters, **changes):
        data = self.codes, self.cardinalities, n_clusters, self.settings
        return fit_latent_class(*data, weights=self.weights, rng=fresh(self.rng), **changes)

    def fit_numbers(self, numbers):
        """{number: fit}: upwards with splits of the number below, downwards with merges of the number above, each with crosses."""
        fits = {}
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
        """Whether a scan has more starts than asked for, and crosses."""
        settings = self.settings
        is_staged = settings.n_final is not None and not isinstance(settings.n_init, str)
        return settings.moves and is_staged and self.codes.size <= MOST_CELLS

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
        data = self.codes, self.cardinalities, self.weights, n_clusters
        problem = make_problem(*data, self.settings.priors, self.settings.averaging)
        starts = self.random_starts(problem) if fit is None else fit.starts
        if not tables:
            return conclude(problem, starts, self.settings) if fit is None else fit
        begin = [np.stack(parts) for parts in zip(*(flatten(*given) for given in tables))]
        settings = self.settings._replace(n_middle=n_middle, n_final=n_final, progress=None)
        return conclude(problem, join([starts, run_starts(problem, settings, begin)]), self.settings)

    def random_starts(self, problem):
        """As many as the settings say; more, the first updates with a weak prior, where a scan is thorough."""
        settings = self.settings
        if not self.is_thorough or problem.n_clusters == 1:
            return run_all_starts(problem, settings, fresh(self.rng))
        tables = draw(problem, settings, SCAN_STARTS * settings.n_init, fresh(self.rng))
        if settings.averaging is None or settings.init == "em":
            tables = soften(problem, settings, tables)
        return run_starts(problem, settings._replace(n_middle=settings.n_init), tables)

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
        n_clusters, found = starts.theta_c.shape[1], []
        if len(parents) < 2 or n_clusters == 1:
            return found
        for _ in range(CROSSES):
            pair = rng.choice(parents, 2, replace=False)
            kept = rng.choice(2 * n_clusters, n_clusters, replace=False)
            theta_c = np.concatenate(starts.theta_c[pair])[kept]
            theta = np.concatenate(starts.theta[pair], axis=1)[:, kept]
            found.append((theta_c / theta_c.sum(), split_tables(theta, fit.state_start)))
        return found

    def split(self, fit, k):
        """Tables with cluster k replaced by the two clusters of its own rows; None where that finds only one."""
        log_p = log_joint(self.codes, fit.theta_c, fit.theta, fit.state_start)
        inside = np.exp(log_p[:, k] - np.logaddexp.reduce(log_p, axis=1)) * self.weights
        keep = inside > 1e-9 * inside.sum()
        settings = Settings(priors=self.settings.priors, n_init=SPLIT_STARTS, n_final=2, accelerate=True, tol=1e-3)
        rows = self._replace(codes=self.codes[keep], weights=inside[keep], settings=settings)
        two = rows._run(2)
        if len(two.theta_c) < 2:
            return None
        others = [c for c in range(len(fit.theta_c)) if c != k]
        theta_c = np.concatenate([fit.theta_c[others], fit.theta_c[k] * two.theta_c])
        theta = np.concatenate([fit.theta[:, others], two.theta], axis=1)
        return theta_c, split_tables(theta, fit.state_start)

    def merge(self, fit, a, b):
        """Tables with clusters a and b poured together."""
        others = [c for c in range(len(fit.theta_c)) if c not in (a, b)]
        weight = fit.theta_c[[a, b]]
        merged = fit.theta[:, [a, b]] @ (weight / weight.sum())
        theta_c = np.append(fit.theta_c[others], weight.sum())
        theta = np.column_stack([fit.theta[:, others], merged])
        return theta_c, split_tables(theta, fit.state_start)

    def score(self, fit):
        return number_score(fit, self.settings.averaging)

    def step(self, scored, name):
        n_clusters, fit = scored.n_clusters, scored.fit
        return Step(n_clusters, scored.score, fit.log_likelihood, n_clusters, name, self.statistics(fit))

    def statistics(self, fit):
        tables = fit.theta_c, fit.theta, fit.state_start
        return fit_statistics(self.codes, self.weights, self.cardinalities, *tables)


class Scored(NamedTuple):
    score: float
    fit: LatentClassFit

    @property
    def n_clusters(self):
        return len(self.fit.theta_c)


class Step(NamedTuple):
    """One number that was tried: asked for, its score, and how many clusters the fit kept."""

    n_clusters: int
    score: float
    log_likelihood: float
    n_effective: int
    move: str
    statistics: FitStatistics


class NumberFit(NamedTuple):
    """The best fit, the numbers tried, and (of a scan) the fit of each number without its starts."""

    fit: LatentClassFit
    path: tuple
    fits: dict | None = None
