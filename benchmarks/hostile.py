"""Bad values for every argument of every public callable: what is refused in our words, and what is not.

The list of values and the good calls are those of tests/hostile (a checkout is needed). "raw": an error from the depths of a
library, a warning of invalid arithmetic, or NaN; "slow": past 20 s. Quick version: 8 values for every argument
(--values: another number); --full: all. ``--part 1/3`` tries the first third of the callables, ``--only NAME`` those of that
name; the others stay as kept.
"""

import os
import random
import tempfile
import time
from collections import Counter, defaultdict
from functools import partial

from ._common import Skip, kept_rows, parser, print_table, run, save_csv


def main(argv=None):
    os.environ.setdefault("MPLBACKEND", "agg")
    try:
        from tests.hostile.callables import NAN_IS_AN_ANSWER, tries
        from tests.hostile.judge import judge
        from tests.hostile.values import VALUES
    except ImportError:
        raise Skip("the bad values are in tests/hostile of a checkout; run it from there") from None
    options = parser(__doc__)
    options.add_argument("--values", type=int, default=8, help="bad values for every argument")
    options.add_argument("--part", default="1/1", help="of the callables, such as 1/3 (default: all)")
    options.add_argument("--only", nargs="+", default=[], help="names of callables (default: all of --part)")
    arguments = options.parse_args(argv)
    part, n_parts = map(int, arguments.part.split("/"))
    counts, seconds, examples = defaultdict(Counter), Counter(), {}
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # a text may be taken for the name of a file
        try:
            places = list(tries())
            names = list(dict.fromkeys(name for name, *_ in places))
            chosen = set(names[(part - 1) * len(names) // n_parts : part * len(names) // n_parts])
            chosen &= set(arguments.only or names)
            for name, argument, function, good in places:
                if name not in chosen:
                    continue
                labels = sorted(VALUES)
                if not arguments.full:
                    labels = random.Random(f"{name} {argument} {arguments.seed}").sample(
                        labels, min(arguments.values, len(labels))
                    )
                for label in labels:
                    start = time.process_time()
                    outcome, _ = judge(partial(function, **{**good, argument: VALUES[label]()}))
                    seconds[name] += time.process_time() - start
                    if outcome == "NaN" and name in NAN_IS_AN_ANSWER:
                        outcome = "ok"
                    kind = outcome if outcome in ("ok", "refused") else "slow" if outcome.endswith(" s") else "raw"
                    counts[name][kind] += 1
                    if kind in ("raw", "slow"):
                        examples.setdefault(name, f"{argument}={label}: {outcome}"[:200])
        finally:
            os.chdir(here)
    rows = [
        {"callable": name, "tries": found.total(), **{kind: found[kind] for kind in ("ok", "refused", "raw", "slow")},
         "seconds": round(seconds[name], 2), "example": examples.get(name, "")}
        for name, found in counts.items()
    ]  # fmt: skip
    rows += kept_rows("hostile", arguments.out, "callable", {"all", *chosen}) if len(chosen) < len(names) else []
    rows.sort(key=lambda row: names.index(row["callable"]) if row["callable"] in names else len(names))
    total = {key: sum(row[key] for row in rows) for key in ("tries", "ok", "refused", "raw", "slow")}
    rows.append({"callable": "all", **total, "seconds": round(sum(row["seconds"] for row in rows), 1), "example": ""})
    print_table([{key: value for key, value in row.items() if key != "example"} for row in rows])
    save_csv(rows, "hostile", arguments.out)


if __name__ == "__main__":
    run(main)
