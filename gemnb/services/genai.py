"""Gemini over google-genai: the only place that knows the library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gemnb.errors import LlmError, NoKeyError
from gemnb.model.records import JsonObject, Part, Tokens
from gemnb.model.turns import Turn, wire_contents
from gemnb.services.llm import Chunk, Llm, ToolDeclaration

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import GenerateContentResponse

DEFAULT_MODEL = "gemini-2.5-pro"
KEY_NAMES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""The first one that is set counts, as in the library."""
NO_KEY = (
    "There is no API key: set GEMINI_API_KEY in the environment before Jupyter starts,"
    " or `ws.llm` to a model of your own (`gemnb.testing.ScriptedLlm` answers without a key)."
)
SHORTEST_KEY = 4
"""Characters; what is shorter is a stand-in, and stands in too many words to be taken out of them."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_SECRET = re.compile(r"(?<=key=)[^&\s'\"]+|AIza[0-9A-Za-z_-]{20,}")


def make_llm(model: object, *, environ: Mapping[str, str]) -> Llm:
    """The model that `environ` gives access to; a scripted one where `GEMNB_LLM=scripted` asks for it.

    Raises:
        NoKeyError: there is neither a key nor Vertex AI.
    """
    if environ.get("GEMNB_LLM") == "scripted":
        from importlib import import_module

        scripted: Llm = import_module("gemnb.testing").demo_llm()
        return scripted
    vertex = environ.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in ("1", "true")
    key = next((environ[name] for name in KEY_NAMES if environ.get(name)), None)
    if not vertex and not key:
        raise NoKeyError(NO_KEY)
    return GenaiLlm(str(model or DEFAULT_MODEL), api_key=key, vertexai=vertex)


class GenaiLlm:
    """A Gemini model.

    Args:
        model: its name.
        api_key: the key; with Vertex AI the library finds the credentials.
        base_url: another address of the service; the library also reads GOOGLE_GEMINI_BASE_URL.
        api_version: of the service.
        vertexai, project, location: Vertex AI instead of the Gemini API.
        timeout_s: for each read of the stream.
        retries: how often a request that the service could not take is sent again.
        options: further arguments of the library's client.

    >>> ws.llm = gemnb.GenaiLlm("gemini-2.5-flash", api_key="your key", timeout_s=60)
    >>> ws.llm.name
    'gemini-2.5-flash'
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        api_version: str | None = "v1beta",
        vertexai: bool = False,
        project: str | None = None,
        location: str | None = None,
        timeout_s: float | None = None,
        retries: int = 3,
        **options: Any,
    ) -> None:
        self.name = model
        self._key = api_key
        http: JsonObject = {"base_url": base_url, "api_version": None if vertexai else api_version}
        http["timeout"] = int(timeout_s * 1000) if timeout_s is not None else None
        http["retry_options"] = {"attempts": retries, "initial_delay": 0.5} if retries > 1 else None
        self._options = {
            "vertexai": vertexai or None,
            "project": project,
            "location": location,
            "http_options": {name: value for name, value in http.items() if value is not None},
            **options,
        }
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"<GenaiLlm {self.name}>"

    def stream(
        self, turns: Sequence[Turn], *, system: str | None = None, tools: Sequence[ToolDeclaration] = ()
    ) -> Iterator[Chunk]:
        """Yield the answer to `turns` piece by piece.

        Raises:
            LlmError: the service failed, or could not be reached; what it said, never the key.
        """
        import httpx2
        from google.genai import errors, types
        from pydantic import ValidationError

        config = types.GenerateContentConfig(
            system_instruction=system,
            tools=[types.Tool(function_declarations=[_declaration(tool) for tool in tools])] if tools else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            thinking_config=types.ThinkingConfig(include_thoughts=True),
        )
        try:
            contents = [_content(content) for content in wire_contents(turns)]
        except ValidationError as error:
            where = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
            raise LlmError(
                f"The talk holds a part that the service does not take ({where})."
                " `%rewind` to before it, then ask again."
            ) from None
        try:
            answer = self._connected().models.generate_content_stream(model=self.name, contents=contents, config=config)
            for response in answer:
                yield _chunk(response)
        except errors.APIError as error:
            raise LlmError(self._told(error)) from None
        except errors.UnknownApiResponseError as error:
            words = str(error)[:200]
            raise LlmError(
                self._clean(f"The model's service answered what is no answer ({words}). Ask again.")
            ) from None
        except (httpx2.HTTPError, OSError) as error:
            words = f"{type(error).__name__}: {error}".rstrip(": ")
            raise LlmError(self._clean(f"The model's service could not be reached ({words}). Try again.")) from None

    def _connected(self) -> Client:
        """The client; kept, since the library closes one that nobody holds."""
        if self._client is None:
            from google import genai

            try:
                self._client = genai.Client(api_key=self._key, **self._options)
            except ValueError as error:
                raise NoKeyError(self._clean(f"{NO_KEY} ({error})")) from None
        return self._client

    def _told(self, error: Any) -> str:
        """What the service said, in a sentence with what to do."""
        status = " ".join(str(word) for word in (error.code, error.status) if word)
        advice = {
            400: "The request was refused: look at the model's name and the key.",
            401: "Look at the key.",
            403: "The key may not use this model.",
            404: f"There may be no model {self.name!r}: `%config Gemnb.model = '…'` sets another.",
            429: "The quota is used up for now: wait and ask again.",
        }.get(error.code, "Ask again.")
        wait = re.search(r"'retryDelay': '([^']+)'", str(error.details))
        later = f" The service asks to wait {wait[1]}." if wait else ""
        return self._clean(
            f"The model's service said {status}: {str(error.message or '').rstrip('.')}. {advice}{later}"
        )

    def _clean(self, text: str) -> str:
        """`text` without the key, wherever it may stand."""
        if self._key and len(self._key) >= SHORTEST_KEY:
            text = text.replace(self._key, "…")
        return _SECRET.sub("…", text)


