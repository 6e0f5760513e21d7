"""ORD Figs. 7, 8 and 9: accuracy by number of averaged orders, on alarm and real data, with and without unobserved features.

Problems: catechol and shunt (alarm), breast (breast-wisc), chess (krkp), mushroom and genes (golub in place of the paper's
expression data, 30 genes chosen inside the folds), the last two where PGM_BMA_DATA has them.
"""

from math import ceil

import numpy as np

from pgm_bma import load_dataset
from pgm_bma.foundation.tables.table import encode
from pgm_bma.orders.sums import unobserved
from pgm_bma.orders.sums.fixed_order import best_parents, family_cpt, order_masks

from ._common import Skip, need_dataset, parser, print_table, run, save_csv
from ._orders import N_ORDERS, Fitted, alarm, alarm_rows, predictions, summary, training

TABLE = True
PROBLEMS = ("catechol", "shunt", "breast", "chess", "mushroom", "genes")
REAL = {"breast": ("breast-wisc", 500), "mushroom": ("mushroom", 8000), "chess": ("krkp", 3000)}
FRACTIONS = (0.0, 0.05, 0.10, 0.20)
N_GENES = 30


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    options.add_argument("--sizes", nargs="+", type=int, default=None, help="training rows")
    options.add_argument("--replicas", type=int, default=None, help="training sets per size (paper: 10)")
    options.add_argument("--test-rows", type=int, default=None)
    options.add_argument(
        "--missing-rows", type=int, default=None, help="test rows of the part with unobserved features"
    )
    options = options.parse_args(argv)
    options.replicas = options.replicas or (10 if options.full else 3)
    options.test_rows = options.test_rows or (10**6 if options.full else 500)
    options.missing_rows = options.missing_rows or (300 if options.full else 60)
    complete, missing = [], []
    for problem in options.problems:
        try:
            found = genes(options) if problem == "genes" else classify(problem, options)
        except Skip as reason:
            print(f"{problem} skipped: {reason}")
            continue
        print_table(
            side_by_side(found[0], ["N"]),
            f"{problem}, by number of orders (Figs. 7, 8): accuracy in %, +- standard error",
        )
        gaps = side_by_side(found[1], ["unobserved", "treatment"])
        print_table(gaps, f"{problem}, unobserved features (Fig. 9): accuracy in %, +- standard error")
        complete += found[0]
        missing += found[1]
    save_csv(complete, "orders_classification", options.out)
    save_csv(missing, "orders_classification_missing", options.out)


def side_by_side(rows, keys):
    """One line per value of `keys`, one column per choice of orders."""
    lines = {}
    for row in rows:
        line = lines.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        line[f"{row['orders']} orders" if isinstance(row["orders"], int) else row["orders"]] = (
            f"{row['accuracy']:.1f} +- {row['error']:.1f}"
        )
    return list(lines.values())


# ------------------------------------------------------------------------------------------------ problems


def classify(problem, options):
    """Accuracy by training size and number of orders; at N = 100 also with unobserved features."""
    draw, sizes = (alarm_problem if problem in ("catechol", "shunt") else real_problem)(problem, options)
    scores, gaps = {}, {}
    for size in options.sizes or (sizes if options.full else [n for n in sizes if n in (25, 100)]):
        for replica in range(options.replicas):
            train, test, cards, target, extra = draw(size, replica)
            rng = np.random.default_rng([options.seed, size, replica])
            fitted = Fitted(train, cards, rng, None if not extra else extra["reversed"], list(extra.values()))
            joints = fitted.joints(test, target, cards[target])
            for label, guess in named_predictions(joints, extra).items():
                scores.setdefault((size, label), []).append((guess == test[:, target]).mean())
            if size == 100:
                few = test[: options.missing_rows]
                for key, accuracy in with_gaps(fitted, few, train, cards, target, rng).items():
                    gaps.setdefault(key, []).append(accuracy)
    return score_rows(problem, scores), gap_rows(problem, gaps)


def named_predictions(joints, extra):
    found = predictions(joints)
    for k, name in enumerate(extra):
        found[name] = joints[N_ORDERS + k].argmax(1)
    return found


def alarm_problem(problem, options):
    model, truth = alarm()
    names = list(model.nodes)
    target = names.index({"catechol": "CATECHOL", "shunt": "SHUNT"}[problem])
    extra = {"original": truth, "reversed": truth[::-1]}

    def draw(size, replica):
        train, cards, _ = alarm_rows(model, size, options.seed + 1000 * size + replica)
        test, _, _ = alarm_rows(model, min(options.test_rows, 3000), options.seed + 77 + replica)
        return train, test, cards, target, extra

    return draw, (25, 50, 100, 500, 1000)


def real_problem(problem, options):
    name, n_test = REAL[problem]
    frame, target_name = need_dataset(name) if problem == "mushroom" else load_dataset(name)
    # a missing value (mushroom's stalk root) is one more state, as the data set's authors meant it
    read = encode(frame.astype(object).where(frame.notna(), "?"))
    codes = np.ascontiguousarray(read.codes, dtype=np.int64)
    target = list(frame.columns).index(target_name)

    def draw(size, replica):
        rng = np.random.default_rng([options.seed, 5, replica])
        shuffled = rng.permutation(len(codes))
        test, rest = shuffled[:n_test], shuffled[n_test:]
        train = np.random.default_rng([options.seed, 6, size, replica]).choice(rest, size, replace=False)
        return codes[train], codes[test[: options.test_rows]], read.schema.cardinalities, target, {}

    return draw, (25, 50, 75, 100)


