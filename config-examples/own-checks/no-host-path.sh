#!/bin/sh
# No workload may mount a folder of its node.
exec jq '{results: [
  .items[]
  | select((.spec.template.spec.volumes // []) | any(.hostPath))
  | {
      message: "mounts a folder of the node",
      severity: "error",
      resourceRef: {apiVersion, kind, name: .metadata.name, namespace: .metadata.namespace},
      field: {path: "spec.template.spec.volumes"}
    }
]}'
