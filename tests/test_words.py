"""Words that must not come back, in pages, docstrings, comments and messages; CONTRIBUTING.md says what to write instead."""

import ast
import io
import re
import runpy
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EVERYWHERE = {
    "twin": r"\btwins?\b",
    "face": r"\bfaces?\b",
    "in words": r"\brefus\w*(?: \w+){0,3} in words\b",
    "told": r"\btold\b(?! apart)",
    "beside": r"\bbeside\b",
    "gap": r"\bgaps?\b",
    "of its own": r"\bof (?:its|their|our|your) own\b(?! \w)",
    "hangs below": r"\bhangs? below\b",
    "is no file of": r"\bis no file of\b",
    "is said": r"\bnothing (?:can be|is) said\b",
}
PAGES = {"refuse": r"\brefus\w*", "aim": r"\baims?\b", "prototype": r"(?<!k-)\bprototypes?\b", "formerly": r"\bformer(?:ly)?\b",
         "load of a machine": r"\bbusy\b|\bother work\b", "we": r"\bwe asked\b|\bwe are faster\b"}  # fmt: skip
QUESTION = re.compile(r"(?:What|How|Where|Whether|Which)\b")


def found(text, words):
    """List (line number, word) of the words that `text` has outside code."""
    hits = []
    for number, line in enumerate(text.splitlines(), start=1):
        prose = re.sub(r"`[^`]*`|\{[^{}]*\}", "", line)  # code, and values in messages
        hits += [(number, word) for word, pattern in words.items() if re.search(pattern, prose, re.IGNORECASE)]
    return hits


def written_pages():
    """List the pages that people write, and the tutorials."""
    pages = runpy.run_path(str(ROOT / "docs" / "blocks.py"))["pages"]()
    return [
        *pages,
        ROOT / "CONTRIBUTING.md",
        ROOT / "tutorials" / "README.md",
        *sorted((ROOT / "tutorials").glob("[0-9]*.py")),
    ]


@pytest.mark.parametrize("page", written_pages(), ids=lambda page: f"{page.parent.name}/{page.name}")
def test_pages_use_the_word_list(page):
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    if page.name == "CONTRIBUTING.md":  # its list names the words that are not to be used
        text = re.sub(r"\| write \| not \|.*?\n\n", lambda table: "\n" * table[0].count("\n"), text, flags=re.DOTALL)
    if page.suffix == ".py":
        text = "\n".join(line if line.startswith("#") else "" for line in text.splitlines())
    assert found(text, EVERYWHERE | PAGES) == []


def strings_and_comments(path):
    """Return the comments and the texts of a Python file, each with its line; names of variables are not looked at."""
    source = path.read_text(encoding="utf-8")
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds and (token.type == tokenize.COMMENT or " " in token.string):
            yield token.start[0], token.string


def complaints(path):
    """List what a file of the package writes that the word list does not allow."""
    lines = [
        (start + number - 1, word)
        for start, text in strings_and_comments(path)
        for number, word in found(text, EVERYWHERE)
    ]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = (ast.get_docstring(node) or "").strip()
            if QUESTION.match(first):
                lines.append((getattr(node, "lineno", 1), f"docstring begins with {first.split()[0]}"))
    return sorted(lines)


@pytest.mark.parametrize("path", sorted((ROOT / "pgm_bma").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_package_uses_the_word_list(path):
    assert complaints(path) == []
