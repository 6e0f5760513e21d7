"""BIF files: exact for every name and state, readable by pgmpy and pyAgrum, tolerant of foreign files, clear on errors."""

import datetime
import gzip
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pgmpy.models  # noqa: F401  (its import draws random numbers, which a strategy must not)
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import pgm_bma
from pgm_bma.files import bif
from pgm_bma.files.bif_parser import _TOKEN, parse_bif
from pgm_bma.files.labels import to_json
from pgm_bma.networks.objects import bayesian_network, network_arrays

BUNDLED = sorted((Path(__file__).parents[2] / "data" / "bif").glob("*.bif"))
KEYWORDS = ["network", "variable", "probability", "property", "type", "discrete", "table", "default"]
# the rows of the known traps, and words that some reader takes for something else
NASTY = [
    *KEYWORDS,
    *[
        "a)",
        "(",
        ",",
        "{",
        "}",
        "//",
        "/*",
        "",
        " ",
        "a b",
        "b",
        "B",
        '"',
        "'",
        "x.y",
        "é",
        "日本",
        "|",
        ";",
        "=",
        "\n",
    ],
    *[
        "table1",
        "default-e",
        "stable",
        "my-variable",
        "unknown",
        "-1",
        "1",
        "01",
        "1e5",
        "None",
        "True",
        "\ud800",
        "\\",
    ],
]
SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


def labels():
    plain = st.one_of(st.sampled_from(NASTY), st.text(max_size=5), st.integers(-3, 12), st.booleans(), st.none())
    numbers = st.floats(allow_nan=False, width=32)
    dates = st.one_of(st.dates(), st.datetimes().map(pd.Timestamp), st.sampled_from([datetime.timedelta(1), b"x"]))
    exotic = st.one_of(numbers, dates, st.tuples(plain, plain), st.integers(0, 9).map(np.int8), st.frozensets(plain))
    return st.one_of(plain, plain, exotic)


@st.composite
def networks(draw, min_states=1):
    # networkx has no node None, and a numpy number beside a tuple compares to an array
    names = labels().filter(lambda label: label is not None and not isinstance(label, np.generic))
    names = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    states_of = st.lists(labels(), min_size=min_states, max_size=3, unique=True)
    states = [draw(states_of) for _ in names]
    parents = [draw(st.lists(st.sampled_from(range(i)), unique=True)) if i else [] for i in range(len(names))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # a small concentration gives probabilities down to the smallest numbers that floats can hold
    shape = draw(st.sampled_from([1.0, 0.003]))
    cpts = [_rows(rng, shape, states, i, parents[i]) for i in range(len(names))]
    latents = [name for name in names if draw(st.booleans())]
    order = draw(st.permutations(range(len(names))))
    place = {old: new for new, old in enumerate(order)}
    return bayesian_network(
        [names[i] for i in order],
        [states[i] for i in order],
        [[place[p] for p in parents[i]] for i in order],
        [cpts[i] for i in order],
        latents=latents,
        name=draw(st.one_of(st.none(), st.sampled_from([n for n in NASTY if n]), st.text(min_size=1, max_size=5))),
    )


def _rows(rng, shape, states, child, parents):
    n_rows, n_states = int(np.prod([len(states[p]) for p in parents])), len(states[child])
    weights = rng.gamma(shape, size=(n_rows, n_states)) + 5e-324
    return weights / weights.sum(axis=1, keepdims=True)


def assert_same(found, model):
    ours, theirs = network_arrays(found), network_arrays(model)
    for field in ("names", "states", "parents", "latents", "name"):
        # the JSON code tells 1 from True and "1", which == does not
        assert to_json(getattr(ours, field)) == to_json(getattr(theirs, field)), field
    assert all(np.array_equal(a, b) for a, b in zip(ours.cpts, theirs.cpts))


@pytest.fixture(autouse=True)
def single_states_allowed():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pyAgrum cannot read")
        yield


@pytest.fixture(scope="module")
def pgmpy_reader():
    """pgmpy's own reader; its grammar, the same for every file, takes seconds to build and is built once here."""
    from pgmpy.readwrite import BIFReader

    grammars = BIFReader.get_variable_grammar(None), BIFReader.get_probability_grammar(None)

    class Reader(BIFReader):
        def get_variable_grammar(self):
            return grammars[0]

        def get_probability_grammar(self):
            return grammars[1]

    return Reader


@settings(max_examples=80, **SETTINGS)
@given(model=networks())
def test_read_after_write_is_exact(tmp_path, model):
    path = pgm_bma.write_bif(model, tmp_path / "net.bif")
    found = pgm_bma.read_bif(path)
    assert_same(found, model)
    assert found.check_model()
    assert path.read_bytes().isascii()


@settings(max_examples=30, **SETTINGS)
@given(model=networks(min_states=2))
def test_other_readers_agree(tmp_path, pgmpy_reader, model):
    path = pgm_bma.write_bif(model, tmp_path / "net.bif")
    arrays = network_arrays(model)
    words = re.findall(r"^variable (\S+) \{$", path.read_text(), flags=re.MULTILINE)
    theirs = pgmpy_reader(path=path)
    assert theirs.variable_names == words
    read = {cpd.variable: cpd for cpd in theirs.get_model().cpds}
    for word, ps, cpt in zip(words, arrays.parents, arrays.cpts):
        assert read[word].variables == [word, *(words[p] for p in ps)]
        # repr goes through text and back without loss; 1e-12 is what is promised
        np.testing.assert_allclose(read[word].get_values().T, cpt, rtol=0, atol=1e-12)
    assert_pyagrum_agrees(path, words, arrays)


def assert_pyagrum_agrees(path, words, arrays):
    import pyagrum

    network = pyagrum.loadBN(str(path))
    assert [network.variable(node).name() for node in sorted(network.nodes())] == words
    for word, ps, cpt in zip(words, arrays.parents, arrays.cpts):
        table = network.cpt(word)
        cards = [len(arrays.states[p]) for p in ps]
        for row, expected in zip(np.ndindex(*cards), cpt):
            got = table[{words[p]: int(k) for p, k in zip(ps, row)}] if ps else table.toarray()
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)  # pyAgrum reads float32


