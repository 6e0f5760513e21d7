"""help() is enough: numpydoc's validator reads every public class, method and function by a short list of rules."""

import inspect

import pytest
from numpydoc.validate import validate

import pgm_bma

RULES = {
    "GL08": "a docstring",
    "PR01": "every parameter is documented",
    "PR02": "no parameter that is not there",
    "PR04": "a parameter has a type",
    "PR07": "a parameter has a description",
    "RT01": "what is returned is documented",
    "RT03": "what is returned has a description",
}


def objects():
    """Dotted names below pgm_bma of everything that a user calls."""
    for name in sorted(pgm_bma.__all__):
        value = getattr(pgm_bma, name)
        if inspect.ismodule(value):
            for inner in getattr(value, "__all__", [n for n in vars(value) if not n.startswith("_")]):
                item = getattr(value, inner)
                if inspect.isfunction(item) and item.__module__.startswith("pgm_bma"):
                    yield f"{item.__module__}.{item.__qualname__}"
            continue
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        yield f"{value.__module__}.{value.__qualname__}"
        if inspect.isclass(value):
            for inner, item in inspect.getmembers(value):
                item = getattr(item, "__func__", item)
                ours = (getattr(item, "__module__", None) or "").startswith("pgm_bma")
                if not inner.startswith("_") and inspect.isfunction(item) and ours:
                    yield f"{item.__module__}.{item.__qualname__}"


@pytest.mark.parametrize("name", sorted(set(objects())))
def test_docstring(name):
    found = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in RULES]
    assert not found, f"{name}\n" + "\n".join(found)
