"""No ten lines of the package stand twice (constructors, signatures and imports aside), and no file of it passes 500 lines."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "pgm_bma"
LENGTH = 10


def lines_that_count(source):
    """(number, text) of all lines but blank ones, comments, imports, signatures and the bodies of constructors."""
    left_out = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, node.end_lineno + 1))
        if isinstance(node, ast.FunctionDef):
            last = node.end_lineno if node.name == "__init__" else node.body[0].lineno - 1
            left_out.update(range(node.lineno, last + 1))
    for number, line in enumerate(source.splitlines(), 1):
        text = " ".join(line.split())
        if text and not text.startswith("#") and number not in left_out:
            yield number, text


def repeated(sources):
    """Pairs of places ("file:line") at which the same LENGTH lines begin; sources : dict file -> text."""
    found = defaultdict(list)
    for file, source in sources.items():
        lines = list(lines_that_count(source))
        for k in range(len(lines) - LENGTH + 1):
            block = tuple(text for _, text in lines[k : k + LENGTH])
            if sum(any(c.isalnum() for c in text) for text in block) > LENGTH // 2:  # brackets alone are no idea
                found[block].append(f"{file}:{lines[k][0]}")
    return [places for places in found.values() if len(places) > 1]


def test_ten_equal_lines_are_seen():
    body = "\n".join(f"    a{k} = {k}" for k in range(LENGTH))
    assert repeated({"one.py": f"def f():\n{body}\n", "two.py": f"def g(x):\n{body}\n"}) == [["one.py:2", "two.py:2"]]
    assert not repeated({"one.py": f"class A:\n  def __init__(self):\n{body}\n", "two.py": f"def g(x):\n{body}\n"})


def test_no_ten_lines_stand_twice():
    sources = {str(p.relative_to(PACKAGE)): p.read_text(encoding="utf-8") for p in sorted(PACKAGE.rglob("*.py"))}
    assert not repeated(sources)


def test_no_file_is_long():
    files = [
        path
        for folder in ("pgm_bma", "tests", "benchmarks", "docs")
        for path in (PACKAGE.parent / folder).rglob("*.py")
    ]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    # tests and benchmarks may be a little longer
    assert {path.name for path, n in lengths.items() if n > (500 if path.is_relative_to(PACKAGE) else 600)} == set()
