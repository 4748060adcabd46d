"""Settings, validated by their type annotations wherever they come from.

An annotation states the values that a setting may have, e.g. ``Annotated[float, Field(gt=0)]``.
Components declare theirs with :func:`setting`; layers and registered functions call
:func:`check_settings`. Results that cannot be right are refused here, too.
"""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import get_annotations, getattr_static
from typing import Annotated, Any, ClassVar, TypeAlias, get_origin, get_type_hints

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from .errors import ConfigError, ModelError

Count = Annotated[int, Field(ge=1)]
Factor = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]
Probability = Annotated[float, Field(ge=0, le=1)]

Schema: TypeAlias = type | Callable

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


@cache
def _hints(schema: Schema) -> dict[str, Any]:
    hints = get_type_hints(schema, include_extras=True)
    hints.pop("return", None)
    if isinstance(schema, type) and issubclass(schema, HasSettings):
        declared = {name: getattr_static(schema, name, None) for name in hints}
        return {str(x.name): hints[name] for name, x in declared.items() if isinstance(x, _Setting)}
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


@cache
def _adapter(schema: Schema, name: str) -> TypeAdapter:
    return TypeAdapter(_hints(schema)[name], config=_STRICT)


def check_settings(owner: str, schema: Schema, values: Mapping[str, object]) -> dict[str, Any]:
    """The values, of the annotated types.

    owner: named by errors. schema: a component's class, or another class or function that annotates
    the settings.

    Raises ConfigError for the first value that its annotation does not allow, and for a setting
    that the schema does not have. No number may be NaN or infinite.
    """
    known, checked = _hints(schema), {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(
                f"{owner} has no setting {name!r}; it has {', '.join(sorted(known))}."
            )
        try:
            checked[name] = _adapter(schema, name).validate_python(value)
        except ValidationError as err:
            reasons = " or ".join(dict.fromkeys(x["msg"] for x in err.errors()))
            raise ConfigError(f"{owner}.{name} is {value!r}. {reasons}.") from None
    return checked


class ComponentSettings(dict[str, Any]):
    """``cfg`` of a component: every value is validated when it is set, from anywhere. Lists and
    dictionaries can only be set as a whole.

    schema: annotates each setting.
    """

    def __init__(self, owner: str, schema: Schema, settings: Mapping[str, object]) -> None:
        super().__init__()
        self.owner, self.schema = owner, schema
        self.update(settings)

    def __setitem__(self, name: str, value: object) -> None:
        self.update({name: value})

    def setdefault(self, name: str, default: object = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *args: object, **settings: object) -> None:
        """Set several values; all of them are validated before one is changed."""
        values: dict[str, Any] = dict(*args, **settings)
        checked = check_settings(self.owner, self.schema, values)
        super().update({name: _frozen(value) for name, value in checked.items()})

    def __ior__(self, other: object) -> "ComponentSettings":  # type: ignore[override, misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple:
        return ComponentSettings, (self.owner, self.schema, dict(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> "ComponentSettings":
        """Shares the values: none can change, and there may be millions of titles in one."""
        copied = ComponentSettings(self.owner, self.schema, {})
        dict.update(copied, self)
        return copied


def _refuse(self: object, *args: object, **kwargs: object) -> Any:
    raise ConfigError(
        "A setting cannot be changed in place, where it is not validated. Assign a new value, for "
        'example pipe.thresholds = {**pipe.thresholds, "PERSON": 0.9}.'
    )


class _FrozenList(list):
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce_ex__(self, protocol: object) -> tuple:
        return list, (tuple(self),)


class _FrozenDict(dict):
    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce_ex__(self, protocol: object) -> tuple:
        return dict, (tuple(self.items()),)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return _FrozenDict({name: _frozen(x) for name, x in value.items()})
    return _FrozenList(map(_frozen, value)) if isinstance(value, list) else value


def setting(name: str | None = None) -> Any:
    """Declare a setting in the body of a component's class. The annotation says which values it may
    have: ``threshold: Probability = setting()``.

    name: in ``cfg`` and in files; by default that of the attribute.
    """
    return _Setting(name)


class _Setting:
    """Reads and writes ``cfg``, where the values are."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, pipe: Any, owner: type | None = None) -> Any:
        return self if pipe is None else pipe.cfg[self.name]

    def __set__(self, pipe: Any, value: object) -> None:
        pipe.cfg[self.name] = value


class HasSettings:
    """A component whose settings are attributes, each validated whenever it is set.

    cfg: all of them. ``pipe.threshold = 0.3`` and ``pipe.cfg["threshold"] = 0.3`` are the same.

    Setting an unknown attribute raises ConfigError, because it may be a misspelt setting. So a
    subclass annotates its other attributes in its body, except private ones.
    """

    name: str
    cfg: dict[str, Any]
    error_handler: Callable

    def __setattr__(self, name: str, value: Any) -> None:
        component: type = type(self)
        if name == "cfg":
            value = ComponentSettings(self.name, component, value)
        elif not (name.startswith("_") or hasattr(component, name) or name in _known(component)):
            check_settings(self.name, component, {name: value})
        super().__setattr__(name, value)
        if name == "name" and getattr(self, "cfg", None):
            self.cfg = self.cfg  # errors name the component


@cache
def _known(component: type) -> frozenset[str]:
    """The attributes that a class and its bases annotate."""
    return frozenset(name for base in component.__mro__ for name in get_annotations(base))


def check_dropout(rate: float) -> None:
    """Raise ConfigError for a dropout rate that is not from 0 to 1, before anything has it."""
    if not 0 <= rate <= 1:
        raise ConfigError(f"drop is {rate!r}, not a number from 0 to 1.")


def check_numbers(scores: np.ndarray) -> None:
    """Raise ModelError if a score is not a number: any answer would be chance."""
    if np.isnan(scores).any():
        raise ModelError(
            "scores are not numbers (NaN). Its weights, or those of its encoder, are damaged."
        )
