#!/usr/bin/env bash
# Builds the committed sources twice, in two folders and with two homes of Cargo, and compares the programs: docs/trust.md.
#
#   packaging/reproduce.sh [ARGUMENTS OF CARGO BUILD]
#   packaging/reproduce.sh --with PROGRAM [ARGUMENTS OF CARGO BUILD]     builds once, and compares with a program
#
# It prints the checksum and exits with 0 if both are the same and contain no path of this machine, otherwise with 1.
set -euo pipefail
# A failure within $(…) ends the script, too.
shopt -s inherit_errexit
root=$(cd "$(dirname "$0")/.." && pwd)
other=
if [ "${1:-}" = --with ]; then
    other=$(realpath "${2:?the program to compare with}")
    shift 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
home=${CARGO_HOME:-$HOME/.cargo}

# Builds in a folder of its own, and prints the path of the program.
build() {
    local folder=$1
    shift
    mkdir -p "$folder"
    git -C "$root" archive HEAD | tar --extract --directory "$folder"
    # No repository: the date is that of the commit.
    git -C "$folder" init --quiet
    git -C "$folder" add --all
    GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date \
        git -C "$folder" -c user.name=gantry -c user.email=gantry@localhost commit --quiet --message sources
    CARGO_TARGET_DIR="$folder/out" "$folder/packaging/build.sh" "$@" >&2
    find "$folder/out" -path '*/release/gantry' -type f | head -n 1
}

date=$(git -C "$root" log -1 --format=%cI)
first=$(build "$work/a" "$@")
if [ -z "$other" ]; then
    # A home with the same crates, in another folder.
    mkdir -p "$work/another-home/registry"
    for part in registry/index registry/cache config.toml; do
        if [ -e "$home/$part" ]; then cp -R "$home/$part" "$work/another-home/$part"; fi
    done
    other=$(CARGO_HOME="$work/another-home" build "$work/another/folder/deeper" "$@")
fi
sha256sum "$first" "$other" | cut -d ' ' -f 1
code=0
cmp "$first" "$other" || code=1
for text in "$work" "$home" "$root"; do
    if grep --quiet --fixed-strings --text -- "$text" "$first"; then
        echo "the program contains the path $text" >&2
        code=1
    fi
done
exit "$code"
