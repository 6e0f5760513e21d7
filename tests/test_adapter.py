"""Adapter of the benchmarks: the files hold what the estimator found."""

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from benchmarks import edge_probabilities


@pytest.mark.parametrize("cardinalities", [False, True])
def test_files_hold_the_posterior_and_a_consensus(tmp_path, cardinalities):
    rows = pgm_bma.simulate(pgm_bma.load_network("asia"), 300, random_state=0)
    rows = rows.apply(lambda column: (column == "yes").astype(int)).astype(str)
    path, adjacency, probabilities = (tmp_path / name for name in ("table.csv", "adjacency.csv", "probabilities.csv"))
    given = pd.concat([pd.DataFrame([["2"] * 8], columns=rows.columns), rows]) if cardinalities else rows
    given.to_csv(path, index=False)
    flags = ["--cardinalities"] if cardinalities else []
    files = ["--adjacency", str(adjacency), "--probabilities", str(probabilities)]
    edge_probabilities.main([str(path), *files, *flags, "--set", "method=exact", "--set", "structure_prior=fair"])
    expected = pgm_bma.OrderPosterior(method="exact", structure_prior="fair").fit(rows)
    found = pd.read_csv(probabilities)
    assert list(found.columns) == list(rows.columns)
    np.testing.assert_allclose(found, expected.edge_posterior_, rtol=1e-12)  # decimal text of a float reads back
    arcs = pd.read_csv(adjacency).to_numpy()
    names = list(rows.columns)
    assert {(names[i], names[j]) for i, j in zip(*np.nonzero(arcs))} == set(expected.consensus().edges())
    assert set(np.unique(arcs)) <= {0, 1}
