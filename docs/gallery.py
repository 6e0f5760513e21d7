"""Draw every plot function at 8, 40 and 120 variables: ``python docs/gallery.py FOLDER`` writes PNG files and an index.html.

Everything is drawn from small random models, so that the gallery needs no fit and takes about a minute. It is there to be
looked at, one by one, after a change of `plotting`.
"""

import html
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

import pgm_bma
from benchmarks._random_models import random_augmented_naive_bayes, random_selective_naive_bayes
from pgm_bma import plotting

SIZES = (8, 40, 120)


def pictures(n):
    """(name, what draws it) of every plot function at n variables."""
    rng = np.random.default_rng(n)
    names = [f"{word}_{i}" for i, word in zip(range(n), ["income", "age", "vote", "region", "smoker", "x"] * n)]
    posterior = _posterior(names, rng)
    clustered = random_selective_naive_bayes(n, 3, alpha=0.5, max_cardinality=6, prefix="item_", random_state=n)
    sparse = nx.DiGraph([(a, b) for (a, b), p in posterior.items() if p > 0.6])
    sparse.add_nodes_from(names)
    turned = nx.DiGraph([(b, a) if rng.random() < 0.2 else (a, b) for a, b in sparse.edges if rng.random() < 0.8])
    turned.add_nodes_from(names)
    relevance = pd.Series(rng.exponential(size=n) * (rng.random(n) < 0.6), names, name="dependence on the class (nats)")
    sure = pd.Series(1 - rng.random(n) * np.exp(-8 * relevance), names)
    table = pd.DataFrame(0.0, names, names)
    for (a, b), p in posterior.items():
        table.at[a, b] = p
    interactions = {(a, b): rng.normal() * 0.1 for (a, b), p in posterior.items() if p > 0.3}
    lower = rng.random(n) * 0.5
    return {
        "network of a posterior": lambda: plotting.plot_network(_graph(names, posterior)),
        "network without posteriors": lambda: plotting.plot_network(sparse),
        "latent class network": lambda: plotting.plot_network(clustered),
        "augmented network": lambda: plotting.plot_network(
            random_augmented_naive_bayes(n, 3, n // 2, max_cardinality=3, prefix="item_", random_state=n)
        ),
        "difference of structures": lambda: plotting.plot_structure_difference(sparse, turned),
        "arc posteriors": lambda: plotting.plot_arc_posteriors(table),
        "regions": lambda: plotting.plot_region_graph(_regions(names, rng), target="class"),
        "interactions": lambda: plotting.plot_interactions(interactions, relevance=relevance),
        "relevance": lambda: plotting.plot_relevance(relevance, posterior=sure),
        "cluster profiles": lambda: plotting.plot_cluster_profiles(clustered),
        "score traces": lambda: plotting.plot_score_traces(
            np.cumsum(rng.normal(size=(4, 20 * n)), axis=1), burn_in=5 * n
        ),
        "starts": lambda: plotting.plot_starts(-1000 - rng.exponential(size=n)),
        "criteria": lambda: plotting.plot_criteria(_criteria(n)),
        "residuals": lambda: plotting.plot_residuals(_residuals(names, rng)),
        "profiles with intervals": lambda: plotting.plot_profile_intervals(_profiles(names, rng)),
        "bound and collapse": lambda: plotting.plot_bound_collapse(
            lower, lower + 0.4, lower + 0.2, labels=names, reference=lower + 0.25
        ),
        "evidence": lambda: plotting.plot_evidence(
            pd.Series(rng.normal(size=n) * rng.exponential(size=n), names, name="log odds of yes against no")
        ),
        "calibration": lambda: plotting.plot_calibration(*_predictions(20 * n, rng)),
    }


def draw_all(folder, n, dpi=100):
    """Write every picture at n variables; yields (name, path)."""
    for name, draw in pictures(n).items():
        path = Path(folder) / f"{name.replace(' ', '-')}-{n}.png"
        draw().figure.savefig(path, dpi=dpi)
        plt.close("all")
        yield name, path


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page = ["<!doctype html><meta charset=utf-8><title>gallery</title><style>img{max-width:100%}</style>"]
    for n in SIZES:
        page.append(f"<h1>{n} variables</h1>")
        for name, path in draw_all(folder, n):
            page.append(f"<h2>{html.escape(name)}</h2><img src='{path.name}' alt='{html.escape(name)}, {n} variables'>")
            print(path.name, flush=True)
    (folder / "index.html").write_text("\n".join(page), encoding="utf-8")


def _posterior(names, rng):
    """Posteriors of arcs along an order: most small, a few large, a third of the nodes with none above a tenth."""
    found = {}
    lonely = set(rng.choice(names, len(names) // 3, replace=False))
    for j, head in enumerate(names):
        for tail in rng.choice(names[:j], min(j, 4), replace=False) if j else ():
            weak = head in lonely or tail in lonely
            found[str(tail), head] = float(0.04 * rng.random() if weak else rng.beta(0.6, 0.6))
    return found


def _graph(names, posterior):
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((a, b, {"posterior": p}) for (a, b), p in posterior.items())
    return graph


def _regions(names, rng):
    """The class with every variable, and with some pairs of them."""
    n = len(names)
    pairs = [tuple(rng.choice(names, 2, replace=False)) for _ in range(n // 3)]
    single = [name for name in names if not any(name in pair for pair in pairs)]
    return pgm_bma.region_graph([["class", *pair] for pair in pairs] + [["class", name] for name in single])


def _predictions(n, rng):
    probability = rng.beta(0.7, 0.7, n)
    return (rng.random(n) < 0.8 * probability + 0.1).astype(int), probability


def _criteria(n):
    """Criteria of 1 to 8 clusters of n columns with two states and 1000 rows: three clusters are there."""
    numbers = np.arange(1, 9)
    likelihood = -200.0 * n + 30 * n * np.minimum(numbers - 1, 2) + 0.6 * n * np.maximum(numbers - 3, 0)
    n_parameters = numbers * (n + 1) - 1
    deviance, penalty = -2 * likelihood, n_parameters * np.log(1000)
    return pd.DataFrame(
        {
            "n_clusters": numbers,
            "score": likelihood - 0.55 * penalty,
            "bic": deviance + penalty,
            "adjusted_bic": deviance + n_parameters * np.log(1002 / 24),
            "aic": deviance + 2 * n_parameters,
            "caic": deviance + penalty + n_parameters,
            "icl": deviance + penalty + 40.0 * (numbers - 1),
        }
    )


def _residuals(names, rng):
    """Residuals of every pair: mostly chance, a few pairs that stay dependent."""
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    strong = rng.random(len(pairs)) < 1.5 / len(names)
    values = rng.chisquare(1, len(pairs)) + strong * rng.exponential(40, len(pairs))
    return pd.DataFrame({"first": [a for a, _ in pairs], "second": [b for _, b in pairs], "residual": values})


def _profiles(names, rng):
    """Sizes and P(state | cluster) of three clusters, with intervals as wide as 300 rows make them."""
    sizes, lines = (0.5, 0.3, 0.2), []
    for c, size in enumerate(sizes):
        lines.append((c, None, None, size, size - 0.05, size + 0.05))
    for i, name in enumerate(names):
        states = ["no", "yes"] if i % 3 else ["never", "sometimes", "often"]
        for c, size in enumerate(sizes):
            shares = rng.dirichlet(np.ones(len(states)))
            error = 2 * np.sqrt(shares * (1 - shares) / (300 * size))
            bounds = np.clip(shares - error, 0, 1), np.clip(shares + error, 0, 1)
            lines += [(c, name, *rest) for rest in zip(states, shares, *bounds)]
    return pd.DataFrame(lines, columns=["cluster", "column", "state", "probability", "low", "high"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gallery")
