"""Missing cells of a row: their first states, and draws from a network against the product of its tables."""

import numpy as np
import pytest

from pgm_bma.orders.gaps import augment


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
