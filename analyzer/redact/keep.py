"""What must survive redaction: values that name nobody and that parsers and rules need."""

from __future__ import annotations

import ipaddress
import re
from functools import cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN = _words("""
    a an and auto bool bytes credentials default dict empty env error expired failed false file for found from
    hidden in int invalid is key list missing must n/a na nil no none not null object of off on optional or
    password path redacted required required. secret set should str string the to token true undefined unset
    value was with yes
""")
COMMON_USERS = _words("""
    admin app appuser azureuser build builder centos coder conda core daemon data debian default dev docker
    dynamo ec2-user fedora guest home jovyan kserve linuxbrew llm messagebus model models nobody node nonroot
    nvidia opc public python ray rocky root runner server service sglang shared syslog systemd test triton
    triton-server trtllm ubuntu user users vllm vscode work worker www-data
""")
COMMON_HOSTS = _words("""
    api container debian default docker etcd false file gpu grafana grpc head here host hostname http https
    inproc ip6-localhost ipc kernel kube-dns.kube-system.svc kubernetes kubernetes.default.svc linux
    localdomain localhost localhost.localdomain master minio node none null nvidia pod prometheus proxy redis
    runtime self server sglang sha256 systemd tcp true ubuntu unix unknown version vllm worker zmq
""")
PUBLIC_DOMAINS = _words("""
    amd.com anaconda.com anaconda.org apache.org bugs.launchpad.net canonical.com cloudflare.com debian.org docker.com
    docker.io fedoraproject.org gcr.io ghcr.io github.com github.io githubusercontent.com gitlab.com gnu.org google.com
    googleapis.com hf.co huggingface.co intel.com k8s.io kernel.org kubernetes.io launchpad.net microsoft.com
    modelscope.cn nvcr.io nvidia.com openai.com opensuse.org pkg.dev pypa.io pypi.org python.org pythonhosted.org
    pytorch.org quay.io ray.io readthedocs.io redhat.com sglang.ai slack.com systemd.io ubuntu.com vllm.ai w3.org
    wandb.ai
""")
"""Domains of projects, registries and makers that everyone's logs name."""
PUBLIC_MAIL = _words("""
    gmail.com googlemail.com hotmail.com icloud.com live.com outlook.com pm.me proton.me protonmail.com qq.com 163.com
    126.com yahoo.com yandex.ru gmx.de web.de users.noreply.github.com
""")
_GENERIC_DOMAINS = _words("com org edu gov mil")
_DOMAINS = _GENERIC_DOMAINS | _words("""
    ac ae ai app ar at au be bg biz br ca cc ch cl cloud cn co cz de dev dk ee es eu fi fr gg gr hk hr hu id ie il in
    info int io ir is it jp kr lt lu lv me mx my net nl no nz online ph pl pt ro rs ru sa se sg si site sk systems tech
    th tr tv tw ua uk us vn work xyz za zone
""")
_VERSION_BEFORE = re.compile(
    r"(?i:version|driver|firmware|\bfw|vbios|bios|release|cudnn|cublas|cufft|curand|cusolver|cusparse|nvjitlink|nvshmem|cufile|nvtx|nccl|cuda|cupti"
    r"|nvrtc|tensorrt|cutlass|nvidia-[\w-]{2,40}|libnv\w*|cu1\d|\.so|package|wheel|==|>=|<=|~=|!=)[^\n|]{0,24}$|[-_/v~^]$"
)
_CODE_ENDINGS = _words("""
    bin c cc cpp cu cuh cxx device dll exe go gz h hpp html js json lock log md mount path py pyc rs scope
    service sh slice so socket swap tar target timer toml ts txt whl yaml yml zip
""")


def plain_value(_text: str, found: re.Match[str]) -> bool:
    """`None`, `True`, a placeholder word, a type, an option's metavariable: there is no secret in it."""
    value = next((one for one in found.groups() if one), "").strip("[](){}<>'\" ")
    return (
        value.lower() in PLAIN
        or (value.isdigit() and len(value) < 6)
        or value.startswith(("$", "*", "os.environ"))
        or bool(re.fullmatch(r"[*xX.…•]+|<class.*|[A-Z]{1,12}", value))
    )


