"""Run the code blocks of pages: ``python docs/blocks.py PAGE...`` writes what they print into the pages (all pages by default).

The Python blocks of a page share one namespace and one empty folder. Lines of shell blocks that begin with ``pgm-bma`` run in
the same folder. A ``text`` block that follows a code block directly holds its output; a line ``...`` in it stands for any
number of lines, and such a block is never rewritten. The tests run every block and compare every output.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MADE = {"api", "tutorials", "gallery"}  # folders that conf.py writes
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NOT_RUN = ("pip install", "python -m benchmarks", "python3 -m venv")  # shell lines that only a reader runs


def pages():
    """List every page that people write: README, docs/ and benchmarks/README.md."""
    found = [path for path in sorted(HERE.rglob("*.md")) if not MADE & set(path.relative_to(HERE).parts)]
    return [
        ROOT / "README.md",
        *(path for path in found if path.name != "glossary.md"),
        ROOT / "benchmarks" / "README.md",
    ]


def run(page):
    """Run the blocks of a page; yield (printed, shown, place of the shown text) for every block with an output below it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    names, before, path = {"__name__": "__main__"}, os.getcwd(), list(sys.path)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            os.chdir(folder)
            for block, after in zip(blocks, [*blocks[1:], None]):
                if block[1] not in ("python", "sh"):
                    continue
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                    (_python if block[1] == "python" else _shell)(block[2], names, page)
                plt.close("all")
                if after is not None and after[1] == "text" and not text[block.end() : after.start()].strip():
                    yield printed.getvalue(), after[2], after.span(2)
        finally:
            os.chdir(before)
            sys.path[:] = path


def _python(code, names, page):
    import pandas as pd

    options = "display.width", 100, "display.max_columns", 12, "display.max_colwidth", 40
    with pd.option_context(*options):
        exec(compile(code, str(page), "exec"), names)


def _shell(code, names, page):
    from pgm_bma.commands.main import main

    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["pgm-bma"]:
            if main(words[1:]):
                raise RuntimeError(f"{page.name}: {line} failed")
        elif words and not line.startswith(NOT_RUN):
            raise ValueError(f"{page.name}: cannot run {line!r}")


def same(printed, shown):
    """Compare line by line; a number may differ by one in its last digit, and ``...`` skips lines."""
    return _lines([line.rstrip() for line in printed.strip().splitlines()], shown.strip().splitlines())


def _lines(printed, shown):
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(_lines(printed[i:], shown[1:]) for i in range(len(printed) + 1))
    return bool(printed) and _alike(printed[0], shown[0]) and _lines(printed[1:], shown[1:])


def _alike(printed, shown):
    if NUMBER.split(printed) != NUMBER.split(shown):
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(shown))
    return all(a == b or abs(float(a) - float(b)) <= 1.01 * 10.0 ** -len(b.partition(".")[2]) for a, b in pairs)


def main(argv):
    """Write the outputs into the named pages."""
    for page in map(Path, argv) if argv else pages():
        page = page.resolve()
        text = page.read_text(encoding="utf-8")
        for printed, shown, (begin, end) in reversed(list(run(page))):
            if not same(printed, shown):
                if re.search(r"^\.\.\.$", shown, re.MULTILINE):
                    print(f"{page.name}: look at this output yourself:\n{printed}")
                    continue
                lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
                text = f"{text[:begin]}{lines}\n{text[end:]}"
        page.write_text(text, encoding="utf-8")
        print(f"ran {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
