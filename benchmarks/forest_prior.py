"""Noise of 2 to 2000 states, and real tables: arcs that a forest average finds under both parameter priors.

The noise column stands next to four copies of the class with errors (80 % right), a copy of one of those (90 %), 690 rows, two
classes; means over three tables. "into" is P(some column -> noise), "out of" the largest P(noise -> column), "class" P(class ->
noise) under class_arcs="selective", "relevant" P(arc between the column and its copy), "relevant class" the smallest P(class ->
copy of the class). For the clusterer the classes are hidden. Real tables (at most 800 rows): log loss of 5 folds, expected
number of arcs between columns, mean P(class arc).
"""

import numpy as np
import pandas as pd

from pgm_bma import ForestAveragedClassifier, ForestAveragedClusterer, load_dataset

from ._common import parser, print_line, print_table, run, save_csv

STATES = (2, 20, 100, 200, 350, 2000)
DOMAINS = ("voting", "mushroom", "lymphography", "breast-LJ", "tic-tac-toe", "zoo", "car", "krkp", "breast-wisc")


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    lines = [noise(n_states, prior, options.seed) for prior in ("consistent", "paper") for n_states in STATES]
    print_table(lines, "noise of many states: posterior of its arcs")
    save_csv(lines, "forest_prior_noise", options.out)
    save_csv([line for name in DOMAINS for line in domain(name, options.seed)], "forest_prior_domains", options.out)


def table(n_states, rng, n_rows=690):
    y = rng.integers(0, 2, n_rows)
    X = pd.DataFrame({f"c{i}": np.where(rng.random(n_rows) < 0.8, y, 1 - y) for i in range(4)})
    X["copy"] = np.where(rng.random(n_rows) < 0.9, X["c0"], rng.integers(0, 2, n_rows))
    X["noise"] = rng.integers(0, n_states, n_rows)
    return X, y


def noise(n_states, prior, seed, repeats=3):
    found = []
    for repeat in range(repeats):
        X, y = table(n_states, np.random.default_rng([seed, repeat]))
        for class_arcs in ("all", "selective"):
            fitted = ForestAveragedClassifier(class_arcs=class_arcs, parameter_prior=prior).fit(X, y)
            line = arcs(fitted)
            if class_arcs == "selective":
                line["class"] = fitted.class_arc_posterior_["noise"]
                line["relevant class"] = fitted.class_arc_posterior_.iloc[:4].min()
            found.append(line)
        clusterer = ForestAveragedClusterer(2, n_init=2, parameter_prior=prior, random_state=seed).fit(X)
        found.append({f"clusters, {what}": value for what, value in arcs(clusterer).items()})
    line = {"prior": prior, "states": n_states, **pd.DataFrame(found).mean().to_dict()}
    print_line(line)
    return line


def arcs(fitted):
    edges = fitted.edge_posterior_
    relevant = edges.loc["c0", "copy"] + edges.loc["copy", "c0"]
    return {"into": edges["noise"].sum(), "out of": edges.loc["noise"].max(), "relevant": relevant}


def domain(name, seed):
    from sklearn.model_selection import StratifiedKFold

    try:
        frame, target = load_dataset(name)
    except (ValueError, OSError) as reason:
        print(f"{name} left out: {reason}")
        return
    frame = frame.sample(min(len(frame), 800), random_state=seed).reset_index(drop=True)
    X, y = frame.drop(columns=target), frame[target].astype(str)
    for class_arcs in ("all", "selective"):
        for prior in ("consistent", "paper"):
            losses = []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
                fitted = ForestAveragedClassifier(class_arcs=class_arcs, parameter_prior=prior)
                fitted.fit(X.iloc[train], y.iloc[train])
                proba = pd.DataFrame(fitted.predict_proba(X.iloc[test]), columns=fitted.classes_)
                losses += [-np.log(proba.iloc[i][label]) for i, label in enumerate(y.iloc[test])]
            whole = ForestAveragedClassifier(class_arcs=class_arcs, parameter_prior=prior).fit(X, y)
            line = {
                "domain": name,
                "class_arcs": class_arcs,
                "prior": prior,
                "log_loss": float(np.mean(losses)),
                "arcs": float(whole.edge_posterior_.to_numpy().sum()),
                "class_arcs_mean": float(whole.class_arc_posterior_.mean()),
            }
            print_line(line)
            yield line


if __name__ == "__main__":
    run(main)
