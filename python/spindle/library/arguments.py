"""The check of the arguments of every public function: each against its annotation."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from spindle.base.suggestions import meant
from spindle.base.words import listed
from spindle.run.errors import Usage

Name = str | os.PathLike[str]
"""The name of a file, a device or an entry of the catalogue."""

P = ParamSpec("P")
R = TypeVar("R")

_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "text", NoneType: "None"}
_NUMBERS = {int: Integral, float: Real}  # those of numpy too


def public(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises `Usage` for an argument of another type than its annotation."""

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        signature, kinds = _declared(function)
        try:
            given = signature.bind(*arguments, **keywords).arguments
        except TypeError as error:
            raise Usage(f"`spindle.{function.__name__}`: {error}") from None
        for name, value in given.items():
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                for each in value:
                    _check(each, kinds[name], f"`{name}`")
            elif parameter.kind is not parameter.VAR_KEYWORD:
                _check(value, kinds[name], f"`{name}=`")
        return function(*arguments, **keywords)

    return call


@cache
def _declared(function: Callable[..., object]) -> tuple[inspect.Signature, dict[str, Any]]:
    bare = inspect.unwrap(function)
    names: dict[str, Any] = {}
    if any("Store" in kind for kind in bare.__annotations__.values()):
        from spindle.library.stores import Store  # some modules import it for their annotations only

        names["Store"] = Store
    return inspect.signature(bare), get_type_hints(bare, vars(sys.modules[bare.__module__]), names)


def _check(value: object, kind: Any, name: str) -> None:
    kinds = _alternatives(kind)
    if any(_fits(value, each) for each in kinds):
        return
    shown = " ".join(str(value).split())[:60]
    words = [word for each in kinds if get_origin(each) is Literal for word in get_args(each)]
    if words and isinstance(value, str):
        raise Usage(f"{name} {shown}: {meant(value, words, f'it is one of {listed(words)}')}")
    raise Usage(f"{name} {shown}: must be {listed(list(dict.fromkeys(map(_in_words, kinds))), 'or')}")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _fits(value: object, kind: Any) -> bool:
    if kind in (Any, object):
        return True
    of, parts = get_origin(kind), get_args(kind)
    if of is Literal:
        return value in parts
    if of is Sequence:
        if isinstance(value, str):
            return parts[0] is str
        return isinstance(value, Sequence) and all(_fits_any(each, parts[0]) for each in value)
    if of is Mapping:
        return isinstance(value, Mapping) and all(
            _fits_any(key, parts[0]) and _fits_any(each, parts[1]) for key, each in value.items()
        )
    return isinstance(value, of or _NUMBERS.get(kind, kind))


def _fits_any(value: object, kind: Any) -> bool:
    return any(_fits(value, each) for each in _alternatives(kind))


def _in_words(kind: Any) -> str:
    of, parts = get_origin(kind), get_args(kind)
    if of is Literal:
        return f"one of {listed(parts)}"
    if of is Sequence:
        return f"a list of {' or '.join(_in_words(each).removeprefix('a ') + 's' for each in _alternatives(parts[0]))}"
    if of is Mapping:
        return "a dict"
    if of is Callable:
        return "a function"
    return _WORDS.get(kind) or {"PathLike": "a path"}.get((of or kind).__name__, f"a {(of or kind).__name__}")
