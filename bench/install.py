"""Install: make an environment for each peer, below .bench/.

A Python peer gets a virtual environment, a Node peer a folder of npm packages. A peer that needs a
newer Python than ours gets one that is installed on the machine. An environment that
has the right versions already is used again. A peer that cannot be installed raises `Unavailable`:
the run reports it and goes on without that peer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.peer import Peer

ROOT = Path(__file__).resolve().parent.parent
WORK_FOLDER = ROOT / ".bench"
NODE = "node@22"
OLDEST_NODE = (22, 18)
NEWEST_PYTHON = 19  # the minor version up to which one is looked for
TIMEOUT = 900.0


class Unavailable(Exception):
    """A peer, or something that it needs, cannot be installed on this machine."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The folder of a peer, and the command that starts its driver."""

    home: Path
    command: tuple[str, ...]
    versions: dict[str, str]


def install(peer: Peer) -> Environment:
    """Make the peer's environment, unless it exists."""
    if peer.is_howdah:
        return Environment(ROOT, _python_driver(sys.executable, peer), {})
    home = WORK_FOLDER / peer.name
    home.mkdir(parents=True, exist_ok=True)
    return _with_npm(peer, home) if peer.kind == "node" else _with_pip(peer, home)


def _with_pip(peer: Peer, home: Path) -> Environment:
    python = home / "bin" / "python"
    if _needs_install(home, peer.packages):
        _run(_python(peer.oldest_python), "-m", "venv", "--clear", str(home))
        _run(str(python), "-P", "-m", "pip", "install", "--quiet", *peer.packages)
        _mark_installed(home, peer.packages)
    return Environment(home, _python_driver(str(python), peer), {})


def _python(oldest: tuple[int, int]) -> str:
    """Return a Python that is new enough: ours, or another one of this machine."""
    if sys.version_info >= oldest:
        return sys.executable
    folders = [Path(folder) for folder in os.get_exec_path()]
    folders += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    major, minor = oldest
    for folder in folders:
        for newer in range(minor, NEWEST_PYTHON + 1):
            if _python_version(str(folder / f"python{major}.{newer}")) >= oldest:
                return str(folder / f"python{major}.{newer}")
    raise Unavailable(f"it needs Python {major}.{minor} or newer: install it beside ours")


def _python_version(python: str) -> tuple[int, ...]:
    return _version(python, "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))")


def _python_driver(python: str, peer: Peer) -> tuple[str, ...]:
    return (python, "-m", f"bench.peers.{peer.name}.driver")


def _with_npm(peer: Peer, home: Path) -> Environment:
    node = _node()
    _npm_install(home, peer.packages)
    versions = {
        package: json.loads((home / "node_modules" / package / "package.json").read_text())[
            "version"
        ]
        for package in (spec.partition("@")[0] for spec in peer.packages)
    }
    driver = ROOT / "bench" / "peers" / peer.name / "driver.mjs"
    return Environment(home, (node, str(driver)), versions)


def _node() -> str:
    """Return a Node that is new enough: the machine's, or one from npm."""
    installed = shutil.which("node")
    if installed is None or shutil.which("npm") is None:
        raise Unavailable("there is no Node with npm on this machine: install Node 22")
    if _node_version(installed) >= OLDEST_NODE:
        return installed
    home = WORK_FOLDER / "node"
    home.mkdir(parents=True, exist_ok=True)
    _npm_install(home, (NODE,))
    node = str(home / "node_modules" / "node" / "bin" / "node")
    if _node_version(node) < OLDEST_NODE:
        raise Unavailable(f"npm did not install {NODE}: install Node 22 yourself")
    return node


def _node_version(node: str) -> tuple[int, ...]:
    return _version(node, "--version")


def _version(*command: str) -> tuple[int, ...]:
    """Return the version that a command prints, or nothing if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except OSError:
        return ()
    return tuple(int(part) for part in done.stdout.strip().lstrip("v").split(".") if part)


def _npm_install(home: Path, packages: tuple[str, ...]) -> None:
    if _needs_install(home, packages):
        (home / "package.json").write_text('{"private": true}\n')
        _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), *packages)
        _mark_installed(home, packages)


def _needs_install(home: Path, packages: tuple[str, ...]) -> bool:
    """Return whether these packages have to be installed."""
    installed = home / "installed.json"
    return not installed.exists() or json.loads(installed.read_text()) != list(packages)


def _mark_installed(home: Path, packages: tuple[str, ...]) -> None:
    (home / "installed.json").write_text(json.dumps(list(packages)))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unavailable(f"{command[0]}: {problem}") from problem
    if done.returncode != 0:
        output = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise Unavailable(f"`{' '.join(command[:4])} …` failed: {output}")
