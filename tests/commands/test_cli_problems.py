"""The command line when things go wrong or nobody watches: exit codes, one clear line per problem, pipes, terminals, Ctrl-C."""

import gc
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import AveragedNaiveBayesClassifier, __version__, load_dataset
from pgm_bma.commands.classify import cross_predict
from pgm_bma.commands.main import main
from pgm_bma.commands.output import Console, ends_at_once, text_table
from pgm_bma.commands.tabular_files import frame_checksum
from tests.commands.command_line import run

# --------------------------------------------------------------------------------------- problems, in one line


COLUMNS = {"a": ["x", "y"] * 40, "y": ["p", "q"] * 40, "one": ["p"] * 80, "number": np.arange(80) + 0.5}
PROBLEMS = {
    "no file": (["nothing.csv"], "nothing.csv does not exist"),
    "no column": (["--target", "Y "], "has no column 'Y ': did you mean 'y'?"),
    "one class": (["--target", "one"], "the target 'one' has one class only, 'p'"),
    "target of numbers": (["--target", "number"], "the target 'number' holds 80 different numbers"),
    "drop": (["--target", "y", "--drop", "numbr"], "--drop names 'numbr'"),
    "drop the target": (["--target", "y", "--drop", "number,y"], "it cannot be left out"),
    "folds": (["--target", "y", "--drop", "number", "--cv", "99"], "--cv 99 asks for more folds than there are rows"),
    "nothing left": (["--target", "y", "--drop", "number", "--drop", "a"], "no column with more than one value"),
    "no test file": (["--target", "y", "--drop", "number", "--test", "t.csv"], "t.csv does not exist"),
    "out is a file": (["--target", "y", "--drop", "number", "--out", __file__], "is a file, not a folder"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_are_one_line(name, table, tmp_path, capsys):
    words, said = PROBLEMS[name]
    path = table(COLUMNS)
    words = words if words[0] == "nothing.csv" else [path, *words]
    _, err = run(capsys, "classify", *words, *(() if "--out" in words else ("--out", tmp_path / "out")), code=1)
    (line,) = [line for line in err.splitlines() if line.startswith("pgm-bma: ")]
    last = [line for line in err.splitlines() if not line.startswith("run instead: ")][-1]
    assert said in line and line == last and "Traceback" not in err
    assert "fitting" not in err, "found before any work is done"


@pytest.mark.parametrize(
    "column, said",
    [
        ([*range(79), "lots"], "column 'z' holds numbers, but also 'lots' (row 80); correct it, or add --missing lots"),
        (
            [f"name {i}" for i in range(80)],
            "column 'z' names the rows (80 different texts in 80 rows); say so with --id z, or leave it out with --drop z",
        ),
        ([*map(float, range(79)), float("inf")], "column 'z' holds numbers, but also 'inf' (row 80)"),
    ],
)
def test_unreadable_values_are_one_line(column, said, table, tmp_path, capsys):
    path = table({"a": COLUMNS["a"], "z": column})
    _, err = run(capsys, "cluster", path, "--out", tmp_path / "out", code=1)
    *_, problem, instead = err.splitlines()
    assert problem.startswith(f"pgm-bma: {said}") and instead.startswith("run instead: pgm-bma cluster ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words, said",
    [
        (["cluster", "zoo", "--clusters", "0"], "neither a number"),
        (["cluster", "zoo", "--clusters", "5:2"], "neither a number"),
        (["cluster", "zoo", "--method", "magic"], "invalid choice"),
        (["cluster", "wine", "--discretize", "mdl"], "use frequency or width"),
        (["cluster", "zoo", "--set", "n_inits=3"], "has no parameter 'n_inits': did you mean 'n_init'"),
        (["cluster", "zoo", "--set", "n_init"], "--set needs NAME=VALUE"),
        (["cluster", "zoo", "--clusters", "auto"], "neither a number"),
        (["cluster", "zoo", "--set", "n_clusters=3"], "take --clusters instead"),
        (["cluster", "zoo", "--set", "random_state=3"], "take --seed instead"),
        (["classify", "TABLE"], "--target is missing"),
        (["classify", "zoo", "--cv", "1"], "at least 2"),
        (["classify", "zoo", "--cv", "3", "--test", "x.csv"], "not allowed with"),
        (["classify", "zoo", "--seed", "-3"], "at least 0"),
        (["compare", "zoo", "--methods", "nb,tann"], "did you mean 'tan'"),
        (["compare", "zoo", "--methods", ","], "--methods names none of"),
        (["nonsense"], "invalid choice"),
    ],
)
def test_wrong_words_give_two(words, said, table, capsys):
    words = [table({"a": ["x", "y"], "b": ["u", "v"]}) if word == "TABLE" else word for word in words]
    _, err = run(capsys, *words, code=2)
    assert said in err and "Traceback" not in err
    assert run(capsys, code=2)[0].startswith("usage: pgm-bma")  # no command: the help


def test_even_surprises_are_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(pgm_bma.NaiveBayesClassifier, "_fit", lambda self, training: 1 / 0)
    words = ("classify", "zoo", "--method", "nb", "--out", tmp_path)
    _, err = run(capsys, *words, code=1)
    assert err.splitlines()[-1] == "pgm-bma: ZeroDivisionError: division by zero (PGM_BMA_TRACEBACK=1 shows where)"
    monkeypatch.setenv("PGM_BMA_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main([str(word) for word in words])


# ------------------------------------------------------------------------------------------ terminal and pipe


def test_in_a_pipe_lines_are_plain(awkward, tmp_path):
    """The one test in a process of its own: exit code, encodings and streams are those of a shell."""
    done = subprocess.run(
        [sys.executable, "-m", "pgm_bma", "classify", str(awkward), "--target=classe", "--missing=?", "--cv=3", "--method=nb"],
        cwd=tmp_path, capture_output=True, env={"PATH": "", "PYTHONIOENCODING": "ascii", "HOME": str(tmp_path)},
    )  # fmt: skip
    out, err = done.stdout.decode("ascii"), done.stderr.decode("ascii")
    assert done.returncode == 0, err
    assert "fold: 2 of 3 done\n" in err and "\r" not in err and "\x1b" not in out + err
    assert (
        tmp_path
        / "l'\N{LATIN SMALL LETTER E WITH ACUTE}t\N{LATIN SMALL LETTER E WITH ACUTE} 2024-classify"
        / "report.html"
    ).exists()
    assert "'?t? ? la mer'" not in err  # nothing was left out


def test_a_reader_that_goes_away_does_not_cost_the_files(tmp_path):
    """As in `pgm-bma classify ... | head -1`."""
    words = ["classify", "zoo", "--method=nb", "--cv=2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-m", "pgm_bma", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    assert "Traceback" not in process.stderr.read() and process.wait(timeout=60) == 0
    assert (tmp_path / "out" / "run.json").is_file()


def test_interrupted_in_a_compiled_loop(tmp_path):
    """Ctrl-C ends a run with one line and 130, also where the interpreter is inside compiled code."""
    words = ["cluster", "nursery", "--clusters=8", "--method=em", "--set=n_init=2000", "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-m", "pgm_bma", *words], stderr=subprocess.PIPE, text=True)
    while not process.stderr.readline().startswith("fitting"):
        assert process.poll() is None
    time.sleep(1)  # well inside the fit, which takes far longer
    process.send_signal(signal.SIGINT)
    assert process.stderr.read().splitlines()[-1] == "pgm-bma: interrupted"
    assert process.wait(timeout=30) == 130


def test_interrupted_with_several_processes(tmp_path):
    """A script that signals the program alone, not its group: the workers end with it."""
    words = ["classify", "krkp", "--method=forest", "--cv=40", "--jobs=2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen([sys.executable, "-m", "pgm_bma", *words], stderr=subprocess.PIPE, text=True)
    while not process.stderr.readline().startswith("fold"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    # the workers hold the pipe too: its end comes when all of them have gone
    assert process.communicate(timeout=30)[1].splitlines()[-1] == "pgm-bma: interrupted"
    assert process.returncode == 130 and not (tmp_path / "out").exists()


def test_interrupted_between_two_folds():
    """The workers are stopped without a warning of the folds that are left, wherever the signal strikes."""

    def follow(folds, total):
        yield next(iter(folds))
        raise KeyboardInterrupt

    X = pd.DataFrame({"a": ["u", "v"] * 20})
    y = pd.Series(["no", "yes"] * 20, dtype="category")
    gc.collect()  # what other tests left behind is theirs
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            cross_predict(AveragedNaiveBayesClassifier(), X, y, 10, 0, n_jobs=2, follow=follow)
        gc.collect()  # a generator that is left open warns when it goes
    assert not [str(one.message) for one in seen if one.category is UserWarning]  # as joblib's are


def test_on_a_terminal_progress_is_a_bar(capsys, monkeypatch):
    monkeypatch.setattr("pgm_bma.foundation.runtime.jobs.DELAY", 0)

    class Terminal:
        text = ""

        def write(self, text):
            self.text += text

        def flush(self):
            pass

        def isatty(self):
            return True

    terminal = Terminal()
    assert list(Console(err=terminal).progress(iter("abc"), 3, "fold")) == ["a", "b", "c"]
    assert re.search(r"fold: +\d+%\|", terminal.text) and "done" not in terminal.text
    assert list(Console().progress(iter("ab"), 2, "fold")) == ["a", "b"]
    assert capsys.readouterr().err == "fold: 1 of 2 done\nfold: 2 of 2 done\n"


@pytest.mark.parametrize("part", ["arguments", "files", "data", "test"])
def test_a_damaged_record_is_one_line(part, tmp_path, capsys):
    whole = {
        "pgm_bma": "0",
        "command": "classify",
        "arguments": {},
        "data": {"source": "zoo", "sha256": ""},
        "files": {},
    }
    for value in (["?"], 3, {"source": 3, "sha256": [], "seed": {}}, {"seed": [[0]]}):
        (tmp_path / "run.json").write_text(json.dumps(whole | {part: value}), encoding="utf-8")
        _, err = run(capsys, "repeat", tmp_path, code=1)
        assert len(err.splitlines()) == 1
        assert "is not a run.json of pgm-bma" in err or (part == "files" and isinstance(value, dict))


@pytest.mark.parametrize(
    "edited, said",
    [
        ({"command": "repeat"}, "'command' is not as it was written"),
        ({"command": "demo"}, "'command' is not as it was written"),
        ({"arguments": {"target": "class", "seed": "many"}}, "'many' is not a whole number"),
        ({"arguments": {"target": "class", "sedd": 1}}, "unrecognized arguments: --sedd=1"),
        ({"arguments": {"target": "class", "cv": 0.5}}, "'0.5' is not a whole number"),
        ({"data": {"source": "zoo", "sha256": "0"}}, "is not the table of the recorded run"),
        ({"data": {"source": "zoo", "sha256": "0", "path": "../nowhere.csv"}}, "is gone"),
        ({"data": {"source": "../../no-such-folder", "sha256": "0"}}, "does not exist"),
    ],
)
def test_a_record_edited_by_hand_is_one_line(edited, said, tmp_path, capsys):
    source = {"source": "zoo", "sha256": frame_checksum(load_dataset("zoo")[0])}
    whole = {"pgm_bma": __version__, "command": "classify", "arguments": {}, "data": source, "files": {}}
    (tmp_path / "run.json").write_text(json.dumps(whole | edited), encoding="utf-8")
    _, err = run(capsys, "repeat", tmp_path, "--out", tmp_path / "out", code=1)
    assert said in err and len(err.splitlines()) == 1, err


@pytest.mark.usefixtures("no_pictures")
def test_files_of_others_are_not_replaced(tmp_path, capsys):
    words = ["classify", "zoo", "--method", "nb", "--cv", 2, "--out", tmp_path]
    (tmp_path / "predictions.csv").write_text("mine")
    (tmp_path / "diary.txt").write_text("mine")
    _, err = run(capsys, *words, code=1)
    assert "holds 'predictions.csv'" in err and "--overwrite" in err and len(err.splitlines()) == 1
    assert (tmp_path / "predictions.csv").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2
    (tmp_path / "run.json").write_text('{"somebody": "else"}')
    assert "'predictions.csv' and 'run.json'" in run(capsys, *words, code=1)[1]
    run(capsys, *words, "--overwrite")
    run(capsys, *words)  # what it wrote itself needs no leave
    run(capsys, "cluster", "zoo", "--clusters", 2, "--set", "n_init=2", "--out", tmp_path)
    assert not (tmp_path / "predictions.csv").exists() and (tmp_path / "diary.txt").read_text() == "mine"


def test_a_run_that_was_stopped_while_it_wrote_can_be_run_again(tmp_path, capsys, monkeypatch, no_pictures):
    words = ["classify", "zoo", "--method", "nb", "--cv", 2, "--out", tmp_path]

    def full(self, report):
        raise OSError(28, "No space left on device: report.html could not be written in x")

    with monkeypatch.context() as patch:
        patch.setattr("pgm_bma.commands.output.Folder.report", full)
        _, err = run(capsys, *words, code=1)
    assert err.splitlines()[-1] == "pgm-bma: [Errno 28] No space left on device: report.html could not be written in x"
    assert (tmp_path / "predictions.csv").exists()
    _, err = run(capsys, "repeat", tmp_path, code=1)
    assert "that run was not finished" in err
    run(capsys, *words)  # its own files need no --overwrite


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not take such names")
def test_file_names_that_are_not_utf8(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.csv")
    load_dataset("zoo")[0].to_csv(name, index=False)
    words = ["--target", "class", "--method", "nb", "--cv", 2]
    out, _ = run(capsys, "classify", name, *words)
    folder = Path(os.fsdecode(b"caf\xe9-classify"))
    assert (folder / "report.html").exists() and json.loads((folder / "run.json").read_bytes())["data"][
        "source"
    ] == name
    out, _ = run(capsys, "repeat", folder)
    assert "came out the same" in out


def test_texts_fit_a_narrow_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "60")
    for out, least, most in ((Terminal(), 40, 60), (io.StringIO(), 100, 113)):
        Console(out=out).item("result", "word " * 60)
        assert least < max(map(len, out.getvalue().splitlines())) <= most


def test_numbers_as_classes_are_said_as_numbers(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    path = table({"a": np.where(rng.random(300) < 0.95, y, 1 - y), "b": y, "y": np.where(np.arange(300) == 7, 5, y)})
    words = ("--target", "y", "--cv", 3, "--method", "averaged-nb", "--out", tmp_path / "out")
    out, err = run(capsys, "classify", path, *words)
    assert "np." not in out + err and "tiny classes: 5 (1 row)" in err
    assert "2 of 2 columns depend on 'y' with a probability above one half." in out, "sure arcs are told too"
    assert "Which columns matter" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_tables_too_wide_for_a_line_are_in_the_report(table, tmp_path, capsys, no_pictures):
    names = [f"class {i} {'x' * 20}" for i in range(12)]
    path = table({"a": [f"v{i}" for i in range(12)] * 5, "y": names * 5})
    out, _ = run(capsys, "classify", path, "--target", "y", "--method", "nb", "--cv", 3, "--out", tmp_path / "out")
    assert "(13 columns, too wide to show here: see report.html)" in out and max(map(len, out.splitlines())) < 300
    assert f"predicted {names[5]}" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_text_tables_line_up():
    frame = pd.DataFrame({"name": ["a", "long"], "n": [1, 20], "p": [0.5, float("nan")]})
    assert text_table(frame) == "name   n      p\n----  --  -----\na      1  0.500\nlong  20"


def test_an_interrupt_that_a_library_swallows_comes_again(capsys):
    def steps():
        for step in range(3):
            if step == 1:
                try:
                    signal.raise_signal(signal.SIGINT)
                except KeyboardInterrupt:  # as a library might
                    pass
            yield step

    before = signal.getsignal(signal.SIGINT)
    seen = []
    with pytest.raises(KeyboardInterrupt), ends_at_once(n_jobs=2):
        for step in Console().progress(steps(), 3, "fold"):
            seen.append(step)
    assert seen == [0] and signal.getsignal(signal.SIGINT) is before and not ends_at_once.asked


def test_many_columns_with_one_cure_are_counted(table, capsys):
    rng = np.random.default_rng(0)
    wide = table({f"gene{i:02d}": rng.normal(size=120).round(3) for i in range(30)})
    _, err = run(capsys, "structure", wide, code=1)
    lines = err.splitlines()
    assert lines[-2].strip() == "22 more columns with the same cure, --discretize" and len(lines) == 11
    _, err = run(capsys, "classify", wide, code=2)
    assert "--target COLUMN" in err and "..., 'gene26', 'gene27', 'gene28', 'gene29'" in err
