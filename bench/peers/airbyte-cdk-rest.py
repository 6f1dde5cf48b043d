# Pages of a REST API with a cursor, by a declarative source of Airbyte's CDK: a RECORD message a line on its output, which is
# the file.
import json
import sys

from airbyte_cdk.entrypoint import launch
from airbyte_cdk.sources.declarative.yaml_declarative_source import YamlDeclarativeSource

directory, manifest, port = sys.argv[1:]
schema = {"type": "object", "additionalProperties": True, "properties": {}}
stream = {"name": "audit_events", "json_schema": schema, "supported_sync_modes": ["full_refresh"]}
catalog = {"streams": [
    {"stream": stream, "sync_mode": "full_refresh", "destination_sync_mode": "append"},
]}
config = {"port": port}
for name, value in {"config": config, "catalog": catalog}.items():
    with open(f"{directory}/{name}.json", "w") as out:
        json.dump(value, out)
source = YamlDeclarativeSource(manifest, catalog=None, config=config, state=[])
launch(source, ["read", "--config", f"{directory}/config.json", "--catalog", f"{directory}/catalog.json"])
