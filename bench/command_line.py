"""Command line: options that compare.py and tune.py share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def chosen(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return the type of an option that takes known names, with commas between them."""

    def names_in(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(
                f"{unknown[0]!r} is unknown: choose from {', '.join(known)}"
            )
        return names

    return names_in
