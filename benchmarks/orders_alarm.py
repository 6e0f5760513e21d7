"""ORD Figs. 5 and 6: score of the sampled orders against the true order, and their rank correlation with it, on alarm."""

import numpy as np

from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.families.family_table import family_table

from ._common import parser, print_table, results_folder, run, save_csv
from ._orders import BURN_IN, N_STEPS, alarm, alarm_rows, paper_chain

TABLE = True
SIZES = (25, 50, 100, 500, 1000)
# Fig. 6 as far as the text gives it in numbers
PAPER = {25: "< 0.1", 500: "close to 0.5", 1000: "close to 0.5"}


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    model, truth = alarm()
    traces = score_traces(model, truth, options)
    print_table(traces, "Fig. 5: log2 score of the order, from the reversed true order", 1)
    correlations = rank_correlations(model, truth, options)
    print_table(correlations, "Fig. 6: Spearman correlation with the true order, iterations 10,001 to 60,000", 3)
    save_csv(traces, "orders_alarm_fig5", options.out)
    save_csv(correlations, "orders_alarm_fig6", options.out)


def score_traces(model, truth, options):
    rows, lines = [], {}
    for n_rows in (25, 1000):
        codes, cards, _ = alarm_rows(model, n_rows, options.seed)
        families = order_mcmc.prepare(family_table(codes, cards))
        rng = np.random.default_rng(options.seed)
        trace = paper_chain(families, truth[::-1], rng, every_order=True, burn_in=0).log_scores[0] / np.log(2)
        line = order_mcmc.order_log_score(families, truth) / np.log(2)
        start = order_mcmc.order_log_score(families, truth[::-1]) / np.log(2)
        late = trace[BURN_IN:]
        above = np.flatnonzero(trace >= line)
        rows.append(
            {
                "N": n_rows,
                "reversed": start,
                **{f"at {step}": trace[step - 1] for step in (100, 1000, 5000, 10_000, 30_000, N_STEPS)},
                "mean after 10,000": late.mean(),
                "sd": late.std(),
                "true order": line,
                "first at true": int(above[0]) + 1 if len(above) else None,
            }
        )
        lines[n_rows] = trace, line
    draw(lines, results_folder(options.out) / "orders_alarm_fig5.png")
    return rows


def draw(lines, path):
    import matplotlib.pyplot as plt

    from pgm_bma.plotting import plot_score_traces

    figure, axes = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
    for ax, (n_rows, (trace, line)) in zip(axes, lines.items()):
        plot_score_traces(
            {"sampled": trace}, burn_in=BURN_IN, label="log2 score of the order", title=f"alarm, N = {n_rows}", ax=ax
        )
        ax.axhline(line, linestyle="--", color="black", linewidth=1)
        ax.annotate("true order", (N_STEPS, line), ha="right", va="bottom", fontsize=8)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
    print(f"saved {path}")


def rank_correlations(model, truth, options):
    """Mean over all orders after the burn-in and over the data sets; the error is over data sets."""
    n_sets = 10 if options.full else 3
    place = np.argsort(truth).astype(float)
    rows = []
    for n_rows in SIZES:
        means, spreads = [], []
        for replica in range(n_sets):
            codes, cards, _ = alarm_rows(model, n_rows, replica + 1000 * n_rows + options.seed)
            families = order_mcmc.prepare(family_table(codes, cards))
            rng = np.random.default_rng([options.seed, n_rows, replica])
            orders = paper_chain(families, truth[::-1], rng, every_order=True).states[0]
            places = np.argsort(orders, axis=1)
            n = len(truth)
            rho = 1 - 6 * ((places - place) ** 2).sum(1) / (n * (n**2 - 1))
            means.append(rho.mean())
            spreads.append(rho.std())
        rows.append(
            {
                "N": n_rows,
                "paper": PAPER.get(n_rows, ""),
                "ours": np.mean(means),
                "error": np.std(means, ddof=1) / np.sqrt(n_sets),
                "sd within a chain": np.mean(spreads),
                "data sets": n_sets,
            }
        )
    return rows


if __name__ == "__main__":
    run(main)
