"""Files for the tests of the command line, and a way to do without its pictures."""

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # tests run side by side: threads of libraries would only get in each other's way

import numpy as np
import pandas as pd
import pytest

from pgm_bma.commands import output, session

collect_ignore = [
    "typing/readme.py"
]  # examples for the type checker, which write where they run; tests/test_package.py runs them


# whole pages, and processes that are killed and start again: seconds each
LONG = (
    "tests/test_tutorials.py",
    "tests/test_docs.py",
    "tests/foundation/test_rows.py",
    "tests/orders/test_order_mcmc.py",
)


def pytest_collection_modifyitems(items):
    """Long tests come first, so that at the end the workers have short ones to share."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    """A CSV with an index column, blanks, quotes, accents, commas in cells, ? for missing and a constant column."""
    path = tmp_path_factory.mktemp("mes données") / "l'été 2024.csv"
    rng = np.random.default_rng(3)
    lines = [',été à la mer ,"taille, cm","l\'""avis""",santé,constante,classe']
    for i in range(60):
        sick = rng.random() < 0.5
        cells = [
            '"oui, bien sûr"' if (rng.random() < 0.85) == sick else "non",
            str(rng.integers(1, 4) + 3 * sick),
            '"très ""bon"""' if (rng.random() < 0.75) == sick else " mauvais ",
            "?" if rng.random() < 0.2 else "à (b)" if rng.random() < 0.5 else "ß{c}",
            "k",
            "malade" if sick else "sain",
        ]
        lines.append(",".join([str(i + 1), *cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    """Write a small CSV from a dict of columns; returns its path."""

    def write(columns, name="table.csv"):
        pd.DataFrame(columns).to_csv(tmp_path / name, index=False)
        return str(tmp_path / name)

    return write


@pytest.fixture
def no_pictures(monkeypatch):
    """Drawing takes most of a run; tests that look at other things do without."""
    for module in (output, session):
        monkeypatch.setattr(module, "drawn", lambda draw: (None, "not drawn in this test"))
