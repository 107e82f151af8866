"""The alphabet of Itanium mangled names and a cursor over one, with the limits that hold for all of it."""

from __future__ import annotations

from dataclasses import dataclass

MAX_INPUT = 16384
MAX_OUTPUT = 16384
MAX_DEPTH = 160
MAX_STEPS = 60000

BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...",
}  # fmt: skip
D_BUILTIN = {
    "n": "decltype(nullptr)", "i": "char32_t", "s": "char16_t", "u": "char8_t", "h": "_Float16", "a": "auto",
    "c": "decltype(auto)",
}  # fmt: skip
STD = {
    "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream", "o": "std::ostream",
    "d": "std::iostream",
}  # fmt: skip
OPERATORS = {
    "nw": "new", "na": "new[]", "dl": "delete", "da": "delete[]", "ps": "+", "ng": "-", "ad": "&", "de": "*",
    "co": "~", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&", "or": "|", "eo": "^", "aS": "=",
    "pL": "+=", "mI": "-=", "mL": "*=", "dV": "/=", "rM": "%=", "aN": "&=", "oR": "|=", "eO": "^=", "ls": "<<",
    "rs": ">>", "lS": "<<=", "rS": ">>=", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
    "ss": "<=>", "nt": "!", "aa": "&&", "oo": "||", "pp": "++", "mm": "--", "cm": ",", "pm": "->*", "pt": "->",
    "cl": "()", "ix": "[]", "qu": "?",
}  # fmt: skip
UNARY = frozenset(("ps", "ng", "ad", "de", "co", "nt", "pp", "mm"))
SUFFIX = {"i": "", "j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}


class Unreadable(Exception):
    """The name is none that this reader knows, or it is over a limit."""


@dataclass(slots=True)
class Type:
    """A type in two halves, since declarators of functions and arrays surround what they declare."""

    left: str
    right: str = ""
    wraps: bool = False
    start: int = -1
    """Where the type stands in the name when it depends on a template parameter, else -1."""

    def __str__(self) -> str:
        return self.left + self.right


@dataclass(slots=True)
class Name:
    """A name as far as it was read."""

    text: str
    templated: bool = False
    plain: bool = False  # constructors, destructors and conversions carry no return type
    suffix: str = ""


@dataclass(slots=True)
class Cursor:
    """A place in a mangled name. Every method raises `Unreadable` rather than leaving the text."""

    text: str
    at: int = 2
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Unreadable

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def eat(self, what: str) -> bool:
        if self.text.startswith(what, self.at):
            self.at += len(what)
            return True
        return False

    def need(self, what: str) -> None:
        if not self.eat(what):
            raise Unreadable

    def fits(self, text: str) -> str:
        if len(text) > MAX_OUTPUT:
            raise Unreadable
        return text

    def number(self) -> int:
        start = self.at
        while self.peek().isdecimal() and self.at - start < 9:
            self.at += 1
        if start == self.at:
            raise Unreadable
        return int(self.text[start : self.at])

    def sequence(self) -> int:
        """`_` is 0, `0_` is 1, in base 36 for substitutions."""
        if self.eat("_"):
            return 0
        start = self.at
        while self.peek().isdecimal() or "A" <= self.peek() <= "Z":
            self.at += 1
        digits = self.text[start : self.at]
        self.need("_")
        if not digits or len(digits) > 5:
            raise Unreadable
        return int(digits, 36) + 1
