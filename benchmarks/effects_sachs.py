"""Sachs and others (2005): arcs with and without using the experiments, against the network of the literature, and effects.

5,400 rows of 11 proteins in three states, of which 3,600 have a protein set. The table may not be redistributed: it is looked for
as sachs-interventional.csv in the folder PGM_BMA_DATA, with the column `intervention`. The network of the literature has 17 arcs.
"""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from pgm_bma import OrderPosterior, load_network

from ._common import Skip, parser, print_table, run, save_csv

FITS = {
    "1,800 rows without experiments": ("free", {}),
    "all rows, experiments not used": ("ignored", {}),
    "all rows, perfect interventions": ("used", {}),
    "all rows, soft interventions": ("used", {"intervention_type": "soft"}),
}


def main(argv=None):
    chosen = parser(__doc__).parse_args(argv)
    path = Path(os.environ.get("PGM_BMA_DATA", "")) / "sachs-interventional.csv"
    if not os.environ.get("PGM_BMA_DATA") or not path.exists():
        raise Skip("set PGM_BMA_DATA to a folder that holds sachs-interventional.csv")
    X, known = pd.read_csv(path), load_network("sachs")
    names = [name for name in X.columns if name != "intervention"]
    arcs = [(a, b) for a in names for b in names if a != b]
    truth = np.array([known.has_edge(a, b) for a, b in arcs])
    lines, effects = [], []
    for name, (which, how) in FITS.items():
        rows = X[X["intervention"].isna()] if which == "free" else X
        start = time.process_time()
        posterior = OrderPosterior(random_state=chosen.seed)
        if which == "used":
            posterior.fit(rows, interventions="intervention", **how)
        else:
            posterior.fit(rows[names])
        edges = posterior.edge_posterior_
        scores = np.array([edges.loc[a, b] for a, b in arcs])
        either = np.array([edges.loc[a, b] + edges.loc[b, a] for a, b in arcs])
        sure = either > 0.9
        line = {
            "fit": name,
            "AUROC": roc_auc_score(truth, scores),
            "average precision": average_precision_score(truth, scores),
        }
        line |= {"arcs above one half": int((scores > 0.5).sum()), "of them true": int(truth[scores > 0.5].sum())}
        line |= {"turned round": int(sum(known.has_edge(b, a) for (a, b), s in zip(arcs, scores) if s > 0.5))}
        line |= {"pairs of open direction": int((sure & (scores > 0.1) & (scores < 0.9)).sum() // 2)}
        lines.append(line | {"CPU s": time.process_time() - start})
        if how or which == "used":
            for of in ("PKA", "PKC"):
                for on in names:
                    if on != of:
                        found = posterior.effect(of, on, contrast="mean")
                        top = found.iloc[found["mean"].abs().argmax()]
                        effects.append(
                            {"fit": name, "of": of, "on": on, "zero": found.attrs["zero"], **top.drop("outcome")}
                        )
    print_table(lines, "Arcs of the literature (17)", 3)
    print_table(effects, "Largest change of the mean of a protein when PKA or PKC is set", 3)
    save_csv(lines, "effects_sachs", chosen.out)
    save_csv(effects, "effects_sachs_changes", chosen.out)


if __name__ == "__main__":
    run(main)
