"""The score of structural EM as the paper has it: the expectation of log p(hidden, observed | structure) over all completions.

Paper: SEM (Peña, Lozano, Larrañaga 2000), Figs. 1 and 3, step 2. The log score is a sum of log Gamma functions of single counts,
and an expectation of a sum needs the counts one at a time. Rows are independent given the model that completes them, so a count is
a sum of independent 0/1 variables: a row is counted with the posterior probability that it falls into the cell, of the cluster
alone or, where attribute cells are missing, of cluster and cells together. A row of weight w is w rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from pgm_bma.augmented import _expectation_kernels as kernels
from pgm_bma.augmented._expectation_kernels import LENGTH, N_POWERS, SMALL
from pgm_bma.foundation.numbers.families import joint_index, state_offsets


def check_expectation(codes, weights, names, is_general):
    """Errors of what completion="expectation" does not take."""
    if weights is not None and (weights != np.floor(weights)).any():
        row = int(np.argmax(weights != np.floor(weights)))
        raise ValueError(
            f"completion='expectation' takes a weight as a number of rows, but one is {weights[row]:g}; pass whole numbers, or "
            "completion='expected'"
        )
    missing = (codes < 0).any(axis=0)
    if is_general and missing.any():
        raise ValueError(
            f"column {names[int(np.argmax(missing))]!r} has missing cells, for which completion='expectation' with "
            "structures='general' is not built; pass completion='expected', or structures='augmented'"
        )


class CellRows(NamedTuple):
    """Rows as the counts of one table see them: the cell of each, its weight, its probabilities (n, n_clusters) of being there.

    n_cells : of the table     powers : (N_POWERS, n_clusters, n_cells) sums of weight x probability^j, None if not at hand
    """

    cells: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    n_cells: int
    powers: np.ndarray | None = None


def expected_log_gammas(rows, alphas):
    """E log Gamma(N + alpha) of the counts N of all cells in all clusters: (n_alphas, n_clusters, n_cells)."""
    alphas = np.asarray(alphas, dtype=float)
    n_clusters = rows.shares.shape[1]
    tables = gammaln(np.arange(LENGTH) + alphas[:, None])
    out = np.empty((n_clusters, len(alphas), rows.n_cells))
    cells = np.ascontiguousarray(rows.cells, dtype=np.int64)
    for c in range(n_clusters):
        shares = np.ascontiguousarray(rows.shares[:, c])
        powers = _power_sums(rows, shares) if rows.powers is None else rows.powers[:, c].copy()
        likely = np.flatnonzero(shares > SMALL)
        kernels.expect_cells(cells, rows.weights, shares, likely, powers, alphas, tables, out[c])
    return out.swapaxes(0, 1)


def _power_sums(rows, shares):
    powers = np.empty((N_POWERS, rows.n_cells))
    weights = rows.weights
    for j in range(N_POWERS):
        weights = weights * shares
        powers[j] = np.bincount(rows.cells, weights, minlength=rows.n_cells)
    return powers


class Completion(NamedTuple):
    """Rows with the probabilities of what completes them.

    codes : (n_complete, n_columns)     weights, shares : of all rows, the complete ones first, and their clusters
    posteriors : (n_incomplete, n_clusters, S, S) of cluster and pair of states, S states of all columns
    powers : (N_POWERS, n_clusters, S, S) sums of weight x probability^j over all rows     cluster_powers : the same of the clusters
    """

    codes: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    cardinalities: np.ndarray
    posteriors: np.ndarray
    powers: np.ndarray
    cluster_powers: np.ndarray

    def table(self, i, j):
        """Rows of the table of columns i and j, or where they are one of its states."""
        cards, starts, m = self.cardinalities, state_offsets(self.cardinalities), len(self.codes)
        here, there = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        powers, posteriors = self.powers[:, :, here, there], self.posteriors[:, :, here, there]
        if i == j:
            cells, n_cells = self.codes[:, i], int(cards[i])
            powers, posteriors = (np.diagonal(a, axis1=2, axis2=3) for a in (powers, posteriors))
        else:
            cells, n_cells = self.codes[:, i].astype(np.int64) * cards[j] + self.codes[:, j], int(cards[i] * cards[j])
        powers = powers.reshape(*powers.shape[:2], n_cells)
        if not len(posteriors):
            return CellRows(cells, self.weights, self.shares, n_cells, powers)
        # an incomplete row may fall into any cell: it stands once for each
        cells = np.concatenate([cells, np.tile(np.arange(n_cells), len(posteriors))])
        weights = np.concatenate([self.weights[:m], np.repeat(self.weights[m:], n_cells)])
        posteriors = posteriors.reshape(*posteriors.shape[:2], n_cells).swapaxes(1, 2).reshape(-1, posteriors.shape[1])
        return CellRows(cells, weights, np.concatenate([self.shares[:m], posteriors]), n_cells, powers)

    def clusters(self):
        """Rows of the counts of the clusters."""
        cells = np.zeros(len(self.weights), dtype=np.int64)
        return CellRows(cells, self.weights, self.shares, 1, self.cluster_powers[:, :, None])


def expected_class_score(completion, alpha):
    """Expected log score of the cluster, which has no parents."""
    n_clusters = completion.shares.shape[1]
    gained = expected_log_gammas(completion.clusters(), [alpha])[0].sum() - n_clusters * gammaln(alpha)
    total = n_clusters * alpha
    return float(gained + gammaln(total) - gammaln(total + completion.weights.sum()))


def expected_pair_scores(completion, prior, parents=None):
    """Expected log scores of families: [i, j + 1] is column i below the cluster and column j, [i, 0] below the cluster alone.

    prior : `foundation.numbers.pairs.PairPrior`
    parents : (n_columns,) of the one structure whose families are wanted, the rest nan; default all
    """
    cards = completion.cardinalities
    n, n_clusters = len(cards), completion.shares.shape[1]
    wanted = ~np.eye(n, dtype=bool)  # [child, parent]
    if parents is not None:
        wanted = np.asarray(parents)[:, None] == np.arange(n)
    scores = np.full((n, n + 1), np.nan)
    alone, below = prior.alone, prior.below
    sums, place = np.unique(cards * alone, return_inverse=True)
    lines = expected_log_gammas(completion.clusters(), sums).sum(axis=(1, 2))[place]
    for j in range(n):
        children = np.flatnonzero(wanted[:, j])
        alphas, place = np.unique(np.append(alone[j], cards[children] * below[j, children]), return_inverse=True)
        found = expected_log_gammas(completion.table(j, j), alphas).sum(axis=(1, 2))[place]
        of_prior = gammaln(cards[j] * alone[j]) - cards[j] * gammaln(alone[j])
        scores[j, 0] = found[0] - lines[j] + n_clusters * of_prior
        scores[children, j + 1] = -found[1:]
    for i, j in zip(*np.nonzero(np.triu(wanted | wanted.T))):
        cells = expected_log_gammas(completion.table(i, j), [below[i, j]]).sum()
        for child, parent in ((i, j), (j, i)):
            if wanted[child, parent]:
                of_prior = gammaln(cards[child] * below[i, j]) - cards[child] * gammaln(below[i, j])
                scores[child, parent + 1] += cells + n_clusters * cards[parent] * of_prior
    return scores


def expected_family_score(codes, cardinalities, weights, shares, child, parents, alpha):
    """Expected log score of any family of complete rows that holds the cluster, node 0.

    codes : (n, n_nodes), of which column 0 is not read     shares : (n, n_clusters)
    """
    others = [node for node in (child, *parents) if node]
    lines = [node for node in parents if node]
    cells = _joint_rows(codes, cardinalities, weights, shares, others)
    n_states = int(cardinalities[child])
    n_lines = int(np.prod(cardinalities[list(parents)], dtype=np.int64))
    total = expected_log_gammas(cells, [alpha])[0].sum()
    if child:
        total -= expected_log_gammas(
            _joint_rows(codes, cardinalities, weights, shares, lines), [alpha * n_states]
        ).sum()
    else:  # its lines are counts of columns, which are known
        known = np.bincount(cells.cells, weights, minlength=cells.n_cells)
        total -= gammaln(known + alpha * n_states).sum()
    return float(total + n_lines * (gammaln(alpha * n_states) - n_states * gammaln(alpha)))


def _joint_rows(codes, cardinalities, weights, shares, nodes):
    n_cells = int(np.prod(cardinalities[nodes], dtype=np.int64))
    return CellRows(joint_index(codes, cardinalities, nodes)[0], weights, shares, n_cells)
