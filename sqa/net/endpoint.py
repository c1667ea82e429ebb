"""A language model behind any OpenAI-compatible endpoint: one prompt in, one reply out.

    POST <base_url>/chat/completions   {"model", "messages", "temperature", "seed", "max_tokens"}
    200 {"choices": [{"message": {"content": "..."}}], "usage": {"prompt_tokens", "completion_tokens"}}
    POST <base_url>/completions        {"model", "prompt", "stop", "temperature", "seed", "max_tokens"}
    200 {"choices": [{"text": "..."}], "usage": {"prompt_tokens", "completion_tokens"}}

The `openai` SDK sends the requests and retries after 408, 409, 429, 5xx, broken connections, incomplete responses and
timeouts.  It obeys Retry-After up to two minutes.  The endpoint is not trusted: its responses are limited in size and
time (sqa/net/paced_http.py), redirects are not followed, and every failure has its own message.  The first request
reads the key from the environment; no config, message, fingerprint or file contains the key.
"""

import json
import os
import re
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from sqa.core import ConfigError, Count, NotNegative, Positive, SqaError, Whole, checked, need
from sqa.files import digest
from sqa.net.chat import THINKING, Budget, EndpointError, Prompt, Reply, url_problems, without_secret

if TYPE_CHECKING:
    import openai

    from sqa.net.paced_http import httpx

VERSION = 1  # version of the requests; increase it when the request for a config and a prompt changes
MAX_TOKENS_COUNTED = 1 << 40  # token counts above this are ignored
# A server address without user, query or fragment, which may hold secrets.
_ADDRESS = re.compile(r"https?://[^\s@?#/]+(/[^\s?#]*)?")
FILTERED = "content_filter"
_FINISHES = {  # other servers' names
    **dict.fromkeys(("max_tokens", "model_length", "token_limit"), "length"),
    **dict.fromkeys(("safety", "blocklist", "recitation", "prohibited_content", "sensitive", "refusal"), FILTERED),
}
_WITHHELD = (FILTERED, "content_policy_violation")  # error codes if the endpoint withholds the model's reply
CHAT, PLAIN = "chat/completions", "completions"  # paths appended to base_url


@dataclass(frozen=True, slots=True)
@checked
class EndpointConfig:
    """The address of an endpoint, its model, and limits on requests."""

    base_url: Annotated[str, 'URL before /chat/completions: "http://localhost:8000/v1"']
    model: Annotated[str, "name of the model on the server"]
    api_key_env: Annotated[str | None, "environment variable with the key; null = send no key"] = None
    label: Annotated[str, "any name for the served model; part of the key of stored replies"] = ""
    max_tokens: Annotated[Count, "maximum number of tokens per reply; ten guesses take about 300"] = 600
    token_limit: Annotated[
        Literal["max_tokens", "max_completion_tokens"], "name of the request parameter that holds max_tokens"
    ] = "max_tokens"
    temperature: Annotated[Annotated[float, Meta(ge=0, le=2)] | None, "0 = most likely reply; null = not sent"] = 0.0
    seed: Annotated[int | None, "seed of the reply; null = not sent"] = 0
    extra: Annotated[dict[str, Any], "further fields of each request; they replace those of this client"] = field(
        default_factory=dict, metadata={"written": "if any"}
    )
    requests_per_minute: Annotated[Positive, "maximum requests per minute, including retries, evenly spaced"] = 60.0
    concurrency: Annotated[Count, "maximum concurrent requests"] = 4
    timeout: Annotated[Positive, "seconds for one answer"] = 60.0
    retries: Annotated[Whole, "further attempts per request"] = 5
    backoff: Annotated[NotNegative, "seconds before the first retry after an error reply; doubles with each retry"] = (
        1.0
    )

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = []
        if not _ADDRESS.fullmatch(self.base_url) or url_problems(self.base_url):
            shown = without_secret(self.base_url).partition("?")[0][:100]
            wrong.append(f"base_url: expected something like https://api.example.org/v1, got {shown!r}")
        if not self.model:
            wrong.append("model: expected the endpoint's name of a model, got nothing")
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.api_key_env):
            wrong.append("api_key_env: expected the NAME of an environment variable, not a key")
        return wrong