def _declaration(tool: ToolDeclaration) -> Any:
    from google.genai import types

    return types.FunctionDeclaration(
        name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
    )


def _content(content: JsonObject) -> Any:
    """The library's Content; keys that it does not know stay behind here, and nowhere before."""
    from google.genai import types

    known = set(types.Part.model_fields)
    aliases = {field.alias or name for name, field in types.Part.model_fields.items()}
    parts = [{k: v for k, v in part.items() if k in known or k in aliases} for part in content["parts"]]
    told = {"role": content["role"], "parts": [_signed(_nested(part)) for part in parts if part]}
    # from JSON, not from Python: only so are signatures and pictures read as the base64 that they are
    return types.Content.model_validate_json(_whole(json.dumps(told, ensure_ascii=False)))


_CALL_KEYS = {"functionCall": {"id", "name", "args"}, "functionResponse": {"id", "name", "response", "parts"}}


def _nested(part: Part) -> Part:
    """A part whose call or response has only what the API knows, and a response that is an object."""
    for key, known in _CALL_KEYS.items():
        if isinstance(named := part.get(key), dict):
            kept = {k: v for k, v in named.items() if k in known}
            if key == "functionResponse" and not isinstance(kept.get("response"), dict):
                kept["response"] = {"output": kept.get("response")}
            return part | {key: kept}
    return part


def _whole(text: str) -> str:
    """`text` with each half character as U+FFFD: the client records halves, and no request can carry them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _signed(part: Part) -> Part:
    """`part` without a signature that is no base64: the service would refuse the whole talk for it."""
    signature = part.get("thoughtSignature")
    if signature is None or (isinstance(signature, str) and _BASE64.fullmatch(signature) and len(signature) % 4 != 1):
        return part
    return {key: value for key, value in part.items() if key != "thoughtSignature"}


def _chunk(response: GenerateContentResponse) -> Chunk:
    candidate = response.candidates[0] if response.candidates else None
    content = candidate.content if candidate else None
    feedback = response.prompt_feedback
    return Chunk(
        parts=tuple(part.model_dump(mode="json", by_alias=True, exclude_none=True) for part in (content.parts or ()))
        if content
        else (),
        finish=_word(candidate.finish_reason) if candidate else None,
        tokens=_tokens(response.usage_metadata),
        model=response.model_version,
        blocked=_word(feedback.block_reason) if feedback else None,
    )


def _word(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))


def _tokens(usage: Any) -> Tokens | None:
    """The API's counts under the names of the record."""
    if usage is None:
        return None
    return Tokens(
        input=usage.prompt_token_count or 0,
        output=usage.candidates_token_count or 0,
        cached=usage.cached_content_token_count or 0,
        thoughts=usage.thoughts_token_count or 0,
        tool=usage.tool_use_prompt_token_count or 0,
        total=usage.total_token_count or 0,
    )
