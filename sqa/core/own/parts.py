"""A part of your own as the project calls it: within its code, its results checked, its code in its key.

A registered part is called directly; a part of your own through one of these objects, which has those methods and
attributes of its kind that the part has.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import getattr_static, signature
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.own import answers, located, short, split
from sqa.core.own.answers import Call, Check
from sqa.core.own.code import Code, shared

TAG = "\0"  # key of what JSON lacks; no text of a config holds it


def _ignored(call: Call, value: Any, *_: object) -> None:
    """The check of a method whose return value is not used."""


METRIC: Mapping[str, Check] = {  # attributes of every metric
    "name": answers.title,
    "unit": answers.title,
    "digits": answers.digits,
    "label": answers.title,
    "kind": answers.kind,
    "higher_is_better": answers.flag,
}
METHODS: Mapping[str, Mapping[str, Check]] = {
    "translator": {"translate_batch": answers.emissions, "check": _ignored},
    "guesser": {"guess": answers.guesses, "guess_prefixes": answers.guesses, "check_texts": _ignored},
    "buzzer": {"decide": answers.buzzes, "decide_with_answer": answers.buzzes},
    "policy": {"show": answers.words_shown},
    "quality metric": {
        "signature": answers.text,
        "measure": answers.measured,
        "stats": answers.statistics,
        "score": answers.finite,
        "score_many": answers.scores,
    },
}
ATTRIBUTES: Mapping[str, Mapping[str, Check]] = {
    "translator": {"languages": lambda _, pair: pair},  # checked where they are compared with the questions'
    "guesser": {"pages": answers.pages},
    "buzzer": {"oracle": answers.flag},
    "policy": {"start": answers.start},
    "quality metric": METRIC,
}


class OwnComponent:
    """A part of your own; `component` makes them."""

    registered: str  # the kind of its registry

    def __init__(self, code: Code, part: Any, config: object) -> None:
        self.own_code, self.own_part, self._config = code, part, config
        self.says = has(part, "fingerprint")  # beside code and config

    def call(self, name: str, check: Check, *arguments: Any, **options: Any) -> Any:
        """What a method of the part returns, checked."""
        return asked(self.own_code, self.own_part, name, check, *arguments, **options)

    def own_fingerprint(self) -> str | None:
        """What its fingerprint() returns, "" without one."""
        texts = self.registered == "quality metric"  # None: its scores are not kept
        check = answers.text_or_none if texts else answers.text
        text: str | None = self.call("fingerprint", check) if self.says else ""
        return text

    def fingerprint(self) -> str | None:
        """sha256 (hex) of its name and code, its config and its own fingerprint."""
        if (own := self.own_fingerprint()) is None:
            return None
        code = [short(self.own_code.target), self.own_code.digest]
        rows = json.dumps([*code, tagged(self._config), own], sort_keys=True)
        return hashlib.sha256(rows.encode()).hexdigest()

    def __repr__(self) -> str:
        """Of a policy, which the fingerprints of translators hold."""
        return f"{short(self.own_code.target)} {self.fingerprint()}"


def tagged(value: Any) -> Any:
    """A config's value as JSON.  Two values that differ in content, key types or class differ; a tuple is a list."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (list, tuple)):
        return [tagged(item) for item in value]
    content: Any = str(value)
    if isinstance(value, Mapping):
        if all(type(key) is str and key != TAG for key in value):
            return {key: tagged(item) for key, item in value.items()}
        content = sorted(json.dumps([tagged(key), tagged(item)], sort_keys=True) for key, item in value.items())
    elif is_dataclass(value):
        content = {each.name: tagged(getattr(value, each.name)) for each in fields(value)}
    elif isinstance(value, (set, frozenset)):
        content = sorted(map(repr, value))
    return {TAG: [type(value).__qualname__, content]}


def asked(code: Code, part: Any, name: str, check: Check, *arguments: Any, **options: Any) -> Any:
    """What a method of a part of your own returns, checked.  DataErrors, also of a failed call, name the method."""
    call = Call(f"{short(code.target)}: {name}()")
    with code.running():
        try:
            value = getattr(part, name)(*arguments, **options)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:  # from within it
                raise
            raise DataError(f"{call.where} cannot be called: {error}") from error
        except (DataError, OSError) as error:
            raise DataError(f"{call.where}: {error}") from error
        return check(call, value, *arguments, **options)


