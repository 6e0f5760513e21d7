"""List the benchmarks, run one (`python -m benchmarks NAME [arguments]`) or all the speed ones (`all`)."""

import ast
import sys
import traceback
from importlib import import_module
from pathlib import Path

from ._common import run

HERE = Path(__file__).parent


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    found = benchmarks()
    if not argv or argv[0] in ("-h", "--help"):
        return show(found)
    name, rest = argv[0].replace("-", "_"), argv[1:]
    if name == "all":
        return run_all([known for known in found if known.startswith("speed_")], rest)
    if name not in found:
        print(f"no benchmark {name!r}; there are: {', '.join(found)}", file=sys.stderr)
        return 2
    return run(load(name), rest)


def benchmarks():
    """Name -> (first line of the docstring, reproduces a paper's table?), read from the sources, nothing imported."""
    found = {}
    for path in sorted(HERE.glob("[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            first_line = (ast.get_docstring(tree) or "").split("\n")[0]
            found[path.stem] = first_line, any(_sets_table(node) for node in tree.body)
    return found


def _sets_table(node):
    return (
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "TABLE" for target in node.targets)
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
    )


def show(found):
    print(f"python -m {__package__} NAME [--full] [--seed N] [--out FOLDER] ...\n")
    width = max(map(len, found), default=0)
    titles = ("Speed against peers ('all' runs these):", "Tables of the papers:", "Other experiments:")
    groups = {title: [] for title in titles}
    for name, (line, table) in found.items():
        title = titles[0] if name.startswith("speed_") else titles[1] if table else titles[2]
        groups[title].append(f"  {name:<{width}}  {line}")
    for title, lines in groups.items():
        if lines:
            print("\n".join([title, *lines]))
    return 0


def run_all(names, rest):
    """Run every one of `names`; one that fails is reported and does not stop the others."""
    failed = []
    for name in names:
        print(f"\n== {name}", flush=True)
        try:
            run(load(name), rest)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def load(name):
    return import_module(f".{name}", __package__).main


if __name__ == "__main__":
    sys.exit(main())