@pytest.mark.parametrize("path", BUNDLED, ids=lambda p: p.stem)
def test_published_networks_match_pgmpy_and_survive(path, tmp_path, pgmpy_reader):
    model = pgm_bma.read_bif(path)
    theirs = pgmpy_reader(path=path).get_model()
    assert list(model.nodes) == list(theirs.nodes)
    assert model.check_model()
    for cpd in theirs.cpds:
        ours = model.get_cpds(cpd.variable)
        assert ours.variables == cpd.variables
        assert ours.state_names == cpd.state_names
        np.testing.assert_allclose(ours.values, cpd.values, rtol=0, atol=2e-7)  # seven digits are published
        assert np.abs(ours.values.sum(axis=0) - 1).max() < 1e-12
    written = pgm_bma.write_bif(model, tmp_path / "net.bif.gz")
    assert_same(pgm_bma.read_bif(written), model)
    words = re.findall(r"^variable (\S+) ", path.read_text(), flags=re.MULTILINE)
    assert_pyagrum_agrees(pgm_bma.write_bif(model, tmp_path / "net.bif"), words, network_arrays(model))


def test_ten_networks_are_bundled():
    assert len(BUNDLED) == 10


word = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]*", fullmatch=True)


@settings(max_examples=40, **SETTINGS)
@given(
    names=st.lists(word, min_size=1, max_size=5, unique_by=str.lower),
    states=st.lists(word | st.integers(0, 20).map(str), min_size=1, max_size=4, unique_by=str.lower),
)
@example(names=["a-b", "_", "stable", "x_1"], states=["0", "00", "-".join("ab")])
def test_plain_words_are_written_unchanged(tmp_path, names, states):
    names = [name for name in names if name not in KEYWORDS and not re.search("(table|default)[-0-9eE]", name)]
    states = [state for state in states if state not in KEYWORDS]
    if not names or not states:
        return
    cpt = np.full((1, len(states)), 1 / len(states))
    model = bayesian_network(names, [states] * len(names), [()] * len(names), [cpt] * len(names), name="plain")
    text = pgm_bma.write_bif(model, tmp_path / "net.bif").read_text()
    for name in names:
        assert f"variable {name} {{\n    type discrete [ {len(states)} ] {{ {', '.join(states)} }};\n}}\n" in text
    assert text.startswith("network plain {")


def test_names_that_readers_confuse_get_stand_ins(tmp_path):
    names = ["b", "B", "table", "table1", "a b", "a_b", "é", "日", "本", "x"]
    cpts = [np.array([[0.5, 0.5]])] * len(names)
    model = bayesian_network(names, [(0, 1)] * len(names), [()] * len(names), cpts, name="my variable")
    text = pgm_bma.write_bif(model, tmp_path / "net.bif").read_text()
    words = re.findall(r"^variable (\S+) ", text, flags=re.MULTILINE)
    assert words == ["b", "B_2", "table_2", "table_1", "a_b_2", "a_b", "e", "_", "__2", "x"]


