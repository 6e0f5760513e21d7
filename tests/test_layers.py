"""Imports go one way: this test reads them and checks the direction."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pgm_bma"
# what a layer may import from the package; nothing inside imports the outside modules
LAYERS = {
    "_columns": set(),
    "table": {"_columns"},
    "stats": {"table", "stats"},
    "algorithms": {"table", "stats", "algorithms"},
    "results": {"table", "stats", "algorithms", "results"},
    "estimators": {"table", "stats", "algorithms", "results", "estimators"},
}
FORBIDDEN = {
    "_columns": {"pgmpy", "sklearn", "networkx", "numba", "matplotlib"},
    "table": {"pgmpy", "sklearn", "networkx", "numba", "matplotlib"},
    "stats": {"pgmpy", "sklearn", "networkx", "pandas", "matplotlib"},
    "algorithms": {"pgmpy", "sklearn", "pandas", "matplotlib"},
    "results": {"sklearn", "matplotlib"},
    "estimators": {"matplotlib"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imports(path):
    """(module, whether the import runs when the file is imported) of every import statement."""
    tree = ast.parse(path.read_text())
    at_import = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = ["pgm_bma", *path.relative_to(PACKAGE).parts][: -node.level] if node.level else []
            module = ".".join([*parts, *([node.module] if node.module else [])])
            names = [f"pgm_bma.{alias.name}" for alias in node.names] if module == "pgm_bma" else [module]
        for name in names:
            yield name, id(node) in at_import


def layer_of(path):
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    layer = layer_of(path)
    for name, _ in imports(path):
        top, *rest = name.split(".")
        if layer in LAYERS and top == "pgm_bma" and rest:
            assert rest[0] in LAYERS[layer], f"{layer} must not import {name}"
        assert top not in FORBIDDEN.get(layer, ()), f"{layer} must not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_load_when_needed(path):
    layer = layer_of(path)
    eager = {name.split(".")[0] for name, at_import in imports(path) if at_import}
    if layer == "algorithms":
        assert "networkx" not in eager
    if layer == "results" or (layer == "estimators" and not path.name.startswith("parameters_")):
        assert "pgmpy" not in eager
    if layer in ("cli", "__init__", "__main__"):
        assert not eager & {"numpy", "pandas", "scipy", "sklearn", "numba", "pgmpy", "networkx", "matplotlib"}
