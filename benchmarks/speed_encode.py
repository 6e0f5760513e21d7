"""Reading a table of strings into codes: table.encode against pandas.factorize on the same columns."""

import numpy as np
import pandas as pd

from pgm_bma.foundation.tables.table import encode

from ._common import best_of_each, parser, print_table, run, save_csv


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=None, help="default 200000; with --full 1000000")
    arguments.add_argument("--columns", type=int, default=20)
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args(argv)
    n_rows = options.rows or (1_000_000 if options.full else 200_000)
    rng = np.random.default_rng(options.seed)
    rows = []
    for kind in ("str", "object", "category"):
        data = strings(n_rows, options.columns, kind, rng)
        check(data)
        seconds = best_of_each(
            {
                "encode": lambda data=data: encode(data),
                "factorize": lambda data=data: [pd.factorize(data[name]) for name in data],
            },
            options.repeats,
        )
        ratio = seconds["encode"] / seconds["factorize"]
        rows.append({"rows": n_rows, "columns": options.columns, "dtype": kind, **seconds, "ratio": ratio})
    print_table(
        rows, f"seconds, best of {options.repeats}; the aim is a ratio of at most 1.2 for strings (folding not counted)"
    )
    save_csv(rows, "speed_encode", options.out)


def strings(n_rows, n_columns, kind, rng):
    """Columns of 2 to 21 different labels."""
    columns = {}
    for i in range(n_columns):
        labels = np.array([f"state_{i}_{k}" for k in range(2 + i)], dtype=object)
        columns[f"column{i}"] = pd.Series(labels[rng.integers(0, len(labels), n_rows)], dtype=kind)
    return pd.DataFrame(columns)


def check(data):
    """The codes decode to the data they came from: the comparison is of like with like."""
    head = data.iloc[:1000]
    read = encode(head)
    for i, name in enumerate(head):
        labels = np.array(read.schema.states[i], dtype=object)
        assert (labels[read.codes[:, i]] == head[name].to_numpy(dtype=object)).all()


if __name__ == "__main__":
    run(main)
