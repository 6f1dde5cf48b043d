#!/usr/bin/env python3
"""Converts the Sigma rules to the query languages of SIEMs, and stores the results in `converted/`.

usage: python3 convert.py [--check]
  --check  compare the stored results with a new conversion, and change nothing; exit code 1 if they differ

It needs pySigma and its backends, and no network:
  pip install pysigma==1.5.1 pySigma-backend-opensearch==2.0.3 pySigma-backend-elasticsearch==2.1.1 \
      pySigma-backend-splunk==2.1.0 pySigma-backend-kusto==1.0.1

Each result names the hash of the rules and pipelines from which it was made, so that a test without Python finds a
stale one.
"""

import hashlib
import json
import pathlib
import sys

from sigma.backends.elasticsearch.elasticsearch_lucene import LuceneBackend
from sigma.backends.kusto import KustoBackend
from sigma.backends.opensearch import OpensearchLuceneBackend
from sigma.backends.splunk import SplunkBackend
from sigma.collection import SigmaCollection
from sigma.processing.pipeline import ProcessingPipeline

here = pathlib.Path(__file__).resolve().parent
targets = {
    "opensearch": (OpensearchLuceneBackend, "ecs"),
    "elasticsearch": (LuceneBackend, "ecs"),
    "splunk": (SplunkBackend, "splunk"),
    "kusto": (KustoBackend, "kusto"),
}


def sources_hash() -> str:
    """SHA-256 of all rules and pipelines, in the order of their names."""
    found = hashlib.sha256()
    for path in sorted([*here.glob("rules/*.yml"), *here.glob("pipelines/*.yml")]):
        found.update(f"{path.relative_to(here).as_posix()}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def converted(target: str) -> str:
    """All rules as queries of one target, as JSON."""
    backend_class, pipeline = targets[target]
    text = (here / "pipelines" / f"{pipeline}.yml").read_text()
    backend = backend_class(processing_pipeline=ProcessingPipeline.from_yaml(text))
    rules = {}
    for path in sorted(here.glob("rules/*.yml")):
        collection = SigmaCollection.from_yaml(path.read_text())
        [query] = backend.convert(collection)
        rule = collection.rules[0]
        prefix = "SluiceEvents\n| where " if target == "kusto" else ""
        rules[path.stem] = {
            "id": str(rule.id),
            "title": rule.title,
            "level": str(rule.level),
            "query": prefix + query,
        }
    return json.dumps({"sources": sources_hash(), "rules": rules}, indent=2) + "\n"


def main() -> int:
    differing = []
    for target in targets:
        path = here / "converted" / f"{target}.json"
        text = converted(target)
        if path.exists() and path.read_text() == text:
            continue
        differing.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text)
    print("changed: " + ", ".join(differing) if differing else "all results are current")
    return 1 if differing and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
