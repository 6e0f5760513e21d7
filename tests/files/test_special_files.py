"""Pipes, devices, folders, links, drafts of killed writers, files that say that they are large."""

import os
import subprocess
import sys
import time
import zipfile

import pytest

import pgm_bma
from pgm_bma.files.labels import from_json
from pgm_bma.foundation.runtime import atomic
from pgm_bma.foundation.runtime.archive import read_archive
from pgm_bma.networks.objects import bayesian_network

NETWORK = [["x"], [("a", "b")], [()], [[[0.25, 0.75]]]]
WRITERS = {
    "save": lambda path: pgm_bma.save(pgm_bma.TANClassifier(), path),
    "write_bif": lambda path: pgm_bma.write_bif(bayesian_network(*NETWORK), path),
}
posix = pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")


@posix
@pytest.mark.parametrize("call", [pgm_bma.load, pgm_bma.read_bif, *WRITERS.values()])
def test_pipes_devices_and_folders_are_refused_at_once(call, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    begin = time.perf_counter()
    for path, what in ((pipe, "a pipe"), (tmp_path, "a folder"), ("/dev/zero", "a device")):
        with pytest.raises(ValueError, match=f"is {what}.*; pass the path of a file"):
            call(path)
    assert time.perf_counter() - begin < 1 and pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


@posix
@pytest.mark.parametrize("name", WRITERS)
def test_through_a_link_the_target_is_replaced(name, tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "model", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    WRITERS[name](link)
    assert link.is_symlink() and target.read_bytes() != b"old"


@posix
def test_drafts_of_killed_writers_are_removed_by_the_next(tmp_path):
    path = tmp_path / "model.pgm"
    code = (
        "import os, signal\nfrom pgm_bma.foundation.runtime.atomic import replacing\n"
        f"with replacing({str(path)!r}) as file:\n    file.write(b'half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    with atomic.replacing(path) as mine:  # my own draft is alive, and so is that of another path
        (tmp_path / f".other.{atomic._machine()}-999999999.x{atomic._DRAFT}").write_text("")
        assert len(list(tmp_path.iterdir())) == 2
        mine.write(b"whole")
        WRITERS["save"](path)
    assert path.read_bytes() == b"whole" and len(list(tmp_path.iterdir())) == 2


def test_the_limit_is_for_all_members_together(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(6):  # each below the limit of one
            archive.writestr(f"{i}.npy", b"\0" * (1 << 22))
    with pytest.raises(ValueError, match="says that it has 25165824 bytes unpacked"):
        read_archive(path.read_bytes())


@pytest.mark.parametrize("text", ["(" * 500 + ")" * 500, "i4," * 300, "O", "{'a': 1}", "<f8,<f8", 7])
def test_texts_that_are_no_plain_type_never_reach_the_parser(text):
    begin = time.perf_counter()
    with pytest.raises(ValueError, match="not a type of plain values"):
        from_json({"t": "numpy", "v": [text, ""]})
    assert time.perf_counter() - begin < 0.5


def test_a_long_header_of_an_array_is_refused(tmp_path):
    from pgm_bma.foundation.runtime.archive import Damaged, _as_array

    header = ("{'descr': " + "(" * 1000 + ")" * 1000 + "}").encode()
    with pytest.raises(Damaged, match="header that is too long"):
        _as_array(bytearray(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header))


BLOCK = (
    "network n {{}} variable x {{type discrete [2] {{a, b}};}} variable y {{type discrete [2] {{c, d}};}} "
    "probability (x) {{{x}}} probability (y | x) {{{y}}}"
)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ("table 0.5, 0.5; table 0.1, 0.9;", "default 0.5, 0.5;", "the table of 'x' is given twice"),
        ("table 0.5, 0.5;", "default 0.5, 0.5; default 0.1, 0.9;", "'y' has two defaults"),
        (
            "table 0.5, 0.5;",
            "(a) 0.5, 0.5; table 0.5, 0.5, 0.5, 0.5;",
            "the table of 'y' is given twice, or besides rows",
        ),
    ],
)
def test_blocks_with_two_tables_or_defaults_are_errors(x, y, words, tmp_path):
    (tmp_path / "n.bif").write_text(BLOCK.format(x=x, y=y))
    with pytest.raises(ValueError, match=words):
        pgm_bma.read_bif(tmp_path / "n.bif")


def test_long_rows_are_held_to_the_same_sum(tmp_path):
    states, n = ", ".join(f"s{i}" for i in range(100)), 100
    for off, good in ((9e-7, True), (3e-6, False)):
        values = ", ".join(map(repr, [1 / n + off, *[1 / n] * (n - 1)]))
        text = f"network n {{}} variable x {{type discrete [{n}] {{{states}}};}} probability (x) {{table {values};}}"
        (tmp_path / "n.bif").write_text(text)
        if good:
            assert pgm_bma.read_bif(tmp_path / "n.bif").check_model()
        else:
            with pytest.raises(ValueError, match="is not a probability distribution"):
                pgm_bma.read_bif(tmp_path / "n.bif")
