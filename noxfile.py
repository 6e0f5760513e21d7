"""Checks of a release. ``nox --list`` shows them; `.ci/run` and the workflows call the same sessions.

``nox -s lint types`` makes an environment for each session. ``nox --no-venv -s lint`` works in the active environment.
"""

import configparser
import os
import re
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True
ROOT = Path(__file__).parent
# tables, saved files, naive Bayes and clusters: what a new version of a dependency breaks first
SHORT = [
    "tests/foundation/test_table.py",
    "tests/naive_bayes",
    "tests/files/test_io.py",
    "tests/files/test_saved_files.py",
]


def install(session, *packages):
    """Install packages by pip, into the active environment under --no-venv."""
    session.run("python", "-m", "pip", "install", "--quiet", *packages)


def requirements(bound):
    """Return the requirements of setup.cfg, as they are ("newest") or at their lower bounds ("lowest")."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = config["options"]["install_requires"].split("\n")
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    return lines if bound == "newest" else [re.sub(r"\s*>=\s*([\d.]+).*", r"==\1", line) for line in lines]


def short_tests(session, *options):
    """Run the short list of tests, or the tests named after ``--``."""
    session.run("python", "-m", "pytest", *options, *(session.posargs or SHORT))


@nox.session
def lint(session):
    """Check style, format, spelling and unsafe calls."""
    install(session, "ruff", "codespell", "bandit")
    session.run("ruff", "check", ".")
    session.run("ruff", "check", "--preview", "--select", "PLW1514", "pgm_bma")  # no encoding that a system chooses
    session.run("ruff", "format", "--check", ".")
    session.run("bandit", "-q", "-r", "pgm_bma")  # what is allowed is marked where it stands, with the reason
    session.run("codespell")
    pages = ("docs", "changes", "tutorials", "paper", "README.md", "CHANGELOG.md", "SECURITY.md")
    session.run("codespell", "-D", ".ci/words.txt", *pages)  # words that CONTRIBUTING.md asks to avoid


@nox.session
def types(session):
    """Run the type checker."""
    install(session, "-e", ".", "mypy", "pandas-stubs")
    session.run("mypy")


@nox.session
def tests(session):
    """Run all tests: the second command of README.md in an environment of nox."""
    install(session, "-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def docs(session):
    """Build the site; a warning is an error."""
    install(session, "-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-q", "-W", "--keep-going", "docs", "build/site")


@nox.session
def lowest(session):
    """Run a short list of tests with the lowest versions that setup.cfg allows."""
    install(session, *requirements("lowest"), "pytest", "pytest-xdist", "hypothesis")
    install(session, "--no-deps", "-e", ".")
    short_tests(session, "-W", "ignore")  # old versions warn of each other's removals


@nox.session
def newest(session):
    """Run a short list of tests with the newest releases that setup.cfg allows."""
    install(session, "--upgrade", *requirements("newest"), "pytest", "pytest-xdist", "hypothesis")
    install(session, "--no-deps", "-e", ".")
    short_tests(session)


@nox.session
def prereleases(session):
    """Run a short list of tests with pre-releases of numpy, pandas, scipy, scikit-learn, numba and pgmpy."""
    install(session, "-e", ".", "pytest", "pytest-xdist", "hypothesis")
    install(session, "--upgrade", "--pre", "numpy", "pandas", "scipy", "scikit-learn", "numba", "pgmpy")
    short_tests(session)


@nox.session
def build(session):
    """Build wheel and sdist, check both, and use the wheel in an empty environment, elsewhere."""
    install(session, "build", "twine", "check-wheel-contents")
    for folder in ("dist", "build/lib"):
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", "dist")
    (wheel,) = (ROOT / "dist").glob("*.whl")
    (sdist,) = (ROOT / "dist").glob("*.tar.gz")
    session.run("python", "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    session.run("check-wheel-contents", str(wheel))

    elsewhere = Path(session.create_tmp()).resolve()
    scripts = elsewhere / "venv" / ("Scripts" if os.name == "nt" else "bin")
    session.run("python", "-m", "venv", "--clear", str(elsewhere / "venv"))
    python = str(scripts / "python")
    session.run(python, "-m", "pip", "install", "--quiet", str(wheel), external=True)
    session.chdir(elsewhere)
    session.run(python, "-W", "error", "-c", "import pgm_bma; pgm_bma.EMAClusterer", external=True)
    session.run(python, "-W", "error::DeprecationWarning", str(ROOT / ".ci" / "first_use.py"), external=True)
    session.run(str(scripts / "pgm-bma"), "--version", external=True)
    session.run(str(scripts / "pgm-bma"), "demo", external=True)