def plain_word(_text: str, found: re.Match[str]) -> bool:
    """A word of prose (`bearer authentication`)."""
    value = found["v"]
    return value.lower() in PLAIN or (value.isalpha() and value.islower() and len(value) < 16)


def not_an_email(_text: str, found: re.Match[str]) -> bool:
    """Symbol versions, units of systemd and file names have an `@` too; addresses of projects are in sources."""
    value = found["v"]
    return value.rsplit(".", 1)[-1].lower() in _CODE_ENDINGS or value.endswith("git@github.com")


def no_digit(_text: str, found: re.Match[str]) -> bool:
    """A serial number without a digit is a word."""
    return not any(c.isdigit() for c in found["v"]) or found["v"].lower().startswith("0x0000")


def not_an_ipv4(text: str, found: re.Match[str]) -> bool:
    """Versions of four numbers, net masks, loopback, multicast and addresses of documentation stay."""
    value = found["v"]
    parts = value.split(".")
    if any(int(part) > 255 or (part != "0" and part.startswith("0")) for part in parts):
        return True
    first = int(parts[0])
    if first in (0, 127) or first >= 224 or value in ("169.254.169.254", "172.17.0.1", "8.8.8.8", "1.1.1.1"):
        return True
    before, after = text[max(0, found.start() - 40) : found.start()], text[found.end() : found.end() + 2]
    return bool(_VERSION_BEFORE.search(before)) or after[:1] in ("+", "_") or after == "-0"


def not_an_ipv6(text: str, found: re.Match[str]) -> bool:
    """Times, PCI addresses, scope operators and loopback stay; so does what leads up to a placeholder."""
    if text.startswith("<ip-", found.end()):
        return True
    value = found["v"].rstrip(":.") if not found["v"].endswith("::") else found["v"]
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        return True
    return address.is_loopback or address.is_unspecified or address.is_multicast or len(value) < 4


def common_host(_text: str, found: re.Match[str]) -> bool:
    """Names that every machine has."""
    value = found["v"].lower()
    return (
        value in COMMON_HOSTS
        or len(value) < 2
        or (value.split(".")[0] in COMMON_HOSTS and "." in value and value.endswith("localdomain"))
    )


def is_public(name: str) -> bool:
    """Whether a host or domain belongs to a project, registry or maker that everyone's logs name."""
    labels = name.lower().split(".")
    return any(".".join(labels[at:]) in PUBLIC_DOMAINS for at in range(len(labels)))


def no_private_host(_text: str, found: re.Match[str]) -> bool:
    """Dotted names that are no host: modules, attributes, files, versions; and hosts that everyone's logs name.

    Under a generic domain three labels make a host; under any other the first label must hold a digit, since
    `model.layers.id` and `scipy.sparse.io` end in a country too.
    """
    first, *_, last = found["v"].lower().split(".")
    if last not in _DOMAINS or is_public(found["v"]) or any(label.isdigit() for label in found["v"].split(".")):
        return True  # a label of digits alone is a part of a version
    return not (last in _GENERIC_DOMAINS or (any(c.isdigit() for c in first) and any(c.isalpha() for c in first)))


def common_user(_text: str, found: re.Match[str]) -> bool:
    """Accounts that every image has."""
    return found["v"].lower() in COMMON_USERS or found["v"].startswith("$")


@cache
def words_of_rules() -> frozenset[str]:
    """Words of the shipped rules' patterns: a host or user that is called so is replaced only where the line says
    that it is one, never wherever the word stands."""
    from analyzer.reasoning.rulebook import load

    words: set[str] = set()
    for sought in load().patterns.sought:
        words.update(word.lower() for word in re.findall(r"[A-Za-z][A-Za-z0-9_-]{2,}", sought.pattern))
    return frozenset(words)
