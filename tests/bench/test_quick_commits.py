"""The quick benchmark says which commit it takes, and takes it out of git as it was."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.quick.commits import NoCommit, choose, take_out


class Repository:
    """A small one with two commits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.first = self.commit("first", "one")
        self.second = self.commit("second", "two")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, subject: str, text: str) -> str:
        self.write("src/howdah/__init__.py", text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-gpg-sign", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "repository"
    root.mkdir()
    return Repository(root)


def test_a_changed_tree_is_compared_with_the_last_commit(repository: Repository) -> None:
    repository.write("src/howdah/__init__.py", "three")
    chosen = choose(None, repository.root)
    assert (chosen.name, chosen.subject) == (repository.second, "second")
    assert "src has changes" in chosen.why


def test_a_new_file_is_a_change(repository: Repository) -> None:
    repository.write("src/howdah/new.py", "")
    assert choose(None, repository.root).name == repository.second


def test_an_unchanged_tree_is_compared_with_the_commit_before_the_last(
    repository: Repository,
) -> None:
    chosen = choose(None, repository.root)
    assert (chosen.name, chosen.subject) == (repository.first, "first")
    assert "the one before the last" in chosen.why


def test_changes_that_cannot_change_the_speed_do_not_count(repository: Repository) -> None:
    repository.write("docs/page.md", "words")
    assert choose(None, repository.root).name == repository.first


def test_the_commit_that_was_asked_for_is_taken(repository: Repository) -> None:
    repository.write("src/howdah/__init__.py", "three")
    for asked in (repository.first, repository.first[:8], "main~1"):
        assert choose(asked, repository.root).name == repository.first


@pytest.mark.parametrize("asked", ["nonsense", "HEAD~9", "--help"])
def test_a_commit_that_is_not_there_is_refused(repository: Repository, asked: str) -> None:
    with pytest.raises(NoCommit, match=f"there is no commit '{asked}'"):
        choose(asked, repository.root)


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCommit):
        choose(None, tmp_path)


def test_the_source_is_taken_out_as_it_was(repository: Repository, tmp_path: Path) -> None:
    repository.write("src/howdah/__init__.py", "three")
    for asked, text in ((repository.first, "one"), (repository.second, "two")):
        source = take_out(choose(asked, repository.root), repository.root, tmp_path / "ground")
        assert (source / "howdah" / "__init__.py").read_text() == text
    assert (repository.root / "src/howdah/__init__.py").read_text() == "three"


def test_what_was_taken_out_is_found_again_and_nothing_else_is_left(
    repository: Repository, tmp_path: Path
) -> None:
    commit = choose(repository.first, repository.root)
    source = take_out(commit, repository.root, tmp_path / "ground")
    (source / "howdah" / "mark").touch()
    assert take_out(commit, repository.root, tmp_path / "ground") == source
    assert (source / "howdah" / "mark").exists()
    assert [path.name for path in (tmp_path / "ground").iterdir()] == [repository.first]


def test_a_commit_without_the_product_is_refused(repository: Repository, tmp_path: Path) -> None:
    repository.git("rm", "--quiet", "-r", "src")
    repository.git("commit", "--quiet", "--no-gpg-sign", "-m", "third")
    commit = choose("HEAD", repository.root)
    with pytest.raises(NoCommit, match="has no src/howdah"):
        take_out(commit, repository.root, tmp_path / "ground")
    assert list((tmp_path / "ground").iterdir()) == []
