"""What is published agrees: names, addresses, versions, and the workflows with the targets that they make."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from pybridge import distribution

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PLACEHOLDER = "https://github.com/pybridge-jax/pybridge"


def _commands(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def _made(command: str) -> list[str]:
    """The targets of the calls of make in a command."""
    calls = re.findall(r"^\s*make (.+)$", command, re.MULTILINE)
    return [word for call in calls for word in call.split() if "=" not in word]


def test_pip_knows_the_package_by_one_name():
    assert PROJECT["project"]["name"] == distribution.NAME
    assert PROJECT["project"]["scripts"] == {"pybridge": "pybridge.cli.app:app"}
    pattern = re.compile(r"pip install[^`\n]*[ '\"]pybridge(?![-\w./])")
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "pybridge").rglob("*.py")]
    assert [path.name for path in files if pattern.search(path.read_text(encoding="utf-8"))] == []
    assert (
        "ARG PYBRIDGE=pybridge-jax\n"
        in (ROOT / "gradbench" / "tools" / "pybridge" / "Dockerfile").read_text()
    )


def test_the_repository_has_one_address():
    """That of `Repository`; as long as it is the placeholder, docs/releasing.md says so."""
    urls = PROJECT["project"]["urls"]
    repository = urls["Repository"]
    assert [url for url in urls.values() if not url.startswith(repository)] == []
    (links,) = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    assert links["replacement"].startswith(f"]({repository}/blob/v$HFPR_VERSION/")
    assert _citation()["repository-code"] == repository
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert PLACEHOLDER in page if repository == PLACEHOLDER else PLACEHOLDER not in page


def test_the_citation_is_of_this_version_and_license():
    citation = _citation()
    assert citation["version"] == PROJECT["project"]["version"]
    assert citation["license"] == PROJECT["project"]["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in PROJECT["project"]["authors"]
    ]


def _citation() -> dict:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PROJECT["build-system"]["requires"])
def test_what_builds_is_among_the_development_packages(package):
    assert package in PROJECT["project"]["optional-dependencies"]["dev"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_make_targets_that_there_are(workflow):
    rules = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = [target for command in _commands(workflow) for target in _made(command)]
    assert [target for target in targets if target not in rules] == []
    assert targets or workflow.stem in ("tagbot", "compathelper")


def test_workflows_cover_what_is_supported():
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["linux"]
    pythons = matrix["strategy"]["matrix"]["python"]
    told = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert pythons == told


@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.github-workflows", WORKFLOWS), ("vendor.citation-file-format", [ROOT / "CITATION.cff"])],
    ids=["workflows", "citation"],
)
def test_files_follow_their_schemas(schema, files):
    """With schemas that the package has, so without a network."""
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
