"""Parameters checked by one table per class: name -> rule. A rule knows whether a value will do, and how to say what would.

    _rules = {"alpha": Number(0, open_low=True), "init": Choice("random", "em"), "tol": Number(0), "n_jobs": Jobs()}

`check_parameters` runs the table of an estimator, its parents' included; messages name the parameter, the value and the
cure. What depends on two parameters at once, or on the data, is checked where it is used.

Parameters that belong together form a frozen record, which an estimator takes as one parameter. scikit-learn sees into a record:
``get_params()`` of the estimator lists ``sampler__tol``, and ``set_params(sampler__tol=0.1)`` puts a changed copy of the record
into this estimator. A record itself never changes, so many estimators may share one.
"""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

LARGEST = 1e200  # of numbers: what is computed from them stays finite
MOST_VALUES = 10**8  # of a range that becomes a list: a GB


@dataclass(frozen=True)
class Number:
    """A finite number between `low` and `high`; one that is nearer to `low` than `tiny`, but not `low`, is refused too."""

    low: float = 0.0
    high: float = np.inf
    open_low: bool = False
    integer: bool = False
    tiny: float = 0.0

    def admits(self, value):
        kind = (int, np.integer) if self.integer else (int, float, np.integer, np.floating)
        if not isinstance(value, kind) or isinstance(value, bool):
            return False
        value = int(value) if isinstance(value, (int, np.integer)) else float(value)
        if not self.low <= value <= self.high or value == np.inf or value > (2**62 if self.integer else LARGEST):
            return False
        return not self.open_low if value == self.low else value - self.low >= self.tiny

    def __str__(self):
        left = f"greater than {self.low}" if self.open_low else f"at least {self.low}"
        limit = f" and at most {self.high}" if self.high < np.inf else "" if self.integer else " and finite"
        tiny = f" (and not below {self.tiny}, where computing underflows)" if self.tiny else ""
        return f"{'an integer' if self.integer else 'a number'} {left}{limit}{tiny}"


def Integer(low=0, high=np.inf):
    """An integer between `low` and `high`."""
    return Number(low, high, integer=True)


class Rule(NamedTuple):
    """Rule for a value: a description, and a check."""

    words: str
    admits: Callable

    def __str__(self):
        return self.words


def Choice(*choices):
    """One of several texts."""
    words = f"one of {', '.join(repr(choice) for choice in choices)}"
    return Rule(words, lambda value: isinstance(value, str) and value in choices)


def Instance(kinds, words):
    """A value of a type, described in words."""
    return Rule(words, lambda value: isinstance(value, kinds))


def Just(wanted):
    """Exactly this value (None, True, ...)."""
    return Rule(repr(wanted), lambda value: value is wanted or (type(value) is type(wanted) and value == wanted))


def Either(*rules):
    """Rule that admits what any of several rules admits; a text is a `Choice` of one, None itself."""
    known = [rule if hasattr(rule, "admits") else Just(rule) for rule in rules]
    return Rule(", or ".join(map(str, known)), lambda value: any(rule.admits(value) for rule in known))


def Optional(rule):
    """None, or what `rule` admits."""
    return Either(rule, None)


def Flag():
    """True or False."""
    return Instance((bool, np.bool_), "True or False")


def is_name(value):
    """Return whether a value can name a column or a node: hashable, and not None, NaN, the empty text or a broken text."""
    return is_hashable(value) and value is not None and not _is_nan(value) and value != "" and is_unicode(value)