class Endpoint:
    """A language model at an address.  Up to `workers` threads may call `complete` concurrently."""

    def __init__(self, config: EndpointConfig, budget: Budget, route: str = CHAT) -> None:
        """Check that the SDK is installed (raises ConfigError otherwise); send nothing.

        Args:
            config: The address, the model and the limits.
            budget: Counts every request, including retries.
            route: CHAT, or PLAIN for a text that the model continues.
        """
        need("openai", "'llm' with an endpoint")
        self.config, self.budget, self.route = config, budget, route
        self.url = f"{config.base_url.rstrip('/')}/{route}"
        self.workers, self.max_tokens = config.concurrency, config.max_tokens
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()

    @cached_property
    def identity(self) -> str:
        """Return a hash of everything besides the prompt that affects a reply: address, model, label and parameters."""
        return digest([VERSION, self.url, self.config.label, self._request("")])

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        c = self.config
        text, begun, most = (prompt, "", c.max_tokens) if isinstance(prompt, str) else prompt
        request: dict[str, Any] = {"model": c.model, c.token_limit: min(most, c.max_tokens)}
        if self.route == PLAIN:
            request |= {"prompt": f"{text} {begun}" if begun else text, "stop": ["\n"]}
        else:
            request["messages"] = [{"role": "user", "content": text}]
        if begun and self.route == CHAT:
            request["messages"].append({"role": "assistant", "content": begun})
            request |= {"continue_final_message": True, "add_generation_prompt": False}
        optional = {"temperature": c.temperature, "seed": c.seed}
        request |= {key: value for key, value in optional.items() if value is not None}
        return request | c.extra

    def complete(self, prompt: Prompt) -> Reply:
        """Return the model's reply.

        Raises EndpointError if all attempts fail, and ConfigError for a wrong key, path or model.
        """
        import openai

        from sqa.net.paced_http import Refused, httpx

        try:
            answer = self._sdk().post(f"/{self.route}", cast_to=httpx.Response, body=self._request(prompt))
        except Refused as error:
            where = f"{self.url}: " if isinstance(error.error, EndpointError) else ""
            raise type(error.error)(f"{where}{error}") from error
        except openai.APITimeoutError as error:
            raise self._failed(f"no complete response in {self.config.timeout:g} seconds") from error
        except openai.APIConnectionError as error:
            raise self._failed(f"the connection broke ({' '.join(str(error.__cause__).split())[-100:]})") from error
        except openai.APIStatusError as error:
            if error.status_code == 400 and error.code in _WITHHELD:
                return Reply("", None, None, FILTERED)
            raise self._refusal(error.response) from error
        return self._reply(answer.text)

    def _sdk(self) -> "openai.OpenAI":
        """Return the SDK's client, which is created at the first request."""
        with self._lock:
            if self._client is None:
                import openai

                from sqa.net.paced_http import PacedHttp

                c, key = self.config, self._key()
                http = PacedHttp(self.budget, c.requests_per_minute, c.timeout, c.backoff, key)
                self._client = openai.OpenAI(  # without an explicit key it would read one from the environment
                    api_key=key or "none",
                    base_url=c.base_url,
                    timeout=c.timeout,
                    max_retries=c.retries,
                    http_client=http,
                )
            return self._client

    def _key(self) -> str:
        """Return the API key, or "" if the config names no variable.

        Raises ConfigError if the key is missing or cannot be sent; the message does not contain the key.
        """
        name = self.config.api_key_env
        if name is None:
            return ""
        key = os.environ.get(name, "").strip()
        if not key:
            raise ConfigError(f"api_key_env: the environment variable {name} is not set; export {name}=... first")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise ConfigError(f"api_key_env: the environment variable {name} does not hold a key")
        return key

    def _reply(self, text: str) -> Reply:
        """Return the model's reply from the text of a response with status 200."""
        try:
            answer = json.loads(text)
            choice = answer["choices"][0]
            message = {"content": choice["text"]} if self.route == PLAIN else choice["message"]
            content, finish = message["content"], choice.get("finish_reason")
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            protocol = self.route.replace("/", "-")
            problem = f"not a {protocol} answer, it begins {text[:60]!r}; is base_url right?"
            raise EndpointError(f"{self.url}: {problem}") from error
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        if isinstance(content, list):  # Mistral and vLLM may send the text in parts
            content = "".join(
                part["text"] for part in content if isinstance(part, dict) and type(part.get("text")) is str
            )
        # The content is null if the model withholds its reply or calls a tool.
        content = (
            content.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(content, str) else ""
        )
        finish = _FINISHES.get(finish.lower(), finish[:40]) if isinstance(finish, str) else ""
        if not content.strip() and message.get("refusal"):
            finish = FILTERED
        elif not content.strip() and any(
            (isinstance(message["content"], list), message.get("reasoning"), message.get("reasoning_content"))
        ):
            finish = THINKING
        return Reply(content, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), finish)

    def _failed(self, problem: str) -> EndpointError:
        """Return the error after the last attempt."""
        return EndpointError(f"{self.url}: {problem}; gave up after {self.config.retries} retries")

    def _refusal(self, answer: "httpx.Response") -> SqaError:
        """Return the error for a response whose status is not 2xx."""
        status, message = answer.status_code, _server_message(answer)
        failure = f"HTTP {status}{f' ({message})' if message else ''}"
        variable = self.config.api_key_env
        if status in (401, 403):
            mend = f"is the key in ${variable} right?" if variable else "name the variable of its key in api_key_env"
            return ConfigError(f"endpoint: {self.url}: {failure}; {mend}")
        if status == 404:
            question = f"does it have the model {self.config.model!r}, and is base_url right (most end in /v1)?"
            return ConfigError(f"endpoint: {self.url}: {failure}; {question}")
        if 300 <= status < 400:
            return ConfigError(f"endpoint: {self.url}: HTTP {status}, it has moved; give the new address as base_url")
        if status in (408, 409, 429) or status >= 500:
            return self._failed(f"{failure}, Retry-After {answer.headers.get('retry-after', 'not given')}")
        return EndpointError(f"{self.url}: {failure}")


def _count(value: Any) -> int | None:
    """Return the value if it is a plausible number of tokens, else None."""
    return value if type(value) is int and 0 <= value < MAX_TOKENS_COUNTED else None


def _server_message(answer: "httpx.Response") -> str:
    """Return the endpoint's own error message on one line."""
    try:
        said = json.loads(answer.text)
        message = said.get("error", said.get("message"))
        message = message.get("message") if isinstance(message, dict) else message
    except (ValueError, AttributeError, RecursionError):
        message = answer.text
    return " ".join(message.split())[:200] if isinstance(message, str) else ""
