"""Types of mangled names: built-in ones, pointers, functions, arrays, packs (Itanium C++ ABI, `<type>`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from parsers.cuda_core.mangling import BUILTIN, D_BUILTIN, MAX_DEPTH, Cursor, Name, Type, Unreadable


@dataclass(slots=True)
class Types(Cursor):
    """The reader of types. Names, template arguments and expressions inside them are read by its heirs.

    `subs` are the substitutions so far, `args` the template arguments that `T_` refers to.
    """

    subs: list[Type] = field(default_factory=list)
    args: list[Type | list[Type]] = field(default_factory=list)
    depth: int = 0
    pack: int = -1
    params_used: int = 0
    pack_sizes: list[int] = field(default_factory=list)

    def name(self) -> Name:
        """`<name>`."""
        raise NotImplementedError

    def unqualified(self, prefix: str) -> Name:
        """`<unqualified-name>` behind `prefix`."""
        raise NotImplementedError

    def substitution(self) -> Type:
        """`<substitution>`."""
        raise NotImplementedError

    def template_args(self) -> str:
        """`<template-args>`, with their brackets."""
        raise NotImplementedError

    def template_param(self) -> Type:
        """`<template-param>`."""
        raise NotImplementedError

    def expression(self) -> str:
        """`<expression>`."""
        raise NotImplementedError

    def parameters(self) -> str:
        """`<bare-function-type>` without a return type."""
        parts: list[str] = []
        while self.at < len(self.text) and self.peek() not in "E.":
            parts += [str(each) for each in self.types()]
        if parts == ["void"]:
            return ""
        return self.fits(", ".join(parts))

    def types(self) -> list[Type]:
        """One type, or several where a pack is expanded."""
        if not self.eat("Dp"):
            return [self.type()]
        start, subs, outer, sizes = self.at, list(self.subs), self.pack, self.pack_sizes
        self.pack, self.pack_sizes = 0, []
        first = self.type()
        count = max(self.pack_sizes, default=-1)
        end, after = self.at, self.subs
        found = [first] if count else []
        for self.pack in range(1, min(count, 512)):
            self.at, self.subs = start, list(subs)
            found.append(self.type())
        self.at, self.subs, self.pack, self.pack_sizes = end, after, outer, sizes
        return found

    def type(self) -> Type:
        self.step()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        outer, start, kept, used = self.args, self.at, len(self.subs), self.params_used
        found = self._type()
        if len(self.subs) > kept and self.params_used > used:
            self.subs[-1] = Type(found.left, found.right, found.wraps, start)
        self.args = outer  # the arguments of a type are not those of the function that T_ refers to
        self.fits(found.left + found.right)
        self.depth -= 1
        return found

    def _type(self) -> Type:
        head = self.peek()
        if head in BUILTIN and head:
            self.at += 1
            return Type(BUILTIN[head])
        if head in ("r", "V", "K"):
            words = [w for mark, w in (("r", " restrict"), ("V", " volatile"), ("K", " const")) if self.eat(mark)]
            base = self.type()
            return self.keep(Type(base.left + "".join(reversed(words)), base.right, base.wraps))
        if head in ("P", "R", "O"):
            self.at += 1
            base = self.type()
            sign = {"P": "*", "R": "&", "O": "&&"}[head]
            if not base.wraps and head != "P" and base.left.endswith("&"):
                sign = "" if (base.left.endswith("&&") and head == "O") or base.left[-2:] != "&&" else "&"
                base = Type(base.left if sign == "" else base.left[:-2], base.right)
            if base.wraps:
                opened = base.left if base.left.endswith(("*", "&")) else base.left + "("
                closed = base.right if base.left.endswith(("*", "&")) else ")" + base.right
                return self.keep(Type(opened + sign, closed, True))
            return self.keep(Type(base.left + sign, base.right))
        if head == "F":
            self.at += 1
            self.eat("Y")
            returns = self.type()
            params = self.parameters()
            self.need("E")
            return self.keep(Type(f"{returns} ", f"({params})", True))
        if head == "A":
            self.at += 1
            size = str(self.number()) if self.peek().isdecimal() else "" if self.peek() == "_" else self.expression()
            self.need("_")
            base = self.type()
            return self.keep(Type(f"{base.left} ", f"[{size}]{base.right}", True))
        if head == "M":
            self.at += 1
            owner, member = self.type(), self.type()
            opened = member.left + "(" if member.wraps else member.left + " "
            return self.keep(Type(f"{opened}{owner}::*", (")" if member.wraps else "") + member.right, member.wraps))
        if head == "T":
            found = self.keep(self.template_param())
            if self.peek() == "I":
                return self.keep(Type(str(found) + self.template_args()))
            return found
        if head == "D":
            return self.d_type()
        if head == "S" and self.peek(2) != "St":
            found = self.substitution()
            if self.peek() == "I":
                return self.keep(Type(self.fits(str(found) + self.template_args())))
            return found
        if head == "u":
            self.at += 1
            return self.keep(Type(self.unqualified("").text))
        if head == "U":
            self.at += 1
            word = self.unqualified("").text
            return self.keep(Type(f"{self.type()} {word}"))
        if head == "C":
            self.at += 1
            return self.keep(Type(f"{self.type()} _Complex"))
        if head == "N" or head == "Z" or head == "S" or head.isdecimal() or head == "L":
            return self.keep(Type(self.name().text))
        raise Unreadable

    def d_type(self) -> Type:
        code = self.peek(2)[1:]
        if code in D_BUILTIN:
            self.at += 2
            return Type(D_BUILTIN[code])
        if self.eat("DF16b"):
            return Type("__bf16")
        if self.eat("DF"):
            bits = self.number()
            self.need("_")
            return Type(f"_Float{bits}")
        if self.eat("Dv"):
            size = self.number()
            self.need("_")
            return self.keep(Type(f"{self.type()} __vector({size})"))
        if self.eat("DT") or self.eat("Dt"):
            inner = self.expression()
            self.need("E")
            return self.keep(Type(f"decltype ({inner})"))
        if code == "p":
            return Type(", ".join(map(str, self.types())))
        if self.eat("Do"):
            return self.type()
        raise Unreadable

    def keep(self, found: Type) -> Type:
        self.subs.append(found)
        if len(self.subs) > 4096:
            raise Unreadable
        return found
