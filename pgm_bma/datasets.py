"""Small real data sets and published networks, by name.

Files live in the top-level folder data/ (source and licence of each: its README.md) and reach an installed package as
pgm_bma/_data. Four sets follow from a rule and are generated instead of stored: tic-tac-toe, nursery, car, titanic.
"""

import difflib
import os
from importlib import resources
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgm_bma.foundation.faces.validation import Instance, check
from pgm_bma.foundation.runtime.messages import warn

if TYPE_CHECKING:
    import pandas as pd

CONTINUOUS = {"iris", "wine", "golub"}  # every column but the target is a number; all other sets are all labels
FILES = (
    "breast-LJ",
    "breast-wisc",
    "iris",
    "krkp",
    "lymphography",
    "monk1",
    "monk2",
    "monk3",
    "voting",
    "wine",
    "zoo",
)
# Not embedded: used in the experiments, but their terms are unclear or they are large. Value: the name on OpenML.
OUTSIDE = {"golub": "leukemia", "mushroom": "mushroom", "soybean-small": "soybean-small"}
NETWORKS = (
    "alarm",
    "asia",
    "cancer",
    "child",
    "earthquake",
    "hailfinder",
    "insurance",
    "sachs",
    "survey",
    "win95pts",
)


def load_dataset(name: str) -> "tuple[pd.DataFrame, str]":
    """A data set as a DataFrame, and the name of its target column.

    Labels are strings (digits too), a missing cell is NaN, continuous columns are floats. A set that is not embedded
    is looked for as NAME.csv or NAME.csv.gz in the folder named by the environment variable PGM_BMA_DATA (your own
    files too: labels, with the target in the column "class", else in the last one), and the three that the experiments
    use besides the embedded ones are then asked for at openml.org.

    Parameters
    ----------
    name : str
        One of `list_datasets()`, or "mushroom", "soybean-small", "golub", or a file in the folder PGM_BMA_DATA.

    Returns
    -------
    data : DataFrame
        One row per case, the target last.
    target : str
        Name of the target column.

    Examples
    --------
    >>> from pgm_bma import load_dataset
    >>> data, target = load_dataset("tic-tac-toe")
    >>> data.shape, target
    ((958, 10), 'class')
    >>> data[target].value_counts().to_dict()
    {'p': 626, 'n': 332}
    """
    check("name", name, Instance(str, "the name of a data set, see list_datasets()"))
    if name in RULES:
        return RULES[name](), "class"
    if name in FILES:
        with (_data_folder() / f"{name}.csv").open(encoding="utf-8") as file:
            return _read(file, name)
    folder = os.environ.get("PGM_BMA_DATA")
    for path in [Path(folder) / f"{name}{ending}" for ending in (".csv", ".csv.gz")] if folder else []:
        if path.is_file():
            return _read(path, name)
    where = "PGM_BMA_DATA is not set"
    if folder:
        where = f"not in the folder PGM_BMA_DATA={folder!r} as {name}.csv or {name}.csv.gz"
    if name not in OUTSIDE:
        raise ValueError(f"no data set {name!r}: {_suggestion(name, [*list_datasets(), *OUTSIDE])} ({where})")
    return _from_openml(name, where)


def list_datasets() -> list[str]:
    """Names of the data sets that load without any download.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from pgm_bma import list_datasets
    >>> len(list_datasets()), list_datasets()[:3]
    (15, ['breast-LJ', 'breast-wisc', 'car'])
    """
    return sorted([*FILES, *RULES], key=str.lower)


def load_network(name: str) -> Any:
    """A published network as a pgmpy DiscreteBayesianNetwork.

    Parameters
    ----------
    name : str
        One of `list_networks()`.

    Returns
    -------
    DiscreteBayesianNetwork
        Structure, states and tables as published.

    Examples
    --------
    >>> from pgm_bma import load_network
    >>> asia = load_network("asia")
    >>> len(asia.nodes()), len(asia.edges())
    (8, 8)
    """
    check("name", name, Instance(str, "the name of a network, see list_networks()"))
    if name not in NETWORKS:
        raise ValueError(f"no network {name!r}: {_suggestion(name, NETWORKS)}")
    from pgm_bma.files.bif import read_bif

    with resources.as_file(_data_folder() / "bif" / f"{name}.bif") as path:
        return read_bif(path)


