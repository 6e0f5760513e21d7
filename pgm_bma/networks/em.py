"""EM for any discrete network: several latent variables, cells missing anywhere, Dirichlet priors, tables held fixed.

The expectation step is exact: all completions of every row, through a junction tree (`junction_tree`, `evidence`). The
maximisation step is the posterior mean (expected count + alpha) / (total), which climbs

    log p(observed cells | theta) + sum of alpha x log theta            (alpha = 0: maximum likelihood)

Arrays only. Codes are (n_rows, n_variables) with one column per node of the network, -1 = unobserved, so a latent variable is
a column of -1. `parents[i]` is a tuple of positions, `cpts[i]` has shape (n_parent_states, n_states), first parent slowest.

For other folders, one expectation step of a given network:

    expected_family_counts(codes, cardinalities, parents, cpts, weights=None, families=None)
        -> (list of (n_parent_states, n_states) expected counts, log-likelihood)

`families` asks for other families than the network's own, as a list of (child, parents): what structure search needs.
"""

from functools import cached_property
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from pgm_bma.foundation.numbers.families import family_counts, state_offsets
from pgm_bma.foundation.rows.blocks import Block, MemoryRows, Profile, Rows
from pgm_bma.foundation.runtime.jobs import map_jobs
from pgm_bma.foundation.tables.table import Schema
from pgm_bma.networks import evidence
from pgm_bma.networks._junction_tree_kernels import normalise_tables
from pgm_bma.networks.junction_tree import MAX_CLIQUE_SIZE, CliqueTooLarge, build_tree


def fit_network(
    codes,
    cardinalities,
    parents,
    *,
    weights=None,
    held=None,
    alpha=1.0,
    init=None,
    fixed=(),
    draw_all=False,
    n_init=1,
    rng=None,
    max_iter=100,
    atol=1e-8,
    n_jobs=None,
    progress=None,
    max_clique_size=MAX_CLIQUE_SIZE,
):
    """Fit the tables of a network by EM.

    Parameters
    ----------
    codes : (n_rows, n_variables) ints, -1 = unobserved; fold equal rows first (`table.fold`); or `Rows` of `Block`
    cardinalities : (n_variables,)
    parents : list of tuples of positions
    weights : (n_rows,), optional
    held : (n_rows, n_variables) bool, optional; where an experiment set a variable: its own table has no part in that row
    alpha : pseudo-count per cell: a number, or a list with a number or an (n_parent_states, n_states) array per node
    init : list of tables (None where free to draw), optional; they make start 0, and `fixed` ones every start
    draw_all : draw all free tables of a start, also those that the complete rows could give (see `draw_start`)
    fixed : positions of the nodes whose table in `init` is kept
    n_init : starts; the one with the highest log-likelihood is returned
    rng : numpy.random.Generator; start i draws from its i-th spawned child, whatever `n_init` is
    max_iter, atol : updates at most, and the largest parameter change that counts as converged
    n_jobs : threads over the starts, as joblib reads it; the result does not depend on it
    progress : callable(n_updates) called after every update, optional

    Returns
    -------
    NetworkFit

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.networks.em import fit_network
    >>> codes = np.array([[0, 0], [0, -1], [1, 1], [-1, 1], [1, 0]])
    >>> fit = fit_network(codes, [2, 2], [(), (0,)], alpha=1.0)
    >>> fit.cpts[1].round(3), fit.converged
    (array([[0.586, 0.414],
           [0.436, 0.564]]), True)
    """
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    problem = make_problem(codes, cardinalities, parents, weights, alpha, fixed, max_clique_size, held)
    rng = np.random.default_rng() if rng is None else rng

    def run(number, generator):
        return run_start(problem, draw_start(problem, number, generator, init, draw_all), max_iter, atol, progress)

    starts = map_jobs(run, enumerate(rng.spawn(n_init)), n_jobs, threads=True)
    best = int(np.argmax([start.log_likelihood for start in starts]))
    chosen = starts[best]
    counts, log_likelihood = problem.rows.expected_counts(chosen.theta)
    return NetworkFit(
        cpts=problem.split(chosen.theta),
        expected_counts=problem.split(counts),
        log_likelihood=log_likelihood,
        n_iter=chosen.n_iter,
        converged=chosen.converged,
        score_path=chosen.score_path,
        log_likelihood_path=chosen.log_likelihood_path,
        starts=tuple(starts),
        best=best,
    )


