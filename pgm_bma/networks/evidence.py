"""Rows meet a junction tree: every row falls into small independent jobs, and equal jobs are done once.

In a given row most variables are observed. Fixing them shrinks every cluster to its hidden variables, cuts the tree wherever
a separator is fully observed, and leaves connected pieces. Such a piece with the values around it is a *job*; its answer
depends on nothing else, so jobs that occur in many rows are computed once with the sum of the weights. Clusters that are
fully observed are counted once for good. EvidenceJobs with the same clusters hidden in the same way are of one *kind* and share
their index arrays.

Goes in: a `JunctionTree`, codes (n_rows, n_variables) with -1 = unobserved, weights. Comes out: an `EvidencePlan`; with tables
theta (one flat vector, see `JunctionTree.family_start`) it answers `expected_counts`, `row_log_likelihood`, `posteriors`
and `completions`.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.networks import _junction_tree_kernels as kernels
from pgm_bma.networks.junction_tree import JunctionTree, strides

MAX_INDEX_CELLS = 2**28  # entries of the index arrays: 1 GB


def plan_rows(tree, codes, weights=None, fold=True):
    """Prepare rows for a tree.

    Parameters
    ----------
    tree : JunctionTree whose hidden variables include every variable that is -1 in some row
    codes : (n_rows, n_variables) ints, -1 = unobserved
    weights : (n_rows,) or None
    fold : merge equal jobs; False keeps one job per row and piece (needed to draw independently)

    Returns
    -------
    EvidencePlan
    """
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    plans, bases, joined, catalogue = _reduce_clusters(tree, codes)
    observed = plans < 0
    constant = np.bincount(
        bases[observed], np.broadcast_to(weights[:, None], bases.shape)[observed], minlength=tree.table_start[-1]
    ).astype(float)
    job_start, (entry_row, entry_cluster, entry_parent), job_of = _link_rows(plans, joined, tree.parent)
    entry_plan = plans[entry_row, entry_cluster]
    entry_base = bases[entry_row, entry_cluster]
    job_rows = entry_row[job_start[:-1]].astype(np.int64)

    kind, kind_first = _group(job_start, entry_plan.astype(np.int64))
    if fold:
        width = int(tree.table_start[-1]) + 1
        distinct, first = _group(job_start, entry_plan.astype(np.int64) * width + entry_base)
    else:
        distinct = first = np.arange(len(job_start) - 1)
    order = np.argsort(kind[first], kind="stable")  # jobs of one kind side by side
    job = np.argsort(order)[distinct]
    chosen = first[order]
    kind_jobs = np.searchsorted(kind[chosen], np.arange(len(kind_first) + 1))
    kind_length = np.diff(job_start)[kind_first]
    per_job = kind_length[kind[chosen]]
    base_start = state_offsets(per_job)
    positions = np.repeat(job_start[chosen] - base_start[:-1], per_job) + np.arange(base_start[-1])
    kind_start = state_offsets(kind_length)
    picked = np.repeat(job_start[kind_first] - kind_start[:-1], kind_length) + np.arange(kind_start[-1])
    entries, sizes = _resolve_entries(tree, catalogue, kind_start, entry_plan[picked], entry_parent[picked])
    kinds = kind_start, kind_jobs.astype(np.int64), base_start[kind_jobs[:-1]]
    return EvidencePlan(
        tree=tree,
        weights=weights,
        constant=constant,
        jobs=EvidenceJobs(*kinds, entries, entry_base[positions], catalogue.cell_index, sizes),
        job_weights=np.bincount(job, weights[job_rows], minlength=len(chosen)).astype(float),
        job_rows=job_rows[chosen],
        job_of=np.where(job_of >= 0, job[job_of], -1) if len(job) else job_of,
        codes=codes,
        row_bases=bases,
        plan_cluster=catalogue.cluster,
        plan_mask=catalogue.mask,
    )


def expected_counts(plan, theta):
    """Expected counts of all families (one flat vector) and the weighted log-likelihood; raises `ImpossibleEvidence`."""
    psi = cluster_tables(plan.tree, theta)
    counts = plan.constant.copy()
    log_likelihood, bad = kernels.calibrate(psi, *plan.jobs, plan.job_weights, counts)
    if bad >= 0:
        raise ImpossibleEvidence(int(plan.job_rows[bad]))
    seen = plan.constant > 0
    if (psi[seen] == 0).any():
        raise ImpossibleEvidence(int(np.argmax(row_log_likelihood(plan, theta) == -np.inf)))
    log_likelihood += float(plan.constant[seen] @ np.log(psi[seen]))
    tree = plan.tree
    families = np.empty(tree.family_start[-1])
    kernels.family_tables(counts, *_homes(tree, len(tree.families)), families)
    return families, log_likelihood


def total_log_likelihood(plan, theta):
    """Weighted log-likelihood alone: half the work of `expected_counts`; -inf when a row is impossible."""
    psi = cluster_tables(plan.tree, theta)
    log_z = np.empty(len(plan.job_weights))
    kernels.collect(psi, *plan.jobs, log_z)
    seen = plan.constant > 0
    with np.errstate(divide="ignore"):
        return float(plan.job_weights @ log_z + plan.constant[seen] @ np.log(psi[seen]))


def row_log_likelihood(plan, theta):
    """Log probability of every row's observed values: (n_rows,)."""
    psi = cluster_tables(plan.tree, theta)
    log_z = np.empty(len(plan.job_weights))
    kernels.collect(psi, *plan.jobs, log_z)
    rows = np.zeros(len(plan.weights))
    with np.errstate(divide="ignore"):
        log_psi = np.log(psi)
    for cluster in range(len(plan.tree.scopes)):
        job = plan.job_of[:, cluster]
        hidden = job >= 0
        rows[~hidden] += log_psi[plan.row_bases[~hidden, cluster]]
        above = plan.tree.parent[cluster]
        root = hidden & ((above < 0) | (plan.job_of[:, above] != job))  # every job once, at its topmost cluster
        rows[root] += log_z[job[root]]
    return rows


