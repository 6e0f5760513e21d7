"""Imports go one way: a system's folder needs itself and foundation, nothing else; what is allowed beside is listed here.

The test reads every import: at the top of a file, inside functions, under TYPE_CHECKING, ``import pgm_bma`` and names given
to `import_module`.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pgm_bma"
MODULES = sorted(PACKAGE.rglob("*.py"))
OUTSIDE = ("defaults", "discretize", "datasets", "metrics", "evaluation", "testing", "plotting", "report", "commands")
SYSTEMS = tuple(
    sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"foundation", "files", *OUTSIDE})
)

# modules of `networks` that any system may use: the one place where pgmpy and networkx objects are built and read
OBJECTS = {"networks.objects", "networks.graphs", "networks.discovery"}
READERS = {"networks.given", "networks.reading"}  # networks that a user gave
# (importing file or folder, imported module or folder): why
EXCEPTIONS = {
    ("naive_bayes.tan", "augmented.model"): "TAN is an augmented naive Bayes whose class is observed",
    ("naive_bayes.tan_classifier", "augmented.model"): "the same",
    ("forests", "augmented"): "a forest average is over the structures that structural EM chooses from",
    ("augmented", "networks"): "structural EM over any network completes rows by junction tree",
    ("forests.augment", "orders"): "missing cells are sampled under networks of any shape",
    ("orders.gaps.augment", "networks"): "missing cells are drawn jointly by junction tree",
    ("orders.effects", "networks"): "what setting a variable does is read off junction trees",
    ("networks.pgmpy_face", "latent_class.loop"): "a naive Bayes network is fitted by the faster loop",
    ("networks.pgmpy_face", "latent_class.base"): "the same",
    ("networks.pgmpy_face", "latent_class.results"): "the same",
    ("foundation.faces.face", "files.storage"): "save and load as methods, inside functions",
    ("foundation.faces.face", "networks.graphs"): "to_networkx, inside a function",
    ("foundation.faces.face", "plotting"): "plot and the picture in notebooks, inside functions",
    ("networks.graphs", "plotting"): "the same",
    ("additive.results", "plotting"): "plot_terms, inside a function",
    ("orders.effect_results", "plotting"): "plot_effects, inside a function",
}
ONE_WAY = {"report": {"commands"}}  # the outside: who must not import whom
# what a folder must not import at all, and what only inside functions
NEVER = {"foundation": {"pgmpy", "networkx", "matplotlib"}, **{system: {"matplotlib"} for system in SYSTEMS}}
FACES = ("face", "classifier", "clusterer", "posterior", "base", "results", "mixed", "diagnostics", "fitting", "tan_classifier",
         "pgmpy_face", "intervals", "inference", "reading", "numeric_face", "three_step_results", "fit_tests",
         "structures", "effect_results", "interactions", "strength", "score_files", "pooling",
         "discovery")  # fmt: skip
HEAVY = {"numpy", "pandas", "scipy", "sklearn", "numba", "pgmpy", "networkx", "matplotlib"}


COMPUTED = {  # the only files that import by a name which they compute: why
    "__init__": "public names are lazy",
    "files.storage": "the classes that the catalogue lists",
    "foundation.runtime.messages": "optional packages, which its callers name",
    "commands.main": "the benchmarks next to the package",
}


@cache
def imports(path):
    """(module, whether the import runs when the file is imported) of every import in a file."""
    _, module = parts_of(path)
    return tuple(imports_in(path.read_text(encoding="utf-8"), module))


def imports_in(source, module):
    """The same of a source text."""
    tree = ast.parse(source)
    later = {id(node) for part in ast.walk(tree) if is_later(part) for node in ast.walk(part)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} line {node.lineno}: imports inside the package are absolute"
            names = [node.module]
            if node.module == "pgm_bma" or is_folder(node.module):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            given = [*node.args[:1], *(keyword.value for keyword in node.keywords)]
            names = [each.value for each in given if isinstance(each, ast.Constant)]
            assert names or module in COMPUTED, f"{module} line {node.lineno} imports by a name that it computes"
        for name in names:
            yield name, id(node) not in later


def is_later(node):
    """Whether what stands inside runs later than the import of its file, or for type checkers only."""
    return isinstance(node, ast.FunctionDef | ast.Lambda) or (
        isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )


def called(node):
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


@pytest.mark.parametrize(
    "source, at_import",
    [
        ("import pgm_bma.plotting", True),
        ("from pgm_bma import plotting", True),
        ("from pgm_bma.plotting import plot_network", True),
        ("try:\n    import pgm_bma.plotting\nexcept ImportError:\n    pass", True),
        ("class A:\n    import pgm_bma.plotting", True),
        ("if TYPE_CHECKING:\n    from pgm_bma import plotting", False),
        ("def f():\n    from pgm_bma.plotting import plot_network", False),
        ("importlib.import_module('pgm_bma.plotting')", True),
        ("f = lambda: import_module(name='pgm_bma.plotting')", False),
        ("__import__('pgm_bma.plotting')", True),
    ],
)
def test_every_way_to_import_is_seen(source, at_import):
    ((name, when),) = imports_in(source, "orders.chains.chains")
    assert name.startswith("pgm_bma.plotting") and when == at_import
    assert not allowed("orders", "orders.chains.chains", "plotting", "plotting")


def test_a_computed_name_is_refused():
    with pytest.raises(AssertionError, match="line 1 imports by a name that it computes"):
        list(imports_in("import_module(f'pgm_bma.{name}')", "orders.chains.chains"))


def is_folder(module):
    return module.startswith("pgm_bma.") and PACKAGE.joinpath(*module.split(".")[1:]).is_dir()


def parts_of(path):
    """("orders", "orders.chains.chains") of a file; a file at the top has its own name twice."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0], ".".join(parts)


