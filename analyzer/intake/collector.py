"""The log line inside one JSON record of a collector or log store.

A collector writes what it read beside when and where it read it; so a record counts as a transport when it has a text
under one of the names below, and beside it a time or a place that only a collector adds. A server's own JSON logging
(`levelname`, `level` and a logger) is no transport: its text is only a part of what the record says.
"""

from __future__ import annotations

from typing import Any

from analyzer.intake.readings import instant
from analyzer.intake.transport import Unwrapped
from parsers.stamp import Stamp

_TIMES = ("time", "@timestamp", "timestamp", "date", "ts", "receiveTimestamp", "TimeGenerated", "TimeGenerated [UTC]",
          "_time", "_timestamp_d", "observedTimestamp", "timeUnixNano")
_TEXTS = ("message", "@message", "LogEntry", "LogEntry_s", "LogMessage", "_raw", "body", "msg")
_PLACES = frozenset({
    "host", "hostname", "Computer", "agent", "ecs", "input", "file", "filename", "source", "source_type", "sourcetype",
    "stream", "container", "container_id", "container_name", "ContainerID", "ContainerId", "PodName", "kubernetes",
    "docker", "labels", "tag", "fluentd_tag", "path", "log.file.path", "ingestionTime", "logStreamName", "eventId",
    "@ptr", "@logStream", "attributes", "resource", "severity_text", "index", "_index", "offset"})
"""Keys by which a collector says where it read the line."""
_HOSTS = ("pod", "pod_name", "PodName", "instance", "instance_id", "host", "hostname", "node_name", "Computer")
_WITHIN = ("_source", "result", "attributes", "fields")
"""Envelopes: Elasticsearch hits, Splunk results, Datadog events."""


def payload(record: dict[str, Any], depth: int = 0) -> Unwrapped | None:
    """The log line inside `record`, with the collector's reading and its host; None when it is no such record.

    Docker's json-file and fluent-bit (`log`, alone or beside a date), Loki (`line`), CloudWatch (`message` beside
    `ingestionTime`, `logStreamName` or `eventId`; Insights' `@message`), Google Cloud (`textPayload`,
    `jsonPayload.message`), a journal (`MESSAGE`), Vector, Filebeat, Azure Container Insights (`LogEntry`,
    `LogMessage`), OpenTelemetry (`body`), and the hits of Elasticsearch, Splunk and Datadog.
    """
    if "levelname" in record:
        return None
    log = record.get("log")
    if isinstance(log, str) and (len(record) == 1 or _reading(record) is not None or _PLACES & record.keys()):
        return _of_docker(record, log)
    if "MESSAGE" in record and ("__REALTIME_TIMESTAMP" in record or "_BOOT_ID" in record):
        from analyzer.intake.journal import from_entry

        return from_entry(record)
    inner = record.get("jsonPayload")
    inside = [inner.get(key) for key in ("message", "log", "msg")] if isinstance(inner, dict) else []
    for text in (record.get("textPayload"), *inside):
        if isinstance(text, str):
            return Unwrapped(text.rstrip("\n"), _reading(record), _place(record))
    line = record.get("line")
    if isinstance(line, str) and ("timestamp" in record or "labels" in record or "ts" in record):
        return Unwrapped(line.rstrip("\n"), _reading(record), _place(record))
    if _by_a_collector(record):
        message = next((record[name] for name in _TEXTS if isinstance(record.get(name), str)), None)
        if message is not None:
            return Unwrapped(message.rstrip("\n"), _reading(record), _place(record))
    if depth == 0:
        for name in _WITHIN:
            if isinstance(deeper := record.get(name), dict) and (found := _enveloped(deeper)) is not None:
                return found
    return None


def _of_docker(record: dict[str, Any], log: str) -> Unwrapped:
    pod = _place(record)
    stream = record.get("stream", "")
    # Only Docker itself splits a record, and marks what is whole by the line end that it keeps.
    partial = not log.endswith("\n") and pod is None and "time" in record and "stream" in record
    if "logtag" in record:  # fluent-bit's CRI parser: F is whole, P goes on
        partial = record["logtag"] == "P"
    return Unwrapped(log.rstrip("\n"), _reading(record), pod, partial, stream if isinstance(stream, str) else "")


def _by_a_collector(record: dict[str, Any]) -> bool:
    """Whether keys beside the text are a collector's: a time and a place, or nothing but time and text."""
    if "logger" in record or "lineno" in record or "funcName" in record:
        return False
    times = [name for name in _TIMES if name in record]
    if _PLACES & record.keys() and (times or {"@message", "@ptr"} & record.keys() or "eventId" in record):
        return True
    return bool(times) and len(record) - len(times) == 1


def _enveloped(record: dict[str, Any]) -> Unwrapped | None:
    if any(name in record for name in _TIMES) and (found := payload(record, 1)) is not None:
        return found
    text = next((record[name] for name in _TEXTS if isinstance(record.get(name), str)), None)
    if text is None or not any(name in record for name in _TIMES):
        return None
    return Unwrapped(text.rstrip("\n"), _reading(record), _place(record))


def _reading(record: dict[str, Any]) -> Stamp | None:
    return next((stamp for name in _TIMES if (stamp := instant(record.get(name))) is not None), None)


def _place(record: dict[str, Any]) -> str | None:
    """The pod or host that a collector names, innermost first."""
    resource = record.get("resource")
    host = record.get("host")
    for labels in (record.get("kubernetes"), record.get("labels"), record, host,
                   resource.get("labels") if isinstance(resource, dict) else None):
        if isinstance(labels, dict):
            names = (*_HOSTS, "name") if labels is host else _HOSTS
            found = next((labels[key] for key in names if isinstance(labels.get(key), str) and labels[key]), None)
            if found is not None:
                return str(found)
    stream = record.get("logStreamName") or record.get("@logStream")
    return stream if isinstance(stream, str) and stream else None