def is_hashable(value):
    """Return whether a value can be looked up; tables say that they can, and cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_unicode(value):
    """False for a text with half a pair of UTF-16: no file can hold it, no picture show it, pandas 3 keep it as a string."""
    if not isinstance(value, str) or value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_nan(value):
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither
        return True


NAME = Rule("the name of a node: a text that is not empty, or a number", is_name)
TEXT = Instance(str, "a text")


def Fitted(words, *attributes):
    """An object, not its class, that has these attributes."""
    return Rule(words, lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in attributes))


def Jobs():
    """`n_jobs` as joblib reads it."""
    rule = Either(None, Integer(1), Number(-np.inf, -1, integer=True))
    return rule._replace(words="None, a positive integer, or -1 (all cores), -2 (all but one), ...")


def Seed():
    """`random_state`, whether anything random will be asked for or not."""
    sources = Instance((np.random.Generator, np.random.RandomState), "")
    words = "a non-negative integer, None, a numpy Generator or a numpy RandomState"
    return Either(None, Number(0, integer=True), sources)._replace(words=words)


def Verbose():
    """True, False, or a level."""
    return Either(Flag(), Number(0))._replace(words="True, False or a number at least 0")


# of what is made so many times: more is a slip, and would take memory and days
_MOST = {"n_init": 10**6, "n_final": 10**6, "n_resamples": 10**7, "n_bootstrap": 10**6, "n_forests": 10**6}
_NUMBERS_INSIDE = ("n_clusters", "alpha", "arc_prior", "latent_card")  # parameters that may be several numbers


def check(name, value, rule):
    """An error that names the parameter, its value and what would do, unless `rule` admits the value."""
    if name in _MOST and isinstance(value, (int, np.integer)) and value > _MOST[name]:
        raise ValueError(f"{name}={value} must be at most {_MOST[name]}")
    if not rule.admits(value):
        text, value = str(rule), brief(value)
        raise ValueError(
            f"{name}={value} is not {text}" if text.startswith("one of") else f"{name}={value} must be {text}"
        )


def check_arguments(values, **rules):
    """`check` of several arguments of a function: ``check_arguments(locals(), top=Integer(1), title=Optional(TEXT))``."""
    for name, rule in rules.items():
        check(name, values[name], rule)


def bounded(name, values):
    """`values`, unless they are a range that no memory holds: it is short to write, and endless as a list."""
    if isinstance(values, range) and abs(values.stop - values.start) > MOST_VALUES * abs(values.step):
        raise ValueError(f"{name}={brief(values)} has more than {MOST_VALUES:.0e} values; pass fewer")
    return values


@contextmanager
def reading(name, value, words):
    """Whatever goes wrong inside means that `value` cannot be read: an error that names the parameter, and what it must be.

    Only for lines that convert; complex numbers, which numpy would cut with a warning, are refused.
    """
    bounded(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, Warning) as error:
        raise ValueError(f"{name}={brief(value)} must be {words} ({' '.join(str(error).split())[:200]})") from None


def as_numbers(name, value, words="numbers"):
    """`value` as an array of floats; NaN may be among them."""
    with reading(name, value, words):
        return np.asarray(value, dtype=float)


def refuse_no_rows(rows):
    """For what is a mean over rows, or a statistic of them."""
    if not len(rows):
        raise ValueError("X has no rows; pass at least one")


def brief(value, length=200):
    """Format a value for a message: in one line, cut where it is long, and whatever it is."""
    try:
        text = repr(value)
    except Exception:  # what a value of another library does when it is shown is not known
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= length else text[:length] + "..."


def check_parameters(estimator, values=None):
    """Check every parameter of `estimator` that has a rule; `values` replaces them (a preset resolved)."""
    values = estimator.get_params(deep=False) if values is None else values
    for kind in reversed(type(estimator).__mro__):
        for name, rule in vars(kind).get("_rules", {}).items():
            if name in values:
                check(name, values[name], rule)


@contextmanager
def plain_parameters(estimator):
    """Within this block the parameters that are numbers of numpy are Python's, so that every type means the same model."""
    given = estimator.get_params(deep=False)
    changed = {name: new for name, value in given.items() if (new := _plain_parameter(name, value)) is not value}
    for name, value in changed.items():
        setattr(estimator, name, value)
    try:
        yield
    finally:
        for name in changed:
            setattr(estimator, name, given[name])


