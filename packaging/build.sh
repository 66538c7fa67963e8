#!/usr/bin/env bash
# Builds the program of a release, so that the result depends on the sources, the dependencies in Cargo.lock, the target
# and the compiler, and not on the folder, the user, the machine or the time: docs/trust.md.
#
#   packaging/build.sh [ARGUMENTS OF CARGO BUILD]       for example: --target x86_64-unknown-linux-musl
#
# The program is below the target folder, as after `cargo build --release`.
set -euo pipefail
cd "$(dirname "$0")/.."

# The crates must be there before their folder can be named.
cargo fetch --locked
home=${CARGO_HOME:-$HOME/.cargo}
# Paths of sources are a part of messages of panics, and of the debug information.
flags=(--remap-path-prefix="$PWD=/gantry")
if [ -n "${CARGO_TARGET_DIR:-}" ]; then
    flags+=(--remap-path-prefix="$CARGO_TARGET_DIR=/gantry/target")
fi
for source in "$home"/registry/src/*; do
    flags+=(--remap-path-prefix="$source=/crates")
done
# In this variable, flags may contain spaces.
encoded=$(printf '%s\x1f' "${flags[@]}")
export CARGO_ENCODED_RUSTFLAGS=${encoded%$'\x1f'}
unset RUSTFLAGS
# For programs that write a date: it is that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0 TZ=UTC LC_ALL=C
exec cargo build --locked --release --bin gantry "$@"
