"""Host and user names, learned where a line says that a word is one, then found wherever they stand."""
# ruff: noqa: E501  (a pattern is read as one line)

from __future__ import annotations

import re
from functools import cached_property

from analyzer.redact import keep
from analyzer.redact.vault import PLACEHOLDER

_NAME = r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
HOSTS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(one)
    for one in (
        # a syslog line: time, host, program
        rf"(?:^|[\s\"'>:])[A-Z][a-z]{{2}} [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d{{1,9}})? (?P<v>{_NAME}) [A-Za-z(][\w.@/()+-]{{0,63}}(?:\[\d{{1,10}}\])?:",
        rf"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?{_ZONE} (?P<v>{_NAME}) (?:kernel|[A-Za-z(][\w.@/()+-]{{0,63}}\[\d{{1,10}}\]):",
        # NCCL: host:pid:tid [gpu] NCCL
        rf"(?<![\w.:-])(?P<v>{_NAME}):\d{{1,10}}:\d{{1,10}} \[-?\d{{0,4}}\] ?(?:\S{{1,120}} )?NCCL ",
        # named values of configuration, environment, Kubernetes, journald
        rf"(?i:(?<![A-Za-z0-9])(?:_?hostname|host_?name|static hostname|transient hostname|node_?name|nodename|my_node_name|instance_?name|machine_?name"
        rf"|slurmd_nodename|master_addr|kubernetes_node|exported_instance|vm_?name|server_?name))\\{{0,3}}[\"']?(?:\s{{0,24}}[:=]\s{{0,8}}|\t)\\{{0,3}}[\"']?(?P<v>{_NAME})",
        rf"(?:^|[\s\"'])(?:HOST|NODE|Hostname|hostname|node|host|Node|nodes?/|Host)(?:=|: ?| is )[\"']?(?P<v>{_NAME})(?=[\s\"',;)\]]|$)",
        rf"(?i:\b(?:on|from|to|at) (?:node|host) )[\"'`]?(?P<v>{_NAME})(?=[\s\"'`,;:)\]]|$)",
        rf"\bnode/(?P<v>{_NAME})(?=[\s\"',;:)\]]|$)",
        # uname -a
        rf"\bLinux (?P<v>{_NAME}) \d{{1,2}}\.\d{{1,3}}\.\d",
        # a shell's prompt
        rf"(?<![\w.%+-])[a-z_][a-z0-9_-]{{0,31}}@(?P<v>{_NAME}):[~/\w.-]{{0,200}} ?[#$]",
        rf"\[[a-z_][a-z0-9_-]{{0,31}}@(?P<v>{_NAME}) [^\]\n]{{0,80}}\][#$]",
        rf"\b(?:ssh|scp|mosh|rsync) (?:-\w+ ){{0,4}}(?:[\w.-]{{1,32}}@)?(?P<v>{_NAME}\d[A-Za-z0-9.-]{{0,60}})(?=[\s:])",
    )
)
MAIL_DOMAIN = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@(?P<v>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24})(?![\w@])")
"""The domain of an address is its owner's, and a host's name often ends in it."""
PODS: tuple[re.Pattern[str], ...] = (re.compile(r"\[pod/(?P<v>[\w.-]{1,253})/"),)
USERS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(one)
    for one in (
        r"(?:/home/|/Users/|[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2}|/export/home/|/data/home/)(?P<v>[\w.@-]{1,64})",
        r"""(?<![A-Za-z0-9])(?:USER|LOGNAME|SUDO_USER|USERNAME|_AUDIT_LOGINUSER|user_?name)\\{0,3}["']?\s{0,8}[:=]\s{0,8}\\{0,3}["']?(?P<v>[\w.@-]{1,64})""",
        r"\bfor (?:invalid )?user (?P<v>[\w.-]{1,64})(?= from | by |\(| ?$)",
        r"\b(?:uid|gid|euid)=\d{1,10}\((?P<v>[\w.-]{1,64})\)",
        r"(?<![\w.%+/-])(?P<v>[a-z_][a-z0-9_-]{0,31})@[A-Za-z0-9][\w.-]{0,252}:[~/\w.-]{0,200} ?[#$]",
        r"\[(?P<v>[a-z_][a-z0-9_-]{0,31})@[A-Za-z0-9][\w.-]{0,252} [^\]\n]{0,80}\][#$]",
        r"/var/spool/cron/(?:crontabs/)?(?P<v>[\w.-]{1,64})",
    )
)
_HOST_WORDS = re.compile(
    r"(?i:host|node|kernel|linux |nccl|@|\[pod/|instance|vm_?name|machine|master_addr|server_?name|ssh |scp |rsync |mosh )|\[\d{1,10}\]:|[A-Z][a-z]{2} [ \d]\d "
)
_USER_WORDS = re.compile(r"(?i:/home/|users[\\/]|user|logname|uid=|@|crontabs)")
MOST = 2000
"""Names of a kind that are looked for everywhere."""


