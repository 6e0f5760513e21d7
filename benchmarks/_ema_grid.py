"""EM against EMA and variational EMA on data drawn from random models: one cell of the paper's Tables I and II at a time.

Every method sees the same rows and the same starts. A result is the Hamming distance between the co-membership matrices of
the found and the true partition, divided by N^2 (0 is perfect). The starts of a loop are run once and combined in several
ways.
"""

import numpy as np

from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import LatentClassSettings, conclude, run_all_starts
from pgm_bma.latent_class.problem import PriorSettings, log_joint, make_problem
from pgm_bma.metrics import wins_draws_losses

# name -> (averaging, init, combine_starts); "EM" and "EMA" are the paper's
METHODS = {
    "EM": (None, "random", "best"),
    "EM, evidence": (None, "random", "evidence"),
    "EMA": ("linear", "random", "likelihood"),
    "EMA, best": ("linear", "random", "best"),
    "EMA, uniform": ("linear", "random", "uniform"),
    "EMA, evidence": ("linear", "random", "evidence"),
    "EMA from EM": ("linear", "em", "likelihood"),
    "EMA from EM, evidence": ("linear", "em", "evidence"),
    "twin": ("variational", "random", "evidence"),
    "twin from EM, best": ("variational", "em", "best"),
    "twin from EM": ("variational", "em", "evidence"),
}
MAX_ITER, TOL = 500, 1e-4


def run_cell(draw_model, n_samples, n_clusters, n_models, n_starts, seed, methods=METHODS, em_alpha=1.0, extra=None):
    """Distances {method: (n_models,)} and the share of collapsed starts {loop: (n_models,)} for one cell.

    draw_model : (rng) -> NetworkArrays with the cluster as node 0
    extra : (network, rows, cardinalities, n_clusters, rng) -> {method: labels}, for methods that are not in the table
    """
    distances, collapsed = {name: [] for name in methods}, {}
    for model in range(n_models):
        rng = np.random.default_rng([seed, n_samples, n_clusters, model])
        network = draw_model(rng)
        codes = sample_codes(network.cpts, network.parents, n_samples, rng)
        rows, truth = np.asfortranarray(codes[:, 1:]), codes[:, 0].astype(np.int64)
        cardinalities = np.array([len(states) for states in network.states[1:]])
        found, loops = fit_methods(rows, cardinalities, n_clusters, n_starts, [seed, model], methods, em_alpha)
        if extra is not None:
            found |= extra(network, rows, cardinalities, n_clusters, np.random.default_rng([seed, model]))
        for name, labels in found.items():
            distances.setdefault(name, []).append(co_membership_distance(truth, labels))
        for loop, starts in loops.items():
            collapsed.setdefault(loop, []).append(starts.collapsed.mean())
    return {name: np.array(values) for name, values in distances.items()}, collapsed


def fit_methods(rows, cardinalities, n_clusters, n_starts, seed, methods=METHODS, em_alpha=1.0):
    """Labels {method: (n_rows,)} and the starts of every loop {(averaging, init): Starts}."""
    problems, loops, found = {}, {}, {}
    for name, (averaging, init, combine) in methods.items():
        loop = averaging, init
        if loop not in loops:
            alpha = em_alpha if averaging is None else 1.0
            priors = PriorSettings(alpha, alpha, alpha)
            problems[loop] = make_problem(table_rows(rows, cardinalities), n_clusters, priors, averaging)
            settings = LatentClassSettings(n_init=n_starts, init=init, max_iter=MAX_ITER, tol=TOL)
            loops[loop] = run_all_starts(problems[loop], settings, np.random.default_rng(seed))
        fit = conclude(problems[loop], loops[loop], LatentClassSettings(combine_starts=combine))
        found[name] = log_joint(rows, fit.theta_c, fit.theta, fit.state_start).argmax(axis=1)
    return found, loops


def co_membership_distance(a, b):
    """Share of the N^2 ordered pairs of rows on which two partitions disagree (same cluster or not)."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1.0)
    together = (table.sum(axis=1) ** 2).sum() + (table.sum(axis=0) ** 2).sum() - 2 * (table**2).sum()
    return together / len(a) ** 2


def compare(distances, method, reference="EM"):
    """Wins, draws and losses of `method`, as the paper prints them; ** below 1 %, * below 10 % (Wilcoxon)."""
    result = wins_draws_losses(distances[method], distances[reference], tolerance=1e-12)
    mark = "**" if result.p_value < 0.01 else "*" if result.p_value < 0.1 else ""
    return f"{result}{mark}"


def add_up(cells):
    """Sum of wins/draws/losses over cells such as "31/3/16**"."""
    totals = np.sum([[int(part) for part in cell.rstrip("*").split("/")] for cell in cells], axis=0)
    return "/".join(str(total) for total in totals)