def observed_rows_possible(plan, theta):
    """(n_rows,) False where a fully observed cluster has probability zero; the other clusters are met on the way."""
    zero = cluster_tables(plan.tree, theta) == 0
    return ~((plan.job_of < 0) & zero[plan.row_bases]).any(axis=1)


def posteriors(plan, theta, variables):
    """P(variable | row) for every row: a list of (n_rows, cardinality); a point mass where the variable is observed."""
    tree = plan.tree
    variables = [int(v) for v in variables]
    home = _cliques_of(tree, variables)
    asked = [v for v in variables if v in home]
    column = dict(zip(asked, state_offsets([tree.cardinalities[v] for v in asked])[:-1]))
    queries, query_start = [], [0]
    for cluster, mask in zip(plan.plan_cluster, plan.plan_mask):
        scope = tree.scopes[cluster]
        steps = strides(scope, tree.cardinalities)
        for position, v in enumerate(scope):
            if home.get(v) == cluster and mask >> position & 1:
                queries.append((steps[position], tree.cardinalities[v], column[v]))
        query_start.append(len(queries))
    steps_cards_columns = np.array(queries, dtype=np.int64).reshape(-1, 3).T
    out = np.zeros((len(plan.job_weights), sum(int(tree.cardinalities[v]) for v in asked)))
    bad = kernels.marginals(
        cluster_tables(tree, theta),
        *plan.jobs,
        np.array(query_start, dtype=np.int64),
        *(np.ascontiguousarray(q) for q in steps_cards_columns),
        out,
    )
    if bad >= 0:
        raise ImpossibleEvidence(int(plan.job_rows[bad]))
    found = []
    for v in variables:
        card = int(tree.cardinalities[v])
        rows = np.zeros((len(plan.codes), card))
        states = plan.codes[:, v]
        rows[np.arange(len(rows)), states] = 1.0
        gaps = states < 0
        if gaps.any():
            rows[gaps] = out[plan.job_of[gaps, home[v]], column[v] : column[v] + card]
        found.append(rows)
    return found


