"""What a secret or a personal datum looks like: one row a kind, with the words that must stand in a line before its
pattern is tried. Every pattern is linear: no quantifier stands inside another, every run is bounded.

The group `v` is what is replaced. Order is precedence: of two finds that overlap the earlier row's, or the longer
within a row, is taken.
"""
# ruff: noqa: E501  (a pattern is read as one line)

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from analyzer.redact import keep


@dataclass(frozen=True, slots=True)
class Detector:
    """`kind` names the placeholder, `words` (lower case) gate the pattern, `keeps` says which finds stay as they are."""

    name: str
    kind: str
    pattern: re.Pattern[str]
    words: tuple[str, ...] = ()
    keeps: Callable[[str, re.Match[str]], bool] | None = None


def _row(
    name: str, kind: str, pattern: str, words: str = "", keeps: Callable[[str, re.Match[str]], bool] | None = None
) -> Detector:
    return Detector(name, kind, re.compile(pattern), tuple(words.split()), keeps)


_KEY = (
    r"(?i:(?:[\w.-]{0,40}[_.-])?(?:api[_-]?keys?|apikey|passwd|password|passphrase|secret(?:[_-]?(?:access[_-]?)?key)?|client[_-]?secret"
    r"|access[_-]?key(?:[_-]?id)?|private[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|session[_-]?key|credentials?|cookie"
    r"|(?:hf|hugging_?face(?:_hub)?|auth|access|refresh|github|gitlab|gh|wandb|id|bearer|session|secret|jwt|bot|slack|ngc|nvidia|vllm"
    r"|ray|csrf|security|api|openai|deploy|registry|docker|comet|mlflow|neptune)[_-]?token|wandb_api_key|ngc_cli_api_key))"
)
_SEPARATOR = r"""\\{0,3}["']?\s{0,8}(?:[:=]|=>)\s{0,8}"""
_VALUE = (
    r"""(?:\\{0,3}"(?P<v>[^"\\\n]{1,4096})|\\{0,3}'(?P<v2>[^'\\\n]{1,4096})|(?P<v3>\[[^\]\n]{1,8192}\])"""
    r"""|(?P<v4>[^\s'",;&)\]}>\\]{3,4096}))"""
)

