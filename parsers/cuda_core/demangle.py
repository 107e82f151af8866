"""A reader of Itanium C++ mangled names with limits on input, depth, steps and output.

Covers what kernel and device-function names use: nested and local names, templates with packs, literals and common
expressions, lambdas, substitutions. A name it cannot read is given back as it stands; it never raises. Source of the
grammar: Itanium C++ ABI, chapter 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from parsers.cuda_core.mangled_templates import Templates
from parsers.cuda_core.mangling import MAX_DEPTH, MAX_INPUT, OPERATORS, STD, Name, Type, Unreadable


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
class _Names(Templates):
    def top(self) -> Demangled:
        full, short = self.encoding()
        rest = self.text[self.at :]
        if rest.startswith("."):
            full += f" [clone {rest}]"
        elif rest:
            raise Unreadable
        return Demangled(full, short)

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


def _bare(text: str) -> str:
    """The last component of a qualified name without its template arguments, for constructors."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ">") - (text[at] == "<")
        if text[at] == ":" and depth == 0:
            return text[at + 1 :].partition("<")[0]
    return text.partition("<")[0]
