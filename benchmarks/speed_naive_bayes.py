"""Averaged naive Bayes: fit and predict against OrdinalEncoder + CategoricalNB from the same DataFrame, and on wide data."""

import numpy as np
import pandas as pd
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from pgm_bma import AveragedNaiveBayesClassifier, NaiveBayesClassifier, load_dataset

from ._common import best_of, best_of_each, parser, print_table, run, save_csv


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--datasets", nargs="+", default=None, help="default nursery; with --full several more")
    arguments.add_argument("--repeats", type=int, default=10)
    options = arguments.parse_args(argv)
    names = options.datasets or (["nursery", "krkp", "car", "tic-tac-toe", "titanic"] if options.full else ["nursery"])
    rows = [compare(name, options.repeats) for name in names]
    print_table(rows, "fit + predict, seconds; the aim on nursery is a ratio of at most 5", 4)
    save_csv(rows, "speed_naive_bayes", options.out)
    wide = [wide_data(options.seed, options.repeats)]
    print_table(wide, "72 rows x 7129 binary columns, fit + predict without model_; the aim is under one second")
    save_csv(wide, "speed_naive_bayes_wide", options.out)


def compare(name, repeats):
    data, target = load_dataset(name)
    X, y = data.drop(columns=target), data[target]
    peer = make_pipeline(OrdinalEncoder(), CategoricalNB())
    models = {"averaged": AveragedNaiveBayesClassifier(), "naive_bayes": NaiveBayesClassifier(), "sklearn": peer}
    calls = {label: lambda model=model: model.fit(X, y).predict(X) for label, model in models.items()}
    seconds = best_of_each(calls, repeats)
    # plain naive Bayes with one pseudo-count per cell is the same model but for CategoricalNB's unsmoothed class prior
    agree = (NaiveBayesClassifier().fit(X, y).predict(X) == peer.fit(X, y).predict(X)).mean()
    return {"data": name, **seconds, "ratio": seconds["averaged"] / seconds["sklearn"], "agreement": agree}


def wide_data(seed, repeats):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (72, 7129))
    X = pd.DataFrame(codes, columns=[f"gene{i}" for i in range(codes.shape[1])])
    y = pd.Series(np.where(rng.random(72) < 0.65, "ALL", "AML"), name="class")
    model = AveragedNaiveBayesClassifier()
    seconds = best_of(lambda: model.fit(X, y).predict(X), repeats)
    return {"rows": 72, "columns": 7129, "seconds": seconds, "finite": bool(np.isfinite(model.predict_proba(X)).all())}


if __name__ == "__main__":
    run(main)
