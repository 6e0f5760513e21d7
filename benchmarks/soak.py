"""Many fits of all estimators in one process: does memory stay flat? Quick version: 240 fits; --full: 2,000.

Every estimator is fitted in turn on new rows (60 x 5, three states) and predicts them. Resident memory is read after each
round; "growth" is the least-squares line over the rounds after the first quarter, which holds compilation and caches.
"""

import gc
import os
import time
import warnings

from ._common import parser, print_table, run, save_csv


def main(argv=None):
    import numpy as np

    import pgm_bma

    arguments = parser(__doc__).parse_args(argv)
    small = {
        "NaiveBayesClassifier": {}, "AveragedNaiveBayesClassifier": {}, "TANClassifier": {},
        "ForestAveragedClassifier": {"n_forests": 5},
        "KikuchiBayesClassifier": {"n_resamples": 10}, "FixedOrderClassifier": {},
        "OrderAveragedClassifier": {"sampler": pgm_bma.GibbsSampler(n_orders=3)},
        "LatentClassClusterer": {"n_init": 3}, "EMAClusterer": {"n_init": 3}, "StructuralEMClusterer": {"n_init": 2},
        "ForestAveragedClusterer": {"n_init": 2}, "OrderPosterior": {"sampler": pgm_bma.GibbsSampler(n_orders=3)},
    }  # fmt: skip
    n_rounds = -(-(2000 if arguments.full else 240) // len(small))
    rng, start, memory = np.random.default_rng(arguments.seed), time.process_time(), []
    for _ in range(n_rounds):
        X, y = rng.integers(0, 3, (60, 5)), rng.integers(0, 2, 60)
        for name, parameters in small.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = getattr(pgm_bma, name)(**parameters).fit(X, *((y,) if "Classifier" in name else ()))
                fitted.log_joint(X) if name == "OrderPosterior" else fitted.predict(X)
        gc.collect()
        memory.append(resident_megabytes())
    late = np.array(memory[n_rounds // 4 :])
    slope = float(np.polyfit(np.arange(len(late)), late, 1)[0]) if len(late) > 1 else 0.0
    row = {
        "fits": n_rounds * len(small),
        "MB after a quarter": round(float(late[0]), 1),
        "MB at the end": round(float(late[-1]), 1),
        "growth, kB per fit": round(slope * 1024 / len(small), 2),
        "seconds": round(time.process_time() - start, 1),
    }
    print_table([row])
    save_csv([row], "soak", arguments.out)


def resident_megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    run(main)
