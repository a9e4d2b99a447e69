"""`python -m tools.pictures`: write docs/pictures/."""

from __future__ import annotations

from tools.pictures.take import main

main()
