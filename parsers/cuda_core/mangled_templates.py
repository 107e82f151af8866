"""Template arguments, literals and expressions of mangled names (Itanium C++ ABI, `<template-args>` and below)."""

from __future__ import annotations

from dataclasses import dataclass

from parsers.cuda_core.mangled_types import Types
from parsers.cuda_core.mangling import MAX_DEPTH, OPERATORS, SUFFIX, UNARY, Type, Unreadable


@dataclass(slots=True)
class Templates(Types):
    """The reader of template arguments and of the expressions among them."""

    def encoding(self, *, local: bool = False) -> tuple[str, str]:
        """`<encoding>`: (with parameters, without)."""
        raise NotImplementedError

    def template_args(self) -> str:
        self.need("I")
        args: list[Type | list[Type]] = []
        while not self.eat("E"):
            self.step()
            args.append(self.template_arg())
        self.args = args
        shown = [str(each) for arg in args for each in (arg if isinstance(arg, list) else [arg])]
        inner = self.fits(", ".join(shown))
        return f"<{inner}>" if not inner.endswith(">") else f"<{inner} >"

    def template_arg(self) -> Type | list[Type]:
        if self.peek() == "L":
            return Type(self.literal())
        if self.eat("X"):
            text = self.expression()
            self.need("E")
            return Type(f"({text})" if ">" in text or " " in text else text)
        if self.eat("J"):
            pack: list[Type] = []
            while not self.eat("E"):
                self.step()
                each = self.template_arg()
                pack += each if isinstance(each, list) else [each]
            return pack
        saved, self.args = self.args, list(self.args)
        self.depth += 1
        found = self.types()
        self.depth -= 1
        self.args = saved
        return found[0] if len(found) == 1 else found

    def template_param(self) -> Type:
        self.need("T")
        self.params_used += 1
        number = self.sequence()
        if number >= len(self.args):
            if self.depth:
                return Type(f"auto:{number + 1}")
            raise Unreadable
        arg = self.args[number]
        if isinstance(arg, list):
            self.pack_sizes.append(len(arg))
            if self.pack < 0:
                return Type(", ".join(map(str, arg)))
            return arg[self.pack] if self.pack < len(arg) else Type("")
        return arg

    def literal(self) -> str:
        self.need("L")
        if self.eat("_Z"):
            text, _ = self.encoding()
            self.need("E")
            return text
        code = self.peek()
        kind = str(self.type())
        negative = self.eat("n")
        end = self.text.find("E", self.at)
        if end < 0 or end - self.at > 64:
            raise Unreadable
        value = ("-" if negative else "") + self.text[self.at : end]
        self.at = end + 1
        if kind == "bool" and value in ("0", "1"):
            return ("false", "true")[int(value)]
        if code in SUFFIX:
            return value + SUFFIX[code]
        return f"({kind}){value}"

    def expression(self) -> str:
        self.step()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        text = self._expression()
        self.depth -= 1
        return self.fits(text)

    def _expression(self) -> str:
        if self.peek() == "L":
            return self.literal()
        if self.peek() == "T":
            return str(self.template_param())
        code = self.peek(2)
        if code == "fp" or code == "fL":
            self.at += 2
            if code == "fL":
                self.number()
                self.need("p")
            while self.peek() in ("K", "V", "r"):
                self.at += 1
            return f"{{parm#{self.sequence() + 1}}}"
        if code in ("st", "at"):
            self.at += 2
            return f"{'sizeof' if code == 'st' else 'alignof'} ({self.type()})"
        if code in ("sz", "sp", "nx", "tw"):
            self.at += 2
            inner = self.expression()
            word = {"sz": "sizeof", "nx": "noexcept", "tw": "throw"}.get(code)
            return f"{word} ({inner})" if word else f"{inner}..."
        if code == "sZ":
            self.at += 2
            return f"sizeof...({self.expression()})"
        if code == "sr":
            self.at += 2
            scope = self.type()
            name = self.unqualified("")
            return f"{scope}::{name.text}{self.template_args() if self.peek() == 'I' else ''}"
        if code in ("cl", "cv", "sc", "cc"):
            self.at += 2
            if code != "cl":
                kind = self.type()
                if code == "cv" and self.eat("_"):
                    return f"({kind})({self.arguments()})"
                return f"({kind})({self.expression()})"
            callee = self.expression()
            return f"{callee}({self.arguments()})"
        if code in ("dt", "pt"):
            self.at += 2
            left = self.expression()
            return f"{left}{'.' if code == 'dt' else '->'}{self.unqualified('').text}"
        if code == "qu":
            self.at += 2
            return f"({self.expression()})?({self.expression()}) : ({self.expression()})"
        if code in OPERATORS:
            self.at += 2
            left = self.expression()
            if code in UNARY:
                return f"{OPERATORS[code]}({left})"
            return f"({left}){OPERATORS[code]}({self.expression()})"
        name = self.name()
        return name.text

    def arguments(self) -> str:
        parts = []
        while not self.eat("E"):
            parts.append(self.expression())
        return ", ".join(parts)
