"""Number of clusters: scores that choose it from a range, and the search by splits and merges, for hits and time.

Data from random selective naive Bayes models with 1 to 5 clusters. The scores: BIC and Cheeseman-Stutz of EM, the averaged
Cheeseman-Stutz of EMA, the evidence bound of variational EMA (with and without log k! for the labels).
"""

import time

import numpy as np
from scipy.special import gammaln

from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.cluster_number import scan_clusters
from pgm_bma.latent_class.loop import fit_latent_class

from ._common import parser, print_table, run, save_csv
from ._random_models import random_selective_naive_bayes

LARGEST = 7


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--models", type=int, help="models per true number and size")
    options.add_argument("--starts", type=int, default=10)
    options.add_argument("--sizes", type=int, nargs="+", default=[200, 800])
    options.add_argument("--variables", type=int, default=12)
    options.add_argument(
        "--alpha", type=float, default=0.5, help="Dirichlet of the true tables; small is well separated"
    )
    chosen = options.parse_args(argv)
    n_models = chosen.models or (20 if chosen.full else 4)
    hits, seconds, errors, n_cases = {}, {}, {}, 0
    lines = []
    for size in chosen.sizes:
        for true_number in range(1, 6):
            for model in range(n_models):
                rng = np.random.default_rng([chosen.seed, size, true_number, model])
                codes, cardinalities = draw(chosen, true_number, size, rng)
                found = {}
                for name, rule in RULES.items():
                    began = time.perf_counter()
                    found[name] = rule(codes, cardinalities, chosen.starts, model)
                    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
                n_cases += 1
                for name, number in found.items():
                    hits[name] = hits.get(name, 0) + (number == true_number)
                    errors[name] = errors.get(name, 0) + abs(number - true_number)
                lines.append({"N": size, "true": true_number, "model": model, **found})
    rows = [
        {
            "rule": name,
            "right": f"{hits[name]} of {n_cases}",
            "mean |error|": errors[name] / n_cases,
            "seconds": seconds[name] / n_cases,
        }
        for name in RULES
    ]
    print_table(rows, f"{chosen.variables} variables, N in {chosen.sizes}, 1..5 true clusters, {chosen.starts} starts")
    save_csv(lines, "ema_n_clusters", chosen.out)


def draw(chosen, true_number, size, rng):
    network = random_selective_naive_bayes(
        chosen.variables, true_number, arc_probability=0.7, alpha=chosen.alpha, random_state=rng, as_arrays=True
    )
    cpts = list(network.cpts)
    cpts[0] = rng.dirichlet(np.full(true_number, 5.0))[None]  # no cluster so small that nobody could see it
    codes = sample_codes(cpts, network.parents, size, rng)[:, 1:]
    return np.asfortranarray(codes), np.array([len(states) for states in network.states[1:]])


def scan(averaging, init="random", combine="best"):
    def rule(codes, cardinalities, n_starts, seed):
        rng = np.random.default_rng(seed)
        options = {"averaging": averaging, "n_init": n_starts, "tol": 1e-4, "init": init, "combine_starts": combine}
        return len(
            scan_clusters(table_rows(codes, cardinalities), range(1, LARGEST + 1), rng=rng, **options).fit.theta_c
        )

    return rule


def bic(codes, cardinalities, n_starts, seed):
    scores = []
    for k in range(1, LARGEST + 1):
        fit = fit_latent_class(
            table_rows(codes, cardinalities), k, rng=np.random.default_rng(seed), n_init=n_starts, tol=1e-4
        )
        n_parameters = k - 1 + k * (cardinalities - 1).sum()
        scores.append(fit.log_likelihood - 0.5 * n_parameters * np.log(len(codes)))
    return int(np.argmax(scores)) + 1


def bound_with_labels(codes, cardinalities, n_starts, seed):
    """The bound sees one of k! equal modes: add log k!."""
    scores = []
    for k in range(1, LARGEST + 1):
        fit = fit_latent_class(
            table_rows(codes, cardinalities),
            k,
            averaging="variational",
            init="em",
            combine_starts="evidence",
            rng=np.random.default_rng(seed),
            n_init=n_starts,
            tol=1e-4,
        )
        scores.append(fit.evidence_bound + gammaln(len(fit.theta_c) + 1))
    return int(np.argmax(scores)) + 1


RULES = {
    "EM, BIC": bic,
    "EM, Cheeseman-Stutz": scan(None),
    "EMA, averaged Cheeseman-Stutz": scan("linear", combine="likelihood"),
    "twin, evidence bound": scan("variational", "em", "evidence"),
    "twin, evidence bound + log k!": bound_with_labels,
}


if __name__ == "__main__":
    run(main)
