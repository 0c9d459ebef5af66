"""Fields of frozen configurations, set from text: ``environments=64``, ``network.layers=3``."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_origin, get_type_hints

from ..errors import SearchError
from .games import SCALINGS

Config = TypeVar("Config")
# Those that may be zero; every other number is more than that.
MAY_BE_ZERO = {
    "layers", "gumbel_scale", "c_visit", "c_scale", "value_weight", "entropy_weight", "l2_weight", "discount", "trace",
}  # fmt: skip


def configured(config: Config, settings: Sequence[str]) -> Config:
    """The configuration with each ``name=value``, the value read as the type of the field."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise SearchError(f"--set {setting}: write name=value, such as environments=64")
        config = _replaced(config, config, name.split("."), text, setting)
    check(config)
    return config


def names(config: Any, prefix: str = "") -> Iterator[str]:
    """The dotted names of all fields."""
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            yield from names(value, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def _replaced(whole: Any, part: Any, path: list[str], text: str, setting: str) -> Any:
    """``part`` with the field at ``path`` set."""
    first, *rest = path
    value = getattr(part, first, None) if first in {field.name for field in fields(part)} else None
    if value is None or is_dataclass(value) != bool(rest):
        raise SearchError(
            f"--set {setting}: there is no field {setting.partition('=')[0]}; there are: {_listed(whole)}"
        )
    if rest:
        return replace(part, **{first: _replaced(whole, value, rest, text, setting)})
    try:
        read = _read(get_type_hints(type(part))[first], text)
    except ValueError as error:
        raise SearchError(f"--set {setting}: {error}; there are: {_listed(whole)}") from None
    return replace(part, **{first: read})


def _listed(config: Any) -> str:
    return ", ".join(names(config))


def _read(kind: Any, text: str) -> Any:
    if kind is int:
        return _number(int, text, "a whole number, such as 32")
    if kind is float:
        return _number(float, text, "a number, such as 0.01")
    if kind is str:
        return text
    return tuple(_number(int, part, "whole numbers, such as 256,128") for part in text.split(",") if part)


def _number(kind: type, text: str, wanted: str) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not {wanted}")
    return value


def check(config: Any) -> None:
    """Refuse what cannot be trained with."""
    for name in names(config):
        value, (owner, _, last) = _at(config, name), name.rpartition(".")
        kind = get_type_hints(type(_at(config, owner)))[last]
        if not isinstance(value, int | float if kind is float else get_origin(kind) or kind):
            raise SearchError(f"{name} is {value!r}, but it must be of type {getattr(kind, '__name__', kind)}")
        if last == "scaling" and value not in SCALINGS:
            raise SearchError(f"{name} is {value!r}, but it is one of: {', '.join(SCALINGS)}")
        if last == "dtype":
            _check_dtype(name, value)
        numbers = value if isinstance(value, tuple) else (value,) if isinstance(value, int | float) else ()
        if any(number < 0 or (number == 0 and last not in MAY_BE_ZERO) for number in numbers):
            least = "zero or more" if last in MAY_BE_ZERO else "more than zero"
            raise SearchError(f"{name} is {value}, but it must be {least}")
        if last == "heads":
            _check_heads(name, value, _at(config, name.replace("heads", "embedding")))


def _check_dtype(name: str, value: Any) -> None:
    if value not in ("float32", "bfloat16", "float16"):
        raise SearchError(f"{name} is {value!r}, but it is one of: float32, bfloat16, float16")


def _check_heads(name: str, heads: int, embedding: int) -> None:
    if heads > 0 and embedding % heads:
        raise SearchError(f"{name} is {heads}, which does not divide the embedding of {embedding}")


def _at(config: Any, name: str) -> Any:
    for part in name.split(".") if name else ():
        config = getattr(config, part)
    return config
