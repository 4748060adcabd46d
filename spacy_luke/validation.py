"""Settings, validated by their type annotations wherever they come from.

An annotation states the values that a setting may have, e.g. ``Annotated[float, Field(gt=0)]``.
Components keep theirs in a :class:`ComponentSettings`; layers and registered functions call
:func:`check_settings`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, get_origin, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from .errors import ConfigError

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
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


@cache
def _adapter(schema: Schema, name: str) -> TypeAdapter:
    return TypeAdapter(_hints(schema)[name], config=_STRICT)


def check_settings(owner: str, schema: Schema, values: Mapping[str, object]) -> dict[str, Any]:
    """The values, of the annotated types.

    owner: named by errors. schema: a class or function that annotates the settings.

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
    """``cfg`` of a component: every value is validated when it is set, from anywhere.

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
        super().update(check_settings(self.owner, self.schema, values))

    def __ior__(self, other: object) -> "ComponentSettings":  # type: ignore[override, misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple:
        return ComponentSettings, (self.owner, self.schema, dict(self))
