"""The repository's frame: packaging, documentation, size of files, what an import touches."""

import ast
import configparser
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("autograd", "tests", "examples")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
SHADERS = sorted(path.relative_to(ROOT / "wgsl").as_posix() for path in (ROOT / "wgsl").rglob("*.wgsl"))
WHERE = """
import autograd
from autograd.webgpu import shaders
print(autograd.__file__)
print(shaders.folder())
"""


def run(*command, cwd=None):
    """The command's output; its errors too, when it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} failed\n{done.stdout}\n{done.stderr}"
    return done.stdout


def setup_cfg():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def names(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def by_path(path):
    return path.relative_to(ROOT).as_posix()


# --- packaging ---


@pytest.fixture
def checkout(tmp_path):
    """What a clone holds of what is installed: a build in the tree would leave its folders in it."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("autograd", "wgsl"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def environment(tmp_path):
    """The Python of a new environment that sees this one's libraries, but not this one's autograd."""
    folder = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    # A .pth line adds the folder only; the .pth files in it, an editable autograd's too, are not read.
    Path(site, "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def install(python, *what):
    """pip without the network: what builds the package is installed already."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", *what)


def test_wheel_holds_the_shaders_and_finds_them(checkout, environment, tmp_path):
    install(environment, checkout)
    shutil.rmtree(checkout)  # nothing of it may be needed now
    package, shaders = (Path(line) for line in run(environment, "-c", WHERE, cwd=tmp_path).splitlines())
    assert package.is_relative_to(environment.parents[1])
    assert shaders == package.parent / "wgsl"
    assert sorted(path.relative_to(shaders).as_posix() for path in shaders.rglob("*.wgsl")) == SHADERS
    assert len(SHADERS) > 20


def test_editable_install_finds_the_checkouts_shaders(checkout, environment, tmp_path):
    install(environment, "--editable", checkout)
    package, shaders = (Path(line) for line in run(environment, "-c", WHERE, cwd=tmp_path).splitlines())
    assert package.parent == checkout / "autograd"
    assert shaders == checkout / "wgsl"


def test_every_package_is_installed():
    folders = {path.parent for path in (ROOT / "autograd").rglob("*.py")}
    found = {by_path(folder).replace("/", ".") for folder in folders}
    assert set(names(setup_cfg()["options"]["packages"])) == found | {"autograd.wgsl"}


def test_requirements_are_three():
    required = names(setup_cfg()["options"]["install_requires"])
    assert required == ["numpy>=2", "wgpu>=0.32,<0.33", "safetensors"]


def test_import_touches_no_gpu():
    imported = run(sys.executable, "-c", "import sys, autograd; print(*sys.modules)").split()
    assert "autograd" in imported
    # `wgpu` is the library and `cffi` its way to the driver; autograd.webgpu is ours.
    assert not {"wgpu", "cffi", "_cffi_backend"} & set(imported)


# --- documentation ---


def blocks(name):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks("README.md"))))
def test_readme_runs(number, tmp_path):
    run(sys.executable, "-W", "error", "-c", blocks("README.md")[number], cwd=tmp_path)


def test_readme_links_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text())
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_make_lists_its_targets():
    shown = {line.split()[1] for line in run("make", "--no-print-directory", cwd=ROOT).splitlines()}
    assert shown == {"help", "run", "test", "lint", "ops", "parity", "bench", "examples", "clean"}


# --- size ---


def lines(function):
    """A function's length. Its docstring and its tables (literals over several lines) are not counted."""
    skip = set()
    if ast.get_docstring(function):
        skip.update(range(function.body[0].lineno, function.body[0].end_lineno + 1))
    for part in ast.walk(function):
        if isinstance(part, ast.List | ast.Dict | ast.Set | ast.Tuple):
            skip.update(range(part.lineno + 1, part.end_lineno + 1))
    return function.end_lineno - function.lineno + 1 - len(skip)


@pytest.mark.parametrize("path", SOURCES, ids=by_path)
def test_files_and_functions_are_short(path):
    text = path.read_text(encoding="utf-8")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert [f"{f.name}: {lines(f)} lines" for f in functions if lines(f) > 50] == []
    assert text.count("\n") <= 400


def test_first_example_stays_under_100_lines():
    assert (ROOT / "examples/01_digits_gru.py").read_text().count("\n") < 100


def test_top_level_is_fixed():
    """New things go into a folder that is there."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    tracked = {line.split("/")[0] for line in run("git", "ls-files", cwd=ROOT).splitlines()}
    assert tracked <= {
        *("setup.cfg", "pyproject.toml", "autograd", "wgsl", "tests", "examples", "Makefile"),
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", ".ci", ".gitignore"),
    }


def test_every_row_of_the_benchmarks_can_be_made():
    """Nothing is measured; what they name is there."""
    made = "import run; names = [name for name, _ in (*run.cpu({}), *run.wgpu())]; assert len(set(names)) == len(names) > 50"
    run(sys.executable, "-c", made, cwd=ROOT / "tests" / "benchmarks")
