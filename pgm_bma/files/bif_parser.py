"""Text in the Interchange Format (BIF) to arrays.

One regular expression cuts the text into tokens; a first pass collects variables and remembers where the tables stand,
a second pass fills the tables, so that blocks may come in any order. Foreign habits are understood: comments, quoted
names, names of several words, states without commas, ``table`` and ``default`` entries, tables without ``|``.
Properties are skipped, except ``pgm_bma``, which carries what BIF cannot say (see `pgm_bma.files.bif`).

Files come from strangers: every token is read once, whatever is left open; the size of a table is compared with the words that
are there before memory is taken; rows must sum to one. Whatever is wrong is a ValueError with the file and the line.
"""

import json
import re
from itertools import product
from math import prod

import numpy as np

from pgm_bma.files.labels import from_json
from pgm_bma.networks.objects import NetworkArrays

NOTES_VERSION = 1
# The text of a property runs to its semicolon and may hold anything; a stray quote or slash becomes a separate token,
# so that nothing is skipped silently. Possessive, and never failing behind its first word: what is not closed is one token
# up to the end of the text (`_Tokens` finds it) instead of a new search from every place where something opens.
_TOKEN = re.compile(
    r'//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?|property(?=[\s"])(?:"[^"]*+"|[^;"]++)*+;?|"[^"]*+"'
    r'|[{}()\[\]|,;]|(?:[^\s{}()\[\]|,;"/]++|/(?![/*]))++|\S',
    re.DOTALL,
)
_NOTES = re.compile(r"property\s+pgm_bma\s*=\s*([0-9a-f]*)\s*;")
ROW_SUM_TOLERANCE = 1e-6  # published networks have seven digits: the ten that are bundled are off by at most 1e-7
_ROUNDING = 1e-12  # a sum this near to one is rounding of the sum, not of the file
_MOST_DEFAULT_CELLS = 10_000_000  # cells of a file that stand in no word of it, because a default fills them


def parse_bif(text, source="BIF text"):
    """Parse BIF text into `NetworkArrays`; a mistake in the text is a ValueError with `source` and the line.

    Examples
    --------
    >>> from pgm_bma.files.bif_parser import parse_bif
    >>> arrays = parse_bif("network n {} variable x {type discrete [2] {a, b};} probability (x) {table 0.25, 0.75;}")
    >>> arrays.names, arrays.states, arrays.cpts[0].tolist()
    (('x',), (('a', 'b'),), [[0.25, 0.75]])
    """
    tokens = _Tokens(text, source)
    name, notes, variables, blocks = None, {}, {}, []
    while tokens.position < len(tokens.items):
        keyword = tokens.take()
        if keyword == "network":
            name = tokens.phrase_until("{")
            notes = _notes(tokens, tokens.span_until("}"))
        elif keyword == "variable":
            variable = tokens.phrase_until("{")
            if variable in variables:
                tokens.fail(f"variable {variable!r} is declared twice", -2)
            variables[variable] = _variable_block(tokens, variable)
        elif keyword == "probability":
            blocks.append((tokens.position, *_table_header(tokens), tokens.span_until("}")))
        else:
            tokens.fail(f"found {keyword!r} where network, variable or probability was expected", -1)
    if not variables:
        tokens.fail("no variable is declared; is this a BIF file?")
    tables = _tables(tokens, variables, blocks, is_ours=bool(notes))
    try:
        return _arrays(tokens, name, notes, variables, tables)
    except _Problem:
        raise
    except Exception:  # whatever a stranger wrote there: dates, numbers and time zones have their own errors
        tokens.fail_at(0, "the pgm_bma property is damaged")


