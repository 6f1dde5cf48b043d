# Pages of a REST API with a cursor, by a tap of Meltano's Singer SDK: a RECORD message a line on its output, which is the file.
import sys

from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th

port = sys.argv.pop()


class AuditEvents(RESTStream):
    name = "audit_events"
    path = "/audit/events"
    url_base = f"http://127.0.0.1:{port}"
    http_headers = {"X-API-Key": "bench"}
    primary_keys = ("id",)
    records_jsonpath = "$.data[*]"
    next_page_token_jsonpath = "$.next_cursor"
    schema = th.PropertiesList(
        *(th.Property(name, th.StringType) for name in
          ("id", "timestamp", "action", "source_ip", "user_agent", "result", "severity", "request_id")),
        *(th.Property(name, th.ObjectType(additional_properties=True)) for name in
          ("actor", "resource", "changes", "network")),
    ).to_dict()

    def get_url_params(self, context, next_page_token):
        return {} if next_page_token is None else {"cursor": next_page_token}


class TapBench(Tap):
    name = "tap-bench"
    config_jsonschema = th.PropertiesList().to_dict()

    def discover_streams(self):
        return [AuditEvents(self)]


TapBench.cli(["--config=ENV"])
