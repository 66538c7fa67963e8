#!/bin/sh
# Prints the table of expressions that other releases than the pinned one judge differently: ./run.sh FIXTURES > FIXTURES/cel-releases.txt
# Builds main.go with the modules of each release, in a folder that is removed at the end; each takes some minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
fixtures=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-mod=mod

cat <<'END'
Expressions of `cel/` whose verdict or estimated maximum cost differs in another release, by the packages of that
release: first as new expressions, then as expressions of the live CRD. The value of the latter follows where it
differs. Those of optional.txt begin with `?`.
END
for release in ${RELEASES:-1.28 1.29 1.30 1.31 1.32 1.33 1.34 1.35 1.37}; do
    # The staging modules of 1.X.Y are v0.X.Y.
    version=v0.$(sed -n "s/^v1\.\(${release#1.}\.[0-9]*\) .*/\1/p" "$here/../releases.txt")
    mkdir "$work/$release"
    cd "$work/$release"
    case $release in
    # These releases have a switch for strict costs, which is on for CRDs.
    1.30 | 1.31 | 1.32 | 1.33 | 1.34) strict=', true' ;;
    *) strict= ;;
    esac
    sed "s/DefaultCompatibilityVersion())/DefaultCompatibilityVersion()$strict)/" "$here/main.go" > main.go
    cp "$here/../cel-oracle/show.go" .
    printf 'module release-oracle\n\ngo 1.24.0\n' > go.mod
    go get "k8s.io/apiextensions-apiserver@$version" "k8s.io/apiserver@$version" "k8s.io/apimachinery@$version" >&2
    CGO_ENABLED=0 go build -trimpath -o release-oracle . >&2
    printf '\n# %s\n' "$release"
    ./release-oracle "$fixtures"
done
