"""The vectors' commands about a talk as it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemnb.model.turns import Turn
from gemnb.services import projection
from gemnb.services.curation import curated as curate
from gemnb.store import codec

Request = dict[str, Any]
SIGNATURES_SINCE = 2
"""The first generation of models that knows signatures of thoughts."""


def curated(request: Request, folder: Path) -> Any:
    turns = _turns(request)
    if request.get("curated", True):
        turns = curate(turns, keep_thoughts=_is_old(request.get("model", "")))
    return [{"id": turn.id, "content": turn.content} for turn in turns]


def _is_old(model: str) -> bool:
    family, _, rest = model.partition("-")
    return family == "gemini" and rest[:1].isdigit() and int(rest[0]) < SIGNATURES_SINCE


def _turns(request: Request) -> list[Turn]:
    if "messages" in request:
        return projection.client_turns(codec.decode_message(message) for message in request["messages"])
    if "turns" in request:
        return [Turn(t["id"], t["content"]["role"], tuple(t["content"]["parts"])) for t in request["turns"]]
    return [Turn(f"t{n}", c["role"], tuple(c["parts"])) for n, c in enumerate(request["contents"])]