def expected_family_counts(
    codes, cardinalities, parents, cpts, weights=None, families=None, max_clique_size=MAX_CLIQUE_SIZE
):
    """Expected counts of families under a network with given tables: one exact expectation step.

    Parameters
    ----------
    codes : (n_rows, n_variables), -1 = unobserved
    cpts : list of (n_parent_states, n_states)
    families : list of (child, parents), optional; by default the network's own families

    Returns
    -------
    counts : list of (n_parent_states, n_states), in the order asked for
    log_likelihood : float

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.networks.em import expected_family_counts
    >>> cpts = [np.array([[0.5, 0.5]]), np.array([[0.75, 0.25], [0.25, 0.75]])]
    >>> counts, _ = expected_family_counts(np.array([[-1, 0]]), [2, 2], [(), (0,)], cpts, families=[(0, (1,))])
    >>> counts
    [array([[0.75, 0.25],
           [0.  , 0.  ]])]
    """
    codes = np.asarray(codes)
    hidden = np.flatnonzero((codes < 0).any(axis=0))
    theta = flatten(cpts)
    extra = [] if families is None else [(*ps, child) for child, ps in families]
    try:
        tree = build_tree(cardinalities, parents, hidden, extra, max_clique_size)
    except CliqueTooLarge:
        if len(extra) < 2:
            raise
        # together the wanted scopes couple too many hidden variables: ask for half of them at a time
        half = len(families) // 2
        parts = [
            expected_family_counts(codes, cardinalities, parents, cpts, weights, part, max_clique_size)
            for part in (families[:half], families[half:])
        ]
        return parts[0][0] + parts[1][0], parts[0][1]
    counts, log_likelihood = evidence.expected_counts(evidence.plan_rows(tree, codes, weights), theta)
    first = 0 if families is None else tree.n_families
    tables = [
        counts[tree.family_start[i] : tree.family_start[i + 1]].reshape(-1, int(cardinalities[tree.families[i][-1]]))
        for i in range(first, len(tree.families))
    ]
    return tables, log_likelihood