def list_networks() -> list[str]:
    """Names of the embedded networks.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from pgm_bma import list_networks
    >>> "alarm" in list_networks()
    True
    """
    return list(NETWORKS)


def _data_folder():
    """pgm_bma/_data of an installed package; in an editable install, which does not see that mapping, <checkout>/data."""
    installed = resources.files("pgm_bma") / "_data"
    if installed.is_dir():
        return installed
    checkout = Path(__file__).resolve().parents[1] / "data"
    if checkout.is_dir():
        return checkout
    raise FileNotFoundError(
        f"the data files of pgm_bma are neither in {installed} nor in {checkout}; reinstall pgm-bma"
    )


def _read(source, name):
    import pandas as pd

    # "NA", "None" and the like are labels: only an empty cell is missing
    data = pd.read_csv(source, dtype=str, keep_default_na=False, na_values=[""])
    target = "class" if "class" in data.columns else data.columns[-1]
    if name in CONTINUOUS:
        numbers = data.columns.drop(target)
        data = pd.concat([data[numbers].astype(float), data[target]], axis=1)
    return data, target


def _from_openml(name, where):
    from sklearn.datasets import fetch_openml

    remote = OUTSIDE[name]
    warn(f"data set {name!r} is not embedded ({where}); asking openml.org for {remote!r}")
    try:
        answer = fetch_openml(name=remote, version=1, as_frame=True, parser="auto", n_retries=1)
        features, classes = answer.data, answer.target
    except Exception as error:
        raise FileNotFoundError(
            f"data set {name!r} is not embedded, {where}, and openml.org did not give {remote!r} "
            f"({type(error).__name__}: {error}); put {name}.csv, target column 'class', into a folder and set PGM_BMA_DATA to it"
        ) from error
    features = features.rename(columns=lambda column: column.removesuffix("%3F"))  # OpenML's spelling of a final "?"
    data = features.assign(**{"class": classes})
    numbers = features.columns if name in CONTINUOUS else []
    labels = data.columns.drop(numbers)
    # astype(object) first: a categorical keeps its unused categories, and str() would turn NaN into "nan"
    text = data[labels].astype(object)
    data[labels] = text.where(text.isna(), text.astype(str))
    return data.astype({column: float for column in numbers}), "class"


def _suggestion(name, known):
    known = sorted(known, key=str.lower)
    folded = {each.lower().replace("_", "-"): each for each in known}
    close = difflib.get_close_matches(str(name).lower().replace("_", "-"), folded, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(repr(folded[each]) for each in close)}?"
    return f"there are {', '.join(known)}"


def _frame(columns, rows):
    import pandas as pd

    return pd.DataFrame(list(rows), columns=columns.split(), dtype=str)