def with_plain_parameters(fit):
    """`fit` of an estimator under `plain_parameters`."""

    @wraps(fit)
    def fit_plainly(self, *arguments, **named):
        with plain_parameters(self):
            return fit(self, *arguments, **named)

    return fit_plainly


def _plain_parameter(name, value):
    if name.endswith("_name"):  # a label keeps its type
        return value
    if isinstance(value, (np.number, np.bool_)):
        return _plain(value)
    if name in _NUMBERS_INSIDE and type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    if name in _NUMBERS_INSIDE and type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if hasattr(value, "_rules") and hasattr(value, "set_params"):  # a record of parameters: a copy, it never changes
        numbers = {key: _plain(item) for key, item in value.get_params().items() if isinstance(item, np.generic)}
        return value.set_params(**numbers) if numbers else value
    return value


def _plain(value):
    """A number of numpy as Python's; anything else as it is."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value


def check_choice(name, value, choices):
    """An error that lists the choices, unless `value` is one of them."""
    check(name, value, Choice(*choices))


def check_number(name, value, low=0.0, high=np.inf, *, open_low=False, integer=False):
    """An error that names the parameter and its range, unless `value` is a finite number inside it."""
    check(name, value, Number(low, high, open_low, integer))


def resolve_preset(estimator, presets):
    """Values of the parameters under ``estimator.preset``: a dict, never written to the estimator.

    presets : dict preset name -> dict of parameter values. A parameter that the user set to something that is neither its
    default nor the preset's value is an error naming both.
    """
    values = estimator.get_params(deep=False)
    if estimator.preset is None:
        return values
    check_choice("preset", estimator.preset, presets)
    defaults = type(estimator)().get_params(deep=False)
    for name, wanted in presets[estimator.preset].items():
        given = values[name]
        if not _same(given, wanted) and not _same(given, defaults[name]):
            raise ValueError(
                f"preset={estimator.preset!r} sets {name}={wanted!r}, but {name}={given!r} was passed; drop one"
            )
        values[name] = wanted
    return values


def _same(a, b):
    return a is b or (type(a) is type(b) and bool(np.all(a == b)))


@dataclass(frozen=True, eq=False)
class ParameterRecord:
    """Base of the records; a child is a ``dataclass(frozen=True, kw_only=True, repr=False, eq=False)`` with its own `_rules`."""

    _rules: ClassVar[dict[str, Any]] = {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name.

        Parameters
        ----------
        deep : bool, default=True
            Not used: a record holds no further record.

        Returns
        -------
        dict
            Name -> value.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """A changed copy; the record itself stays as it is.

        Parameters
        ----------
        **params : dict
            Fields and their new values.

        Returns
        -------
        record
            The copy.
        """
        known = self.get_params()
        for name in params.keys() - known.keys():
            raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
        return replace(self, **params)

    def check(self) -> None:
        """An error that names the field, its value and the cure, unless all values will do."""
        check_parameters(self)

    def __repr__(self) -> str:
        changed = [f for f in fields(self) if repr(getattr(self, f.name)) != repr(f.default)]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    # by what is shown: fields may hold arrays, which cannot be compared by ==
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def with_records(estimator: Any, params: dict[str, Any], defaults: dict[str, ParameterRecord]) -> dict[str, Any]:
    """`params` of ``set_params`` where fields of records, "sampler__tol", are replaced by the changed record, "sampler".

    defaults : parameter -> the record that None stands for
    """
    plain = {name: value for name, value in params.items() if "__" not in name}
    changes: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        owner, separator, field = name.partition("__")
        if not separator:
            continue
        if owner in defaults:
            changes.setdefault(owner, {})[field] = value
        else:
            plain[name] = value
    for owner, fields_given in changes.items():
        record = plain.get(owner, getattr(estimator, owner))
        record = defaults[owner] if record is None else record
        if not isinstance(record, ParameterRecord):
            raise ValueError(f"{owner}={record!r} has no parameters; pass {type(defaults[owner]).__name__}(...)")
        plain[owner] = record.set_params(**fields_given)
    return plain
