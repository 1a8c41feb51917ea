"""README.md and CONTRIBUTING.md say what is true: trees, tables, outputs and the worked example are held to the code."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import autograd as ag

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text, *languages):
    """Fenced blocks of these languages that follow one another directly."""
    pattern = r"\s*".join(rf"^```{language}\n((?:(?!```).)*)^```$" for language in languages)
    return re.findall(pattern, text, re.MULTILINE | re.DOTALL)


def section(text, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group(1)


def python(*arguments, cwd, **environment):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(cwd), *(p for p in sys.path if p)]), **environment}
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def test_output_that_readme_shows(tmp_path):
    pairs = blocks(README, "python", "text")
    assert len(pairs) == 1
    for program, shown in pairs:
        done = python("-c", program, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, shown, "")


def test_lines_of_make_ops_that_readme_shows():
    (shown,) = (text for text in blocks(README, "text") if text.startswith("op "))
    lines = [line.split() for line in shown.splitlines()]
    printed = [line.split() for line in ag.op.coverage().splitlines()]
    assert len(lines) > 3 and lines[0] == printed[0]
    assert [line for line in lines if line not in printed] == []


def test_tree_that_readme_shows():
    """What it names is there, and every folder that is there is named."""
    (tree,) = blocks(section(README, "Layout"), "text")
    top = ""
    for line in tree.splitlines():
        name = line.split()[0]
        if line.startswith(" "):
            name = top + name
        else:
            top = name
        assert (ROOT / name).exists(), line
    sources = [path for top in ("autograd", "wgsl", "tests", "examples") for path in (ROOT / top).rglob("*") if path.suffix in (".py", ".wgsl")]
    folders = {path.parent.name for path in sources}
    assert folders == {folder.split("/")[-2] for folder in re.findall(r"[\w/]+/", tree)}


def test_environment_variables_that_readme_lists():
    files = [path for folder in ("autograd", "tests", ".ci") for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in (".py", "")]
    used = {name for path in files for name in re.findall(r"AUTOGRAD_[A-Z0-9_]+\b", path.read_text(encoding="utf-8"))}
    assert used == set(re.findall(r"^\| `(AUTOGRAD_\w+)=", README, re.MULTILINE))


def test_targets_that_are_mentioned():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    mentioned = set(re.findall(r"(?:^ +|`)(?:DEVICE=wgpu )?make (\w+)", README + CONTRIBUTING, re.MULTILINE))
    assert {"run", "test", "lint", "ops"} <= mentioned <= targets


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_paths_that_are_mentioned(text):
    """Files by their names; those of the worked example are still to be made."""
    mentioned = set(re.findall(r"`((?:[\w.]+/)*\w+\.(?:py|wgsl|md|cfg|toml))`", text)) - {"wgsl/gaussian.wgsl"}
    places = (ROOT, ROOT / "autograd", ROOT / "autograd/ops")
    assert mentioned
    assert [path for path in mentioned if not any((place / path).exists() for place in places)] == []


def test_worked_example_of_a_new_op(tmp_path):
    """Do what CONTRIBUTING.md says, in a copy, and run what the row makes."""
    for name in ("autograd", "wgsl", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    op, row = blocks(CONTRIBUTING, "python")
    (shader,) = blocks(CONTRIBUTING, "wgsl")
    family = tmp_path / "autograd/ops" / re.search(r"\*\*1\. The class\*\*.*?here `(\w+\.py)`", CONTRIBUTING).group(1)
    family.write_text(f"{family.read_text(encoding='utf-8')}\n\n{op}", encoding="utf-8")
    (tmp_path / "wgsl/gaussian.wgsl").write_text(shader, encoding="utf-8")
    table = tmp_path / "tests/op_table.py"
    table.write_text(table.read_text(encoding="utf-8").replace("TABLE = {\n", f"TABLE = {{\n{row}", 1), encoding="utf-8")
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_ops.py", "-k", "gaussian", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) >= 6
    printed = python("-c", "import autograd; print(autograd.__file__); print(autograd.op.coverage())", cwd=tmp_path).stdout
    assert printed.startswith(str(tmp_path)) and re.search(r"^gaussian +numpy +kernel +formula$", printed, re.MULTILINE)
