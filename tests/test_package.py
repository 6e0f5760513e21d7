"""The wheel holds the package with its data and benchmarks and nothing else; imports stay light; the benchmark list works."""

import configparser
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import pgm_bma
from pgm_bma import catalogue

ROOT = Path(__file__).parent.parent
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg", encoding="utf-8")
VERSION = CONFIG["metadata"]["version"]
DOCUMENTS = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
HEAVY = ("numpy", "pandas", "sklearn", "numba", "pgmpy")


def run(*arguments, cwd=None, **environment):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with wheel and source archive, made from a copy: the checkout stays clean, and no old build folder plays a part."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in ("pgm_bma", "data", "benchmarks", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "MANIFEST.in", *DOCUMENTS):
        shutil.copy(ROOT / name, source / name)
    for kind in ("wheel", "sdist"):
        script = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
        run("-c", script, str(out), cwd=source)
    return out


@pytest.fixture(scope="module")
def wheel(built):
    """The wheel, unpacked."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as file:
        file.extractall(built / "unpacked")
    return built / "unpacked"


def files(folder, pattern="*"):
    return {path.relative_to(folder).as_posix() for path in folder.rglob(pattern) if path.is_file()}


def test_the_wheel_holds_the_package_only(wheel):
    tops = {path.name for path in wheel.iterdir()}
    assert tops == {"pgm_bma", f"pgm_bma-{VERSION}.dist-info"}
    written = {name for name in files(wheel / "pgm_bma", "*.py") if not name.startswith(("_benchmarks", "_data"))}
    assert written == files(ROOT / "pgm_bma", "*.py")  # no subpackage was forgotten in setup.cfg


def test_the_wheel_carries_data_and_benchmarks_whole(wheel):
    data = {name for name in files(ROOT / "data") if name.endswith((".csv", ".bif", ".md"))}
    assert files(wheel / "pgm_bma" / "_data") == data
    assert len([name for name in data if name.endswith(".csv")]) == 11
    assert len([name for name in data if name.endswith(".bif")]) == 10
    benchmarks = files(ROOT / "benchmarks", "*.py") | {
        name for name in files(ROOT / "benchmarks", "*.csv") if name.startswith("published/")
    }
    assert files(wheel / "pgm_bma" / "_benchmarks") == benchmarks


def test_the_source_archive_holds_what_the_wheel_is_made_from(built, wheel):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as file:
        names = {name.partition("/")[2] for name in file.getnames() if file.getmember(name).isfile()}
    names = {name for name in names if ".egg-info/" not in name}
    assert {name for name in names if "/" not in name} == {
        *DOCUMENTS,
        "MANIFEST.in",
        "PKG-INFO",
        "pyproject.toml",
        "setup.cfg",
    }
    places = {"_data": "data", "_benchmarks": "benchmarks"}
    expected = set()
    for name in files(wheel / "pgm_bma"):
        top, _, rest = name.partition("/")
        expected.add(f"{places[top]}/{rest}" if top in places else f"pgm_bma/{name}")
    assert {name for name in names if "/" in name} == expected  # no tests, no kept results


def test_archives_are_small_and_carry_the_licence(built, wheel):
    sizes = {path.suffix: path.stat().st_size for path in built.glob("pgm_bma-*")}
    assert set(sizes) == {".whl", ".gz"} and max(sizes.values()) < 2_000_000  # a promise of the project; 1.0 MB in 2026
    (licence,) = wheel.glob("*.dist-info/licenses/LICENSE")
    assert licence.read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "licen" in (wheel / "pgm_bma" / "_data" / "README.md").read_text(encoding="utf-8").lower()


def test_data_may_be_redistributed():
    """Sets without a clear licence, or too large, must not slip into the repository."""
    assert not [name for name in files(ROOT / "data") if name.startswith(("mushroom", "soybean", "golub"))]
    readme = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    for name in pgm_bma.list_datasets():
        assert name in readme or name[:4] == "monk"
    for name in pgm_bma.list_networks():
        assert f"| {name} |" in readme


def test_an_installed_package_finds_its_data(wheel, tmp_path):
    script = (
        "import pgm_bma, pgm_bma.datasets as d; print(pgm_bma.__file__); print(d._data_folder());"
        "print(pgm_bma.load_dataset('zoo')[0].shape, (d._data_folder() / 'bif' / 'alarm.bif').is_file())"
    )
    package, folder, found = run("-c", script, cwd=tmp_path, PYTHONPATH=str(wheel)).splitlines()
    assert Path(package) == wheel / "pgm_bma" / "__init__.py"
    assert Path(folder) == wheel / "pgm_bma" / "_data"
    assert found == "(101, 17) True"


def test_benchmarks_are_listed_from_both_places(wheel, tmp_path):
    lists = [run("-m", "benchmarks", cwd=ROOT), run("-m", "pgm_bma._benchmarks", cwd=tmp_path, PYTHONPATH=str(wheel))]
    for name in ("speed_simulate", "speed_encode", "speed_naive_bayes"):
        assert all(name in text for text in lists)
    assert lists[0].splitlines()[1:] == lists[1].splitlines()[1:]  # the first line names the command


def test_every_benchmark_says_what_it_does():
    for line in run("-m", "benchmarks", cwd=ROOT).splitlines():
        if line.startswith("  "):
            assert len(line.split(maxsplit=1)) == 2, f"the module of {line.strip()!r} has no docstring"


def test_benchmarks_refuse_unknown_names_and_skip_without_peers(tmp_path):
    wrong = subprocess.run([sys.executable, "-m", "benchmarks", "nonsense"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "speed_simulate" in wrong.stderr
    script = (
        "from benchmarks._common import *; import sys\n"
        "def main(argv): need('no_such_peer')\n"
        "def other(argv): need_dataset('golub')\n"
        "run(main); run(other); sys.exit(run(main))"
    )
    said = run("-c", script, cwd=ROOT, PGM_BMA_DATA=str(tmp_path)).splitlines()
    assert said[0] == "skipped: no_such_peer is not installed here (pip install no_such_peer)"
    assert said[1].startswith("skipped: ") and "golub.csv" in said[1]


def test_published_tables_are_read():
    script = "from benchmarks._common import paper_table; print(len(paper_table('kikuchi_table2').columns))"
    assert run("-c", script, cwd=ROOT).strip() == "13"


def test_import_is_light():
    """0.3 s is the promise; the import itself takes a few milliseconds, so a slow machine does not break it."""
    script = (
        "import sys, time; start = time.perf_counter(); import pgm_bma; took = time.perf_counter() - start;"
        f"print(took < 0.3, sorted(set({HEAVY}) & set(sys.modules)))"
    )
    assert run("-c", script).strip() == "True []"


def test_a_first_fit_brings_little_beyond_numba_pandas_and_sklearn_base():
    """No other package, and no other part of scikit-learn or scipy, is loaded."""
    script = (
        "from benchmarks._child import in_new_process; print(*in_new_process('EMAClusterer', {'n_init': 2})['brings'])"
    )
    assert set(run("-c", script, cwd=ROOT).split()) <= {"numba", "platformdirs", "pyarrow"}


def test_help_is_light():
    script = (
        "import runpy, sys; sys.argv = ['pgm-bma', '--help']\n"
        "try: runpy.run_module('pgm_bma', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print('\\nheavy:', sorted(set({HEAVY}) & set(sys.modules)))"
    )
    said = run("-c", script)
    assert "usage" in said.lower() and "heavy: []" in said


def test_all_public_names_load():
    for name in pgm_bma.__all__:
        assert getattr(pgm_bma, name) is not None
    assert set(pgm_bma.__all__) <= set(dir(pgm_bma))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        pgm_bma.nothing_like_it  # noqa: B018


def test_every_place_has_the_version_of_the_configuration(wheel, tmp_path):
    said = run("-c", "import pgm_bma; print(pgm_bma.__version__)", cwd=tmp_path, PYTHONPATH=str(wheel))
    command = run("-m", "pgm_bma", "--version", cwd=tmp_path, PYTHONPATH=str(wheel))
    assert (said.strip(), command.strip()) == (VERSION, f"pgm-bma {VERSION}")
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'set version = "{VERSION}"' in (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")


def test_every_public_name_is_in_the_changelog():
    pages = [
        ROOT / "CHANGELOG.md",
        *(ROOT / "changes").glob("*.md"),
    ]  # the changelog, or a line that it will be joined from
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in pgm_bma.__all__ if f"`{name}`" not in text] == []


def test_the_page_of_public_names_is_that_of_the_package():
    text = (ROOT / "docs" / "public_names.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| [\w ]+ \| (?:stable|experimental)", text, re.MULTILINE) == [
        *(name for names in catalogue.groups().values() for name in names),
        *catalogue.MODULES,
    ]
    assert set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == set(pgm_bma.__all__)
    made = runpy.run_path(str(ROOT / "docs" / "names.py"))["page"]()
    assert text == made, "run python docs/names.py"


def test_what_is_experimental_exists():
    for name in catalogue.EXPERIMENTAL:
        thing, _, part = name.partition(".")
        found = getattr(pgm_bma, thing)
        assert not part or hasattr(found, part) or part in inspect.signature(found).parameters, name


def test_type_checkers_see_the_public_names():
    stub = (ROOT / "pgm_bma" / "__init__.pyi").read_text()
    lines = re.findall(r"^from pgm_bma\.?(\S*) import \w+ as (\w+)$", stub, re.MULTILINE)
    assert {name: module for module, name in lines} == {**pgm_bma._PUBLIC, **dict.fromkeys(catalogue.MODULES, "")}


def test_the_type_checked_examples_are_those_of_the_readme():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    examples = (ROOT / "tests" / "typing" / "readme.py").read_text().partition("# fmt: off\n")[2]
    assert examples == "\n".join(blocks)


def test_nothing_is_written_into_the_top_folder():
    """A file there that no page and no build wants was written by a test or an example, in a run before if not in this one."""
    files = {path.name for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert files <= {
        "CHANGELOG.md",
        "CITATION.cff",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "MANIFEST.in",
        "README.md",
        "SECURITY.md",
        "asv.conf.json",
        "conftest.py",
        "noxfile.py",
        "pyproject.toml",
        "setup.cfg",
    }


def test_no_path_outside_the_checkout_is_named():
    """Extra data come from the folder PGM_BMA_DATA; only .ci/run may look beside the checkout."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    if not files[0]:
        pytest.skip("no git checkout")
    outside = re.compile(r"\.\./shared|(?<![\w.])/(?:work|tmp|home|root)/\w")
    found = [
        f"{name}: {line.strip()}"
        for name in files
        if name.endswith((".py", ".md", ".cfg", ".toml", ".cff", ".bif")) and (ROOT / name).is_file()
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if outside.search(line)
    ]
    assert not found
