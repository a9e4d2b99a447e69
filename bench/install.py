"""Install: an environment of its own for each peer, below .bench/.

Python peers get a virtual environment, Node peers a folder of npm packages. What is installed
already in the wanted versions is left alone. A peer that cannot be had raises `Unavailable`,
which the run reports and survives.
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
GROUND = ROOT / ".bench"
NODE = "node@22"
OLDEST_NODE = (22, 18)
PATIENCE = 900.0


class Unavailable(Exception):
    """A peer, or something it needs, cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer lives, and the words that start its driver."""

    home: Path
    command: tuple[str, ...]
    versions: dict[str, str]


def install(peer: Peer) -> Environment:
    """Make the peer's environment unless it is there."""
    if peer.is_howdah:
        return Environment(ROOT, _python_driver(sys.executable, peer), {})
    home = GROUND / peer.name
    home.mkdir(parents=True, exist_ok=True)
    return _with_npm(peer, home) if peer.kind == "node" else _with_pip(peer, home)


def _with_pip(peer: Peer, home: Path) -> Environment:
    python = home / "bin" / "python"
    if _wanted(home, peer.packages):
        _run(sys.executable, "-m", "venv", "--clear", str(home))
        _run(str(python), "-P", "-m", "pip", "install", "--quiet", *peer.packages)
        _note(home, peer.packages)
    return Environment(home, _python_driver(str(python), peer), {})


def _python_driver(python: str, peer: Peer) -> tuple[str, ...]:
    return (python, "-m", f"bench.peers.{peer.name}.driver")


def _with_npm(peer: Peer, home: Path) -> Environment:
    node = _node()
    _npm_install(home, peer.packages)
    versions = {
        package: json.loads((home / "node_modules" / package / "package.json").read_text())[
            "version"
        ]
        for package in (each.partition("@")[0] for each in peer.packages)
    }
    driver = ROOT / "bench" / "peers" / peer.name / "driver.mjs"
    return Environment(home, (node, str(driver)), versions)


def _node() -> str:
    """Name a Node that the peers accept: the machine's own, or one from npm."""
    own = shutil.which("node")
    if own is None or shutil.which("npm") is None:
        raise Unavailable("there is no Node with npm on this machine")
    if _node_version(own) >= OLDEST_NODE:
        return own
    home = GROUND / "node"
    home.mkdir(parents=True, exist_ok=True)
    _npm_install(home, (NODE,))
    made = str(home / "node_modules" / "node" / "bin" / "node")
    if _node_version(made) < OLDEST_NODE:
        raise Unavailable(f"npm could not bring {NODE}")
    return made


def _node_version(node: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30)
    except OSError:
        return ()
    return tuple(int(part) for part in said.stdout.strip().lstrip("v").split(".") if part)


def _npm_install(home: Path, packages: tuple[str, ...]) -> None:
    if _wanted(home, packages):
        (home / "package.json").write_text('{"private": true}\n')
        _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), *packages)
        _note(home, packages)


def _wanted(home: Path, packages: tuple[str, ...]) -> bool:
    """Tell whether these packages have still to be installed."""
    note = home / "installed.json"
    return not note.exists() or json.loads(note.read_text()) != list(packages)


def _note(home: Path, packages: tuple[str, ...]) -> None:
    (home / "installed.json").write_text(json.dumps(list(packages)))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unavailable(f"{command[0]}: {problem}") from problem
    if done.returncode != 0:
        said = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise Unavailable(f"`{' '.join(command[:4])} …` said: {said}")