def component(kind: str, code: Code, part: Any, config: object) -> Any:
    """A part of your own of a kind of registry."""
    if kind not in METHODS or part is None:
        return part
    if kind == "quality metric" and (lacking := [name for name in (*METRIC, *METHODS[kind]) if not has(part, name)]):
        raise ConfigError(f"{short(code.target)} made a {type(part).__name__}, which has no {', '.join(lacking)}")
    members: dict[str, Any] = {name: _method(name, check) for name, check in METHODS[kind].items() if has(part, name)}
    members |= {name: _attribute(name, check) for name, check in ATTRIBUTES[kind].items() if has(part, name)}
    if kind == "translator" and has(part, "translate"):
        members["translate"] = _translate
    if kind == "quality metric":
        members["signature"] = _signature
    name = f"Own{kind.title().replace(' ', '')}"
    made = type(name, (OwnComponent,), {"registered": kind, **members})(code, part, config)
    if not made.says:
        print(
            f"sqa: {kind} {short(code.target)!r} has no fingerprint(); its results are stored "
            "under its source and config, so give it one if it reads files or models",
            file=sys.stderr,
        )
    return made


def keys_expected(build: object) -> str:
    """How a part says its keys; of a class whose __init__ takes them, the same class as a dataclass."""
    expected = "must be a dataclass, or take one parameter annotated with one, or none"
    if not isinstance(build, type) or build.__module__ == "builtins":
        return expected
    keys: list[str] = []
    for name, parameter in signature(build).parameters.items():
        given, hint = parameter.default is not parameter.empty, parameter.annotation
        kind = type(parameter.default).__name__ if hint is parameter.empty else getattr(hint, "__name__", hint)
        keys.append(f"{name}: {kind if given or hint is not parameter.empty else 'str'}")
        keys[-1] += f" = {parameter.default!r}" * given
    return f"{expected}; in place of its __init__ write `@dataclass class {build.__name__}: {'; '.join(keys)}`"


def has(part: object, name: str) -> bool:
    """Whether a part has a method or an attribute, without computing it."""
    try:
        getattr_static(part, name)
    except AttributeError:
        return hasattr(part, name)
    return True


def _method(name: str, check: Check) -> Callable[..., Any]:
    def method(self: OwnComponent, *arguments: Any, **options: Any) -> Any:
        return self.call(name, check, *arguments, **options)

    return method


def _attribute(name: str, check: Check) -> property:
    def attribute(self: OwnComponent) -> Any:
        with self.own_code.running():
            return check(Call(f"{short(self.own_code.target)}: {name}", "must be"), getattr(self.own_part, name))

    return property(attribute)


def _translate(self: OwnComponent, source: Iterator[str]) -> Iterator[Any]:
    """What a translator writes, word by word."""
    written, call = 0, Call(f"{short(self.own_code.target)}: translate()")
    words = self.call("translate", lambda call, value, _: answers.words(call, value), source)
    while True:
        with self.own_code.running():
            try:
                word = answers.word(call, next(words), written)
            except StopIteration:
                return
        written += bool(word if isinstance(word, str) else word.token) - (0 if isinstance(word, str) else word.erase)
        yield word


def _signature(self: OwnComponent) -> str:
    """Its own, with its code: numbers of edited files are not compared with those of earlier versions."""
    return f"{self.call('signature', answers.text)}|source:{self.own_code.whole[:16]}"


def named(target: str) -> tuple[Code, Any]:
    """The object of a target, and its code; ConfigError says why it cannot be imported."""
    try:
        code = shared(located(target))
        with code.running():
            return code, getattr(code.root, split(code.target)[1])
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{target!r} cannot be imported: {error}") from error


def built(target: str) -> tuple[Code, Any]:
    """What the function of a target returns without parameters, and its code; ConfigError says why it fails."""
    code, build = named(target)
    if not callable(build):
        raise ConfigError(f"{target!r} is no build function but a {type(build).__name__}")
    with code.running():
        try:
            part = build()
        except TypeError as error:
            raise ConfigError(f"{target!r}: build() without parameters failed: {error}") from error
    if not code.early:
        code.built()
    return code, part
