"""Main: `python -m howdah` runs the command `howdah`."""

from __future__ import annotations

from howdah.cli import main

if __name__ == "__main__":
    main()
