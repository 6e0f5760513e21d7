"""Bad values, one at a time, for every argument of every public callable: it works, or it is refused in words that we wrote.

Every argument gets N_VALUES of the list here, others at each place.
"""

import inspect
import random
from functools import partial

import pytest

import pgm_bma
from pgm_bma import evaluation, metrics, plotting
from tests.hostile.callables import NAN_IS_AN_ANSWER, calls, tries
from tests.hostile.judge import judge
from tests.hostile.values import VALUES

N_VALUES = 4
# callables without arguments, and what they give back
NOTHING_TO_SPOIL = {
    "GibbsSampler",
    "Starts",
    "SwapSampler",
    "list_datasets",
    "list_networks",
    "metrics.WinsDrawsLosses",
}


def test_every_public_callable_is_tried():
    public = {name for name in pgm_bma.__all__ if callable(getattr(pgm_bma, name))}
    for module in (metrics, evaluation, plotting):
        short = module.__name__.rpartition(".")[2]
        public |= {f"{short}.{name}" for name in module.__all__ if inspect.isroutine(getattr(module, name))}
    tried = {name.partition(".")[0] if name[0].isupper() else name for name in calls()}
    assert public - tried - NOTHING_TO_SPOIL == set()
    assert len(VALUES) >= 150


def test_the_calls_are_good(tmp_path, monkeypatch):
    """Else everything is refused, whatever is spoilt."""
    monkeypatch.chdir(tmp_path)
    found = {name: judge(partial(function, **good))[0] for name, (function, good) in calls().items()}
    assert {name for name, outcome in found.items() if outcome != "ok"} <= NAN_IS_AN_ANSWER.keys()


@pytest.mark.parametrize("part", range(4))
def test_bad_values(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a text may be a file name
    wrong = []
    for place, (name, argument, function, good) in enumerate(tries()):
        if place % 4 != part:
            continue
        for label in random.Random(f"{name} {argument}").sample(sorted(VALUES), N_VALUES):
            outcome, _ = judge(partial(function, **{**good, argument: VALUES[label]()}))
            if outcome not in ("ok", "refused") and not (outcome == "NaN" and name in NAN_IS_AN_ANSWER):
                wrong.append(f"{name}({argument}={label}): {outcome}")
    assert wrong == []