def _variable_block(tokens, variable):
    """Read ``type discrete [ n ] { ... }; property ...; }``; return the states."""
    states = None
    while (token := tokens.take()) != "}":
        if token.startswith("property"):
            continue
        if token != "type":  # nosec B105 # a word of the format
            tokens.fail(f"found {token!r} in variable {variable!r} where type, property or }} was expected", -1)
        kind = tokens.take()
        if kind != "discrete":
            tokens.fail(f"variable {variable!r} has type {kind!r}; only discrete variables are understood", -1)
        tokens.expect("[")
        count = tokens.phrase_until("]")
        tokens.phrase_until("{")
        words = tokens.items[slice(*tokens.span_until("}"))]
        states = _phrases(words)
        if str(len(states)) != count and "," not in words:
            states = [_unquote(word) for word in words]  # separated by blanks
        if str(len(states)) != count:
            tokens.fail(f"variable {variable!r} announces {count} states and lists {len(states)}: {states}", -1)
        if len(set(states)) != len(states):
            tokens.fail(f"variable {variable!r} lists a state twice: {states}", -1)
        if tokens.peek() == ";":
            tokens.take()
    if not states:
        tokens.fail(f"variable {variable!r} has no states", -1)
    return states


def _table_header(tokens):
    """Read ``( child | parents ) {``; return (the phrases, whether a bar was there)."""
    tokens.expect("(")
    words = tokens.items[slice(*tokens.span_until(")"))]
    tokens.expect("{")
    bar = "|" in words
    if bar:
        cut = words.index("|")
        return [" ".join(map(_unquote, words[:cut])), *_phrases(words[cut + 1 :])], bar
    return words, bar


def _tables(tokens, variables, blocks, is_ours):
    """Fill one (n_parent_states, n_states) table per block; return {child: (parents, table)}."""
    folded: dict = {}
    for variable in variables:
        folded.setdefault(variable.lower(), []).append(variable)

    def known(phrase, position):
        # some published files change the case between declaration and table
        matches = [phrase] if phrase in variables else folded.get(phrase.lower(), [])
        if len(matches) != 1:
            tokens.fail_at(position, f"the table speaks of {phrase!r}, which is not declared as a variable")
        return matches[0]

    positions = {variable: {state: i for i, state in enumerate(states)} for variable, states in variables.items()}
    tables = {}
    for position, phrases, bar, span in blocks:
        if not bar:  # `( x )`, or `( child parent parent )` in old files; a name may have several words
            whole = " ".join(map(_unquote, phrases))
            phrases = [whole] if whole in variables else [_unquote(word) for word in phrases if word != ","]
        child, *parents = [known(phrase, position) for phrase in phrases]
        if child in tables:
            tokens.fail_at(position, f"variable {child!r} has two tables")
        if child in parents or len(set(parents)) != len(parents):
            tokens.fail_at(position, f"the table of {child!r} names a variable twice: {[child, *parents]}")
        tables[child] = parents, _table(tokens, child, parents, positions, position, span)
        _check_rows(tokens, child, parents, positions, position, tables[child][1], is_ours)
    for variable in variables:
        if variable not in tables:
            tokens.fail(f"variable {variable!r} has no probability block")
    return tables