class Names:
    """The names that a bundle's lines gave away."""

    def __init__(self) -> None:
        self.hosts: dict[str, None] = {}
        self.pods: dict[str, None] = {}
        self.users: dict[str, None] = {}

    def learn(self, text: str) -> None:
        """Take up the names that `text` (one record) shows as such."""
        if _HOST_WORDS.search(text):
            for shape in HOSTS:
                for found in shape.finditer(text):
                    self._take(self.hosts, found["v"].strip(".-"), "host")
            if "@" in text:
                for found in MAIL_DOMAIN.finditer(text):
                    if not keep.is_public(found["v"]) and found["v"].lower() not in keep.PUBLIC_MAIL:
                        self._take(self.hosts, found["v"], "host")
            for shape in PODS:
                for found in shape.finditer(text):
                    self._take(self.pods, found["v"], "host")
        if _USER_WORDS.search(text):
            for shape in USERS:
                for found in shape.finditer(text):
                    self._take(self.users, found["v"], "user")

    def _take(self, names: dict[str, None], name: str, kind: str) -> None:
        low = name.lower()
        if len(name) < 2 or PLACEHOLDER.fullmatch(name) or name.isdigit() or re.fullmatch(r"[\d.]+", name):
            return
        if low in (keep.COMMON_HOSTS if kind == "host" else keep.COMMON_USERS) or low in keep.PLAIN:
            return
        if kind == "host" and re.fullmatch(r"[\w-]+\.(?:py|cc|cu|cpp|h|so|json|log|txt|yaml|yml|sh|c|go|rs)", low):
            return
        if name not in names and len(names) < MOST:
            names[name] = None
            self.__dict__.pop("everywhere", None)

    @cached_property
    def everywhere(self) -> list[tuple[str, re.Pattern[str]]]:
        """(kind, pattern) of the names distinctive enough to be replaced wherever they stand as a word."""
        patterns = []
        for kind, names in (("host", self.hosts), ("pod", self.pods), ("user", self.users)):
            chosen = sorted((one for one in names if self._distinctive(one, kind)), key=lambda one: (-len(one), one))
            # A long name is found inside a hyphenated word too (`gpu-node-17-dmesg.txt`); a short one only as a word.
            long = [one for one in chosen if len(one) >= 8 and kind != "user"]
            short = [one for one in chosen if one not in long]
            after = r"(?![\w-]|\.[A-Za-z])" if kind == "user" else r"(?![\w-])"
            for body, lead, tail in ((long, r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"), (short, r"(?<![\w.-])", after)):
                if body:
                    patterns.append((kind, re.compile(f"{lead}(?P<v>{'|'.join(map(re.escape, body))}){tail}")))
        return patterns

    @staticmethod
    def _distinctive(name: str, kind: str) -> bool:
        low = name.lower()
        if low in keep.words_of_rules() or len(name) < 3:
            return False
        return (
            (kind == "user" and len(name) >= 4)
            or any(c.isdigit() for c in name)
            or "-" in name
            or "." in name
            or len(name) >= 5
        )