DETECTORS: tuple[Detector, ...] = (
    _row(
        "value of a secret's name",
        "token",
        rf"(?<![A-Za-z0-9]){_KEY}{_SEPARATOR}{_VALUE}",
        "key token secret passw passphrase credential cookie",
        keep.plain_value,
    ),
    _row(
        "secret option",
        "token",
        r"""(?<![\w-])(?i:--?(?:api-?key|hf-?token|token|password|passwd|secret|auth-?token|access-?token|ssl-keyfile-password|aws-secret-access-key"""
        r"""|[a-z-]{0,30}-api-key|[a-z-]{0,30}-(?:token|password|secret)))(?:=|["']?,?\s{1,4})["']?(?P<v>(?!-)[^\s'",;\])}]{2,4096})""",
        "-key -token -password -passwd -secret",
        keep.plain_value,
    ),
    _row(
        "authorization",
        "token",
        r"""(?i:(?:proxy-)?authorization)\\{0,3}["']?\s{0,4}[:=,]\s{0,4}(?:b?\\{0,3}["'])?(?:(?i:basic|bearer|token|digest|apikey)\s{1,4})?"""
        r"""(?P<v>[^\s'",}\])\\]{4,8192})""",
        "authorization",
        keep.plain_value,
    ),
    _row(
        "x-api-key header",
        "token",
        r"""(?i:x-(?:api-key|auth-token|goog-api-key|amz-security-token))\\{0,3}["']?\s{0,4}[:=,]\s{0,4}"""
        r"""(?:b?\\{0,3}["'])?(?P<v>[^\s'",}\])\\]{4,8192})""",
        "x-",
        keep.plain_value,
    ),
    _row("bearer token", "token", r"(?i:\bbearer)\s{1,4}(?P<v>[A-Za-z0-9._~+/=-]{8,8192})", "bearer", keep.plain_word),
    _row("JSON web token", "token", r"(?<![\w-])(?P<v>eyJ[\w-]{5,8192}\.[\w-]{2,8192}(?:\.[\w-]{0,8192})?)", "eyj"),
    _row("Hugging Face token", "token", r"(?<![A-Za-z0-9])(?P<v>(?:hf_|api_org_)[A-Za-z0-9]{16,256})", "hf_ api_org_"),
    _row("sk- key", "token", r"(?<![A-Za-z0-9_-])(?P<v>sk-[A-Za-z0-9_-]{14,256})", "sk-"),
    _row("NVIDIA API key", "token", r"(?<![A-Za-z0-9])(?P<v>nvapi-[A-Za-z0-9_-]{12,256})", "nvapi-"),
    _row(
        "Git host token",
        "token",
        r"(?<![A-Za-z0-9])(?P<v>gh[pousr]_[A-Za-z0-9]{16,256}|github_pat_\w{16,256}|glpat-[\w-]{16,64})",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat-",
    ),
    _row(
        "AWS key id",
        "token",
        r"(?<![A-Za-z0-9])(?P<v>(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16})(?![0-9A-Za-z])",
        "akia asia aroa aida",
    ),
    _row(
        "provider token",
        "token",
        r"(?<![A-Za-z0-9])(?P<v>xox[abeprs]-[\w-]{10,256}|AIza[\w-]{30,64}|ya29\.[\w-]{16,256}|gsk_[A-Za-z0-9]{16,128}|r8_[A-Za-z0-9]{16,128}"
        r"|dckr_pat_[\w-]{16,64}|npm_[A-Za-z0-9]{20,64}|pypi-[\w-]{32,512}|tgp_v1_[\w-]{16,128}|dop_v1_[0-9a-f]{16,128}|hvs\.[\w-]{16,256})",
        "xox aiza ya29 gsk_ r8_ dckr_pat_ npm_ pypi- tgp_v1_ dop_v1_ hvs.",
    ),
    _row(
        "login in an address",
        "uri-login",
        r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://(?P<v>[^\s/@'\"<>\[\]]{1,256}(?:@[^\s/@'\"<>]{1,64}(?=@))?)@",
        "://",
    ),
    _row(
        "signed address",
        "token",
        r"(?i:[?&](?:token|sig|signature|key|api_key|apikey|access_token|code|password|x-amz-(?:signature|credential|security-token)"
        r"|awsaccesskeyid|x-goog-signature|policy|key-pair-id))=(?P<v>[^&\s'\"<>]{4,8192})",
        "token= sig key signature code= passw policy",
    ),
    _row(
        "e-mail",
        "email",
        r"(?<![\w.%+-])(?P<v>[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24})(?![\w@])",
        "@",
        keep.not_an_email,
    ),
    _row(
        "GPU UUID",
        "gpu",
        r"(?<![\w])(?P<v>(?:MIG-)?(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})?)(?![\w-])",
        "gpu- mig-",
    ),
    _row(
        "serial number",
        "serial",
        r"""(?i:\b(?:board[_ ])?serial(?:[_ ]?(?:number|no\.?))?)["']?(?:\s{0,64}[:=]\s{0,8}|>|\s{1,4}(?=\d))["']?(?P<v>[A-Za-z0-9][\w.-]{4,63})""",
        "serial",
        keep.no_digit,
    ),
    _row(
        "serial number",
        "serial",
        r"(?i:chassis|board|system|product|asset|baseboard) (?i:serial|part|tag)[^:\n]{0,20}:\s{1,8}(?P<v>\S{3,64})",
        "serial tag",
        keep.no_digit,
    ),
    _row("machine id", "machine", r"(?i:_?machine[_-]?id)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<v>[0-9a-f]{32})", "machine"),
    _row(
        "system UUID",
        "guid",
        r"(?i:uuid|guid)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<v>(?:0x)?[0-9a-fA-F]{4}[0-9a-fA-F:-]{12,32})(?![\w-])",
        "uuid guid",
    ),
    _row(
        "MAC address",
        "mac",
        r"(?<![\w:.-])(?P<v>[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?:(?::[0-9a-fA-F]{2}){2}|(?::[0-9a-fA-F]{2}){14})?)(?![\w:])",
        ":",
    ),
    _row(
        "MAC address",
        "mac",
        r"(?<![\w-])(?P<v>(?=[\d-]{0,16}[a-fA-F])[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}(?:(?:-[0-9a-fA-F]{2}){2})?)(?![\w-])",
        "-",
    ),
    _row(
        "IPv6 address",
        "ip",
        r"(?<![\w:.])(?:[a-z][\w-]{1,15}:)?(?P<v>(?=[0-9A-Fa-f:.]{0,40}:[0-9A-Fa-f:.]{0,40}:)[0-9A-Fa-f:][0-9A-Fa-f:.]{1,44})(?![\w:])",
        ":",
        keep.not_an_ipv6,
    ),
    _row(
        "IPv4 address", "ip", r"(?<![\w.])(?P<v>(?:\d{1,3}\.){3}\d{1,3})(?![\w]|\.\d|\.[A-Za-z])", ".", keep.not_an_ipv4
    ),
    _row(
        "host name with an address in it",
        "host",
        r"(?<![\w.-])(?P<v>ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w-]{1,63}){0,8})(?![\w-])",
        "ip-",
    ),
    _row(
        "internal host name",
        "host",
        r"(?<![\w./-])(?P<v>[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,6}\."
        r"(?:local|internal|lan|corp|intra|intranet|localdomain|home\.arpa|svc))(?![\w.-]*\w)",
        ".local .internal .lan .corp .intra .home.arpa .svc",
        keep.common_host,
    ),
    _row(
        "host in an address",
        "host",
        r"(?<=://)(?P<v>[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:(?:\.[A-Za-z0-9-]{1,63}){0,6}\.(?:local|internal|lan|corp|intra|intranet|svc))?)(?=[:/\s'\"]|$)",
        "://",
        keep.common_host,
    ),
    _row(
        "host name in a domain",
        "host",
        r"(?:(?<=://)|(?<=@)|(?<![\w./@-]))(?P<v>[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){1,6}\.[A-Za-z]{2,18})(?![\w-]|\.\w)",
        ".",
        keep.no_private_host,
    ),
    _row(
        "home folder",
        "user",
        r"(?:/home/|/Users/|[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2}|/export/home/|/data/home/)(?P<v>[^\s/\\'\":,;<>)\]]{1,64})",
        "home/ users/ users\\",
        keep.common_user,
    ),
)
"""All detectors. Prompts, py-spy locals, PEM blocks over many lines and learned names need more than a line:
`redactor.py`."""
