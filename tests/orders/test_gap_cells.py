"""Missing cells of a row: their first states, and draws from a network against the product of its tables."""

import numpy as np
import pytest
from scipy.special import gammaln

from pgm_bma.orders.gaps import _augment_kernels, augment


@pytest.mark.parametrize("how", ["at once", "in blocks", "tree", "passes"])
def test_cells_are_drawn_from_the_joint_law_of_their_row(how, monkeypatch):
    """Against the product of all tables, written out state by state."""
    monkeypatch.setattr(augment, "BLOCK", 512 if how == "at once" else 6)
    monkeypatch.setattr(augment, "MAX_CLIQUE", 512 if how == "tree" else 1)
    rng, n_rows = np.random.default_rng(0), 20_000
    cards, parents = np.array([2, 3, 2, 2, 3]), [(), (0,), (0, 1), (), (3,)]
    tables = [rng.dirichlet(np.full(cards[v], 1.5), np.prod(cards[list(z)], dtype=int)) for v, z in enumerate(parents)]
    theta = np.concatenate([some.ravel() for some in tables])
    for hidden in ([0, 2, 3], [0, 1, 2, 4], [2]):
        row = np.array([1, 1, 0, 1, 2], dtype=np.int32)
        row[hidden] = -1
        gaps = augment.GapTable(np.tile(row, (n_rows, 1)), np.ones(n_rows), cards, (1.0, None))
        if how in ("tree", "passes"):
            drawn = augment.draw_afresh(gaps, parents, theta, rng)
        else:
            full = np.maximum(gaps.codes, 0)
            for _ in range(1 if how == "at once" else 30):  # blocks forget where they began
                drawn, cut = augment.draw_cells(gaps, full, parents, theta, rng)
                full[gaps.cells] = drawn
            assert cut == (how == "in blocks" and {0, 1, 2} <= set(hidden))
        states, law = [tuple(cell) for cell in drawn.reshape(n_rows, -1)], {}
        for values in np.ndindex(*cards[hidden]):
            full = row.copy()
            full[hidden] = values
            at = [np.ravel_multi_index(full[list(z)], cards[list(z)]) if z else 0 for z in parents]
            law[values] = np.prod([tables[v][at[v], full[v]] for v in range(5)])
        for values, share in law.items():
            p = share / sum(law.values())
            # 50 shares in all: 4.5 standard errors fail once in thousands of runs
            assert abs(states.count(values) / n_rows - p) < 4.5 * np.sqrt(p * (1 - p) / n_rows)


def test_chains_begin_on_both_sides():
    """Columns that are never seen together: filled alone they do not depend, filled alike they do."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (2000, 2)).astype(np.int32)
    codes[:1000, 0] = codes[1000:, 1] = -1
    gaps = augment.GapTable(codes, np.ones(2000), np.array([2, 2]), (1.0, None))
    alone, alike = (augment.completed(gaps, augment.first_filling(gaps, rng, how)) for how in (False, True))
    assert (alone >= 0).all() and (alike >= 0).all()
    # 2000 rows: four standard errors of a correlation of 0 are .09; quantiles in two halves agree but near one half
    assert abs(np.corrcoef(alone.T)[0, 1]) < 0.09 and np.corrcoef(alike.T)[0, 1] > 0.8


def test_a_row_of_very_many_columns_is_drawn_by_its_law():
    """Of 400 children of the missing cell: the products of their tables, some 1e-450, are below all floating-point numbers."""
    rng, n_rows = np.random.default_rng(0), 4000
    cards, parents = np.array([2, *[20] * 400]), [(), *[(0,)] * 400]
    tables = [np.array([[0.5, 0.5]])]
    for share in rng.dirichlet(np.ones(20), 400):
        table = np.stack([share, share * np.exp(rng.normal(0, 0.04, 20))])
        tables.append(table / table.sum(axis=1, keepdims=True))
    row = np.array([-1, *(rng.choice(20, p=table[0]) for table in tables[1:])], dtype=np.int32)
    gaps = augment.GapTable(np.tile(row, (n_rows, 1)), np.ones(n_rows), cards, (1.0, None))
    theta = np.concatenate([table.ravel() for table in tables])
    drawn, _ = augment.draw_cells(gaps, np.maximum(gaps.codes, 0), parents, theta, rng)
    low, high = (sum(np.log(table[state, k]) for table, k in zip(tables[1:], row[1:])) for state in (0, 1))
    share = 1 / (1 + np.exp(low - high))
    assert low < -800 and 0.05 < share < 0.95
    assert abs(drawn.mean() - share) < 4.5 * np.sqrt(share * (1 - share) / n_rows)  # standard errors


@pytest.mark.parametrize(("n_children", "weight"), [(4, 3.0), (100, 1e4), (820, 1.0)])
def test_a_cell_is_drawn_while_an_arc_is_moved(n_children, weight):
    """By the marginal likelihoods of all tables at the last power, 3/4: also of a column with very many children and rows."""
    rng, n = np.random.default_rng(0), n_children + 2
    codes = rng.integers(0, 2, (60, n)).astype(np.int32)
    weights = np.append(1.0, np.full(59, weight))
    families = [(0,), (0, 1), *((child, 0) for child in range(2, n))]  # child first; the second is to replace the first

    def log_marginal(family, state):
        table, columns = np.zeros((2,) * len(family)), codes.copy()
        columns[0, 0] = state
        np.add.at(table, tuple(columns[:, list(family)].T), weights)
        return gammaln(table + 1.0).sum() - gammaln(table.sum(axis=0) + 2.0).sum()

    powers = [0.25, 0.75, *[1.0] * n_children]
    low, high = (sum(b * log_marginal(family, state) for b, family in zip(powers, families)) for state in (0, 1))
    share = 1 / (1 + np.exp(low - high))
    seen, states = codes.copy(), []
    seen[0, 0] = -1
    parents = np.array([family[1] if len(family) > 1 else -1 for family in families])[:, None]
    for _ in range(4000):
        filled = codes.copy()
        assert _augment_kernels.anneal(
            rng, seen, filled, weights, np.full(n, 2), np.array([0, 1]), parents, np.array([family[0] for family in families]),
            (1.0, 1e300), 1e9, True,
        )  # fmt: skip
        states.append(filled[0, 0])
    assert 0.03 < share < 0.97
    assert abs(np.mean(states) - share) < 4.5 * np.sqrt(share * (1 - share) / 4000)  # standard errors
