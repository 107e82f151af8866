"""`stuckwarp schema`: JSON Schemas, generated from the models."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.argument("name", type=click.Choice(("report", "rule", "inspection")))
def command(name: str) -> int:
    """Print the JSON Schema of a report, a rule file or an inspection."""
    if name == "report":
        from analyzer.report import Report

        schema = Report.model_json_schema()
    elif name == "rule":
        from analyzer.reasoning.rule import Rule

        schema = Rule.model_json_schema()
    else:
        note = {
            "type": "object",
            "required": ["tag", "text"],
            "properties": {"tag": {"type": "string"}, "text": {"type": "string"}},
        }
        artifact = {
            "type": "object",
            "required": ["path", "kind", "parser", "bytes", "complete", "notes"],
            "properties": {
                "path": {"type": "string"},
                "kind": {"type": "string"},
                "parser": {"type": "string"},
                "bytes": {"type": "integer"},
                "complete": {"type": "boolean"},
                "notes": {"type": "array", "items": note},
            },
        }
        schema = {
            "type": "object",
            "required": ["schema_version", "artifact"],
            "properties": {"schema_version": {"type": "string"}, "artifact": artifact},
            "additionalProperties": True,
            "description": "The view itself stands under the key that artifact.kind names (docs/report-format.md).",
        }
    click.echo(json.dumps(schema, indent=1))
    return 0
