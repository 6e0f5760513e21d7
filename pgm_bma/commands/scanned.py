"""Tables in many files, or too large to be read: the fit sees all rows where they lie, columns are judged and findings told on a
sample, which is read as if it were the table.
"""

import glob
import hashlib
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

from pgm_bma.commands.console import UsageError, count
from pgm_bma.commands.tabular_files import RawTable
from pgm_bma.foundation.rows.dask_scan import local_workers
from pgm_bma.foundation.rows.duckdb_scan import find_files
from pgm_bma.foundation.rows.scan import MEMORY, scan_csv, scan_parquet, scan_table

SAMPLE = 100_000
PARQUET = ".parquet"
# what changes cells, or looks at every row beside the fit
IN_MEMORY = ("weight", "discretize", "missing_codes", "numeric", "ordered", "covariates", "outcome", "test")


def is_scanned(arguments):
    """Whether the words ask for a scan: a pattern or a folder of files, or how it is to be done."""
    asked = [getattr(arguments, name, None) for name in ("memory", "workers", "scheduler")]
    path = Path(arguments.file)
    is_pattern = glob.has_magic(arguments.file) and not path.exists()
    is_folder = path.is_dir() and any(path.glob(f"*{PARQUET}"))
    return is_pattern or is_folder or any(value is not None for value in asked)


def files_checksum(paths):
    """SHA-256 of the names and sizes of the files: their content would take as long to read as the fit."""
    told = [[Path(path).name, os.stat(path).st_size] for path in paths]
    return hashlib.sha256(repr(told).encode()).hexdigest()


class Scanned:
    """The table of one run: `scan` has all rows, `table` a sample of them.

    arguments : of the command line
    """

    def __init__(self, arguments):
        self._open = ExitStack()
        self.arguments = arguments
        for name in IN_MEMORY:
            if getattr(arguments, name, None):
                raise UsageError(
                    f"--{name.replace('_', '-')} is for tables that are read whole; prepare the files first, or give a sample"
                )
        self.paths = find_files(arguments.file, PARQUET)
        self.scan = self._scan(arguments.memory or MEMORY)
        self.table = self._sample()

    def close(self):
        """End the workers that were started."""
        self._open.close()

    def _scan(self, memory):
        arguments, is_parquet = self.arguments, all(path.endswith(PARQUET) for path in self.paths)
        if arguments.workers is None and arguments.scheduler is None:
            if is_parquet:
                return scan_parquet(self.paths, memory=memory)
            return scan_csv(self.paths, header=not arguments.no_header, na_values=arguments.missing, memory=memory)
        if not is_parquet:
            raise UsageError("--workers and --scheduler read Parquet files; without them CSV files are scanned too")
        from pgm_bma.foundation.runtime.messages import needed

        distributed, frames = needed("distributed", "--workers"), needed("dask.dataframe", "--workers")
        address = arguments.scheduler
        client = local_workers(arguments.workers, memory) if address is None else distributed.Client(address)
        self._open.enter_context(client)
        return scan_table(frames.read_parquet(self.paths, split_row_groups=True), memory=memory)

    def _sample(self):
        """Some rows as a table that was read; equal ones stand side by side."""
        scan, names = self.scan, self.scan.names
        piece = scan._rows.sample(names, SAMPLE)
        columns = {}
        for name, values, codes in zip(names, piece.values, piece.codes.T):
            values = np.array([*scan._rows.typed(list(values)), None], dtype=object)
            columns[name] = pd.Series(np.repeat(values[codes], piece.counts)).infer_objects()
        frame = pd.DataFrame(columns)
        note = (
            f"{count(scan.n_rows, 'row')} in {count(len(self.paths), 'file')}: the fit sees all of them; columns are judged, and "
            f"what is told of rows is told, on a sample of {len(frame)}"
        )
        if self.arguments.command == "compare":
            note = f"compared on a sample of {len(frame)} of {count(scan.n_rows, 'row')} in {count(len(self.paths), 'file')}"
        index = pd.RangeIndex(1, len(frame) + 1, name="row")
        return RawTable(frame, str(self.arguments.file), files_checksum(self.paths), index, notes=[note])

    def fit(self, estimator, columns, target=None):
        """Fit on all rows."""
        names = [*columns, *(() if target is None else (target,))]
        estimator.fit(self.scan.select(names), target)

    def predict_to(self, estimator, folder, name):
        """Predictions of all rows in a folder of Parquet files beside the other results; returns a line about them."""
        path = Path(folder) / name
        if path.is_dir() and all(file.name.startswith(("part-", ".part-")) for file in path.iterdir()):
            shutil.rmtree(path)  # of an earlier run, which may have been killed while it wrote a part
        kept = [self.arguments.id] if self.arguments.id else []
        files = estimator.predict_to(path, self.scan, keep=kept)
        rows, parts = count(self.scan.n_rows, "row"), count(len(files), "part")
        return f"{path}{os.sep} holds the predictions of all {rows}, one file for each of {parts}"
