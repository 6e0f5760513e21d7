"""Tables larger than memory: CPU seconds and peak memory from Parquet files to fitted EMA clusters, folded and in passes.

Ways, each in a separate process (CPU of the process and its threads, peak of its resident memory, both after the
imports and with the compiled code in the cache): "fold" (12 survey-like columns that collapse), "passes" (20 columns that do
not, blocks on local disk), "dask" (the same on a LocalCluster; CPU of workers and of client with scheduler apart) and "orders"
(an exact average over orders of the 20 columns, in passes). Lines of other ways and sizes in the kept file stay.
The sizes of the issue: ``python -m benchmarks scale_tables --full`` (50 million rows; some 250 MB of disk and ten minutes).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ._common import need, parser, print_table, run, save_csv

STATES = ["never", "rarely", "sometimes", "often"]
PART = 1_000_000


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=None, help="default 2000000; with --full 50000000")
    arguments.add_argument(
        "--ways", nargs="+", default=["fold", "passes", "dask"], choices=["fold", "passes", "dask", "orders"]
    )
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--memory", default="1GB", help="of the scan (default 1GB); 1.5GB a worker under dask")
    arguments.add_argument(
        "--data", type=Path, default=None, help="folder for the generated files (default: temporary)"
    )
    options = arguments.parse_args(argv)
    need("duckdb", "pip install 'pgm_bma[duckdb]'")
    need("distributed", "pip install 'pgm_bma[dask]'")
    n_rows = options.rows or (50_000_000 if options.full else 2_000_000)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.data or Path(temporary)
        for way in options.ways:
            n_columns = 12 if way == "fold" else 20
            files = generate(folder / f"{n_columns}x{n_rows}", n_rows, n_columns, options.seed)
            # "fold" has the room that it asks for; for the others the rows do not fit
            memory = {"fold": options.memory, "dask": "1.5GB"}.get(way, "100MB")
            told = measure(way, files, memory, options.workers)
            rows.append({"way": way, "rows": n_rows, "columns": n_columns, **told})
    print_table(rows, f"30 starts, 4 clusters; dask: {options.workers} workers of one thread")
    save_csv(rows, "scale_tables", options.out, ["rows", "columns", "way"])


def measure(way, files, memory, workers):
    """Run one way in a separate process."""
    script = str(Path(__file__).with_name("_scale_run.py"))
    command = [sys.executable, script, way, files, memory, str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def generate(folder, n_rows, n_columns, seed):
    """Parquet files of `PART` rows, texts; 12 columns are skewed like a survey, 20 are not. Returns their pattern."""
    pa, parquet = need("pyarrow"), need("pyarrow.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    concentration = np.array([4.0, 0.5, 0.2]) if n_columns == 12 else np.ones(3)
    tables = rng.dirichlet(concentration, size=(n_columns, 4)).cumsum(axis=2)
    for part in range(-(-n_rows // PART)):
        path, size = folder / f"part-{part:04d}.parquet", min(PART, n_rows - part * PART)
        part_rng = np.random.default_rng([seed, part])
        if path.exists():
            continue
        group = part_rng.integers(0, 4, size)
        columns = {}
        for i in range(n_columns):
            below = part_rng.random(size)[:, None] > tables[i][group][:, :-1]
            codes = pa.array(below.sum(axis=1).astype(np.int8))
            columns[f"q{i:02d}"] = pa.DictionaryArray.from_arrays(codes, pa.array(STATES[:3])).cast(pa.string())
        parquet.write_table(pa.table(columns), path, row_group_size=250_000)
    return str(folder / "part-*.parquet")


if __name__ == "__main__":
    run(main)
