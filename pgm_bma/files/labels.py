"""Python values as JSON and back, with their exact types: the states of a network, the entries of a saved model.

Text, booleans, integers, finite floats, None and lists are themselves in JSON. Everything else becomes an object with
a tag: ``{"t": "tuple", "v": [...]}``. Only the tags below are read, so that a file can never name code to run. Types
are taken exactly (a ``numpy.float64`` is no ``float``, a ``Timestamp`` no ``datetime``): what comes back is what went in.
"""

import base64
import datetime
import decimal
import fractions
import math
import re
from collections.abc import Callable

import numpy as np

_NUMPY_TYPE = re.compile(r"[<>|=][biufcSUmM][0-9]{1,9}(\[[0-9]{0,9}[A-Za-z]{1,7}\])?")


def to_json(value, other=None):
    """Encode `value`; what is not understood here goes to ``other(value)``, else it is a TypeError.

    Examples
    --------
    >>> from pgm_bma.files.labels import from_json, to_json
    >>> to_json((1, "a"))
    {'t': 'tuple', 'v': [1, 'a']}
    >>> from_json(to_json({1: (True, 2.5)}))
    {1: (True, 2.5)}
    """
    kind = type(value)
    if value is None or kind in (str, bool, int) or (kind is float and math.isfinite(value)):
        return value
    if kind is list:
        return [to_json(item, other) for item in value]
    if kind in _ENCODERS:
        tag, encode = _ENCODERS[kind]
        return {"t": tag, "v": encode(value)}
    if kind is tuple:
        return {"t": "tuple", "v": [to_json(item, other) for item in value]}
    if kind is dict:
        return {"t": "dict", "v": [[to_json(key, other), to_json(item, other)] for key, item in value.items()]}
    if kind in (set, frozenset):  # sorted by their code: set order depends on the hash seed
        return {"t": kind.__name__, "v": sorted((to_json(item, other) for item in value), key=repr)}
    if isinstance(value, np.generic) and value.dtype.kind in "biufcSUmM":
        return {"t": "numpy", "v": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if kind.__module__.partition(".")[0] == "pandas":
        encoded = _encode_pandas(value, other)
        if encoded is not None:
            return encoded
    if other is not None:
        return other(value)
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored: {value!r}")


def from_json(node, other=None):
    """Decode what `to_json` wrote; an unknown tag goes to ``other(tag, value)``, else it is a ValueError."""
    if isinstance(node, list):
        return [from_json(item, other) for item in node]
    if not isinstance(node, dict):
        return node
    tag, value = node["t"], node["v"]
    if tag == "dict":
        return {from_json(key, other): from_json(item, other) for key, item in value}
    if tag in _CONTAINERS:
        return _CONTAINERS[tag](from_json(item, other) for item in value)
    if tag in _DECODERS:
        return _DECODERS[tag](value)
    if tag in _PANDAS:
        return _decode_pandas(tag, value, other)
    if other is not None:
        return other(tag, value)
    raise ValueError(f"unknown kind of value {tag!r}; the file was written by a newer version or is damaged")


def _encode_pandas(value, other):
    """Encode the scalars of pandas, or return None."""
    import pandas as pd

    kind = type(value)
    if value is pd.NaT or value is pd.NA:
        return {"t": "pandas.missing", "v": "NaT" if value is pd.NaT else "NA"}
    if kind is pd.Timestamp:
        return {"t": "pandas.Timestamp", "v": [value.unit, int(value.asm8.astype("int64")), _zone_code(value.tzinfo)]}
    if kind is pd.Timedelta:
        return {"t": "pandas.Timedelta", "v": [value.unit, int(value.asm8.astype("int64"))]}
    if kind is pd.Interval:
        return {"t": "pandas.Interval", "v": [to_json(value.left, other), to_json(value.right, other), value.closed]}
    if kind is pd.Period:
        return {"t": "pandas.Period", "v": [value.ordinal, value.freqstr]}
    return None


def _decode_pandas(tag, value, other):
    import pandas as pd

    if tag == "pandas.missing":
        return pd.NaT if value == "NaT" else pd.NA
    if tag == "pandas.Timestamp":
        unit, count, zone = value
        stamp = pd.Timestamp(np.datetime64(count, unit)).as_unit(unit)
        return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_zone(zone))
    if tag == "pandas.Timedelta":
        return pd.Timedelta(np.timedelta64(value[1], value[0])).as_unit(value[0])
    if tag == "pandas.Interval":
        return pd.Interval(from_json(value[0], other), from_json(value[1], other), closed=value[2])
    return pd.Period(ordinal=value[0], freq=value[1])


