"""The documentation site: ``python -m sphinx -W docs build/site``.

Pages of docs/ are read as they are; the first page is README.md. Made at build time, into folders that git does not keep: the
reference (api/), from the docstrings of every public name; the tutorials, with the output that their notebooks keep (nothing is
executed); the gallery of pictures; the glossary, from the words that reports explain.
"""

import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

import pgm_bma  # noqa: E402
from pgm_bma import catalogue  # noqa: E402
from pgm_bma.report.glossary import TERMS  # noqa: E402

project = "pgm_bma"
author = "the pgm_bma authors"
version = release = pgm_bma.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb"]
html_theme = "furo"
html_title = f"pgm_bma {release}"
html_static_path, html_css_files = ["static"], ["tables.css"]
html_show_copyright = html_show_sourcelink = False
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
nb_execution_mode = "off"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
python_display_short_literal_types = True
suppress_warnings = ["mystnb.unknown_mime_type"]


GROUPS, MODULES = catalogue.groups(), catalogue.MODULES
FOREIGN = "BaseEstimator, ClassifierMixin, ClusterMixin, TransformerMixin, DiscreteParameterEstimator, BaseObject"


def setup(app):
    """Make the pages that are not written by hand."""
    for folder in ("api", "tutorials", "gallery"):
        shutil.rmtree(HERE / folder, ignore_errors=True)
        (HERE / folder).mkdir()
    reference(HERE / "api")
    for notebook in sorted((ROOT / "tutorials").glob("*.ipynb")):
        shutil.copy(notebook, HERE / "tutorials")
    gallery(HERE / "gallery")
    glossary(HERE / "glossary.md")
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-skip-member", ours)
    app.connect("source-read", inside)


def reference(folder):
    """A page per group of public names."""
    contents, table = [], ["| name | what it does |", "|---|---|"]
    for title, names in GROUPS.items():
        page = title.lower().replace(" ", "_")
        contents.append(page)
        table += [f"| [`{name}`]({page}.rst) | {_summary(getattr(pgm_bma, name))} |" for name in names]
        (folder / f"{page}.rst").write_text(_page(title, [f"pgm_bma.{name}" for name in names]), encoding="utf-8")
    for module, title in MODULES.items():
        contents.append(module)
        names = getattr(pgm_bma, module).__all__ if hasattr(getattr(pgm_bma, module), "__all__") else _functions(module)
        full = [f"pgm_bma.{module}.{name}" for name in names]
        (folder / f"{module}.rst").write_text(_page(f"{title}: pgm_bma.{module}", full), encoding="utf-8")
    head = ["# Every class and function", "", "```{toctree}", ":maxdepth: 2", ":hidden:", "", *contents, "```", ""]
    (folder / "index.md").write_text("\n".join([*head, *table, ""]), encoding="utf-8")


def _summary(thing):
    """Return the first paragraph of a docstring as one line of a table."""
    return " ".join((thing.__doc__ or "").strip().split("\n\n")[0].split()).replace("|", "\\|")


def _functions(module):
    found = getattr(pgm_bma, module)
    return [
        name
        for name, value in vars(found).items()
        if getattr(value, "__module__", "") == found.__name__ and name[0] != "_"
    ]


def _page(title, names):
    lines = [title, "=" * len(title), ""]
    for name in names:
        thing = pgm_bma
        for part in name.split(".")[1:]:
            thing = getattr(thing, part)
        short = name.rpartition(".")[2]
        lines += [short, "-" * len(short), ""]
        if isinstance(thing, type):
            lines += [f".. autoclass:: {name}", "   :members:", f"   :inherited-members: {FOREIGN}", ""]
        else:
            lines += [f".. autofunction:: {name}", ""]
    return "\n".join(lines)


def plain(app, what, name, thing, options, lines):
    """Docstrings write code in single backquotes and never link: read it so, and learned_ attributes as words, not as links."""
    text = re.sub(r"(?<![`\\:])`([^`\n]+)`(?![`_])", r"``\1``", "\n".join(lines))
    parts = text.split("``")
    parts[::2] = [re.sub(r"(?<![\w.*:`])([A-Za-z]\w*_)(?![\w`*])", r"``\1``", part) for part in parts[::2]]
    lines[:] = "``".join(parts).split("\n")


def ours(app, what, name, thing, skip, options):
    """Leave out what scikit-learn and pgmpy document themselves."""
    home = getattr(getattr(thing, "fget", thing), "__module__", "") or ""
    return True if name.startswith("set_") or home.split(".")[0] in ("sklearn", "pgmpy", "skbase") else None


def inside(app, page, source):
    """Put README.md on the first page, and follow links as they lie in the repository."""
    if page == "index":
        app.env.note_dependency(str(ROOT / "README.md"), docname=page)
        source[0] = first_page() + source[0].partition("-->")[2]
    source[0] = source[0].replace("](../tutorials/", "](/tutorials/").replace("](../CHANGELOG.md)", "](changelog.md)")
    source[0] = re.sub(r"\[([^]]*)\]\(\.\./benchmarks/README\.md\)", r"`\1`", source[0])


def first_page():
    """Return README.md without what only a checkout has, its links as seen from docs/."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"Run its tests:\n\n```sh\n.*?```\n\n", "", text, flags=re.DOTALL)
    text = text.replace("](docs/", "](").replace("](tutorials/)", "](tutorials/1_first_steps.ipynb)")
    return re.sub(r"\[([^]]*)\]\((?:CONTRIBUTING\.md|CITATION\.cff|index\.md)\)", r"\1", text)


def gallery(folder):
    """Every plot function at 8 and 40 variables, by gallery.py."""
    import gallery as drawn

    parts = [
        "# Gallery of pictures",
        "",
        "Every function of `pgm_bma.plotting`, drawn from small random models by `python docs/gallery.py`.",
        "",
    ]
    for n in (8, 40):
        parts += [f"## {n} variables", ""]
        for name, path in drawn.draw_all(folder, n, dpi=60):
            parts += [f"### {name} ({n})", "", f"![{name}, {n} variables]({path.name})", ""]
    (folder / "index.md").write_text("\n".join(parts), encoding="utf-8")


def glossary(path):
    """The words that reports explain."""
    parts = ["# Glossary", "", "The words of reports and of these pages, each in a sentence.", ""]
    for word, meaning in TERMS.values():
        parts += [word, f": {meaning}", ""]
    path.write_text("\n".join(parts), encoding="utf-8")