def test_equal_networks_give_equal_bytes(tmp_path):
    model = pgm_bma.read_bif(BUNDLED[0])
    for suffix in (".bif", ".bif.gz"):
        first = pgm_bma.write_bif(model, tmp_path / f"one{suffix}").read_bytes()
        assert first == pgm_bma.write_bif(model, tmp_path / f"two{suffix}").read_bytes()


def test_one_state_variables_are_named_in_a_warning(tmp_path):
    model = bayesian_network(["x", "only"], [(0, 1), ("s",)], [(), ()], [[[0.5, 0.5]], [[1.0]]])
    with pytest.warns(UserWarning, match="pyAgrum.*only"):
        pgm_bma.write_bif(model, tmp_path / "net.bif")


def test_a_file_that_does_not_compare_is_not_written(tmp_path, monkeypatch):
    model = bayesian_network(["x"], [(0, 1)], [()], [[[1 / 3, 2 / 3]]])
    path = tmp_path / "net.bif"
    path.write_text("old")
    monkeypatch.setattr(bif, "repr", lambda x: f"{x:.3f}", raising=False)  # a writer that rounds
    with pytest.raises(RuntimeError, match="probabilities of"):
        pgm_bma.write_bif(model, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_write_refuses_what_is_no_network(tmp_path):
    with pytest.raises(TypeError, match="model_"):
        pgm_bma.write_bif({"a": 1}, tmp_path / "net.bif")
    with pytest.raises(TypeError, match="cannot be stored"):
        pgm_bma.write_bif(bayesian_network([object()], [(0, 1)], [()], [[[0.5, 0.5]]]), tmp_path / "net.bif")


FOREIGN = """// made elsewhere
/* a network { of } two */
network "Old Net" { property author = "x; y"; property site = http://example.org/a;
}
probability ( Child | root, "other one" ) {   // table before its variables
  (a, yes) 0.1 0.9;
  ( b , maybe not ) .3, .7;
  default 0.5, 5e-1;
}
variable root { type discrete[2] { a b }; property position = (1, 2); }
variable "other one" { type discrete [ 3 ] { yes, maybe not, "no" }; }
variable child { // one more
  property note ; type discrete [ 2 ] { <5, >=5 }; }
probability ( root ) { property p = 1; table 0.25, 0.75; }
probability ( "other one" ) { table 0.2 0.3 0.5; }
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_foreign_habits_are_understood(newline):
    arrays = parse_bif(FOREIGN.replace("\n", newline))
    assert arrays.name == "Old Net"
    assert arrays.names == ("root", "other one", "child")
    assert arrays.states == (("a", "b"), ("yes", "maybe not", "no"), ("<5", ">=5"))
    assert arrays.parents == ((), (), (0, 1))
    half = [0.5, 0.5]
    assert arrays.cpts[2].tolist() == [[0.1, 0.9], half, half, half, [0.3, 0.7], half]
    assert arrays.cpts[0].tolist() == [[0.25, 0.75]]
    assert arrays.latents == ()


def test_a_table_with_parents_has_the_child_slowest(tmp_path, pgmpy_reader):
    text = "network n {\n}\nvariable a {\n type discrete [ 2 ] { x, y };\n}\nvariable b {\n type discrete [ 3 ] { p, q, r };\n}\n"
    text += (
        "probability ( a ) {\n table 0.5, 0.5;\n}\nprobability ( b | a ) {\n table 0.1, 0.2, 0.3, 0.4, 0.6, 0.4;\n}\n"
    )
    path = tmp_path / "net.bif"
    path.write_text(text)
    arrays = bif.bif_arrays(path)
    assert arrays.cpts[1].tolist() == [[0.1, 0.3, 0.6], [0.2, 0.4, 0.4]]
    assert np.array_equal(pgmpy_reader(path=path).get_model().get_cpds("b").get_values().T, arrays.cpts[1])
    assert_pyagrum_agrees(path, ["a", "b"], arrays)
    assert parse_bif(text.replace("( b | a )", "( b a )")).parents == ((), (0,))


def test_encodings(tmp_path):
    text = "// é\nnetwork n {\n}\nvariable x {\n type discrete [ 1 ] { é };\n}\nprobability ( x ) {\n table 1.0;\n}\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1"):
        path = tmp_path / f"{encoding}.bif"
        path.write_bytes(text.encode(encoding))
        assert bif.bif_arrays(path).states == (("é",),)


def test_a_damaged_gzip_file_is_named(tmp_path):
    path = pgm_bma.write_bif(pgm_bma.load_network("cancer"), tmp_path / "net.bif.gz")
    content = path.read_bytes()
    for damaged in (content[:-20], content[:40] + b"?" + content[41:], content[:-6] + b"?" + content[-5:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"net\.bif\.gz begins like a gzip file, but it is damaged"):
            pgm_bma.read_bif(path)


GOOD = """network n {
}
variable x {
  type discrete [ 2 ] { a, b };
}
variable y {
  type discrete [ 2 ] { c, d };
}
probability ( x ) {
  table 0.5, 0.5;
}
probability ( y | x ) {
  (a) 0.1, 0.9;
  (b) 0.2, 0.8;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("", "", 1, "no variable"),
        ("network n", "netwerk n", 1, "'netwerk'"),
        ("[ 2 ] { a, b }", "[ 3 ] { a, b }", 4, "announces 3 states and lists 2"),
        ("{ a, b }", "{ a, a }", 4, "twice"),
        ("type discrete [ 2 ] { a", "type continuous [ 2 ] { a", 4, "'continuous'"),
        ("  type discrete [ 2 ] { c, d };\n", "", 7, "'y' has no states"),
        ("variable y", "variable x", 6, "declared twice"),
        ("  table 0.5, 0.5;", "  table 0.5, 0.4 0.1;", 10, "3 numbers where 'x' needs 2"),
        ("  table 0.5, 0.5;", "  table 0.5, abc;", 10, "abc"),
        ("  table 0.5, 0.5;", "  table 0.5, 0.5", 10, "no ';' closes|could not convert"),
        ("  table 0.5, 0.5;", "  table 0.5, 0.6;", 9, "not a probability distribution"),
        ("  table 0.5, 0.5;", "  table nan, 0.5;", 9, "not a probability distribution"),
        ("  table 0.5, 0.5;", "  tabel 0.5, 0.5;", 10, "'tabel'"),
        ("  (b) 0.2, 0.8;\n", "", 12, r"no row for \['b'\]"),
        ("  (b) 0.2", "  (z) 0.2", 14, "'x' has no state 'z'"),
        ("  (b) 0.2", "  (a) 0.2", 14, "given twice"),
        ("  (b) 0.2", "  (b, b) 0.2", 14, "2 states for the 1 parents"),
        ("( y | x )", "( y | z )", 12, "'z', which is not declared"),
        ("( y | x )", "( y | y )", 12, "names a variable twice"),
        ("( y | x )", "( x | y )", 12, "two tables"),
        ("  (b) 0.2, 0.8;\n}\n", "  (b) 0.2, 0.8;\n", 13, "closes"),
        ("network n {\n", "network n {\n  property pgm_bma = 7b;\n", 2, "damaged"),
        ("network n {\n", "network n {\n  property pgm_bma = 7b227661726961626c6573223a5b5d7d;\n", 1, "damaged"),
        ("network n {\n", "network n {\n  property pgm_bma = 7b2276657273696f6e223a20397d;\n", 2, "version 9"),
        ('network n {\n', 'network "n {\n', 1, "not closed"),
        ("network n {\n}", "network n {\n} /* open", 2, "a comment is not closed"),
        ("network n {\n}", "network n {\n} /*/", 2, "a comment is not closed"),
        ("0.8;\n}", "0.8;\n property a = b }", 15, "a property is not closed"),
        ("variable y {\n", 'variable y {\n property a = "b;', 7, "a property is not closed"),
        ("  table 0.5, 0.5;", "  table 0.5, 0.500002;", 9, "sums to 1.000002"),
        ("network n {\n", "network n {\n  property pgm_bma = 7b2276657273696f6e223a20227a227d;\n", 2, "damaged"),
    ],
)  # fmt: skip
def test_errors_name_the_line(tmp_path, old, new, line, message):
    path = tmp_path / "net.bif"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1) if old else "")
    with pytest.raises(ValueError, match=message) as caught:
        pgm_bma.read_bif(path)
    assert f"net.bif, line {line}: " in str(caught.value)


