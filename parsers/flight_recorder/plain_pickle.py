"""Pickles of plain data, and nothing else.

A pickle can run code. It is never loaded before every opcode was checked against the few that plain data needs; nothing
that names an object, reaches a persistent id, or asks for a memo slot beyond the opcodes is let through.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Iterable
from typing import Any

MAX_BYTES = 64 * 1024 * 1024
MAX_OPCODES = 8_000_000
MAX_NESTING = 64

PLAIN_OPCODES = frozenset(
    re.findall(
        r"\w+",
        "PROTO FRAME STOP MARK EMPTY_DICT EMPTY_LIST EMPTY_TUPLE DICT LIST TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS "
        "SETITEM SETITEMS BININT BININT1 BININT2 INT LONG LONG1 LONG4 BINFLOAT FLOAT NONE NEWTRUE NEWFALSE BINUNICODE "
        "SHORT_BINUNICODE BINUNICODE8 UNICODE BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINPUT LONG_BINPUT "
        "BINGET LONG_BINGET MEMOIZE",
    )
)
MEMO_OPCODES = frozenset(["BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"])
MAX_NODES = 20_000_000
"""Values of a document when every shared one is counted where it is used."""


class PickleRefusedError(Exception):
    """The pickle holds more than plain data, or it is broken. The message names the opcode and the byte."""


class _PlainUnpickler(pickle.Unpickler):
    """Second fence behind the opcode check: no global and no persistent id is ever resolved."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise PickleRefusedError(f"it names the object {module_name}.{global_name}"[:200])

    def persistent_load(self, pid: Any) -> Any:
        raise PickleRefusedError("it asks for a persistent id")


def check_pickle(data: bytes) -> None:
    """Raises `PickleRefusedError` unless every opcode builds plain data within the limits."""
    count = 0
    try:
        for opcode, argument, at in pickletools.genops(data):
            count += 1
            if count > MAX_OPCODES:
                raise PickleRefusedError(f"more than {MAX_OPCODES} opcodes")
            if opcode.name not in PLAIN_OPCODES:
                raise PickleRefusedError(f"opcode {opcode.name} at byte {at or 0}")
            if opcode.name in MEMO_OPCODES and (not isinstance(argument, int) or argument > count):
                raise PickleRefusedError(f"opcode {opcode.name} with memo slot {argument} at byte {at or 0}")
    except PickleRefusedError:
        raise
    except Exception as error:  # pickletools raises whatever its readers meet: ValueError, struct.error, OverflowError
        raise PickleRefusedError(f"it cannot be read at opcode {count + 1}: {str(error)[:120]}") from None


def check_shape(document: Any) -> None:
    """Raises `PickleRefusedError` for data that refers to itself, nests too deeply or unfolds to too much."""
    measured: dict[int, tuple[int, int]] = {}
    on_path: set[int] = set()
    stack: list[tuple[Any, bool]] = [(document, False)]
    while stack:
        value, leaving = stack.pop()
        name = id(value)
        children: Iterable[Any] = value.values() if isinstance(value, dict) else value
        if leaving:
            on_path.discard(name)
            below = [measured.get(id(child), (1, 1)) for child in children]
            depth = 1 + max((deep for deep, _ in below), default=0)
            nodes = 1 + sum(many for _, many in below)
            if depth > MAX_NESTING or nodes > MAX_NODES:
                raise PickleRefusedError(f"it nests deeper than {MAX_NESTING} levels or unfolds to too many values")
            measured[name] = (depth, nodes)
            continue
        if name in measured:
            continue
        if name in on_path:
            raise PickleRefusedError("it refers to itself")
        if not isinstance(value, dict | list | tuple):
            continue
        on_path.add(name)
        stack.append((value, True))
        if len(on_path) > MAX_NESTING * 4:
            raise PickleRefusedError(f"it nests deeper than {MAX_NESTING} levels")
        stack.extend((child, False) for child in children if isinstance(child, dict | list | tuple))


def load_plain(data: bytes) -> Any:
    """The plain data of a pickle; `PickleRefusedError` for anything else."""
    if len(data) > MAX_BYTES:
        raise PickleRefusedError(f"it is larger than {MAX_BYTES} bytes")
    check_pickle(data)
    try:
        document = _PlainUnpickler(io.BytesIO(data)).load()
        check_shape(document)
        return document
    except PickleRefusedError:
        raise
    except Exception as error:  # a broken pickle may raise anything from IndexError to UnicodeDecodeError
        raise PickleRefusedError(f"it does not load: {type(error).__name__}: {str(error)[:120]}") from None
