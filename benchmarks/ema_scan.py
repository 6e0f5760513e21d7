"""Does a scan over numbers of clusters miss? The default scan (starts in stages, splits, merges, crosses) against many full starts.

30 tables drawn from latent-class models (200 to 1500 rows, 8 to 20 columns, 3 to 6 clusters) and 10 real ones, scanned over 2 to 7
clusters by EM. "missed" counts (table, number) pairs whose log-likelihood (what ranks the starts) is more than 0.1 nat below
the best of 500 full starts; CPU time against 30 full plain starts at each number. The best of the full starts, which take most
of the time, are kept in ema_scan_reference.csv and not run again.
"""

import time

import numpy as np
import pandas as pd

from pgm_bma import FrequencyDiscretizer, load_dataset
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.tables import table
from pgm_bma.latent_class.cluster_number import make_search
from pgm_bma.latent_class.loop import LatentClassSettings, fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings

from ._common import parser, print_table, results_folder, run, save_csv
from .ema_starts import hard

NUMBERS = range(2, 8)
COLUMNS = [f"{k} clusters" for k in NUMBERS]  # of ema_scan_tables.csv: nats below the best of the full starts
REAL = (
    "breast-LJ", "breast-wisc", "iris", "krkp", "lymphography", "tic-tac-toe", "titanic", "voting", "wine", "zoo",
)  # fmt: skip
MOST_ROWS = 600  # of a real table


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=30, help="generated tables")
    options.add_argument("--starts", type=int, default=500, help="full starts that the scan is compared with")
    options.add_argument(
        "--resume", action="store_true", help="leave out tables of ema_scan_tables.csv, and count them"
    )
    chosen = options.parse_args(argv)
    names = [*range(chosen.tables), *REAL]
    known = references(names, chosen.starts, chosen.out)
    kept, every = results_folder(chosen.out) / "ema_scan_tables.csv", pd.DataFrame()
    if chosen.resume and kept.exists():
        every = pd.read_csv(kept, dtype={"table": str})
    for name in map(str, names):
        if len(every) and (every["table"] == name).any():
            continue
        for method, (scores, seconds) in one(*data(name)).items():
            below = dict(zip(COLUMNS, np.array(known[name]) - scores))
            line = pd.DataFrame([{"table": name, "method": method, **below, "CPU (s)": seconds}])
            every = pd.concat([every, line], ignore_index=True)
        every.to_csv(kept, index=False)
    lines, is_real = [], every["table"].isin(REAL)
    for method in every["method"].unique():
        for kind, some in (("generated", ~is_real), ("real", is_real), ("all", is_real | ~is_real)):
            part = every[some & (every["method"] == method)]
            loss = part[COLUMNS].to_numpy().ravel()
            lines.append(
                {
                    "method": method,
                    "tables": kind,
                    "pairs": len(loss),
                    "missed": int((loss > 0.1).sum()),
                    "reached": float((loss <= 0.1).mean()),
                    "mean loss (nats)": np.maximum(loss, 0.0).mean(),
                    "better than the reference": int((loss < -0.1).sum()),
                    "CPU (s)": part["CPU (s)"].sum(),
                }
            )
    print_table(lines, f"{len(names)} tables, {NUMBERS[0]} to {NUMBERS[-1]} clusters", 3)
    save_csv(lines, "ema_scan", chosen.out)


def references(names, n_starts, out):
    """{table: best log-likelihood of the full starts at every number}, kept as they are found."""
    path = results_folder(out) / "ema_scan_reference.csv"
    kept = (
        pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["table", "starts", "clusters", "best", "CPU (s)"])
    )
    for name in map(str, names):
        if len(kept[(kept["table"].astype(str) == name) & (kept["starts"] == n_starts)]) == len(NUMBERS):
            continue
        codes, cardinalities, alpha = data(name)
        settings = plain(alpha)._replace(accelerate=True, n_init=n_starts)
        for k in NUMBERS:
            began = time.process_time()
            fit = fit_latent_class(table_rows(codes, cardinalities), k, settings, rng=np.random.default_rng(0))
            kept.loc[len(kept)] = [name, n_starts, k, best(fit), time.process_time() - began]
        kept.to_csv(path, index=False)
    kept = kept[kept["starts"] == n_starts]
    return {str(name): group.sort_values("clusters")["best"].tolist() for name, group in kept.groupby("table")}


def data(name):
    """(codes, cardinalities, alpha) of a generated table, by its number, or a real one."""
    if name.isdigit():
        codes, n_states, _, alpha = hard(int(name))
        return codes, np.full(codes.shape[1], n_states), alpha
    frame, target = load_dataset(name)
    frame = frame.drop(columns=target)
    if name in ("wine", "iris"):
        frame = FrequencyDiscretizer(n_bins=3).fit_transform(frame)
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    read = table.encode(frame.astype(object))
    return np.asfortranarray(read.codes), np.array([len(states) for states in read.schema.states]), 1.0


def plain(alpha):
    return LatentClassSettings(priors=PriorSettings(alpha, alpha, alpha), collapse="ignore", max_iter=3000)


def one(codes, cardinalities, alpha):
    """{method: (best log-likelihood at every number, CPU seconds)}."""
    default, found = plain(alpha)._replace(n_final=8, accelerate=True), {}
    for name, settings in (("scan, default", default._replace(moves=True)), ("scan without moves", default)):
        began = time.process_time()
        search = make_search(table_rows(codes, cardinalities), settings, np.random.default_rng(0))
        fits = search.fit_numbers([1, *NUMBERS])
        found[name] = np.array([best(fits[k]) for k in NUMBERS]), time.process_time() - began
    began = time.process_time()
    fits = {
        k: fit_latent_class(table_rows(codes, cardinalities), k, plain(alpha), rng=np.random.default_rng(1))
        for k in NUMBERS
    }
    found["30 full plain starts"] = np.array([best(fits[k]) for k in NUMBERS]), time.process_time() - began
    return found


def best(fit):
    """The log-likelihood that ranks the starts, of the best finished one."""
    return float(fit.starts.log_likelihood[fit.starts.finished].max())


if __name__ == "__main__":
    run(main)
