"""Forms: send what a form of a page would send."""

from __future__ import annotations

import httpx


async def send(
    client: httpx.AsyncClient, path: str, fields: list[tuple[str, str]] | None = None
) -> httpx.Response:
    """Send a form with the pledge that a page of the same dashboard carries."""
    shown = (await client.get("/jobs")).text
    pledge = shown.split('name="howdah-pledge" content="')[1].split('"')[0]
    data: dict[str, list[str]] = {"pledge": [pledge]}
    for name, value in fields or []:
        data.setdefault(name, []).append(value)
    return await client.post(path, data=data)


def told(answer: httpx.Response) -> str:
    """Return what an action says on the page that it leads to."""
    assert answer.status_code == 303, answer.text
    return httpx.QueryParams(f"said={answer.cookies['howdah_said']}")["said"]
