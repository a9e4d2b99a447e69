"""The sync twin is written from the async classes, and says the same."""

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
from howdah.client.sync import SyncRegistration, SyncWorker

ROOT = Path(__file__).resolve().parent.parent.parent
PAIRS: list[tuple[Any, Any]] = [
    (Queue, SyncQueue),
    (JobType, SyncJobType),
    (Handle, SyncHandle),
    (Registration, SyncRegistration),
    (Worker, SyncWorker),
]
PLUMBING = {"for_other_loop", "follower", "conn", "on"}


def public(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(cls).items()
        if (not name.startswith("_") or name == "__call__") and name not in PLUMBING
        if inspect.isfunction(member) or isinstance(member, property)
    }


def as_sync(annotation: Any) -> Any:
    """Say in other words than the tool's what becomes of an annotation."""
    if not isinstance(annotation, str):
        return annotation
    annotation = re.sub(r"\b(Queue|JobType|Handle|Registration|Worker)\b", r"Sync\1", annotation)
    annotation = re.sub(r"AsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]", annotation)
    return re.sub(r" \| AsyncIterable\[.*\]$", "", annotation)


@pytest.mark.parametrize(("original", "twin"), PAIRS)
def test_every_verb_has_a_twin_with_the_same_signature_and_words(original: Any, twin: Any) -> None:
    expected, found = public(original), public(twin)
    assert expected
    for name, member in expected.items():
        written = found[name]
        if isinstance(member, property):
            assert isinstance(written, property), name
            continue
        assert not inspect.iscoroutinefunction(written), name
        ours, theirs = inspect.signature(member), inspect.signature(written)
        assert [
            p.replace(annotation=as_sync(p.annotation)) for p in ours.parameters.values()
        ] == list(theirs.parameters.values()), name
        assert as_sync(ours.return_annotation) == theirs.return_annotation, name
        said = (member.__doc__ or "").replace("async with", "with").replace("await ", "")
        assert re.sub(r"\s+", " ", said) == re.sub(r"\s+", " ", written.__doc__ or ""), name


def test_a_sync_queue_is_made_as_an_async_one() -> None:
    assert inspect.signature(SyncQueue) == inspect.signature(Queue)


def checkout(tmp_path: Path) -> Path:
    """Copy as much of the project as the tool reads."""
    for part in ("src/howdah", "tools"):
        shutil.copytree(
            ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "sql")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def tool(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "tools/write_sync.py"), *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_file_is_up_to_date() -> None:
    checked = tool(ROOT, "--check")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_new_verb_makes_the_file_out_of_date_and_is_written(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    client = root / "src/howdah/client/queue.py"
    verb = '    async def polish(self, shine: int = 3) -> Handle[str]:\n        """Polish."""\n'
    text = client.read_text()
    marker = "    async def counts(self)"
    assert marker in text
    client.write_text(text.replace(marker, f"{verb}        raise NotImplementedError\n\n{marker}"))
    stale = tool(root, "--check")
    assert stale.returncode == 1
    assert "src/howdah/client/sync.py is out of date: run `make sync`" in stale.stderr
    assert tool(root).returncode == 0
    written = (root / "src/howdah/client/sync.py").read_text()
    assert (
        "    def polish(self, shine: int = 3) -> SyncHandle[str]:\n"
        '        """Polish."""\n'
        "        return SyncHandle(portal.run(self._bridge.queue.polish(shine)).id, self._bridge)\n"
    ) in written
    assert tool(root, "--check").returncode == 0
