"""Fitted estimators in one safe file: a JSON document and arrays, with checksums (`foundation.runtime.archive`). No pickle.

A saved estimator is its key and everything in its ``__dict__`` except what starts with ``_cached_`` (networks that can be
built again), by name. Values are written by `labels` (Python and its standard library) and by the functions here and in
`storage_tables` (numpy, pandas, networkx, pgmpy). Classes are spoken of by the keys of the catalogue: a file names no
code, so loading one from a stranger runs none of theirs. Fields that are unknown or missing are errors. Equal estimators
give equal bytes.
"""

import base64
import dataclasses
import inspect
from importlib import import_module
from typing import Any

import numpy as np

from pgm_bma import catalogue
from pgm_bma.files import storage_tables
from pgm_bma.files.invariants import check_estimator
from pgm_bma.files.labels import from_json, numpy_type, to_json
from pgm_bma.foundation.faces.validation import brief
from pgm_bma.foundation.runtime.archive import Damaged, read_archive, write_archive
from pgm_bma.foundation.runtime.atomic import read_bytes

FORMAT, VERSION = "pgm_bma estimator", 1
ESTIMATORS = {each.key: (each.module, each.name) for each in catalogue.ESTIMATORS}
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_INLINE_BYTES = 1024  # smaller arrays stand in the JSON: a zip member costs more than its content
_KEYS = {path: key for table in (ESTIMATORS, catalogue.RECORDS) for key, path in table.items()}


def save(estimator: Any, path: Any) -> None:
    """Write an estimator of pgm_bma, fitted or not, to one file.

    Parameters
    ----------
    estimator : estimator of pgm_bma
        Fitted or not.
    path : str or path-like
        An existing file is replaced, once the new one is complete.

    Raises
    ------
    TypeError
        If an attribute holds something that has no safe form (a function, say); the message names it.

    Examples
    --------
    >>> import os, tempfile
    >>> import pgm_bma
    >>> path = os.path.join(tempfile.mkdtemp(), "bins.pgm")
    >>> pgm_bma.save(pgm_bma.WidthDiscretizer().fit([[0.0], [1.0]]), path)
    >>> type(pgm_bma.load(path)).__name__
    'WidthDiscretizer'
    """
    import pgm_bma

    if _key(type(estimator)) not in ESTIMATORS:
        raise TypeError(f"save needs an estimator of pgm_bma, got a {type(estimator).__name__}")
    arrays: list[np.ndarray] = []
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "pgm_bma": pgm_bma.__version__}
    document["estimator"] = to_json(estimator, _encoder(arrays))
    write_archive(path, document, arrays)


def load(path: Any) -> Any:
    """Read an estimator written by `save`.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator
        Equal to the one that was saved.

    Raises
    ------
    ValueError
        If the file is not one of ours, damaged, written by a newer version, or speaks of a class that is not there.

    Examples
    --------
    >>> import os, tempfile
    >>> import pgm_bma
    >>> path = os.path.join(tempfile.mkdtemp(), "tan.pgm")
    >>> pgm_bma.save(pgm_bma.TANClassifier(alpha=0.5), path)
    >>> pgm_bma.load(path)
    TANClassifier(alpha=0.5)
    """
    content = read_bytes(path)
    try:
        archive = read_archive(content)
        found, version, writer = (archive.document[name] for name in ("format", "version", "pgm_bma"))
        if found != FORMAT or type(version) is not int or version < 1:
            raise Damaged(f"format {found!r}, version {version!r}")
    except (ValueError, LookupError, TypeError) as error:
        cure = "; read_bif reads networks" if str(path).endswith(".bif") else ""
        raise ValueError(f"{path} is not a file that pgm_bma.save wrote, or it is damaged ({error}){cure}") from error
    if version > VERSION:
        raise ValueError(
            f"{path} has format version {version}, written by pgm_bma {writer}; this pgm_bma reads up to {VERSION}: "
            "update it"
        )
    try:
        estimator = from_json(archive.document["estimator"], _decoder(archive))
        if _key(type(estimator)) not in ESTIMATORS:
            raise Damaged(f"it holds a {type(estimator).__name__}, not an estimator")
    except Exception as error:  # whatever a stranger put there: the constructors of numpy and pandas have many
        raise ValueError(f"{path} is damaged: {error}") from error
    return estimator


def _encoder(arrays):
    """The function that encodes what `labels` does not know; large arrays are appended to `arrays`."""

    def encode(value):
        return to_json(value, other)

    def other(value):
        kind = type(value)
        root, key = kind.__module__.partition(".")[0], _key(kind)
        encoded = None
        if root == "numpy":
            encoded = _encode_numpy(value, arrays, encode)
        elif root in ("pandas", "networkx", "pgmpy"):
            encoded = storage_tables.encode(value, encode)
        elif key in ESTIMATORS:
            encoded = ["estimator", [key, _encode_fields(kind, value.__getstate__(), encode)]]
        elif key in catalogue.RECORDS:
            fields = {name: getattr(value, name) for name in _field_names(kind)}
            encoded = ["record", [key, _encode_fields(kind, fields, encode)]]
        if encoded is None:
            raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored: {brief(value, 80)}")
        return {"t": encoded[0], "v": encoded[1]}

    return other


