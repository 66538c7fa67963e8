#!/usr/bin/env bash
# Writes the bill of materials of the program for a target (CycloneDX, JSON): docs/trust.md. It needs cargo-cyclonedx
# (cargo install --locked cargo-cyclonedx) and jq.
#
#   packaging/sbom.sh TARGET FILE [FEATURE FLAGS OF CARGO]
#
# cargo-cyclonedx lists what Cargo.lock may need, also features that only tests use, and programs that run during the
# build. Here a component is a crate that is linked into the program, as `cargo tree` finds for the target and features.
set -euo pipefail
target=${1:?the target, for example x86_64-unknown-linux-musl}
output=$(realpath -m "${2:?the file to write}")
shift 2
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

linked=$(cargo tree --locked --package gantry --target "$target" --edges normal,no-proc-macro --prefix none --no-dedupe \
    --format '{p}' "$@")
# NAME VERSION, without the marks and paths that follow.
sed -E 's/^([^ ]+) v([^ ]+).*/\1 \2/' <<<"$linked" | sort -u > "$work/linked"

# It writes a file beside each manifest, so it gets a copy of what Cargo reads.
git ls-files | grep -E '(^|/)(Cargo\.(toml|lock)|.*\.rs)$' | tar --create --files-from - | tar --extract --directory "$work"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
cargo cyclonedx --quiet --manifest-path "$work/Cargo.toml" --format json --spec-version 1.5 \
    --override-filename bill --target "$target" --no-build-deps "$@"

# No path of this machine, no random number, and the time of the commit.
jq --rawfile linked "$work/linked" --arg path "path+file://$work" --argjson time "$SOURCE_DATE_EPOCH" '
    def named: "\(.name) \(.version)";
    ($linked | split("\n") | map(select(. != ""))) as $linked
    | del(.serialNumber)
    | .metadata.timestamp = ($time | todate)
    | .metadata.component |= del(.components)
    | .components |= map(select(named as $name | $linked | index($name)))
    | ([.metadata.component["bom-ref"]] + [.components[]["bom-ref"]]) as $kept
    | .dependencies |= map(select(.ref as $ref | $kept | index($ref))
        | if .dependsOn then .dependsOn |= map(select(. as $ref | $kept | index($ref))) else . end)
    | ([.metadata.component, .components[]] | map(named)) as $listed
    | ($linked - $listed) as $missing
    | if $missing == [] then . else error("not in the bill of materials: \($missing | join(", "))") end
    | walk(if type == "string" then split($path) | join("path:.") else . end)
' "$work/bill.json" > "$output"
