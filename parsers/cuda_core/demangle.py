"""A reader of Itanium C++ mangled names with limits on input, depth, steps and output.

Covers what kernel and device-function names use: nested and local names, templates with packs, literals and common
expressions, lambdas, substitutions. A name it cannot read is given back as it stands; it never raises. Source of the
grammar: Itanium C++ ABI, chapter 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from parsers.cuda_core.mangling import (
    BUILTIN,
    D_BUILTIN,
    MAX_DEPTH,
    MAX_INPUT,
    OPERATORS,
    STD,
    SUFFIX,
    UNARY,
    Cursor,
    Name,
    Type,
    Unreadable,
)


@dataclass(slots=True, frozen=True)
class Demangled:
    """`full` as c++filt prints it; `short` without return type and parameters."""

    full: str
    short: str


@lru_cache(maxsize=8192)
def demangle(name: str) -> Demangled:
    """Read a mangled name. Plain names and unreadable ones come back unchanged in both fields.

    A local device function (`$kernel$function`) reads `function [in kernel]`.
    """
    if name.startswith("$"):
        outer, _, inner = name[1:].rpartition("$")
        if outer and inner:
            kernel, function = demangle(outer), demangle(inner)
            return Demangled(f"{function.full} [in {kernel.short}]", f"{function.short} [in {kernel.short}]")
    if not name.startswith("_Z") or len(name) > MAX_INPUT:
        return Demangled(name, name)
    try:
        return _Names(name).top()
    except (Unreadable, RecursionError):
        return Demangled(name, name)


@dataclass(slots=True)
class _Names(Cursor):
    subs: list[Type] = field(default_factory=list)
    args: list[Type | list[Type]] = field(default_factory=list)
    depth: int = 0
    pack: int = -1
    params_used: int = 0
    pack_sizes: list[int] = field(default_factory=list)

    def top(self) -> Demangled:
        full, short = self.encoding()
        rest = self.text[self.at :]
        if rest.startswith("."):
            full += f" [clone {rest}]"
        elif rest:
            raise Unreadable
        return Demangled(full, short)

    # -- names

    def encoding(self, *, local: bool = False) -> tuple[str, str]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        for mark, said in (("TV", "vtable for "), ("TI", "typeinfo for "), ("TS", "typeinfo name for ")):
            if self.eat(mark):
                text = said + str(self.type())
                return text, text
        if self.eat("GV"):
            text = "guard variable for " + self.name().text
            return text, text
        name = self.name()
        self.depth -= 1
        if self.at >= len(self.text) or self.peek() in "E.":
            return name.text + name.suffix, name.text
        returns = Type("")
        if name.templated and not name.plain:
            returns = self.type()
        if local:
            returns = Type("")  # c++filt leaves it out in front of a local name
        params = self.parameters()
        space = " " if returns.left and not returns.wraps else ""
        return self.fits(f"{returns.left}{space}{name.text}({params}){name.suffix}{returns.right}"), name.text

    def parameters(self) -> str:
        parts: list[str] = []
        while self.at < len(self.text) and self.peek() not in "E.":
            parts += [str(each) for each in self.types()]
        if parts == ["void"]:
            return ""
        return self.fits(", ".join(parts))

    def name(self) -> Name:
        self.step()
        if self.peek() == "N":
            return self.nested()
        if self.peek() == "Z":
            return self.local()
        if self.peek() == "S" and self.peek(2) != "St":
            base = self.substitution()
            return Name(self.fits(str(base) + self.template_args()), True)
        name = self.unqualified("std::" if self.eat("St") else "")
        if self.peek() == "I":
            self.subs.append(Type(name.text))
            name.text = self.fits(name.text + self.template_args())
            name.templated = True
        return name

    def nested(self) -> Name:
        self.need("N")
        marks = (("r", " restrict"), ("V", " volatile"), ("K", " const"))
        qualifiers = "".join(word for mark, word in marks if self.eat(mark))
        qualifiers += " &" if self.eat("R") else " &&" if self.eat("O") else ""
        name = Name("")
        last = ""
        while not self.eat("E"):
            self.step()
            sep = "::" if name.text else ""
            if self.peek() == "I":
                name.text = self.fits(name.text + self.template_args())
                name.templated = True
            elif self.peek() == "S" and self.peek(2) != "St":
                name.text += sep + str(self.substitution())
                last = _bare(name.text)
                continue
            elif self.peek() == "T":
                name.text += sep + str(self.template_param())
            elif self.peek(2) in ("DT", "Dt"):
                name.text += sep + str(self.type())
                continue
            elif self.peek() in "CD" and self.peek(2)[1:].isdecimal():
                name.text += f"{sep}{'~' if self.peek() == 'D' else ''}{last}"
                self.at += 2
                name.templated, name.plain = False, True
            else:
                std = "std::" if self.eat("St") else ""
                part = self.unqualified(std)
                last = part.text
                name.text = self.fits(name.text + sep + part.text)
                name.templated, name.plain = False, part.plain
            if self.peek() != "E":
                self.subs.append(Type(name.text))
        name.suffix = qualifiers
        return name

    def local(self) -> Name:
        self.need("Z")
        outer, _ = self.encoding(local=True)
        self.need("E")
        if self.eat("s"):
            self.discriminator()
            return Name(outer + "::string literal")
        if self.eat("d"):
            if self.peek() != "_":
                self.number()
            self.need("_")
        inner = self.name()
        self.discriminator()
        inner.text = self.fits(f"{outer}::{inner.text}")
        return inner

    def discriminator(self) -> None:
        if self.peek() == "_" and (self.peek(2)[1:].isdecimal() or self.peek(2) == "__"):
            self.at += 1
            if self.eat("_"):
                self.number()
                self.need("_")
            else:
                self.at += 1

    def unqualified(self, prefix: str) -> Name:
        self.eat("L")
        head = self.peek()
        if head.isdecimal():
            size = self.number()
            text = self.text[self.at : self.at + size]
            if len(text) < size or not size:
                raise Unreadable
            self.at += size
            if text.startswith("_GLOBAL__N"):
                text = "(anonymous namespace)"
            name = Name(prefix + text)
        elif self.eat("Ul"):
            outer = self.args
            params = self.parameters()
            self.args = outer
            self.need("E")
            count = self.count()
            name = Name(f"{prefix}{{lambda({params})#{count}}}")
        elif self.eat("Ut"):
            name = Name(f"{prefix}{{unnamed type#{self.count()}}}")
        elif self.eat("cv"):
            name = Name(f"{prefix}operator {self.type()}", plain=True)
        elif self.eat("li"):
            name = Name(f'operator""{self.unqualified("").text}')
        elif self.peek(2) in OPERATORS:
            word = OPERATORS[self.peek(2)]
            self.at += 2
            name = Name(f"{prefix}operator{' ' if word[0].isalpha() else ''}{word}")
        else:
            raise Unreadable
        while self.eat("B"):
            size = self.number()
            name.text += f"[abi:{self.text[self.at : self.at + size]}]"
            self.at += size
        return name

    def count(self) -> int:
        if self.eat("_"):
            return 1
        value = self.number() + 2
        self.need("_")
        return value

    def substitution(self) -> Type:
        self.need("S")
        if self.peek() in STD and self.peek():
            found = Type(STD[self.peek()])
            self.at += 1
            return found
        number = self.sequence()
        if number >= len(self.subs):
            raise Unreadable
        found = self.subs[number]
        if found.start < 0:
            return found
        # A parameter that is repeated means the arguments of the place where it is repeated: read it again.
        at, subs, self.subs = self.at, self.subs, list(self.subs)
        self.at = found.start
        again = self.type()
        self.at, self.subs = at, subs
        return again

    # -- templates

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

    # -- types

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


def _bare(text: str) -> str:
    """The last component of a qualified name without its template arguments, for constructors."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ">") - (text[at] == "<")
        if text[at] == ":" and depth == 0:
            return text[at + 1 :].partition("<")[0]
    return text.partition("<")[0]
