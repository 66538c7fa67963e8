#!/bin/sh
# No workload mounts a folder of its node.
exec jq '{results: [
  .items[]
  | select((.spec.template.spec.volumes // []) | any(.hostPath))
  | {
      message: "a folder of the node is mounted",
      severity: "error",
      resourceRef: {apiVersion, kind, name: .metadata.name, namespace: .metadata.namespace},
      field: {path: "spec.template.spec.volumes"}
    }
]}'
