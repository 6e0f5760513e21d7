"""Fitted estimators in one safe file: JSON for the structure, npy for the large arrays, both inside a zip. No pickle.

A saved estimator is its class name and everything in its ``__dict__`` except what starts with ``_cached_`` (networks
that can be built again). Values are written by `labels` (Python and its standard library) and by the functions here and
in `storage_tables` (numpy, pandas, networkx, pgmpy). Only classes defined in the inner layers of pgm_bma can be named by
a file, and only estimators, named tuples and dataclasses among them, so loading a file from a stranger runs none of his
code. Equal estimators give equal bytes.
"""

import base64
import dataclasses
import io
import json
import os
import zipfile
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np

from pgm_bma.results import storage_tables
from pgm_bma.results.labels import from_json, to_json

FORMAT, VERSION = "pgm_bma estimator", 1
_DOCUMENT = "estimator.json"
_LAYERS = ("table", "stats", "algorithms", "results", "estimators", "discretize", "metrics")
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_INLINE_BYTES = 1024  # smaller arrays stand in the JSON: a zip member costs more than its content
# what zip, JSON and the decoders raise where bytes are not what was written (RuntimeError: zip flags nobody sets here)
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
)
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can say; the real time would make equal files differ


def save(estimator, path):
    """Write an estimator of pgm_bma, fitted or not, to one file.

    Parameters
    ----------
    estimator : estimator of pgm_bma
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

    if not _is_estimator(type(estimator)):
        raise TypeError(f"save wants an estimator of pgm_bma, got a {type(estimator).__name__}")
    arrays, path = [], Path(path)
    document = {"format": FORMAT, "version": VERSION, "pgm_bma": pgm_bma.__version__}
    document["estimator"] = to_json(estimator, _encoder(arrays))
    draft = path.with_name(path.name + ".part")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            text = json.dumps(document, separators=(",", ":"), allow_nan=False)
            archive.writestr(_member(_DOCUMENT), text)
            for i, array in enumerate(arrays):
                with archive.open(_member(f"{i}.npy"), "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def load(path):
    """Read an estimator written by `save`.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    ValueError
        If the file is not one of ours, damaged, written by a newer version, or names a class that is not there.

    Examples
    --------
    >>> import os, tempfile
    >>> import pgm_bma
    >>> path = os.path.join(tempfile.mkdtemp(), "tan.pgm")
    >>> pgm_bma.save(pgm_bma.TANClassifier(alpha=0.5), path)
    >>> pgm_bma.load(path)
    TANClassifier(alpha=0.5)
    """
    content = Path(path).read_bytes()
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        document = json.loads(archive.read(_DOCUMENT))
        if document["format"] != FORMAT:
            raise KeyError(document["format"])
        is_newer = document["version"] > VERSION
    except (*_DAMAGE, ValueError) as error:
        raise ValueError(f"{path} is no file of pgm_bma.save, or it is damaged ({error})") from error
    if is_newer:
        raise ValueError(
            f"{path} has format version {document['version']}, written by pgm_bma {document['pgm_bma']}; this pgm_bma "
            f"reads up to {VERSION}: update it"
        )
    try:
        estimator = from_json(document["estimator"], _decoder(archive))
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error
    if not _is_estimator(type(estimator)):
        raise ValueError(f"{path} is damaged: it holds a {type(estimator).__name__}, no estimator")
    return estimator


def _encoder(arrays):
    """The function that encodes what `labels` does not know; large arrays are appended to `arrays`."""

    def encode(value):
        return to_json(value, other)

    def other(value):
        kind = type(value)
        root = kind.__module__.partition(".")[0]
        encoded = None
        if root == "numpy":
            encoded = _encode_numpy(value, arrays, encode)
        elif root in ("pandas", "networkx", "pgmpy"):
            encoded = storage_tables.encode(value, encode)
        elif _is_estimator(kind):
            encoded = ["estimator", [*_class_path(kind), _encode_state(value, encode)]]
        elif _is_record(kind):
            fields = [getattr(value, name) for name in _field_names(kind)]
            encoded = ["record", [*_class_path(kind), [encode(field) for field in fields]]]
        if encoded is None:
            raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be stored: {value!r:.80}")
        return {"t": encoded[0], "v": encoded[1]}

    return other


def _decoder(archive):
    def decode(node):
        return from_json(node, other)

    def other(tag, value):
        if tag == "npy":
            with archive.open(f"{value}.npy") as file:
                return np.lib.format.read_array(io.BytesIO(file.read()), allow_pickle=False)
        if tag in _NUMPY_DECODERS:
            return _NUMPY_DECODERS[tag](value, decode)
        if tag in ("estimator", "record"):
            module, name, state = value
            kind = _find_class(module, name, _is_estimator if tag == "estimator" else _is_record)
            return (_build_estimator if tag == "estimator" else _build_record)(kind, state, decode)
        return storage_tables.decode(tag, value, decode)

    return other


# ------------------------------------------------------------------------------------------------ classes of pgm_bma


def _encode_state(estimator, encode):
    state = estimator.__getstate__()
    items = []
    for name, value in state.items():
        if name.startswith("_cached_"):
            continue
        try:
            items.append([name, encode(value)])
        except (TypeError, ValueError) as error:
            raise TypeError(f"attribute {name!r} of {type(estimator).__name__}: {error}") from error
    return items


def _build_estimator(kind, state, decode):
    estimator = kind.__new__(kind)
    state = {name: decode(value) for name, value in state}
    if hasattr(estimator, "__setstate__"):
        estimator.__setstate__(state)
    else:
        estimator.__dict__.update(state)
    return estimator


def _build_record(kind, fields, decode):
    names, values = _field_names(kind), [decode(field) for field in fields]
    if len(names) != len(values):
        raise ValueError(
            f"{kind.__name__} has the fields {names}, the file has {len(values)}: another version wrote it"
        )
    if issubclass(kind, tuple):
        return kind._make(values)
    record = kind.__new__(kind)
    for name, value in zip(names, values):
        object.__setattr__(record, name, value)  # the class may be frozen
    return record


def _class_path(kind):
    return [kind.__module__.removeprefix("pgm_bma."), kind.__qualname__]


def _find_class(module, name, accepted):
    parts = module.split(".")
    kind = None
    if parts[0] in _LAYERS and all(part.isidentifier() for part in parts):
        try:
            kind = getattr(import_module(f"pgm_bma.{module}"), name, None)
        except ModuleNotFoundError:
            pass
    # the class must be defined there, not only imported there
    if not isinstance(kind, type) or _class_path(kind) != [module, name] or not accepted(kind):
        raise ValueError(f"the file asks for the class {name!r} of pgm_bma.{module}, which this pgm_bma does not have")
    return kind


def _is_inner(kind):
    root, _, module = kind.__module__.partition(".")
    return root == "pgm_bma" and module.partition(".")[0] in _LAYERS and "." not in kind.__qualname__


def _is_estimator(kind):
    return _is_inner(kind) and hasattr(kind, "get_params")


def _is_record(kind):
    return _is_inner(kind) and (
        dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


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
    return np.frombuffer(bytearray(base64.b64decode(content)), dtype=np.dtype(dtype)).reshape(shape, order=order)


def _decode_objects(value, decode):
    shape, items = value
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # one by one: numpy would look into tuples
        array[i] = decode(item)
    return array.reshape(shape)


def _decode_seed_sequence(value, decode):
    return np.random.SeedSequence(**decode(value))


def _member(name):
    member = zipfile.ZipInfo(name, date_time=_ZIP_DATE)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


_NUMPY_DECODERS = {
    "ndarray": _decode_ndarray,
    "objects": _decode_objects,
    "dtype": lambda value, decode: np.dtype(value),
    "Generator": _decode_generator,
    "RandomState": _decode_random_state,
    "SeedSequence": _decode_seed_sequence,
}
