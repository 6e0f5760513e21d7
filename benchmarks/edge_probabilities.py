"""Adapter for programs that compare structure learners: reads a CSV, writes an adjacency matrix and edge probabilities.

    python -m benchmarks edge_probabilities data.csv --adjacency adjacency.csv --probabilities probabilities.csv

Row i, column j of both files is the arc i -> j; the header holds the names of the columns. The adjacency matrix is the
consensus DAG of `OrderPosterior`. ``--cardinalities`` is for files whose second line holds the number of states of every
column (Benchpress). ``--set`` takes parameters of `OrderPosterior`, such as ``--set structure_prior=fair``.
"""

import ast
import time

import pandas as pd

from ._common import parser, run


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("table", help="CSV with a header; cells are states")
    options.add_argument("--adjacency", default="adjacency.csv", help="file to write (default adjacency.csv)")
    options.add_argument(
        "--probabilities", default="probabilities.csv", help="file to write (default probabilities.csv)"
    )
    options.add_argument("--seconds", help="file for the CPU seconds of the fit")
    options.add_argument("--cardinalities", action="store_true", help="the second line holds numbers of states")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="parameter of OrderPosterior")
    chosen = options.parse_args(argv)
    names, probabilities, adjacency, seconds = learn(read(chosen.table, chosen.cardinalities), chosen.set, chosen.seed)
    for path, matrix in ((chosen.adjacency, adjacency), (chosen.probabilities, probabilities)):
        pd.DataFrame(matrix, columns=names).to_csv(path, index=False)
        print(f"saved {path}", flush=True)
    if chosen.seconds:
        with open(chosen.seconds, "w", encoding="utf-8") as file:
            file.write(f"{seconds}\n")


def read(path, cardinalities):
    """The table, every cell a text; declared numbers of states give the states 0, 1, ... of a column."""
    frame = pd.read_csv(path, dtype=str)
    if not cardinalities:
        return frame, None
    states = {name: [str(state) for state in range(int(n))] for name, n in frame.iloc[0].items()}
    return frame.iloc[1:].reset_index(drop=True), states


def learn(table, given, seed):
    """Names, edge probabilities, adjacency matrix of the consensus and CPU seconds."""
    from pgm_bma import OrderPosterior

    frame, states = table
    estimator = OrderPosterior(state_names=states, random_state=seed)
    estimator.set_params(**dict(parameter(text) for text in given))
    start = time.process_time()
    estimator.fit(frame)
    seconds = time.process_time() - start
    names, probabilities = list(frame.columns), estimator.edge_posterior_
    adjacency = pd.DataFrame(0, index=names, columns=names)
    for parent, child in estimator.consensus().edges():
        adjacency.at[parent, child] = 1
    return names, probabilities.loc[names, names].to_numpy(), adjacency.to_numpy(), seconds


def parameter(text):
    """("sampler__tol", 0.05) of "sampler__tol=0.05"; what is no Python literal is a text."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


if __name__ == "__main__":
    run(main)
