"""Intervals of effects: networks and tables from the prior, 40 % set rows, the share of 90 % intervals that hold the truth.

Six variables of two or three states, 200 rows, the priors "mdl" over orders and one pseudo-count per cell, as drawn. Of every
ordered pair one state that is set and one outcome are asked for, at random. Intervals of one network are not independent: the
standard error is that of the networks' own shares.
"""

import numpy as np

from pgm_bma import OrderPosterior
from pgm_bma.foundation.numbers.families import state_offsets

from ._common import parser, print_table, run, save_csv
from ._effects import all_effects, as_frame, network_from_prior, simulate_experiments

N_VARIABLES, N_ROWS, SHARE = 6, 200, 0.4


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--networks", type=int, default=80)
    chosen = options.parse_args(argv)
    lines = []
    for number in range(chosen.networks):
        lines += one(np.random.default_rng([chosen.seed, number]), number)
    save_csv(lines, "effects_calibration", chosen.out)
    summary = []
    for name, key in (("P(y | do(x))", "inside"), ("parent adjustment", "inside adjusted")):
        shares = [np.mean([line[key] for line in lines if line["network"] == k]) for k in range(chosen.networks)]
        error = np.std(shares, ddof=1) / np.sqrt(len(shares))
        summary.append({"estimate": name, "intervals": len(lines), "hold the truth": np.mean(shares), "error": error})
    print_table(summary, f"{chosen.networks} networks", 3)


def one(rng, number):
    cards = rng.integers(2, 4, N_VARIABLES)
    parents, tables = network_from_prior(rng, cards)
    truth, starts = all_effects(cards, parents, tables), state_offsets(cards)
    codes, targets = simulate_experiments(rng, cards, parents, tables, N_ROWS, SHARE)
    posterior = OrderPosterior(parameter_prior="paper", random_state=number)
    posterior.fit(as_frame(codes, cards), interventions=targets)
    lines = []
    for x in range(N_VARIABLES):
        for y in range(N_VARIABLES):
            if x == y:
                continue
            state, outcome = int(rng.integers(cards[x])), int(rng.integers(cards[y]))
            value = truth[starts[x] + state, starts[y] + outcome]
            line = {"network": number, "of": f"v{x}", "on": f"v{y}", "do": state, "outcome": outcome, "truth": value}
            for label, how in (("", None), (" adjusted", "parents")):
                found = posterior.effect(f"v{x}", f"v{y}", adjust_for=how)
                row = found[(found["do"] == state) & (found["outcome"] == outcome)].iloc[0]
                inside = bool(row["low"] <= value <= row["high"])
                line |= {f"low{label}": row["low"], f"high{label}": row["high"], f"inside{label}": inside}
            lines.append(line)
    return lines


if __name__ == "__main__":
    run(main)
