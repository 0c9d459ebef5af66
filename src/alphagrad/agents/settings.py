"""Fields of frozen configurations, set from text: ``environments=64``, ``network.layers=3``."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_origin, get_type_hints

from ..errors import SearchError
from .games import SCALINGS

Config = TypeVar("Config")
# The fields that may be zero. All other numbers must be positive.
MAY_BE_ZERO = {
    "layers", "gumbel_scale", "least_gumbel_scale", "c_visit", "c_scale", "value_weight", "entropy_weight", "l2_weight",
    "discount", "trace", "last_rate", "imitation", "following", "following_gumbel_scale", "least_trust",
}  # fmt: skip
CHOICES = {
    "scaling": tuple(SCALINGS),
    "value_units": ("range", "reference"),
    "dtype": ("float32", "bfloat16", "float16"),
}
WANTED = {int: "a whole number, such as 32", float: "a number, such as 0.01", tuple: "whole numbers, such as 256,128"}


def configured(config: Config, settings: Sequence[str]) -> Config:
    """The configuration with each ``name=value`` applied. Values are parsed as the type of the field."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise SearchError(f"--set {setting}: write name=value, such as environments=64")
        kinds = {name: kind for name, kind, _ in _fields(config)}
        try:
            if name not in kinds:
                raise ValueError(f"there is no field {name}")
            config = _replaced(config, name.split("."), _read(kinds[name], text))
        except ValueError as error:
            raise SearchError(f"--set {setting}: {error}; the fields are: {', '.join(kinds)}") from None
    check(config)
    return config


def _fields(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the dotted names of all fields, their types and their values."""
    kinds = get_type_hints(type(config))
    for field in fields(config):
        name, value = f"{prefix}{field.name}", getattr(config, field.name)
        if is_dataclass(value):
            yield from _fields(value, f"{name}.")
        else:
            yield name, kinds[field.name], value


def _replaced(config: Any, path: Sequence[str], value: Any) -> Any:
    first, *rest = path
    return replace(config, **{first: _replaced(getattr(config, first), rest, value) if rest else value})


def _read(kind: Any, text: str) -> Any:
    if kind is str:
        return text
    if get_origin(kind) is tuple:
        return tuple(_number(int, part, WANTED[tuple]) for part in text.split(",") if part)
    return _number(kind, text, WANTED[kind])


def _number(kind: type, text: str, wanted: str) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not {wanted}")
    return value


def check(config: Any) -> None:
    """Raise if the agent cannot be trained with this configuration."""
    values = {name: value for name, _, value in _fields(config)}
    for name, kind, value in _fields(config):
        last = name.rpartition(".")[2]
        if not isinstance(value, int | float if kind is float else get_origin(kind) or kind):
            raise SearchError(f"{name} is {value!r}, but it must be of type {getattr(kind, '__name__', kind)}")
        if value not in CHOICES.get(last, (value,)):
            raise SearchError(f"{name} is {value!r}, but must be one of: {', '.join(CHOICES[last])}")
        numbers = value if isinstance(value, tuple) else (value,) if isinstance(value, int | float) else ()
        if any(number < 0 or (number == 0 and last not in MAY_BE_ZERO) for number in numbers):
            least = "zero or more" if last in MAY_BE_ZERO else "more than zero"
            raise SearchError(f"{name} is {value}, but it must be {least}")
        if last == "heads" and (embedding := values[f"{name.removesuffix('heads')}embedding"]) % value:
            raise SearchError(f"{name} is {value}, which does not divide the embedding of {embedding}")
