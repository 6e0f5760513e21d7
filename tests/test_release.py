"""Files that a release needs agree with each other: configuration, recipe, sessions, workflows, changelog."""

import configparser
import importlib.machinery
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg", encoding="utf-8")

pytestmark = pytest.mark.skipif(not (ROOT / "noxfile.py").exists(), reason="these files are part of a checkout")


def requirement(line):
    """("numpy", ">=2.0") of "numpy >= 2.0"."""
    name, bounds = re.fullmatch(r"([\w-]+)(.*)", line.strip()).groups()
    return name, bounds.replace(" ", "")


def test_the_recipe_asks_for_what_setup_cfg_asks_for():
    yaml, jinja2 = pytest.importorskip("yaml"), pytest.importorskip("jinja2")
    text = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text).render(PYTHON="python"))
    options = CONFIG["options"]
    wanted = dict(map(requirement, options["install_requires"].strip().split("\n")))
    wanted["matplotlib-base"] = wanted.pop("matplotlib")  # conda's matplotlib brings Qt
    wanted["python"] = options["python_requires"]
    assert dict(map(requirement, recipe["requirements"]["run"])) == wanted
    assert recipe["package"] == {"name": "pgm-bma", "version": CONFIG["metadata"]["version"]}
    assert recipe["build"]["entry_points"] == CONFIG["options.entry_points"]["console_scripts"].strip().split("\n")
    assert recipe["about"]["license"] == CONFIG["metadata"]["license"]


def sessions():
    """Names of the sessions in noxfile.py."""
    return set(re.findall(r"@nox\.session\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8")))


def test_the_promised_sessions_are_there():
    assert {"lint", "types", "tests", "docs", "lowest", "newest", "build"} <= sessions()


@pytest.mark.parametrize("path", [".ci/run", *sorted(p.name for p in (ROOT / ".github" / "workflows").glob("*.yml"))])
def test_only_sessions_that_exist_are_called(path):
    place = ROOT / path if path.startswith(".ci") else ROOT / ".github" / "workflows" / path
    text = place.read_text(encoding="utf-8")
    called = {name for line in re.findall(r"--sessions ([a-z ]+)", text) for name in line.split()}
    called |= set(re.findall(r"session: (\w+)", text))
    assert called and called <= sessions()


def test_the_two_commands_of_the_readme_are_found():
    """`.ci/run` takes them from README.md."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first, second = (line for line in lines if line.startswith("python3 -m venv .venv && "))
    assert first.endswith(".venv/bin/pip install . && .venv/bin/pgm-bma demo")
    assert second.endswith(".venv/bin/pip install -e '.[test]' && .venv/bin/pytest")


def test_python_versions_agree():
    known = re.findall(r"Python :: (3\.\d+)", CONFIG["metadata"]["classifiers"])
    tested = re.findall(r'"(3\.\d+)"', (ROOT / ".github" / "workflows" / "tests.yml").read_text().split("python: [")[1])
    assert known == tested[: len(known)] and CONFIG["options"]["python_requires"] == f">={known[0]}"


def changelog():
    loader = importlib.machinery.SourceFileLoader("changelog", str(ROOT / ".ci" / "changelog"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("changelog", loader))
    loader.exec_module(module)
    return module


def test_fragments_are_joined_by_section(tmp_path, monkeypatch):
    script = changelog()
    (tmp_path / "changes").mkdir()
    for name, text in (("a.md", "New\nability."), ("b-speed.fixed.md", "- Faster."), ("c.md", "Another.")):
        (tmp_path / "changes" / name).write_text(text, encoding="utf-8")
    page = tmp_path / "CHANGELOG.md"
    page.write_text(
        "# Log\n\n## [Unreleased]\n\n### Added\n\n- First.\n\n## [0.1] - 2020-01-01\n\nOld.\n", encoding="utf-8"
    )
    monkeypatch.setattr(script, "ROOT", tmp_path)
    script.main("1.0")
    text = page.read_text(encoding="utf-8")
    new = re.search(r"## \[1\.0\] - \d{4}-\d\d-\d\d\n\n(.*)\n\n## \[0\.1\] - 2020-01-01\n\nOld\.\n$", text, re.DOTALL)
    assert new[1] == "### Added\n\n- First.\n- New ability.\n- Another.\n\n### Fixed\n\n- Faster."
    assert text.startswith("# Log\n\n## [Unreleased]\n\n## [1.0]") and not list((tmp_path / "changes").iterdir())


def test_the_changelog_can_be_joined():
    script = changelog()
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.count("\n## [Unreleased]\n") == 1
    assert "### Added" in script.joined(text.partition("## [Unreleased]\n")[2], ROOT / "changes")
