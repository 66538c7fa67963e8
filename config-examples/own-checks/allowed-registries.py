#!/usr/bin/env python3
"""A KRM function: images must come from the registries that its configuration allows."""
import json
import sys

resources = json.load(sys.stdin)
allowed = tuple(resources["functionConfig"]["spec"]["registries"])
results = []
for item in resources["items"]:
    pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
    for index, container in enumerate(pod.get("containers") or []):
        if not container["image"].startswith(allowed):
            results.append({
                "message": f"the image {container['image']} is not from an allowed registry",
                "severity": "error",
                "resourceRef": {"apiVersion": item["apiVersion"], "kind": item["kind"], **{
                    key: item["metadata"][key] for key in ("name", "namespace") if key in item["metadata"]}},
                "field": {"path": f"spec.template.spec.containers[{index}].image"},
            })
resources["results"] = results
json.dump(resources, sys.stdout)
sys.exit(1 if results else 0)