def completions(plan, theta, rng=None):
    """Return complete codes (n_rows, n_variables): the jointly most probable completion, or with `rng` one drawn for every row.

    Drawing wants a plan made with ``fold=False``, so that equal rows are drawn independently.
    """
    tree = plan.tree
    chosen = np.empty(len(plan.jobs.bases), dtype=np.int64)
    uniforms = np.empty(0) if rng is None else rng.random(len(chosen))
    *jobs, sizes = plan.jobs
    space, picks = (np.empty(sizes[0]), np.empty(sizes[1])), np.empty(sizes[2], dtype=np.int64)
    bad = kernels.complete(cluster_tables(tree, theta), *jobs, space, picks, uniforms, rng is None, chosen)
    if bad >= 0:
        raise ImpossibleEvidence(int(plan.job_rows[bad]))
    job_of_base, cluster_of_base = plan.base_owners()
    filled = plan.codes.astype(np.int64)
    for v, cluster in _cliques_of(tree, tree.hidden).items():
        scope = tree.scopes[cluster]
        stride = strides(scope, tree.cardinalities)[scope.index(v)]
        here = np.flatnonzero(cluster_of_base == cluster)
        state_of_job = np.zeros(len(plan.job_weights), dtype=np.int64)
        state_of_job[job_of_base[here]] = chosen[here] // stride % tree.cardinalities[v]
        gaps = plan.codes[:, v] < 0
        filled[gaps, v] = state_of_job[plan.job_of[gaps, cluster]]
    return filled


def cluster_tables(tree, theta):
    """Flat vector of all cluster tables: the product of the family tables that live in each."""
    tables = np.empty(tree.table_start[-1])
    kernels.cluster_tables(theta, *_homes(tree, tree.n_families), tables)
    return tables


def _homes(tree, n):
    """Kernel arguments that tie the first `n` families to their clusters."""
    home = tree.home[:n]
    sizes = np.diff(tree.table_start)[home]
    return tree.table_start[home], sizes, tree.family_start[:n], tree.map_start[:n], tree.maps


def _cliques_of(tree, variables):
    """{hidden variable: its smallest clique}."""
    sizes = np.diff(tree.table_start)
    found: dict[int, int] = {}
    wanted = set(variables) & set(tree.hidden)
    for cluster, scope in enumerate(tree.scopes):
        for v in wanted.intersection(scope):
            if v not in found or sizes[cluster] < sizes[found[v]]:
                found[v] = cluster
    return found


def _reduce_clusters(tree, codes):
    """Fix the observed variables in every cluster.

    Returns plans (n_rows, n_clusters), -1 where fully observed; bases, the table cell of the observed values with the hidden
    ones at state 0; joined, whether the separator to the cluster above has a hidden variable; and the `_Catalogue` of plans.
    """
    n_rows, n_clusters = len(codes), len(tree.scopes)
    plans = np.full((n_rows, n_clusters), -1, dtype=np.int32)
    bases = np.empty((n_rows, n_clusters), dtype=np.int32)
    joined = np.zeros((n_rows, n_clusters), dtype=np.bool_)
    hidden = set(tree.hidden)
    cluster_of: list[int] = []
    masks: list[int] = []
    for c, scope in enumerate(tree.scopes):
        base = np.full(n_rows, tree.table_start[c], dtype=np.int64)
        mask = np.zeros(n_rows, dtype=np.int64)
        for position, (v, step) in enumerate(zip(scope, strides(scope, tree.cardinalities))):
            values = codes[:, v].astype(np.int64)
            if v in hidden:
                gaps = values < 0
                mask |= gaps.astype(np.int64) << position
                values[gaps] = 0
                if v in tree.separators[c]:
                    joined[:, c] |= gaps
            base += values * step
        bases[:, c] = base
        distinct, inverse = np.unique(mask, return_inverse=True)
        hidden_some = distinct > 0
        plans[:, c] = np.where(hidden_some, len(masks) + np.cumsum(hidden_some) - 1, -1)[inverse]
        masks += distinct[hidden_some].tolist()
        cluster_of += [c] * (len(masks) - len(cluster_of))
    return plans, bases, joined, _catalogue(tree, cluster_of, masks)