def test_a_variable_without_table_is_an_error():
    with pytest.raises(ValueError, match="'y' has no probability block"):
        parse_bif(GOOD[: GOOD.index("probability ( y")])


def test_thousands_of_nodes_with_the_same_stand_in(tmp_path):
    names = [chr(0x4E00 + i) for i in range(1500)]
    model = bayesian_network(names, [(0, 1)] * 1500, [()] * 1500, [np.array([[0.25, 0.75]])] * 1500)
    assert list(pgm_bma.read_bif(pgm_bma.write_bif(model, tmp_path / "net.bif")).nodes) == names


def test_long_labels_stay_within_what_readers_bear(tmp_path):
    model = bayesian_network(["a" * 50_000], [["é" * 50_000, "x"]], [()], [[[0.5, 0.5]]])
    path = pgm_bma.write_bif(model, tmp_path / "net.bif")
    assert max(map(len, re.findall(r"\S+", path.read_text()))) < 8001
    assert_same(pgm_bma.read_bif(path), model)
    import pyagrum

    assert pyagrum.loadBN(str(path)).size() == 1


def test_a_cycle_is_an_error_that_names_the_file(tmp_path):
    text = "network n {} variable x {type discrete [2] {a, b};} variable y {type discrete [2] {a, b};}"
    text += "probability (x | y) {table 0.5, 0.5, 0.5, 0.5;} probability (y | x) {table 0.5, 0.5, 0.5, 0.5;}"
    path = tmp_path / "loop.bif"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"loop\.bif: Cycles"):
        pgm_bma.read_bif(path)