def genes(options):
    """Golub's leukaemia samples, each binarised at its own median; the 30 genes of highest mutual information, by fold."""
    frame, target_name = need_dataset("golub")
    values = frame.drop(columns=target_name).to_numpy(dtype=float)
    binary = (values > np.median(values, axis=1, keepdims=True)).astype(np.int64)
    classes = (frame[target_name] == frame[target_name].iloc[0]).to_numpy().astype(np.int64)
    cards = np.full(N_GENES + 1, 2)
    scores, gaps = {}, {}
    for n_folds in (3, 5, 10) if options.full else (5,):
        rng = np.random.default_rng([options.seed, n_folds])
        fold_of = np.empty(len(binary), dtype=int)
        for c in (0, 1):  # stratified
            members = rng.permutation(np.flatnonzero(classes == c))
            fold_of[members] = np.arange(len(members)) % n_folds
        for fold in range(n_folds):
            train = fold_of != fold
            best = np.argsort(-mutual_information(binary[train], classes[train]), kind="stable")[:N_GENES]
            rows = np.column_stack([binary[:, best], classes])
            fitted = Fitted(rows[train], cards, rng)
            test = rows[~train]
            for label, guess in predictions(fitted.joints(test, N_GENES, 2)).items():
                scores.setdefault((f"{n_folds}-fold", label), []).append((guess == test[:, -1]).mean())
            if n_folds == (10 if options.full else 5):
                for key, accuracy in with_gaps(fitted, test, rows[train], cards, N_GENES, rng).items():
                    gaps.setdefault(key, []).append(accuracy)
    return score_rows("genes", scores), gap_rows("genes", gaps)


def mutual_information(binary, classes):
    """I(gene; class) of every column, in nats."""
    total = np.zeros(binary.shape[1])
    n = len(classes)
    for value in (0, 1):
        for c in (0, 1):
            joint = ((binary == value) & (classes == c)[:, None]).mean(0)
            apart = (binary == value).mean(0) * (classes == c).sum() / n
            total += np.where(joint > 0, joint * np.log(np.where(joint > 0, joint, 1) / np.maximum(apart, 1e-300)), 0.0)
    return total


# ------------------------------------------------------------------------------------------------ unobserved features


def with_gaps(fitted, test, train, cards, target, rng):
    """(fraction, treatment, number of orders) -> accuracy; ceil(fraction x features) cells of every row are hidden."""
    features = np.array([v for v in range(len(cards)) if v != target])
    found = {}
    for fraction in FRACTIONS:
        hidden = ceil(fraction * len(features) - 1e-9)
        rows = test.copy()
        for row in rows:
            row[rng.permutation(features)[:hidden]] = -1
        imputed = unobserved.impute_uniformly(rows, cards, rng)
        guesses = {"imputed": predictions(fitted.joints(imputed, target, cards[target]))}
        guesses["summed out"] = predictions(summed_out(fitted, rows, train, cards, target, rng))
        for treatment, by_number in guesses.items():
            for number, guess in by_number.items():
                found[fraction, treatment, number] = (guess == test[:, target]).mean()
    return found


def summed_out(fitted, rows, train, cards, target, rng):
    """(n_orders, n_rows, n_classes) log joints, all orders together: the completions are written out or drawn once."""
    n_classes = int(cards[target])

    def proposal():
        mix_order = order_masks(np.arange(len(cards))[None])[0]
        parents = best_parents(fitted.table, mix_order)[0]
        data = training(train, cards)
        return parents, [family_cpt(data, child, z) for child, z in enumerate(parents)]

    def evaluate(completed, *holes):
        joints = fitted.joints(completed, target, n_classes, *holes)[:N_ORDERS]
        return joints.transpose(1, 0, 2).reshape(len(completed), -1)

    rows = rows.copy()
    rows[:, target] = 0
    wide, _ = unobserved.log_joint(
        evaluate, rows, cards, target, n_classes, 256, 100, proposal, int(rng.integers(2**63))
    )
    return wide.reshape(len(rows), N_ORDERS, n_classes).transpose(1, 0, 2)


def score_rows(problem, scores):
    """Accuracies, and the gain of ten orders over one, training set by training set."""
    for size in dict.fromkeys(size for size, _ in scores):
        scores[size, "10 - 1"] = np.subtract(scores[size, 10], scores[size, 1])
    return [{"problem": problem, "N": size, "orders": k, **summary(values)} for (size, k), values in scores.items()]


def gap_rows(problem, gaps):
    """Accuracies, and the gain of summing out over imputing, training set by training set."""
    for fraction, treatment, k in list(gaps):
        if fraction and treatment == "summed out":
            gain = np.subtract(gaps[fraction, treatment, k], gaps[fraction, "imputed", k])
            gaps[fraction, "summed out - imputed", k] = gain
    return [
        {
            "problem": problem,
            "unobserved": f"{100 * fraction:g} %",
            "treatment": treatment,
            "orders": k,
            **summary(values),
        }
        for (fraction, treatment, k), values in gaps.items()
        if fraction or treatment == "summed out"
    ]


if __name__ == "__main__":
    run(main)
