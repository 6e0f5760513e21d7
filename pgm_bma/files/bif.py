"""Networks as BIF files that every reader understands and that lose nothing.

BIF knows plain words only. Readers differ in what breaks them: a bracket, comma, blank, quote or accent in a name, a
keyword used as a name, two names that differ in case, states that are numbers. So names that are plain words are
written as they are and all others get a plain stand-in; the real labels with their Python types, the latent nodes and
the network's name travel with it in a ``property`` called ``pgm_bma`` (hexadecimal JSON, which other readers skip).
Every file is read back and compared before it takes its place on disk.
"""

import gzip
import io
import json
import re
import unicodedata
import zlib
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pgm_bma.files.bif_parser import NOTES_VERSION, ROW_SUM_TOLERANCE, parse_bif
from pgm_bma.files.labels import to_json
from pgm_bma.foundation.runtime.archive import FREE_BYTES, INFLATION
from pgm_bma.foundation.runtime.atomic import file_path, read_bytes, replacing
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.networks.objects import bayesian_network, network_arrays

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD_OR_DIGITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*|[0-9]+")
_RESERVED = frozenset("network variable probability property type discrete table default".split())
# pgmpy's reader searches its keywords inside words: `table1` in a header is a table with the value 1 to it, and a
# network called `my-variable` opens a variable block.
_MISREAD_VARIABLE = re.compile(r"(?:table|default)[-+.0-9eE]")
_MISREAD_NETWORK = re.compile(r"variable|probability")
_NEVER = re.compile(r"(?!)")
_LONGEST_WORD = 8000  # pyAgrum ends the interpreter at words of some 30,000 characters
_PIECE = 4000


def write_bif(model: Any, path: Any) -> Path:
    """Write a Bayesian network to a BIF file, read it back, compare, and only then put it in place.

    Parameters
    ----------
    model : pgmpy.models.DiscreteBayesianNetwork
        Nodes and states may be any text, number, boolean, None, date, tuple and the like. Of pgmpy's roles, latents are
        kept; attributes of nodes and arcs are not.
    path : str or path-like
        A name that ends in ``.gz`` is compressed. An existing file is replaced, once the new one is complete.

    Returns
    -------
    pathlib.Path
        The file, so that ``read_bif(write_bif(model, path))`` is the same network.

    Warns
    -----
    UserWarning
        If a variable has a single state: pyAgrum refuses such files. If the network is that of clusters with numeric columns,
        which are not in it.

    Examples
    --------
    >>> import pgm_bma, tempfile, os
    >>> from pgm_bma.networks.objects import bayesian_network
    >>> model = bayesian_network(["a b"], [(1, 2)], [()], [[[0.25, 0.75]]])
    >>> path = pgm_bma.write_bif(model, os.path.join(tempfile.mkdtemp(), "net.bif"))
    >>> pgm_bma.read_bif(path).get_cpds("a b").state_names
    {'a b': [1, 2]}
    """
    if hasattr(model, "get_factors") and not hasattr(model, "get_cpds"):
        raise TypeError(
            f"BIF holds Bayesian networks, not a {type(model).__name__}; for a Markov network of KikuchiBayesClassifier call its "
            "to_bayesian_network(), which is exact where the regions have no loop"
        )
    arrays, path = network_arrays(model), file_path(path)
    single = [name for name, states in zip(arrays.names, arrays.states) if len(states) == 1]
    if single:
        warn(
            f"pyAgrum cannot read the file, because these variables have one state only: {', '.join(map(str, single))}"
        )
    if left_out := model.graph.get("left_out"):
        warn(f"BIF holds tables of states; these numeric columns are not in the file: {left_out}; save() keeps them")
    for name, cpt in zip(arrays.names, arrays.cpts):
        if (off := np.abs(cpt.sum(axis=1) - 1).max()) > ROW_SUM_TOLERANCE:
            raise ValueError(
                f"a column of the CPD of {name!r} does not sum to 1 (off by {off:.3g}); call its normalize() first"
            )
    content = _bif_text(arrays).encode("ascii")
    if path.suffix == ".gz":
        packed = gzip.compress(content, mtime=0)  # no time stamp: equal networks give equal files
        content = packed if len(content) <= _most_bytes(packed) else gzip.compress(content, 0, mtime=0)
    with replacing(path, "w+b") as draft:
        draft.write(content)
        draft.seek(0)
        _compare(arrays, _arrays_of(draft.read(), path))
    return path


def read_bif(path: Any) -> Any:
    """Read a BIF file of any program, plain or gzip-compressed.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork
        Nodes in the order of the file. Files of `write_bif` give back names, states with their types, latents and
        probabilities exactly; in other files every name and state is a text, and rows that sum to one but for the
        rounding of their digits (1e-6) are normalised.

    Raises
    ------
    ValueError
        If the file is malformed, or a row is not a distribution; the message has the line.

    Examples
    --------
    >>> import pgm_bma, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "coin.bif")
    >>> text = "network n {} variable coin {type discrete [2] {head, tail};} probability (coin) {table 0.5, 0.5;}"
    >>> with open(path, "w") as file:
    ...     _ = file.write(text)
    >>> pgm_bma.read_bif(path).check_model()
    True
    """
    arrays = bif_arrays(path)
    try:
        return bayesian_network(*arrays)
    except ValueError as error:  # a cycle: what the text of one block cannot show
        raise ValueError(f"{path}: {error}") from error


