"""Documents: frozen records with named fields that are read from and written to files.

A document is declared like a pydantic model and costs nothing to import. Making one trusts its maker (mypy checks the
types); pydantic is loaded and a model of the same shape built only where a file is read (`model_validate`) or its JSON
Schema is asked for. The names of the methods are pydantic's.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError
from datetime import date
from enum import Enum
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

_REQUIRED: Any = object()


class Described:
    """A field with more than a default: what is written in place of its name, and what pydantic's `Field` takes."""

    __slots__ = ("about", "default", "written")

    def __init__(self, default: Any, written: str | None, about: dict[str, Any]) -> None:
        self.default, self.written, self.about = default, written, about


def field(*, default: Any = _REQUIRED, written: str | None = None, **about: Any) -> Any:
    """A field of a document. `written` = its key in files; `about` = arguments of pydantic's `Field`."""
    return Described(default, written, about)


class TextShape:
    """What a string must look like: a piece of `Annotated`."""

    def __init__(self, pattern: str, max_length: int) -> None:
        self.pattern, self.max_length = pattern, max_length


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Document:
    """Base of all documents. Fields without a default are required; lists and dicts as defaults are not shared."""

    _defaults: ClassVar[dict[str, Any]] = {}
    _described: ClassVar[dict[str, Described]] = {}
    _shape: ClassVar[Any] = None

    def __init_subclass__(cls) -> None:
        cls._defaults, cls._described, cls._shape = {}, {}, None
        for name in cls.__annotations__:
            default = cls.__dict__.get(name, _REQUIRED)
            if isinstance(default, Described):
                cls._described[name] = default
                default = default.default
            if name in cls.__dict__:
                delattr(cls, name)
            cls._defaults[name] = default

    def __init__(self, **values: Any) -> None:
        mine = self.__dict__
        for name, default in self._defaults.items():
            if name in values:
                mine[name] = values.pop(name)
            elif default is _REQUIRED:
                raise TypeError(f"{type(self).__name__} needs {name}")
            else:
                mine[name] = default.copy() if isinstance(default, (list, dict)) else default
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """The document with other values in some fields."""
        return type(self)(**{**self.__dict__, **update})

    def model_dump(self, mode: str = "python", *, exclude_defaults: bool = False) -> dict[str, Any]:
        """Plain dicts and lists; with mode `json` nothing that JSON lacks."""
        found: dict[str, Any] = _plain(self, mode == "json", exclude_defaults)
        return found

    def model_dump_json(self, indent: int | None = None) -> str:
        """JSON text; what is not finite is null."""
        separators = (",", ":") if indent is None else None
        return json.dumps(_plain(self, True, False), ensure_ascii=False, indent=indent, separators=separators)

    @classmethod
    def model_validate(cls, data: object) -> Self:
        """The document that `data` describes. Raises pydantic's ValidationError (a ValueError) with every fault."""
        found: Self = _document(_model(cls).model_validate(data))
        return found

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> Self:
        """The same from JSON text."""
        found: Self = _document(_model(cls).model_validate_json(data))
        return found

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """JSON Schema, keys as they are written in files."""
        schema: dict[str, Any] = _model(cls).model_json_schema(by_alias=True)
        return schema

    @classmethod
    def prepared(cls, data: object) -> object:
        """Input as it is written -> input as the fields have it; before anything is checked."""
        return data

    def validate_fields(self) -> None:
        """Raises ValueError when the fields contradict each other. Called on input that is read, and on fields only."""


def _plain(value: Any, for_json: bool, exclude_defaults: bool) -> Any:
    if isinstance(value, Document):
        defaults = value._defaults if exclude_defaults else {}
        return {
            name: _plain(one, for_json, exclude_defaults)
            for name, one in value.__dict__.items()
            if name not in defaults or defaults[name] is _REQUIRED or one != defaults[name]
        }
    if isinstance(value, (list, tuple)):
        return [_plain(one, for_json, exclude_defaults) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one, for_json, exclude_defaults) for name, one in value.items()}
    if for_json:
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, float) and not math.isfinite(value):
            return None
    return value


def _document(value: Any) -> Any:
    """What a model read, as documents."""
    kind = getattr(type(value), "document", None)
    if kind is not None:
        return kind(**{name: _document(getattr(value, name)) for name in kind._defaults})
    if isinstance(value, list):
        return [_document(one) for one in value]
    if isinstance(value, dict):
        return {name: _document(one) for name, one in value.items()}
    return value


def _model(cls: type[Document]) -> Any:
    """The pydantic model of the same shape, built once."""
    if cls._shape is None:
        cls._shape = _built(cls)
    return cls._shape


def _built(cls: type[Document]) -> Any:
    from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

    class Base(BaseModel):
        model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
        document: ClassVar[type[Document]] = cls

        @model_validator(mode="before")
        @classmethod
        def _prepared(cls, data: object) -> object:
            return cls.document.prepared(data.model_dump() if isinstance(data, Document) else data)

        @model_validator(mode="after")
        def _validated(self) -> Self:
            self.document.validate_fields(cast("Document", self))  # it has the same fields
            return self

    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if name not in cls._defaults:
            continue
        described = cls._described.get(name)
        default = cls._defaults[name]
        about = dict(described.about) if described is not None else {}
        if described is not None and described.written is not None:
            about["alias"] = described.written
        if isinstance(default, Document):
            about["default_factory"] = _model(type(default))
        else:
            about["default"] = ... if default is _REQUIRED else default
        fields[name] = (_modelled(hint), Field(**about))
    create: Callable[..., Any] = create_model
    return create(cls.__name__, __base__=Base, __doc__=cls.__doc__, __module__=cls.__module__, **fields)


def _modelled(hint: Any) -> Any:
    """A type in which models stand for documents."""
    from pydantic import StringConstraints

    if isinstance(hint, type) and issubclass(hint, Document):
        return _model(hint)
    if isinstance(hint, TextShape):
        return StringConstraints(pattern=hint.pattern, max_length=hint.max_length)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[tuple(_modelled(one) for one in (inner[0], *hint.__metadata__))]
    if origin in (Union, types.UnionType):
        return Union[tuple(_modelled(one) for one in inner)]  # noqa: UP007 (made from a list)
    if origin in (list, dict):
        return origin[tuple(_modelled(one) for one in inner)]
    return hint
