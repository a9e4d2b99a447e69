"""The quick benchmark names the commit that it chooses, and extracts it from git as it was."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.quick.commits import NoCommit, choose, extract


class Repository:
    """A small repository with two commits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.first = self.commit("first", "one")
        self.second = self.commit("second", "two")

    def git(self, *arguments: str) -> str:
        author = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        done = subprocess.run(
            ["git", *author, *arguments], cwd=self.root, capture_output=True, text=True, check=True
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
    for name in (repository.first, repository.first[:8], "main~1"):
        assert choose(name, repository.root).name == repository.first


@pytest.mark.parametrize("name", ["nonsense", "HEAD~9", "--help"])
def test_a_commit_that_does_not_exist_is_refused(repository: Repository, name: str) -> None:
    with pytest.raises(NoCommit, match=f"there is no commit '{name}'"):
        choose(name, repository.root)


def test_a_folder_without_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoCommit):
        choose(None, tmp_path)


def test_the_source_is_extracted_as_it_was(repository: Repository, tmp_path: Path) -> None:
    repository.write("src/howdah/__init__.py", "three")
    for name, text in ((repository.first, "one"), (repository.second, "two")):
        source = extract(choose(name, repository.root), repository.root, tmp_path / "extracted")
        assert (source / "howdah" / "__init__.py").read_text() == text
    assert (repository.root / "src/howdah/__init__.py").read_text() == "three"


def test_an_extracted_commit_is_used_again_and_nothing_else_is_left(
    repository: Repository, tmp_path: Path
) -> None:
    commit = choose(repository.first, repository.root)
    source = extract(commit, repository.root, tmp_path / "extracted")
    (source / "howdah" / "mark").touch()
    assert extract(commit, repository.root, tmp_path / "extracted") == source
    assert (source / "howdah" / "mark").exists()
    assert [path.name for path in (tmp_path / "extracted").iterdir()] == [repository.first]


def test_a_commit_without_the_product_is_refused(repository: Repository, tmp_path: Path) -> None:
    repository.git("rm", "--quiet", "-r", "src")
    repository.git("commit", "--quiet", "--no-gpg-sign", "-m", "third")
    commit = choose("HEAD", repository.root)
    with pytest.raises(NoCommit, match="has no src/howdah"):
        extract(commit, repository.root, tmp_path / "extracted")
    assert list((tmp_path / "extracted").iterdir()) == []