def bif_arrays(path):
    """Read a BIF file into `NetworkArrays`, without pgmpy."""
    return _arrays_of(read_bytes(path), path)


def _arrays_of(content, path):
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                unpacked = file.read(_most_bytes(content) + 1)
            if len(unpacked) > _most_bytes(content):
                raise ValueError(f"{path}: {len(content)} bytes that unpack to more than {_most_bytes(content)}")
            content = unpacked
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} begins like a gzip file, but it is damaged ({error})") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # old files with accents in comments
    return parse_bif(text, source=str(path))


def _most_bytes(packed):
    """Return how much a compressed file may unpack to."""
    return max(FREE_BYTES, INFLATION * len(packed))


def _bif_text(arrays):
    words = _words(arrays.names, _WORD, _MISREAD_VARIABLE)
    state_words = [_words(states, _WORD_OR_DIGITS) for states in arrays.states]
    network_word = "unknown" if arrays.name is None else _words([arrays.name], _WORD, _MISREAD_NETWORK)[0]
    lines = [f"network {network_word} {{", *_note_lines(_notes(arrays, network_word, words, state_words)), "}"]
    for word, plain in zip(words, state_words):
        lines += [f"variable {word} {{", f"    type discrete [ {len(plain)} ] {{ {', '.join(plain)} }};", "}"]
    for i, (parents, cpt) in enumerate(zip(arrays.parents, arrays.cpts)):
        rows = [", ".join(map(repr, row)) for row in cpt.tolist()]  # repr of a float reads back bit for bit
        if parents:
            lines.append(f"probability ( {words[i]} | {', '.join(words[p] for p in parents)} ) {{")
            heads = product(*(state_words[p] for p in parents))
            lines += [f"    ( {', '.join(head)} ) {row};" for head, row in zip(heads, rows)]
        else:
            lines += [f"probability ( {words[i]} ) {{", f"    table {rows[0]};"]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _words(labels, allowed, misread=_NEVER):
    """Give every label its own word: itself where readers agree on it, else a plain stand-in."""
    texts = [str(label) for label in labels]
    lowered = Counter(text.lower() for text in texts)
    plain = [
        bool(allowed.fullmatch(text))
        and text not in _RESERVED
        and not misread.search(text)
        and lowered[text.lower()] == 1
        and len(text) <= _LONGEST_WORD
        for text in texts
    ]
    # word -> last number given out to tell its namesakes apart
    taken = dict.fromkeys([*_RESERVED, *(text.lower() for text, keep in zip(texts, plain) if keep)], 1)
    return [text if keep else _stand_in(text, taken, misread) for text, keep in zip(texts, plain)]


def _stand_in(text, taken, misread):
    """A readable word for `text` that nobody has yet; `taken` learns it."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", ascii_text)[:60]
    if not _WORD.fullmatch(word):
        word = f"_{word}"
    word = misread.sub(lambda match: f"{match.group()[:-1]}_{match.group()[-1]}", word)
    candidate = word
    while candidate.lower() in taken:
        taken[word.lower()] += 1
        candidate = f"{word}_{taken[word.lower()]}"
    taken[candidate.lower()] = 1
    return candidate


def _notes(arrays, network_word, words, state_words):
    """Return what the words of the file do not say: labels that are not plain words, and which nodes are latent."""
    hidden, variables = set(arrays.latents), {}
    for name, word, states, plain in zip(arrays.names, words, arrays.states, state_words):
        note = {}
        if not _same(name, word):
            note["name"] = to_json(name)
        if not all(map(_same, states, plain)):
            note["states"] = to_json(list(states))
        if name in hidden:
            note["latent"] = True
        if note:
            variables[word] = note
    notes = {"version": NOTES_VERSION, "variables": variables}
    if not _same(arrays.name, network_word):
        notes["name"] = to_json(arrays.name)
    return notes


def _note_lines(notes):
    # all in the network block: pgmpy's reader takes 8 microseconds for every character inside a variable block
    code = json.dumps(notes, separators=(",", ":")).encode().hex()
    return [f"    property pgm_bma = {code[i : i + _PIECE]};" for i in range(0, len(code), _PIECE)]


def _same(label, word):
    return type(label) is str and label == word


def _compare(written, found):
    """Raise if the file says anything else than the network; labels are compared with their types, numbers bit by bit."""
    for field in ("names", "states", "parents", "latents", "name"):
        if to_json(getattr(written, field)) != to_json(getattr(found, field)):
            raise RuntimeError(f"nothing was written: the {field} of the network did not survive the BIF text")
    for name, ours, theirs in zip(written.names, written.cpts, found.cpts):
        if not np.array_equal(ours, theirs):
            raise RuntimeError(f"nothing was written: the probabilities of {name!r} did not survive the BIF text")