def _zone_code(zone):
    """None, an offset in microseconds, or the key of a time zone."""
    if zone is None:
        return None
    if type(zone) is datetime.timezone:
        return zone.utcoffset(None) // datetime.timedelta(microseconds=1)
    key = getattr(zone, "key", None) or getattr(zone, "zone", None)  # zoneinfo; pytz, which pandas 2 uses
    if key:
        return key
    raise TypeError(f"the time zone {zone!r} cannot be stored; use zoneinfo.ZoneInfo or datetime.timezone")


def _zone(code):
    if isinstance(code, str):
        import zoneinfo

        return zoneinfo.ZoneInfo(code)
    return None if code is None else datetime.timezone(datetime.timedelta(microseconds=code))


def _encode_datetime(value):
    return [value.replace(tzinfo=None).isoformat(), value.fold, _zone_code(value.tzinfo)]


def _decode_datetime(value):
    text, fold, zone = value
    return datetime.datetime.fromisoformat(text).replace(fold=fold, tzinfo=_zone(zone))


def _decode_numpy(value):
    return np.frombuffer(base64.b64decode(value[1]), dtype=numpy_type(value[0]))[0]


def numpy_type(text):
    """The numpy type of a text such as "<f8"; no other text reaches numpy's parser, which is slow on long ones."""
    if not isinstance(text, str) or not _NUMPY_TYPE.fullmatch(text):
        raise ValueError(f"the file asks for numpy type {str(text)[:40]!r}, which is not a type of plain values")
    return np.dtype(text)


def _decode_fraction(text):
    # as str() writes it: "1e30000000" would be read too, for hours
    return fractions.Fraction(*map(int, text.split("/")))


_ENCODERS: dict[type, tuple[str, Callable]] = {
    float: ("float", repr),  # nan, inf, -inf: the finite ones are native
    bytes: ("bytes", lambda b: base64.b64encode(b).decode()),
    complex: ("complex", lambda c: [c.real.hex(), c.imag.hex()]),
    range: ("range", lambda r: [r.start, r.stop, r.step]),
    slice: ("slice", lambda s: [s.start, s.stop, s.step]),
    datetime.datetime: ("datetime", _encode_datetime),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.timedelta: ("timedelta", lambda d: [d.days, d.seconds, d.microseconds]),
    decimal.Decimal: ("Decimal", str),
    fractions.Fraction: ("Fraction", str),
}
_DECODERS: dict[str, Callable] = {
    "float": float,
    "bytes": base64.b64decode,
    "complex": lambda v: complex(float.fromhex(v[0]), float.fromhex(v[1])),
    "range": lambda v: range(*v),
    "slice": lambda v: slice(*v),
    "datetime": _decode_datetime,
    "date": datetime.date.fromisoformat,
    "timedelta": lambda v: datetime.timedelta(*v),
    "Decimal": decimal.Decimal,
    "Fraction": _decode_fraction,
    "numpy": _decode_numpy,
}
_PANDAS = {f"pandas.{kind}" for kind in ("missing", "Timestamp", "Timedelta", "Interval", "Period")}
_CONTAINERS: dict[str, Callable] = {"tuple": tuple, "set": set, "frozenset": frozenset}