def allowed(folder, module, target_folder, target):
    if target_folder in ONE_WAY.get(folder, ()):
        return False
    if folder in OUTSIDE or folder in ("__init__", "__main__") or target_folder == folder:
        return True
    if target_folder == "foundation":
        return True
    if folder in SYSTEMS and (target in OBJECTS or target in READERS):
        return True
    if folder == "files":
        return target in OBJECTS or target == "catalogue"
    pairs = {(a, b) for a in (folder, module) for b in (target_folder, target)}
    return bool(pairs & set(EXCEPTIONS))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    folder, module = parts_of(path)
    for name, at_import in imports(path):
        top, *rest = name.split(".")
        if top == "pgm_bma":
            target = ".".join(rest[:2]) if rest else "__init__"
            if name == "pgm_bma" and folder in ("files", "orders") and not at_import:
                continue  # the version, which a saved file or a checkpoint tells
            assert allowed(folder, module, target.split(".")[0], target), f"{module} must not import {name}"
        assert top not in NEVER.get(folder, ()), f"{module} must not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_load_when_needed(path):
    folder, module = parts_of(path)
    eager = {name.split(".")[0] for name, at_import in imports(path) if at_import}
    name = path.stem
    if folder in SYSTEMS:
        assert "networkx" not in eager
        assert name in ("pgmpy_face", "discovery") or "pgmpy" not in eager
        if name not in FACES:
            assert not eager & {"sklearn", "pandas"} or module in ("kikuchi.network", "networks.simulation"), module
    if module in ("commands.main", "__init__", "__main__"):
        assert not eager & HEAVY


def test_no_exception_is_idle():
    used = set()
    for path in MODULES:
        folder, module = parts_of(path)
        for name, _ in imports(path):
            target = ".".join(name.split(".")[1:3])
            used |= {(a, b) for a in (folder, module) for b in (target.split(".")[0], target)}
    assert set(EXCEPTIONS) <= used


@pytest.mark.parametrize("folder", ["foundation", "orders"])
def test_the_map_of_a_large_folder_names_the_folders_that_are_there(folder):
    shown = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text()))
    named = [line.split()[0].strip("`") for line in shown.split("\n\n")[1].splitlines()]
    inside = [path.parent.name for path in (PACKAGE / folder).glob("*/__init__.py")]
    assert sorted(named) == sorted(inside)
