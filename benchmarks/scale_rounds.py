"""Chains of orders on workers elsewhere: CPU of one round of a chain against that of sending it to dask and back.

Chains meet every few sweeps to agree on when to stop. On alarm: CPU milliseconds of such a round for one chain, and of sending four
chains and their families under ``joblib.parallel_config("dask")`` to two workers on this machine and back.
"""

import pickle
import time

import joblib
import numpy as np

from pgm_bma.orders.chains import gibbs
from pgm_bma.orders.chains.gibbs import prepare_lists
from pgm_bma.orders.families.family_table import family_table, prune_table
from pgm_bma.orders.structure_average import WEIGHTINGS

from ._common import need, parser, print_table, run, save_csv
from ._orders import alarm, alarm_rows

N_ROUNDS, N_CHAINS, N_TEMPERATURES = 7, 4, 4


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    distributed = need("distributed", "pip install 'pgm_bma[dask]'")
    codes, cardinalities, _ = alarm_rows(alarm()[0], 1000, options.seed)
    lists = prepare_lists(prune_table(family_table(codes, cardinalities)))
    kind, rng = WEIGHTINGS["order"], np.random.default_rng(options.seed)
    chain = gibbs.new_chain(kind.start(len(cardinalities), rng, ()), rng, N_TEMPERATURES)
    end = gibbs.BLOCK * (N_ROUNDS + 1)
    moves = gibbs.TemperedMoves(kind.gibbs, lists, n_kept=30, tol=0.05, max_sweeps=end, free=True, flattest=0.1)

    def walk():
        moves.advance(chain, gibbs.BLOCK, 0, end)

    def send():
        joblib.Parallel()(joblib.delayed(back)(lists, chain) for _ in range(N_CHAINS))

    row = {"sweeps of a round": gibbs.BLOCK, "a round, CPU ms": cpu_ms(walk), "MB sent": size_mb(lists, chain)}
    workers = {
        "processes": False,
        "protocol": "tcp",
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": None,
    }
    with distributed.Client(**workers), joblib.parallel_config("dask"):
        row[f"{N_CHAINS} chains to dask and back, CPU ms"] = cpu_ms(send)
    print_table([row], "alarm, 1000 rows")
    save_csv([row], "scale_rounds", options.out)


def cpu_ms(function):
    """Mean CPU milliseconds of a call, the first left out."""
    function()
    began = time.process_time()
    for _ in range(N_ROUNDS):
        function()
    return (time.process_time() - began) / N_ROUNDS * 1e3


def size_mb(*sent):
    return len(pickle.dumps(sent)) / 1e6


def back(lists, chain):
    return chain


if __name__ == "__main__":
    run(main)