def _table(tokens, child, parents, positions, header, span):
    n_states, cards = len(positions[child]), [len(positions[parent]) for parent in parents]
    _check_size(tokens, child, prod(cards) * n_states, header, span)
    table, given = np.zeros((prod(cards), n_states)), np.zeros(prod(cards), dtype=bool)
    default = None
    tokens.position, stop = span
    while tokens.position < stop:
        start = tokens.position
        token = tokens.take()
        if token.startswith("property"):
            continue
        if token == "table":  # nosec B105 # a word of the format
            if given.any():
                tokens.fail_at(start, f"the table of {child!r} is given twice, or besides rows")
            # every published reader takes the child as the slowest index here
            table[:] = np.reshape(tokens.numbers(table.size, child), (n_states, -1)).T
            given[:] = True
        elif token == "default":  # nosec B105 # a word of the format
            if default is not None:
                tokens.fail_at(start, f"{child!r} has two defaults")
            default = tokens.numbers(n_states, child)
        elif token == "(":  # nosec B105 # a word of the format
            states = _phrases(tokens.items[slice(*tokens.span_until(")"))])
            row = 0
            for parent, card, state in zip(parents, cards, states):
                if state not in positions[parent]:
                    tokens.fail_at(start, f"{parent!r} has no state {state!r} (table of {child!r})")
                row = row * card + positions[parent][state]
            if len(states) != len(parents):
                tokens.fail_at(start, f"{len(states)} states for the {len(parents)} parents of {child!r}")
            if given[row]:
                tokens.fail_at(start, f"the row {states} of {child!r} is given twice")
            table[row] = tokens.numbers(n_states, child)
            given[row] = True
        else:
            tokens.fail_at(start, f"found {token!r} in the table of {child!r}")
    if default is not None:
        table[~given] = default
    elif not given.all():
        first = np.unravel_index(given.argmin(), cards)
        absent = [list(s)[i] for s, i in zip((positions[p] for p in parents), first)]
        tokens.fail_at(header, f"the table of {child!r} has no row for {absent} and no default")
    return table


def _check_size(tokens, child, n_cells, header, span):
    """Refuse a table that cannot be in the file before memory is taken for it."""
    words = tokens.items[slice(*span)]
    if n_cells <= len(words):
        return
    if "default" not in words:
        tokens.fail_at(header, f"the table of {child!r} has {n_cells} cells, and {len(words)} words are there")
    tokens.default_cells += n_cells
    if tokens.default_cells > _MOST_DEFAULT_CELLS:
        tokens.fail_at(
            header, f"the table of {child!r} has {n_cells} cells, most by default; {_MOST_DEFAULT_CELLS} are read"
        )


def _check_rows(tokens, child, parents, positions, header, table, is_ours):
    """Rows must be distributions; what the file rounded is made up for, except in files of ours, which hold every bit."""
    sums = table.sum(axis=1)
    off = np.abs(sums - 1)
    good = (table >= 0).all(axis=1) & (off <= ROW_SUM_TOLERANCE)
    if not good.all():
        row = next(r for r, ok in zip(product(*(positions[p] for p in parents)), good) if not ok)
        values, total = table[good.argmin()].tolist(), sums[good.argmin()]
        shown = f"{str(values[:6])[:-1]}, ...]" if len(values) > 6 else values
        which = f"the row {list(row)}" if parents else "the table"
        tokens.fail_at(header, f"{which} of {child!r} is not a probability distribution: {shown} sums to {total:.9g}")
    rounded = off > _ROUNDING
    if rounded.any() and not is_ours:
        table[rounded] /= sums[rounded, None]


def _arrays(tokens, name, notes, variables, tables):
    """Give names and states their labels back."""
    labels, states, latents = {}, [], []
    for variable, plain in variables.items():
        note = notes.get("variables", {}).get(variable, {})
        labels[variable] = from_json(note["name"]) if "name" in note else variable
        if not isinstance(note.get("states", []), list):  # a range, say, of any length
            tokens.fail("the pgm_bma property is damaged")
        states.append(tuple(from_json(note["states"])) if "states" in note else tuple(plain))
        if len(states[-1]) != len(plain):
            tokens.fail(f"variable {variable!r} has {len(plain)} states, but the pgm_bma property knows {states[-1]}")
        if note.get("latent"):
            latents.append(labels[variable])
    index = {variable: i for i, variable in enumerate(variables)}
    parents = tuple(tuple(index[p] for p in tables[variable][0]) for variable in variables)
    cpts = tuple(tables[variable][1] for variable in variables)
    if "name" in notes:
        name = from_json(notes["name"])
    return NetworkArrays(tuple(labels.values()), tuple(states), parents, cpts, tuple(latents), name)


