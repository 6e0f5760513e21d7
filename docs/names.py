"""Write docs/public_names.md from the catalogue of public names: ``python docs/names.py``."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = {"structure": "structure learner", "network": "pgmpy estimator", "columns": "discretizer"}
HEAD = """# Stability of public names

Every name that `pgm_bma` promises, made from the catalogue by `python docs/names.py`. A test compares this page with the package.

- **Stable** names keep their meaning, parameters and results in all versions 1.x. Results may change in the last digits, and
  where a fault is corrected; the changelog says so. Files of `save` are read by all later versions 1.x.
- **Experimental** names may change in every minor version, with a line in the changelog.
- A stable name or parameter that goes away warns first: a `FutureWarning` names the cure for at least one minor version and
  six months. It goes in a major version.
- Everything else is private: modules and functions that this page does not name, and names that begin with an underscore.
  Attributes that end with an underscore are as stable as their class.

| name | kind | status |
|---|---|---|
"""


def page():
    """Return the page as text."""
    sys.path.insert(0, str(HERE.parent))
    from pgm_bma import catalogue

    kinds = {each.name: KINDS.get(each.kind, each.kind) for each in catalogue.ESTIMATORS}
    rows = []
    for names in catalogue.groups().values():
        rows += [(name, kinds.get(name, "record" if name[0].isupper() else "function")) for name in names]
    rows += [(name, "module") for name in catalogue.MODULES]
    lines = []
    for name, kind in rows:
        status = "experimental" if name in catalogue.EXPERIMENTAL else "stable"
        parts = [part for part in catalogue.EXPERIMENTAL if part.startswith(f"{name}.")]
        if parts:
            status += ", but experimental: " + ", ".join(f"`{part.partition('.')[2]}`" for part in parts)
        lines.append(f"| `{name}` | {kind} | {status} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "public_names.md").write_text(page(), encoding="utf-8", newline="\n")
