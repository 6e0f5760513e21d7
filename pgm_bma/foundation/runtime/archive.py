"""One file for a JSON document and the arrays it speaks of: a zip of ``document.json``, ``0.npy`` ... and ``sha256.json``.

The checksums cover every byte of content, so that a damaged file is found before anything is made of it. Sizes are checked
against the bytes that are there before anything is allocated: all members together may inflate to INFLATION times the size of
the file (past FREE_BYTES), and an array must be as large as its header says. No pickle. Equal content gives equal bytes.
"""

import hashlib
import io
import json
import math
import zipfile
import zlib
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.atomic import replacing

DOCUMENT, SUMS = "document.json", "sha256.json"
FREE_BYTES = 1 << 24
INFLATION = 100  # what deflates further is stored as it is
_LONGEST_HEADER = 512  # of an array: numpy's parser takes seconds for a long one that is nested
_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can say; the real time would make equal files differ


class Damaged(ValueError):
    """A file that is not what was written."""


class Archive(NamedTuple):
    """document: what JSON gives     array: function from a position to the array stored there"""

    document: object
    array: object


def write_archive(path, document, arrays):
    """Write a JSON document and a sequence of arrays (no objects) to one file, whole or not at all."""
    sums: dict = {}
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        _write_member(archive, DOCUMENT, text, sums)
        for i, array in enumerate(arrays):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
            _write_member(archive, f"{i}.npy", content.getbuffer(), sums)
        archive.writestr(_member(SUMS), json.dumps(sums), zipfile.ZIP_DEFLATED)


def read_archive(content):
    """Read the bytes of a file written by `write_archive`: an Archive. What is wrong with them is a `Damaged`."""
    try:
        members = zipfile.ZipFile(io.BytesIO(content))
        _check_sizes(members, len(content))
        sums = json.loads(_read_member(members, SUMS))
        parts = {name: _read_member(members, name) for name in sums}
        for name, expected in sums.items():
            if hashlib.sha256(parts[name]).hexdigest() != expected:
                raise Damaged(f"the checksum of {name} does not fit")
        if set(members.namelist()) != {*sums, SUMS} or DOCUMENT not in sums:
            raise Damaged("a part is missing or does not belong there")
        document = json.loads(parts[DOCUMENT])
    except Damaged:
        raise
    except Exception as error:  # zip, zlib and JSON answer damage with a dozen exceptions, MemoryError among them
        raise Damaged(f"{type(error).__name__}: {error}") from error
    return Archive(document, lambda position: _as_array(parts[f"{position}.npy"]))


def _write_member(archive, name, content, sums):
    sums[name] = hashlib.sha256(content).hexdigest()
    inflates = len(content) > FREE_BYTES and len(content) > INFLATION * len(zlib.compress(content))
    archive.writestr(_member(name), content, zipfile.ZIP_STORED if inflates else zipfile.ZIP_DEFLATED)


def _member(name):
    return zipfile.ZipInfo(name, date_time=_DATE)


def _check_sizes(members, n_bytes):
    """Refuse a file that says of its members, together, that they are far larger than it is; and one that lists a member twice."""
    total = sum(member.file_size for member in members.infolist())
    if total > max(FREE_BYTES, INFLATION * n_bytes):
        raise Damaged(f"a file of {n_bytes} bytes says that it has {total} bytes unpacked")
    if len(set(members.namelist())) != len(members.namelist()):
        raise Damaged("a part is there twice")


def _read_member(members, name):
    member = members.getinfo(name)
    with members.open(member) as file:
        content = file.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise Damaged(f"{name} is longer or shorter than it says")
    return bytearray(content)  # arrays on top of it can be written


def _as_array(content):
    """The array of an npy file; its header must speak of the bytes that are there."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if int.from_bytes(content[8 : 10 if version == (1, 0) else 12], "little") > _LONGEST_HEADER:
        raise Damaged("an array with a header that is too long")
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise Damaged(f"an array of npy version {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read_header(file)
    if dtype.hasobject:
        raise Damaged(f"an array of {dtype}: objects are not read (allow_pickle=False)")
    start = file.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise Damaged(f"an array of shape {shape} and {dtype} cannot have {len(content) - start} bytes")
    flat = np.frombuffer(content, dtype=dtype, offset=start)
    return flat.reshape(shape, order="F" if fortran_order else "C")
