# Pages of a REST API with a cursor, by dlt's own rest_api source, to a file of JSON lines. Nested objects stay as they are and
# nothing is compressed, which spares dlt its tables of children and gzip.
import os
import sys

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
os.environ["NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION"] = "true"

import dlt
from dlt.sources.rest_api import rest_api_source

directory, port = sys.argv[1:]
source = rest_api_source({
    "client": {
        "base_url": f"http://127.0.0.1:{port}",
        "headers": {"X-API-Key": "bench"},
        "paginator": {"type": "cursor", "cursor_path": "next_cursor", "cursor_param": "cursor"},
    },
    "resources": [{
        "name": "audit_events",
        "max_table_nesting": 0,
        "endpoint": {"path": "audit/events", "data_selector": "data"},
    }],
}, name="bench")
pipeline = dlt.pipeline(
    pipeline_name="bench",
    pipelines_dir=f"{directory}/state",
    destination=dlt.destinations.filesystem(f"file://{directory}/out"),
    dataset_name="audit",
)
pipeline.run(source, loader_file_format="jsonl").raise_on_failed_jobs()
