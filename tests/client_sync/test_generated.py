"""The sync client is generated from the async classes, and has the same verbs."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from howdah import Handle, JobType, Queue, SyncHandle, SyncJobType, SyncQueue, Worker
from howdah.client.registry import Registration
from howdah.client.schedule_registration import ScheduleRegistration
from howdah.client.schedules import Schedules
from howdah.client.sync import (
    SyncRegistration,
    SyncScheduleRegistration,
    SyncSchedules,
    SyncWorker,
)

ROOT = Path(__file__).resolve().parent.parent.parent
PAIRS: list[tuple[Any, Any]] = [
    (Queue, SyncQueue),
    (JobType, SyncJobType),
    (Handle, SyncHandle),
    (Registration, SyncRegistration),
    (ScheduleRegistration, SyncScheduleRegistration),
    (Schedules, SyncSchedules),
    (Worker, SyncWorker),
]
ASYNC_ONLY = {"for_other_loop", "follower", "conn", "on"}


def public(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(cls).items()
        if (not name.startswith("_") or name == "__call__") and name not in ASYNC_ONLY
        if inspect.isfunction(member) or isinstance(member, property)
    }


def as_sync(annotation: Any) -> Any:
    """Return the sync form of an annotation, without using the generator."""
    if not isinstance(annotation, str):
        return annotation
    annotation = re.sub(
        r"\b(Queue|JobType|Handle|Registration|ScheduleRegistration|Schedules|Worker)\b",
        r"Sync\1",
        annotation,
    )
    annotation = re.sub(r"AsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]", annotation)
    return re.sub(r" \| AsyncIterable\[.*\]$", "", annotation)


@pytest.mark.parametrize(("async_class", "sync_class"), PAIRS)
def test_every_verb_has_the_same_signature_and_docstring_in_the_sync_class(
    async_class: Any, sync_class: Any
) -> None:
    expected, generated = public(async_class), public(sync_class)
    assert expected
    for name, member in expected.items():
        sync_member = generated[name]
        if isinstance(member, property):
            assert isinstance(sync_member, property), name
            continue
        assert not inspect.iscoroutinefunction(sync_member), name
        async_signature, sync_signature = inspect.signature(member), inspect.signature(sync_member)
        assert [
            p.replace(annotation=as_sync(p.annotation)) for p in async_signature.parameters.values()
        ] == list(sync_signature.parameters.values()), name
        assert as_sync(async_signature.return_annotation) == sync_signature.return_annotation, name
        docstring = (member.__doc__ or "").replace("async with", "with").replace("await ", "")
        assert re.sub(r"\s+", " ", docstring) == re.sub(r"\s+", " ", sync_member.__doc__ or ""), (
            name
        )


def test_both_queues_have_the_same_constructor() -> None:
    assert inspect.signature(SyncQueue) == inspect.signature(Queue)


def copy_project(tmp_path: Path) -> Path:
    """Copy the part of the project that the generator reads."""
    for part in ("src/howdah", "tools"):
        shutil.copytree(
            ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "sql")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run_generator(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.write_sync", *options],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_generated_file_is_up_to_date() -> None:
    checked = run_generator(ROOT, "--check")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_new_verb_makes_the_file_out_of_date_and_is_generated(tmp_path: Path) -> None:
    root = copy_project(tmp_path)
    client = root / "src/howdah/client/queue.py"
    verb = '    async def polish(self, shine: int = 3) -> Handle[str]:\n        """Polish."""\n'
    text = client.read_text()
    marker = "    async def counts(self)"
    assert marker in text
    client.write_text(text.replace(marker, f"{verb}        raise NotImplementedError\n\n{marker}"))
    stale = run_generator(root, "--check")
    assert stale.returncode == 1
    assert "src/howdah/client/sync.py is out of date: run `make sync`" in stale.stderr
    assert run_generator(root).returncode == 0
    written = (root / "src/howdah/client/sync.py").read_text()
    assert (
        "    def polish(self, shine: int = 3) -> SyncHandle[str]:\n"
        '        """Polish."""\n'
        "        handle = portal.run(self._bridge.queue.polish(shine))\n"
        "        return SyncHandle(handle.id, self._bridge, handle.existed)\n"
    ) in written
    assert run_generator(root, "--check").returncode == 0