def _catalogue(tree, cluster_of, masks):
    """Index arrays for every way in which a cluster occurs: which of its variables are hidden."""
    cards = [int(r) for r in tree.cardinalities]
    children: list[list[int]] = [[] for _ in tree.scopes]
    for c, above in enumerate(tree.parent):
        if above >= 0:
            children[above].append(c)
    hidden_of = [[v for i, v in enumerate(tree.scopes[c]) if mask >> i & 1] for c, mask in zip(cluster_of, masks)]
    size = [prod(cards[v] for v in hidden) for hidden in hidden_of]
    pool = _IndexPool()
    n_plans = len(masks)
    cells, up, sep = (np.zeros(n_plans, dtype=np.int64) for _ in range(3))
    child_start = np.zeros(n_plans, dtype=np.int64)
    child_index: list[int] = []
    child_cells: list[int] = []
    _refuse_index(sum(size))
    for plan, (c, hidden) in enumerate(zip(cluster_of, hidden_of)):
        step = dict(zip(tree.scopes[c], strides(tree.scopes[c], cards)))
        cells[plan] = pool.add([cards[v] for v in hidden], [step[v] for v in hidden])
        towards = [v for v in tree.separators[c] if v in hidden]
        sep[plan] = prod(cards[v] for v in towards)
        up[plan] = pool.add(*_digits(hidden, towards, cards))
        child_start[plan] = len(child_index)
        for child in children[c]:
            towards = [v for v in tree.separators[child] if v in hidden]
            child_index.append(pool.add(*_digits(hidden, towards, cards)) if towards else -1)
            step = dict(zip(tree.scopes[child], strides(tree.scopes[child], cards)))
            steps = [step[v] if v in towards else 0 for v in hidden]
            child_cells.append(pool.add([cards[v] for v in hidden], steps) if towards else -1)
    return _Catalogue(
        cluster=np.array(cluster_of, dtype=np.int64),
        mask=masks,
        size=np.array(size, dtype=np.int64),
        cells=cells,
        up=up,
        sep=sep,
        child_start=child_start,
        child_index=np.array(child_index, dtype=np.int64),
        child_cells=np.array(child_cells, dtype=np.int64),
        cell_index=pool.array(),
    )


def _digits(hidden, towards, cards):
    """Cardinalities of the cluster's hidden variables and their steps in a table over `towards`."""
    step = dict(zip(towards, strides(towards, cards)))
    return [cards[v] for v in hidden], [step.get(v, 0) for v in hidden]


def _resolve_entries(tree, catalogue, kind_start, entry_plan, entry_parent):
    """The kernels' entry records of all kinds, and the sizes of the scratch arrays."""
    k = kernels
    entries = np.zeros((len(entry_plan), k.N_FIELDS), dtype=np.int64)
    kind = np.repeat(np.arange(len(kind_start) - 1), np.diff(kind_start))
    first = kind_start[kind]
    has_parent = entry_parent >= 0
    above = (first + entry_parent)[has_parent]
    entries[:, k.CELLS] = catalogue.cells[entry_plan]
    entries[:, k.N] = catalogue.size[entry_plan]
    entries[:, k.UP] = catalogue.up[entry_plan]
    entries[:, k.SEP] = np.where(has_parent, catalogue.sep[entry_plan], 0)
    entries[:, k.PARENT] = entry_parent
    slot = np.zeros(len(tree.scopes), dtype=np.int64)
    seen = np.zeros(len(tree.scopes), dtype=np.int64)
    for c, p in enumerate(tree.parent):
        if p >= 0:
            slot[c] = seen[p]
            seen[p] += 1
    place = catalogue.child_start[entry_plan[above]] + slot[catalogue.cluster[entry_plan[has_parent]]]
    entries[has_parent, k.IN_PARENT] = catalogue.child_index[place]
    is_parent = np.zeros(len(entries), dtype=bool)
    is_parent[above] = True
    vector = has_parent & ~is_parent & (entries[:, k.N] == entries[:, k.SEP])
    entries[:, k.VECTOR] = vector
    entries[:, k.PLAN] = entry_plan
    sizes = np.zeros(3, dtype=np.int64)
    for number, (field, length) in enumerate(((k.BUFFER, k.N), (k.MESSAGE, k.SEP))):
        total = state_offsets(np.where(vector, 0, entries[:, length]))
        entries[:, field] = total[:-1] - total[first]
        sizes[number] = np.max(total[kind_start[1:]] - total[kind_start[:-1]], initial=0)
    parent_of = first + entry_parent
    entries[vector, k.N] = entries[parent_of[vector], k.N]
    entries[vector, k.BUFFER] = entries[parent_of[vector], k.BUFFER]
    entries[vector, k.CELLS] = catalogue.child_cells[place[vector[has_parent]]]
    sizes[2] = np.max(np.diff(kind_start), initial=0)
    return entries, sizes


def _link_rows(plans, joined, parent):
    """(job_start, entries, job_of), see `_junction_tree_kernels.link_rows`."""
    active = plans >= 0
    job_start = np.zeros(int((active & ~joined).sum()) + 1, dtype=np.int64)
    entries = np.empty((3, int(active.sum())), dtype=np.int32)
    job_of = np.full(plans.shape, -1, dtype=np.int32)
    kernels.link_rows(plans, joined, parent, job_start, entries, job_of, np.empty((2, plans.shape[1]), dtype=np.int32))
    return job_start, entries, job_of


