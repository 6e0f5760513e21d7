"""Scores of families in files of the format .jkl, which GOBNILP and other programs read.

A file holds the number of variables; then for each its name and number of parent sets, and a line per set: its score, the number of
parents and their names.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import brief
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.runtime.atomic import file_path, read_bytes, replacing
from pgm_bma.orders.families.family_table import (
    MAX_FAMILIES,
    FamilyLists,
    Scoring,
    family_layout,
    members,
    n_families,
)

COLUMNS = ("child", "parents", "log_score")
_WANTED = "a fitted order estimator, or a DataFrame with the columns child, parents and log_score"


def write_scores(scores: Any, path: Any) -> Path:
    """Write scores of families to a file in the format .jkl.

    Parameters
    ----------
    scores : fitted order estimator or DataFrame
        An estimator with `family_scores_`, whose log marginal likelihoods and log priors are added; or columns `child`, `parents`
        (tuple of names) and `log_score`.
    path : str or path-like
        Name of the file; an older one is replaced.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import pandas as pd, tempfile, os
    >>> from pgm_bma import OrderPosterior, read_scores, write_scores
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6})
    >>> posterior = OrderPosterior(equivalent_sample_size=1).fit(X)
    >>> path = write_scores(posterior, os.path.join(tempfile.mkdtemp(), "scores.jkl"))
    >>> path.read_text().splitlines()[:2]
    ['2', 'a 2']
    >>> read_scores(path).round(2)["log_score"].tolist()
    [-19.15, -4.05, -19.15, -4.05]
    """
    path, table = file_path(path), _as_table(scores)
    names = list(dict.fromkeys([*table["child"], *(p for z in table["parents"] for p in z)]))
    texts = {name: str(name) for name in names}
    for name, text in texts.items():
        if not text or text.split() != [text]:
            raise ValueError(f"the name {name!r} holds a blank, which files of scores cannot hold; rename the column")
    if len(set(texts.values())) < len(texts):
        raise ValueError("two columns have the same name as text; rename one of them")
    lines = [str(len(names))]
    groups = dict(list(table.groupby("child", sort=False)))
    for name in names:
        own = groups.get(name, table[:0])
        lines.append(f"{texts[name]} {len(own)}")
        for z, score in zip(own["parents"], own["log_score"]):
            lines.append(" ".join([repr(float(score)), str(len(z)), *(texts[p] for p in z)]))
    with replacing(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def read_scores(path: Any) -> pd.DataFrame:
    """Scores of families from a file in the format .jkl, for ``OrderPosterior.fit_scores``.

    Parameters
    ----------
    path : str or path-like
        Name of the file.

    Returns
    -------
    DataFrame
        A row per family: `child`, `parents` (tuple of names) and `log_score`, in the order of the file.
    """
    rows, at, lines = [], 1, []
    try:
        text = read_bytes(path).decode()
        lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        n = int(lines[0][1][0])
        for _ in range(n):
            child, n_sets = lines[at][1][0], int(lines[at][1][1])
            for _ in range(n_sets):
                at += 1
                score, size, *parents = lines[at][1]
                if len(parents) != int(size):
                    raise ValueError(f"{size} parents are announced, {len(parents)} follow")
                rows.append((child, tuple(parents), float(score)))
            at += 1
    except (ValueError, IndexError) as error:
        where = f"line {lines[at][0]}" if at < len(lines) else "its end"
        raise ValueError(f"{str(path)!r} is not a file of scores (.jkl): {error} near {where}") from None
    if at != len(lines):
        raise ValueError(
            f"{str(path)!r} is not a file of scores (.jkl): more lines than line 1 announces, from line {lines[at][0]}"
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def given_families(scores, exact):
    """(names, `FamilyTable` or `FamilyLists`) of scores that a user gives; exact : most variables of a full table."""
    table = _as_table(read_scores(scores) if isinstance(scores, (str, os.PathLike)) else scores)
    names = list(dict.fromkeys(table["child"]))
    place = {name: k for k, name in enumerate(names)}
    found = {}
    for child, parents, score in table.itertuples(index=False):
        unknown = [p for p in parents if p not in place or p == child]
        if unknown:
            raise ValueError(
                f"the parents {parents!r} of {child!r} hold {unknown[0]!r}, which has no scores or is {child!r} itself"
            )
        key = place[child], tuple(sorted(place[p] for p in parents))
        if key in found or len(set(parents)) < len(parents):
            raise ValueError(f"the family of {child!r} with the parents {parents!r} stands twice; leave one out")
        found[key] = float(score)
    for name in names:
        if (place[name], ()) not in found:
            raise ValueError(f"{name!r} has no score without parents; every variable needs one")
    n, width = len(names), max(len(z) for _, z in found)
    if n <= exact and n_families(n, n - 1, width) <= MAX_FAMILIES:
        full, _ = family_layout(np.zeros(n, dtype=np.int64), Scoring(max_indegree=width))
        keys = [(v, tuple(int(p) for p in z if p >= 0)) for v in range(n) for z in members(full, v)]
        values = np.array([found.get(key, -np.inf) for key in keys])
        marginal = np.where(np.isfinite(values), values, 0.0)
        return names, full._replace(log_marginal=marginal, log_prior=np.where(np.isfinite(values), 0.0, -np.inf))
    keys = sorted(found, key=lambda key: (key[0], len(key[1]), key[1]))
    sets = np.array([[*z, *[-1] * (width - len(z))] for _, z in keys], dtype=np.int32).reshape(len(keys), width)
    offsets = state_offsets(np.bincount([v for v, _ in keys], minlength=n))
    marginal = np.array([found[key] for key in keys])
    zeros = np.zeros(n, dtype=np.int64)
    return names, FamilyLists(zeros, width, offsets, sets, marginal, np.zeros(len(keys)), np.zeros(n), 0)


def _as_table(scores):
    """A DataFrame with COLUMNS, checked."""
    table = getattr(scores, "family_scores_", scores)
    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"scores={brief(scores)} must be {_WANTED}")
    if "log_score" not in table and {"log_marginal_likelihood", "log_prior"} <= set(table):
        table = table.assign(log_score=table["log_marginal_likelihood"] + table["log_prior"])
        table = table[table["log_score"] > -np.inf]
    absent = [name for name in COLUMNS if name not in table]
    if absent:
        raise ValueError(f"scores has no column {absent[0]!r}; it must be {_WANTED}")
    table = table[list(COLUMNS)]
    values = pd.to_numeric(table["log_score"], errors="coerce")
    if not len(table) or not np.isfinite(values).all():
        raise ValueError("scores must have at least one row, and a finite number in every row of log_score")
    bad = [z for z in table["parents"] if isinstance(z, str) or not hasattr(z, "__iter__")]
    if bad:
        raise ValueError(
            f"scores has {bad[0]!r} in the column parents; each must be a tuple of names, () without parents"
        )
    return table.assign(
        log_score=values, parents=pd.Series([tuple(z) for z in table["parents"]], table.index, dtype=object)
    )


class ScoresOnly(NamedTuple):
    """Stands for the rows where there are only scores of families."""

    cardinalities: np.ndarray  # (n,) zeros

    @property
    def digested(self):
        """Nothing that a checkpoint could be checked by."""
        return ()

    def family_counts(self, *_):
        """Raise an error: tables of counts need rows."""
        raise ValueError("fit_scores has scores of families and no rows: tables of a network need fit(X)")
