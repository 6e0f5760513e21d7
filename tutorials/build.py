"""Make the notebooks from the scripts: ``python tutorials/build.py`` for all of them, or name some of the scripts.

A tutorial is written as a percent script (``# %%`` cells, readable by jupytext, VS Code, Spyder and PyCharm). Its notebook is
that script, executed, with its tables and pictures. Edit the script, run this, commit both.
Needs ``pip install 'pgm-bma[tutorials]'``.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def scripts():
    """The tutorials, in their order."""
    return sorted((path for path in HERE.glob("*.py") if path.name[0].isdigit()), key=number)


def number(path):
    """The number before the underscore of a tutorial's name."""
    return int(path.name.split("_")[0])


def read_script(path):
    """The notebook of a script, not executed; equal for equal scripts, cell names included."""
    import jupytext

    notebook = jupytext.read(path)
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number}"
        cell.metadata.clear()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def execute(notebook, timeout=300):
    """Run all cells in an empty folder, so that files a tutorial writes stay out of the project."""
    from nbclient import NotebookClient

    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # a remark of tqdm where ipywidgets is not installed
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=timeout,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    notebook.metadata.pop("language_info", None)  # would change with every version of Python
    return notebook


def main(argv=None):
    """Build the named tutorials, or all."""
    import nbformat

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", type=Path, help="scripts to build (default: all)")
    for path in parser.parse_args(argv).scripts or scripts():
        began = time.perf_counter()
        notebook = execute(read_script(path))
        target = path.with_suffix(".ipynb")
        nbformat.write(notebook, target)
        print(f"{target.name}: {time.perf_counter() - began:.1f} s, {target.stat().st_size / 1024:.0f} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