def _decoder(archive):
    def decode(node):
        return from_json(node, other)

    def other(tag, value):
        if tag == "npy":
            return archive.array(value)
        if tag in _NUMPY_DECODERS:
            return _NUMPY_DECODERS[tag](value, decode)
        if tag in ("estimator", "record"):
            key, fields = value
            kind = _find_class(key, ESTIMATORS if tag == "estimator" else catalogue.RECORDS)
            fields = {name: decode(field) for name, field in fields}
            return (_build_estimator if tag == "estimator" else _build_record)(kind, fields)
        return storage_tables.decode(tag, value, decode)

    return other


# ------------------------------------------------------------------------------------------------ classes of pgm_bma


def _encode_fields(kind, fields, encode):
    """[[name, value], ...] of what can be stored."""
    items = []
    for name, value in fields.items():
        if name.startswith("_cached_"):
            continue
        try:
            items.append([name, encode(value)])
        except (TypeError, ValueError) as error:
            raise TypeError(f"attribute {name!r} of {kind.__name__}: {error}") from error
    return items


def _build_estimator(kind, state):
    """An estimator of the parameters and learned attributes in `state`; what is learned ends or begins with '_'."""
    wanted = set(inspect.signature(kind).parameters)
    given = {name for name in state if not (name.endswith("_") or name.startswith("_"))}
    _check_fields(kind, given, wanted)
    for name in state:
        if name not in wanted and hasattr(kind, name):
            raise Damaged(f"{name!r} is a part of {kind.__name__} that no file may replace")
    estimator = kind.__new__(kind)
    if hasattr(estimator, "__setstate__"):
        estimator.__setstate__(state)
    else:
        estimator.__dict__.update(state)
    check_estimator(estimator)
    return estimator


def _build_record(kind, fields):
    _check_fields(kind, set(fields), set(_field_names(kind)))
    if issubclass(kind, tuple):
        return kind(**fields)
    record = kind.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(record, name, value)  # the class may be frozen
    return record


def _check_fields(kind, given, wanted):
    for names, word in ((wanted - given, "lacks"), (given - wanted, "has unknown")):
        if names:
            raise Damaged(
                f"the {kind.__name__} in the file {word} {', '.join(sorted(names))}: another version wrote it"
            )


def _key(kind):
    return _KEYS.get((kind.__module__.removeprefix("pgm_bma."), kind.__qualname__))


def _find_class(key, table):
    if key not in table:
        raise Damaged(f"it names {key!r}, which this pgm_bma does not have")
    module, name = table[key]
    return getattr(import_module(f"pgm_bma.{module}"), name)


def _field_names(kind):
    return list(kind._fields) if issubclass(kind, tuple) else [field.name for field in dataclasses.fields(kind)]


# --------------------------------------------------------------------------------------------------------- numpy


def _encode_numpy(value, arrays, encode):
    kind = type(value)
    if kind is np.ndarray:
        if value.dtype == object:
            return ["objects", [list(value.shape), [encode(item) for item in value.ravel()]]]
        if value.dtype.kind not in "biufcSUmM":
            return None
        if value.nbytes > _INLINE_BYTES:
            arrays.append(value)
            return ["npy", len(arrays) - 1]
        # the memory order is kept: sums over another order could differ in the last bit
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        content = base64.b64encode(value.tobytes(order)).decode()
        return ["ndarray", [value.dtype.str, list(value.shape), order, content]]
    if isinstance(value, np.dtype):
        return ["dtype", value.str] if value.kind in "biufcSUmMO" else None
    if kind is np.random.Generator:
        return ["Generator", _encode_bit_generator(value.bit_generator, value.bit_generator.state, encode)]
    if kind is np.random.RandomState:
        state = value.get_state(legacy=False)
        return ["RandomState", _encode_bit_generator(value._bit_generator, state, encode)]
    if kind is np.random.SeedSequence:
        return ["SeedSequence", encode(value.state)]
    return None


def _encode_bit_generator(bit_generator, state, encode):
    seeds = getattr(bit_generator, "seed_seq", None)  # what further generators are spawned from
    seeds = seeds if type(seeds) is np.random.SeedSequence else None
    return [type(bit_generator).__name__, encode(seeds), encode(state)]


def _decode_generator(value, decode):
    name, seeds, state = value
    generator = np.random.Generator(_bit_generator(name, decode(seeds)))
    generator.bit_generator.state = decode(state)
    return generator


def _decode_random_state(value, decode):
    name, seeds, state = value
    generator = np.random.RandomState(_bit_generator(name, decode(seeds)))
    generator.set_state(decode(state))
    return generator


def _bit_generator(name, seeds):
    if name not in _BIT_GENERATORS:
        raise ValueError(f"the file asks for the random bit generator {name!r}; known are {', '.join(_BIT_GENERATORS)}")
    return getattr(np.random, name)(seeds)


def _decode_ndarray(value, decode):
    dtype, shape, order, content = value
    # a bytearray makes the array writable
    return np.frombuffer(bytearray(base64.b64decode(content)), dtype=numpy_type(dtype)).reshape(shape, order=order)


def _decode_objects(value, decode):
    shape, items = value
    return np.fromiter(map(decode, items), dtype=object, count=len(items)).reshape(shape)


def _decode_seed_sequence(value, decode):
    state = decode(value)
    if not 0 < state["pool_size"] <= 1024:
        raise Damaged(f"a seed of pool size {state['pool_size']}")
    return np.random.SeedSequence(**state)


_NUMPY_DECODERS = {
    "ndarray": _decode_ndarray,
    "objects": _decode_objects,
    "dtype": lambda value, decode: np.dtype("O") if value == "|O" else numpy_type(value),
    "Generator": _decode_generator,
    "RandomState": _decode_random_state,
    "SeedSequence": _decode_seed_sequence,
}