def make_problem(
    codes, cardinalities, parents, weights=None, alpha=1.0, fixed=(), max_clique_size=MAX_CLIQUE_SIZE, held=None
):
    """Everything about the data and the prior that stays the same while the tables change."""
    shapes = [(prod(int(cardinalities[p]) for p in ps), int(r)) for ps, r in zip(parents, cardinalities)]
    if held is not None:
        codes, cardinalities, parents = with_switches(codes, cardinalities, parents, held)
    rows = codes if isinstance(codes, Rows) else one_block(np.asarray(codes), cardinalities, weights)
    tree = build_tree(cardinalities, parents, np.flatnonzero(rows.has_missing), max_clique_size=max_clique_size)
    latent = [not rows.state_counts[a:b].any() for a, b in pairwise(state_offsets(cardinalities))]
    cells = np.concatenate([a + np.arange(q * r) for a, (q, r) in zip(tree.family_start, shapes)])
    n_states = np.asarray(cardinalities, dtype=np.int64)
    line_start = state_offsets(np.repeat(n_states, np.diff(tree.family_start) // n_states))
    per_node = list(alpha) if isinstance(alpha, (list, tuple)) else [alpha] * len(shapes)
    prior, free = np.zeros(tree.family_start[-1]), np.zeros(tree.family_start[-1], dtype=bool)
    prior[cells] = flatten([np.broadcast_to(np.asarray(a, float), shape) for a, shape in zip(per_node, shapes)])
    free[cells] = np.repeat([node not in set(fixed) for node in range(len(shapes))], [q * r for q, r in shapes])
    never = frozenset(np.flatnonzero(latent).tolist())
    return NetworkProblem(TreeRows(rows, tree), prior, line_start, free[line_start[:-1]], never, shapes, cells)


def with_switches(codes, cardinalities, parents, held):
    """(codes, cardinalities, parents) of the network in which each variable that was set somewhere has a switch as first parent.

    Switches are observed in every row, so they add nothing to sum over. Where one is on, the table has ones
    (`NetworkProblem.join`).
    """
    where = np.flatnonzero(held.any(axis=0))
    switch = {int(v): len(parents) + k for k, v in enumerate(where)}
    switched = [(switch[v], *ps) if v in switch else tuple(ps) for v, ps in enumerate(parents)]
    codes = np.column_stack([codes, held[:, where].astype(codes.dtype)])
    return codes, [*cardinalities, *[2] * len(where)], [*switched, *[()] * len(where)]


def draw_start(problem, number, rng, init=None, draw_all=False):
    """Tables of start `number`, one flat vector.

    Families that touch a latent variable are drawn from Dirichlet(1). The others start from the rows in which they are
    complete, smoothed by one count per cell; without any latent variable all are drawn from start 1 on, with `draw_all`
    always. Given tables are used in start 0, fixed ones in every start.
    """
    rows, tree, tables = problem.rows, problem.rows.tree, []
    for node, (n_lines, n_states) in enumerate(problem.shapes):
        drawn = rng.standard_exponential((n_states, n_lines)).T  # always drawn: start i stays start i
        is_fixed = not problem.free[np.searchsorted(problem.line_start, tree.family_start[node])]
        given = None if init is None else init[node]
        if given is not None and (number == 0 or is_fixed):
            tables.append(np.asarray(given, dtype=float))
            continue
        if not draw_all and problem.latent.isdisjoint(tree.families[node]) and (problem.latent or number == 0):
            drawn = rows.complete_counts[node][:n_lines] + 1.0
        tables.append(drawn / drawn.sum(axis=1, keepdims=True))
    return problem.join(tables)


def run_start(problem, theta, max_iter, atol, progress=None):
    """Iterate one start to its end."""
    rows = problem.rows
    theta = theta.copy()
    log_likelihoods, objectives = [], []
    n_iter, converged = 0, False

    def note(log_likelihood):
        log_likelihoods.append(log_likelihood)
        objectives.append(log_likelihood + log_prior(problem, theta))

    while n_iter < max_iter and not converged:
        counts, log_likelihood = rows.expected_counts(theta)
        note(log_likelihood)
        updated = np.empty_like(theta)
        change = normalise_tables(counts, problem.alpha, problem.line_start, problem.free, theta, updated)
        theta = updated
        n_iter += 1
        converged = change < atol
        if progress is not None:
            progress(1)
    note(rows.log_likelihood(theta))
    if log_likelihoods[-1] == -np.inf:
        rows.expected_counts(theta)  # says which row it is
    return StartRecord(
        theta, log_likelihoods[-1], n_iter, bool(converged), np.array(objectives), np.array(log_likelihoods)
    )


# ------------------------------------------------------------------------------------------------ sums over rows


class TreeRows:
    """Rows that met a tree, and the sums over them that EM asks for; in memory they meet it once, else anew in every pass.

    rows : Rows of `Block`, one column per variable     tree : JunctionTree
    """

    def __init__(self, rows, tree):
        self.rows, self.tree = rows, tree
        self.in_memory = isinstance(rows, MemoryRows)
        self.plans = rows.prepared(plan_block, tree) if self.in_memory else rows.viewed(plan_block, tree)

    def expected_counts(self, theta):
        """Expected counts of all families, and the log-likelihood."""
        try:
            counts, log_likelihood = self.plans.reduce(evidence.expected_counts, theta)
        except evidence.ImpossibleEvidence:
            if self.in_memory:
                raise
            raise ValueError(  # its place in a block tells nobody which row it is
                "the observed values of a row have probability zero under the network; give the tables no exact zeros (alpha > 0)"
            ) from None
        return counts, float(log_likelihood)

    def log_likelihood(self, theta):
        return float(self.plans.reduce(likelihood_of_plan, theta)[0])

    @cached_property
    def complete_counts(self):
        """Counts of every family over the rows that have its cells, in one pass."""
        return self.rows.reduce(complete_block, self.tree)


def one_block(codes, cardinalities, weights):
    """`Rows` of codes in memory."""
    starts, missing = state_offsets(cardinalities), codes < 0
    seen = np.bincount((codes + starts[:-1])[~missing], minlength=starts[-1]).astype(float)
    total = float(len(codes) if weights is None else np.sum(weights))
    schema = Schema(tuple(range(len(cardinalities))), tuple(tuple(range(r)) for r in cardinalities))
    return MemoryRows(Profile(schema, len(codes), total, seen, missing.any(axis=0)), [Block(codes, weights)])


def plan_block(block, tree):
    """The `EvidencePlan` of a block."""
    return evidence.plan_rows(tree, block.codes, block.weights)


def likelihood_of_plan(plan, theta):
    """(log-likelihood,) of a block."""
    return (evidence.total_log_likelihood(plan, theta),)


def complete_block(block, tree):
    """Counts of every family over the rows of a block that have its cells."""
    families = tree.families[: tree.n_families]
    return tuple(family_counts(block.codes, tree.cardinalities, *(s[-1], s[:-1]), block.weights) for s in families)


def log_prior(problem, theta):
    """Sum of alpha x log theta over the tables that are free: what the prior adds to the objective."""
    free = np.repeat(problem.free, np.diff(problem.line_start))
    return float(xlogy(problem.alpha[free], theta[free]).sum())


def relabel(cpts, parents, cardinalities, node, order):
    """The same network with the states of `node` in another order: new state k is old state ``order[k]``."""
    changed = list(cpts)
    changed[node] = np.ascontiguousarray(cpts[node][:, order])
    for child, ps in enumerate(parents):
        if node in ps:
            shaped = cpts[child].reshape([int(cardinalities[p]) for p in ps] + [-1])
            changed[child] = np.take(shaped, order, axis=ps.index(node)).reshape(cpts[child].shape)
    return changed


def flatten(tables):
    """Tables of all nodes as one flat vector."""
    return np.concatenate([np.zeros(0), *(np.ravel(table) for table in tables)])


class NetworkProblem(NamedTuple):
    """Rows on their tree; `alpha` flat like the tables; lines (one parent state each) and whether they are updated."""

    rows: TreeRows
    alpha: np.ndarray
    line_start: np.ndarray
    free: np.ndarray
    latent: frozenset  # variables that no row observes
    shapes: list  # (n_parent_states, n_states) of every variable
    cells: np.ndarray  # where their tables stand in a flat vector; the rest belongs to switches

    def split(self, flat):
        """A flat vector as a list of (n_parent_states, n_states)."""
        parts = np.split(flat[self.cells], np.cumsum([q * r for q, r in self.shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes)]

    def join(self, tables):
        """The flat vector of tables, with ones where a switch says that the variable was set."""
        flat = np.ones(len(self.alpha))
        flat[self.cells] = flatten(tables)
        return flat


class StartRecord(NamedTuple):
    """One start: flat tables, their log-likelihood, and the paths (value at the start and after every update)."""

    theta: np.ndarray
    log_likelihood: float
    n_iter: int
    converged: bool
    score_path: np.ndarray
    log_likelihood_path: np.ndarray


class NetworkFit(NamedTuple):
    """The best start's tables, the expected counts under them, and how it went."""

    cpts: list
    expected_counts: list
    log_likelihood: float
    n_iter: int
    converged: bool
    score_path: np.ndarray
    log_likelihood_path: np.ndarray
    starts: tuple
    best: int