@pytest.mark.parametrize("opening", ["property a = b\n", "/* a\n", 'property "a\n'])
def test_what_is_never_closed_is_read_once(opening):
    """One token up to the end, or to the quote that is left over: no new search from every place where something opens."""
    text = opening * 40_001
    assert len(_TOKEN.findall(text)) <= 4
    with pytest.raises(ValueError, match=r"line 1: a .* is not closed"):
        parse_bif(text)


def test_rounded_rows_are_normalised_and_ours_are_kept_to_the_bit(tmp_path):
    foreign = parse_bif(GOOD.replace("table 0.5, 0.5", "table 0.5000005, 0.5").replace("0.1, 0.9", "0.1, 0.9"))
    np.testing.assert_allclose(foreign.cpts[0].sum(), 1, rtol=0, atol=1e-15)
    assert foreign.cpts[1].tolist() == [[0.1, 0.9], [0.2, 0.8]]
    rows = [[0.5000002, 0.5]]
    model = bayesian_network(["x"], [(0, 1)], [()], [rows])
    path = pgm_bma.write_bif(model, tmp_path / "net.bif")
    assert network_arrays(pgm_bma.read_bif(path)).cpts[0].tolist() == rows
    model.get_cpds("x").values[0] = 0.501
    with pytest.raises(ValueError, match=r"CPD of 'x' does not sum to 1 .off by 0.001.; call its normalize"):
        pgm_bma.write_bif(model, path)
    wide = ", ".join(["0.003333333"] * 300)  # 300 states of nine digits are off by 1e-7
    states = ", ".join(f"s{i}" for i in range(300))
    text = f"network n {{}} variable x {{type discrete [300] {{{states}}};}} probability (x) {{table {wide};}}"
    np.testing.assert_allclose(parse_bif(text).cpts[0], 1 / 300, rtol=0, atol=1e-12)
    with pytest.raises(
        ValueError, match="not a probability distribution"
    ):  # rows of many states are held to the same 1e-6
        parse_bif(text.replace("0.003333333", "0.0033333"))


@pytest.mark.parametrize("body, said", [("(a) 0.5, 0.5;", "and 7 words are there"), ("default 0.5, 0.5;", "are read")])
def test_the_size_of_a_table_is_refused_before_memory_is_taken(body, said):
    names = [f"v{i}" for i in range(40)]
    blocks = [f"variable {n} {{type discrete [2] {{a, b}};}} probability ({n}) {{table 0.5, 0.5;}}" for n in names]
    blocks[0] = f"variable v0 {{type discrete [2] {{a, b}};}} probability (v0 | {', '.join(names[1:])}) {{{body}}}"
    with pytest.raises(ValueError, match=rf"line 1: the table of 'v0' has {2**40} cells.*{said}"):
        parse_bif("network n {} " + "".join(blocks))


def test_a_gzip_file_cannot_make_memory_run_out(tmp_path):
    path = tmp_path / "net.bif.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 26)))
    with pytest.raises(ValueError, match=r"net\.bif\.gz: .* that unpack to more than"):
        pgm_bma.read_bif(path)


def test_a_property_cannot_make_memory_run_out():
    notes = {"version": 1, "variables": {"x": {"states": {"t": "range", "v": [0, 10**15, 1]}}}}
    code = json.dumps(notes).encode().hex()
    with pytest.raises(ValueError, match="damaged"):
        parse_bif(GOOD.replace("network n {", f"network n {{ property pgm_bma = {code};"))