def _tic_tac_toe():
    """All final boards when x moves first and play stops at a win or a full board; p: x has three in a row."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    final, boards, players = [], {"b" * 9}, ("x", "o")
    for move in range(9):
        player, following = players[move % 2], set()
        for board in boards:
            for place in range(9):
                if board[place] == "b":
                    following.add(board[:place] + player + board[place + 1 :])
        won = {board for board in following if any(all(board[cell] == player for cell in line) for line in lines)}
        final += [(*board, "p" if player == "x" else "n") for board in sorted(won)]
        boards = following - won
    final += [(*board, "n") for board in sorted(boards)]  # full, and nobody won
    return _frame("tl tm tr ml mm mr bl bm br class", final)


def _car():
    """The full grid, judged by price, comfort and safety."""
    prices, people, boots = ("v-high", "high", "med", "low"), ("2", "4", "more"), ("small", "med", "big")
    grid = product(prices, prices, ("2", "3", "4", "5-more"), people, boots, ("low", "med", "high"))
    return _frame("buying maint doors persons lugboot safety class", [(*car, _car_class(*car)) for car in grid])


def _car_class(buying, maint, doors, persons, lugboot, safety):
    price = {("high", "high"): 1, ("med", "med"): 2, ("low", "high"): 2}.get((buying, maint))
    price = 3 if {buying, maint} <= {"med", "low"} and price is None else price
    price = 0 if {buying, maint} <= {"v-high", "high"} and price is None else price
    price = 1 if price is None else price
    roomy_medium = lugboot == "med" and (doors in ("4", "5-more") or (doors, persons) == ("3", "more"))
    comfort = 2 if lugboot == "big" or roomy_medium else 1
    if safety == "low" or price == 0 or persons == "2" or (doors, persons, lugboot) == ("2", "more", "small"):
        return "unacc"
    quality = comfort + (safety == "high")  # 1, 2, 3
    return {1: ("unacc", "acc", "acc"), 2: ("acc", "acc", "v-good"), 3: ("acc", "good", "v-good")}[price][quality - 1]


def _nursery():
    """The full grid, judged by the parents' employment, the family's standing and the child's health."""
    grid = product(
        ("usual", "pretentious", "great_pret"),
        ("proper", "less_proper", "improper", "critical", "very_crit"),
        ("complete", "completed", "incomplete", "foster"),
        ("1", "2", "3", "more"),
        ("convenient", "less_conv", "critical"),
        ("convenient", "inconv"),
        ("nonprob", "slightly_prob", "problematic"),
        ("recommended", "priority", "not_recom"),
    )
    columns = "parents has_nurs form children housing finance social health class"
    return _frame(columns, [(*case, _nursery_class(*case)) for case in grid])


_EMPLOYMENT = {  # by has_nurs: proper, less_proper, improper, critical, very_crit
    "usual": dict(proper=1, less_proper=2, improper=2, critical=3, very_crit=4),
    "pretentious": dict(proper=2, less_proper=2, improper=3, critical=4, very_crit=4),
    "great_pret": dict(proper=3, less_proper=3, improper=4, critical=4, very_crit=4),
}
_FAMILY = {("complete", "1"): 1} | dict.fromkeys(
    [("complete", "2"), ("completed", "1"), ("completed", "2"), ("incomplete", "1")], 2
)


def _nursery_class(parents, has_nurs, form, children, housing, finance, social, health):
    if health == "not_recom":
        return "not_recom"
    employment, family = _EMPLOYMENT[parents][has_nurs], _FAMILY.get((form, children), 3)
    easy = housing == finance == "convenient"
    standing = {1: 1 if easy else 2, 2: 3 if housing == "critical" else 2, 3: 2 if easy else 3}[family]
    if health == "recommended" and social != "problematic":
        if employment == standing == 1:
            return "recommend"
        if employment <= 2 and standing <= 2:
            return "very_recom"
        return "spec_prior" if (employment, standing) == (4, 3) else "priority"
    return "spec_prior" if (employment, standing) in {(3, 3), (4, 2), (4, 3)} else "priority"


def _titanic():
    """Passengers and crew by status, age and sex, lost and saved (Dawson 1995)."""
    counts = """
        first  adult male 118 57   first  adult female  4 140   first  child male  0  5   first  child female  0  1
        second adult male 154 14   second adult female 13  80   second child male  0 11   second child female  0 13
        third  adult male 387 75   third  adult female 89  76   third  child male 35 13   third  child female 17 14
        crew   adult male 670 192  crew   adult female  3  20
    """.split()
    rows = []
    for status, age, sex, lost, saved in zip(*[iter(counts)] * 5):
        rows += [(status, age, sex, "no")] * int(lost) + [(status, age, sex, "yes")] * int(saved)
    return _frame("status age sex class", rows)


RULES = {"tic-tac-toe": _tic_tac_toe, "nursery": _nursery, "car": _car, "titanic": _titanic}
