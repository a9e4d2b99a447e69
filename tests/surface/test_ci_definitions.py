"""CI, hooks and contributor pages name commands, versions and files that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.processes import ROOT
from tools.test_matrix import VERSIONS

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
PAGES = [
    *(
        ROOT / name
        for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "README.md")
    ),
    ROOT / "docs" / "releasing.md",
    *(path for path in sorted(GITHUB.rglob("*")) if path.suffix in {".md", ".yml"}),
    HOOKS,
]

# `make` in code or at the beginning of a command, with its variables and targets
MAKE = re.compile(r"(?:`|^|run: )make((?: +[A-Z]+=[^ `\n]*| +[a-z][a-z-]*)+)", re.MULTILINE)


def read(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def named_targets(text: str) -> set[str]:
    plain = re.sub(r"\$\{\{.*?\}\}", "expression", text)
    words = (word for match in MAKE.finditer(plain) for word in match[1].split())
    return {word for word in words if "=" not in word}


def jobs() -> dict[str, dict[str, Any]]:
    return read(GITHUB / "workflows" / "ci.yml")["jobs"]


def matrix(job: str) -> dict[str, list[str]]:
    return jobs()[job]["strategy"]["matrix"]


def pythons() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: "
    return [line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    assert named_targets(page.read_text()) - TARGETS == set()


def test_the_pages_do_name_targets() -> None:
    named = set[str]().union(*(named_targets(page.read_text()) for page in PAGES))
    assert {"check", "test", "test-fast", "test-matrix", "hooks", "release"} <= named


def test_every_target_is_phony_and_explained() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    explained = set(re.findall(r"^([a-z][a-z-]*):.*## ", MAKEFILE, re.MULTILINE))
    assert TARGETS == set(phony[1].split()) == explained


def test_the_suite_runs_on_every_python_that_is_promised() -> None:
    assert matrix("test")["python"] == pythons()


def test_the_engine_runs_on_every_postgresql_that_is_promised() -> None:
    assert matrix("engine")["postgres"] == list(VERSIONS)


def test_the_whole_suite_runs_on_the_oldest_python_with_the_oldest_postgresql() -> None:
    assert matrix("oldest") == {"python": pythons()[:1], "postgres": list(VERSIONS)[:1]}
    assert jobs()["check"]["steps"][1]["with"]["python-version"] == pythons()[0]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_few_permissions_and_a_timeout(workflow: Path) -> None:
    text = read(workflow)
    assert text["permissions"] == {"contents": "read"}
    assert text["concurrency"]["group"]
    for name, job in text["jobs"].items():
        if "uses" in job:
            continue
        assert job["timeout-minutes"] <= 60, name
        assert set(job.get("permissions", {})) <= {"id-token"}, name
        for step in job["steps"]:
            uses = step.get("uses", "pinned@v1")
            assert re.search(r"@(v\d+|release/v\d+)$", uses), uses
            if uses.startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False, name
            if uses.startswith("actions/setup-python"):
                version = step["with"]["python-version"]
                assert version in (*pythons(), "${{ matrix.python }}"), name


@pytest.mark.parametrize("path", [*WORKFLOWS, HOOKS], ids=lambda path: path.name)
def test_every_file_that_is_named_exists(path: Path) -> None:
    text = path.read_text().replace("\\.", ".")  # the patterns of hooks
    files = re.findall(r"(?<![\w/.])((?:tests|tools|src|docs|requirements)/[\w./-]+\w)", text)
    modules = re.findall(r"python -m ((?:tests|bench|tools)\.[\w.]+)", text)
    files += [module.replace(".", "/") + ".py" for module in modules]
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


def commands(target: str) -> list[str]:
    """Return the commands of a target of the Makefile, with its variables replaced."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None
    lines = [line.strip().lstrip("@") for line in recipe[1].splitlines()]
    return [
        line.replace("$(RUN)", ".venv/bin/python -m").replace("$(BIN)", ".venv/bin")
        for line in lines
    ]


def test_the_hooks_run_the_same_checks_as_make_check() -> None:
    (local,) = read(HOOKS)["repos"]
    entries = {hook["entry"] for hook in local["hooks"]}
    ruff = ".venv/bin/python -m ruff"
    on_files = {
        f"{ruff} format --check .": f"{ruff} format --force-exclude",
        f"{ruff} check .": f"{ruff} check --force-exclude",
    }
    expected = {on_files.get(command, command) for command in commands("check")}
    assert entries - expected == {".venv/bin/python tools/check_commits.py"}
    assert expected <= entries


def test_every_hook_uses_the_tools_of_the_environment_and_matches_files() -> None:
    (local,) = read(HOOKS)["repos"]
    assert local["repo"] == "local"
    skipped = {".venv", ".git", ".matrix", ".bench", ".ha"}
    tree = [
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*")
        if not skipped & set(path.relative_to(ROOT).parts)
    ]
    for hook in local["hooks"]:
        assert hook["language"] == "system", hook["id"]
        assert any(re.search(hook.get("files", ""), name) for name in tree), hook["id"]


def test_a_bug_report_asks_for_everything_to_reproduce_it() -> None:
    form = read(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")
    required = {
        field["id"] for field in form["body"] if field.get("validations", {}).get("required")
    }
    assert required >= {"what", "howdah", "postgresql", "doctor"}


def test_security_reports_are_sent_to_a_private_address() -> None:
    config = read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")
    assert config["blank_issues_enabled"] is False
    (link,) = config["contact_links"]
    assert link["url"].endswith("/security/policy")
    assert "SECURITY.md" in link["about"]
