#!/usr/bin/env python3
"""No ConfigMap loses a key that is live."""
import json
import sys

plan = json.load(sys.stdin)
results = []
for desired, change in zip(plan["items"], plan["plan"]["changes"]):
    live = change["live"]
    if desired["kind"] != "ConfigMap" or live is None:
        continue
    for key in live.get("data") or {}:
        if key not in (desired.get("data") or {}):
            results.append({
                "message": f"the key {key} is removed, and something may still read it",
                "severity": "warning",
                "resourceRef": change["object"],
                "field": {"path": "data"},
                "tags": {"rule": "key-removed"},
            })
json.dump({"results": results}, sys.stdout)