def _group(job_start, values):
    """Group jobs with equal sequences: (group of every job, first job of every group)."""
    for salt in range(1, 100):
        hashes = np.empty(len(job_start) - 1, dtype=np.uint64)
        kernels.hash_jobs(job_start, values, salt, hashes)
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        if kernels.same_jobs(job_start, values, first[group] if len(first) else group):
            return group, first
    raise AssertionError("no salt separates the jobs")  # 99 independent 64-bit collisions


def _refuse_index(cells):
    if cells > MAX_INDEX_CELLS:
        raise ValueError(
            f"the rows hide variables in so many ways that {cells:,} index cells are needed (limit {MAX_INDEX_CELLS:,}); "
            "fit fewer rows at once, or drop columns with many missing cells"
        )


class ImpossibleEvidence(ValueError):
    """The observed values of a row have probability zero; `row` is its position."""

    def __init__(self, row, label=None):
        self.row = row
        named = f"row {row}" if label is None or label == row else f"row {row} (index {label!r})"
        super().__init__(
            f"the observed values of {named} have probability zero under the network; correct the row, or give the tables no "
            "exact zeros (a prior alpha > 0)"
        )


class EvidenceJobs(NamedTuple):
    """The kernels' arguments after the tables; see there for the layout of `entries`.

    kind_start, kind_jobs, kind_base : (n_kinds + 1,) ranges of entries and jobs of every kind, and where its bases begin
    bases : table cell of every entry of every job
    """

    kind_start: np.ndarray
    kind_jobs: np.ndarray
    kind_base: np.ndarray
    entries: np.ndarray
    bases: np.ndarray
    cell_index: np.ndarray
    sizes: np.ndarray


class EvidencePlan(NamedTuple):
    """Rows prepared for a tree.

    constant : (n_cluster_cells,) weights of the fully observed clusters
    job_weights, job_rows : (n_jobs,) total weight, a row that has the job
    job_of : (n_rows, n_clusters) job of a cluster in a row, -1 where it is fully observed      row_bases : its table cell
    plan_cluster, plan_mask : cluster and hidden variables (bits by position in its scope) of every plan
    """

    tree: JunctionTree
    codes: np.ndarray
    weights: np.ndarray
    constant: np.ndarray
    jobs: EvidenceJobs
    job_weights: np.ndarray
    job_rows: np.ndarray
    job_of: np.ndarray
    row_bases: np.ndarray
    plan_cluster: np.ndarray
    plan_mask: list

    def base_owners(self):
        """(job, cluster) of every place in `bases`."""
        length = np.diff(self.jobs.kind_start)
        kind = np.repeat(np.arange(len(length)), np.diff(self.jobs.kind_jobs))
        jobs = np.repeat(np.arange(len(kind)), length[kind])
        start = state_offsets(length[kind])[:-1]
        entry = np.arange(len(jobs)) - start[jobs] + self.jobs.kind_start[kind[jobs]]
        return jobs, self.plan_cluster[self.jobs.entries[entry, kernels.PLAN]]


class _Catalogue(NamedTuple):
    """Per plan: cluster, hidden variables, size, and starts of its index arrays (all inside one array, `cell_index`).

    For every child of the cluster: the place of each cell in the child's message, and in the child's table.
    """

    cluster: np.ndarray
    mask: list
    size: np.ndarray
    cells: np.ndarray
    up: np.ndarray
    sep: np.ndarray
    child_start: np.ndarray
    child_index: np.ndarray
    child_cells: np.ndarray
    cell_index: np.ndarray


class _IndexPool:
    """Mixed-radix index arrays, equal ones stored once."""

    def __init__(self):
        self.known, self.parts, self.length = {}, [np.zeros(0, dtype=np.int32)], 0

    def add(self, cards, steps):
        key = (tuple(cards), tuple(steps))
        if key not in self.known:
            part = np.empty(prod(cards), dtype=np.int32)
            kernels.mixed_radix(np.array(cards, dtype=np.int64), np.array(steps, dtype=np.int64), part)
            self.known[key] = self.length
            self.parts.append(part)
            self.length += len(part)
            _refuse_index(self.length)
        return self.known[key]

    def array(self):
        return np.concatenate(self.parts)