def _notes(tokens, span):
    """Decode the pgm_bma property, which may be cut into several lines."""
    pieces = [_NOTES.fullmatch(token) for token in tokens.items[slice(*span)] if token.startswith("property")]
    code = "".join(piece.group(1) for piece in pieces if piece)
    if not code:
        return {}
    try:
        notes = json.loads(bytes.fromhex(code))
        version = int(notes.get("version", NOTES_VERSION))
    except (ValueError, AttributeError, TypeError, RecursionError):
        tokens.fail_at(span[0], "the pgm_bma property is damaged")
    if version > NOTES_VERSION:
        tokens.fail_at(span[0], f"the file has version {version}, this pgm_bma reads {NOTES_VERSION}; update pgm_bma")
    return notes


def _phrases(words):
    """Cut at commas and join what stands between: ['a', ',', 'b', 'c'] -> ['a', 'b c']."""
    if len(words) % 2 and all(word == "," for word in words[1::2]):  # single words, the usual case
        return [_unquote(word) for word in words[::2]]
    phrases: list[list[str]] = [[]]
    for word in words:
        if word == ",":
            phrases.append([])
        else:
            phrases[-1].append(_unquote(word))
    return [" ".join(phrase) for phrase in phrases if phrase]


def _unquote(word):
    return word[1:-1].strip() if len(word) > 1 and word[0] == '"' else word


class _Tokens:
    """The tokens, a position among them, and errors that know the line."""

    def __init__(self, text, source):
        self.text, self.source, self.position, self.default_cells = text, source, 0, 0
        found = _TOKEN.findall(text)
        self.items = [t for t in found if not t.startswith(("//", "/*"))]
        if found and found[-1].startswith("/*") and (len(found[-1]) < 4 or not found[-1].endswith("*/")):
            self.fail_at(len(self.items), "a comment is not closed", text.rindex(found[-1]))
        if "property" in text:
            self._refuse("property", _is_open_property)
        self._refuse("quote", '"'.__eq__)

    def _refuse(self, what, is_open):
        position = next((i for i, token in enumerate(self.items) if is_open(token)), None)
        if position is not None:
            self.fail_at(position, f"a {what} is not closed")

    def peek(self):
        return self.items[self.position] if self.position < len(self.items) else ""

    def take(self):
        if self.position >= len(self.items):
            self.fail("the text ends in the middle of a block")
        self.position += 1
        return self.items[self.position - 1]

    def expect(self, wanted):
        if self.peek() != wanted:
            self.fail(f"found {self.peek()!r} where {wanted!r} was expected")
        self.position += 1

    def span_until(self, mark):
        """Step behind the next `mark`; return the (start, stop) of what lies before it."""
        start = self.position
        try:
            stop = self.items.index(mark, start)
        except ValueError:
            self.fail(f"no {mark!r} closes what begins here")
        self.position = stop + 1
        return start, stop

    def phrase_until(self, mark):
        return " ".join(_unquote(word) for word in self.items[slice(*self.span_until(mark))])

    def numbers(self, count, child):
        start, stop = self.span_until(";")
        try:
            values = [float(word) for word in self.items[start:stop] if word != ","]
        except ValueError as error:
            self.fail_at(start, f"{error} (table of {child!r})")
        if len(values) != count:
            self.fail_at(start, f"{len(values)} numbers where {child!r} needs {count}")
        return values

    def fail(self, message, step=0):
        self.fail_at(self.position + step, message)

    def fail_at(self, position, message, offset=None):
        # lines are counted only now: an error is rare, a line number per token is not free
        if offset is None:
            kept = (m for m in _TOKEN.finditer(self.text) if not m.group().startswith(("//", "/*")))
            offset = next((m.start() for i, m in enumerate(kept) if i == position), len(self.text))
        raise _Problem(f"{self.source}, line {self.text.count(chr(10), 0, offset) + 1}: {message}")


class _Problem(ValueError):
    """Error of `_Tokens.fail`: it knows the file and the line already."""


def _is_open_property(token):
    return token.startswith("property") and token[8:9] in (" ", "\t", "\n", "\r", '"') and not token.endswith(";")
