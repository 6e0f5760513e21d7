"""Starts screened on a sample against 30 full starts: relative difference of the best score, on ten generated tables.

Latent-class tables with five groups, some with noise columns and missing cells. "full" runs all 30 starts to the end on all rows,
"screened" runs them on 50,000 rows and the best of them that differ on all rows, in passes. The size of the issue is two million
rows: ``python -m benchmarks scale_screening --full``. There, 30 full starts on rows that do not collapse take minutes to half an
hour a table; so one table has 16 columns of three states, and the others eight or ten, whose equal rows are folded for the
full starts: the same likelihood by fewer sums. With 200,000 rows all have 16. Lines of other tables in the kept file stay.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from pgm_bma import EMAClusterer, LatentClassClusterer, Starts, scan_parquet

from ._common import need, parser, print_table, run, save_csv

SHARP = (1.0, 0.6, 2.0, 1.0, 0.6, 2.0, 1.0, 0.6, 2.0, 1.0)  # Dirichlet parameter of the tables
# columns of the large tables: missing cells make more distinct rows
LARGE = (16, 10, 10, 8, 10, 10, 8, 10, 10, 8)
KEYS = ["rows", "table", "columns"]


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=None, help="default 200000; with --full 2000000")
    arguments.add_argument("--tables", type=int, nargs="+", default=list(range(10)), help="which (default: all ten)")
    options = arguments.parse_args(argv)
    need("duckdb", "pip install 'pgm_bma[duckdb]'")
    n_rows = options.rows or (2_000_000 if options.full else 200_000)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for table in options.tables:
            path = Path(folder) / f"{table}.parquet"
            n_columns = LARGE[table] if options.full else 16
            generate(path, n_rows, n_columns, table, options.seed)
            rows.append({"table": table, "rows": n_rows, "columns": n_columns, **compare(path, table, n_columns)})
            path.unlink()
            save_csv(rows, "scale_screening", options.out, KEYS)  # after every table
    within = sum(row["relative gap"] < 1e-6 for row in rows)
    print_table(rows, f"{within} of {len(rows)} within 1e-6 of the best of 30 full starts (the aim: 9 of 10)")


def compare(path, table, n_columns):
    """Scores and CPU seconds of both ways, to the end."""
    kind = LatentClassClusterer if table % 2 else EMAClusterer
    scores, seconds = {}, {}
    # 1 MB is no room to fold
    folded = "1GB" if n_columns < 16 else "1MB"
    for way, size, memory in (("screened", 50_000, "1MB"), ("full", None, folded)):
        began = time.process_time()
        clusterer = kind(5, n_init=30, starts=Starts(n_final=None), tol=1e-6, random_state=0)
        clusterer.fit(scan_parquet(path, memory=memory, sample_rows=size))
        seconds[way] = time.process_time() - began
        scores[way] = clusterer.evidence_bound_ if kind is EMAClusterer else clusterer.log_likelihood_
    gap = (scores["full"] - scores["screened"]) / abs(scores["full"])
    told = {f"{way} CPU s": value for way, value in seconds.items()}
    return {"method": kind.__name__, **scores, "relative gap": gap, **told}


def generate(path, n_rows, n_columns, table, seed):
    """One Parquet file of texts."""
    pa, parquet = need("pyarrow"), need("pyarrow.parquet")
    rng = np.random.default_rng([seed, table])
    shares = rng.dirichlet(np.full(3, SHARP[table % len(SHARP)]), size=(n_columns, 5))
    if table >= 5:
        noise = n_columns - n_columns * 3 // 8
        shares[noise:] = shares[noise:, :1]
    group = rng.choice(5, size=n_rows, p=rng.dirichlet(np.full(5, 5.0)))
    columns = {}
    for i in range(n_columns):
        codes = (rng.random(n_rows)[:, None] > shares[i].cumsum(axis=1)[group][:, :-1]).sum(axis=1).astype(np.int8)
        unknown = rng.random(n_rows) < (0.1 if table % 3 == 0 else 0.0)
        columns[f"c{i}"] = pa.DictionaryArray.from_arrays(pa.array(codes, mask=unknown), pa.array(["a", "b", "c"]))
    parquet.write_table(pa.table(columns), path, row_group_size=250_000)


if __name__ == "__main__":
    run(main)
