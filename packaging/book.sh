#!/usr/bin/env bash
# Builds the book of the documentation, with mdbook (cargo install --locked mdbook), and checks its links.
#
#   packaging/book.sh FOLDER
#
# The pages are those of docs/, and link to files beside it. mdbook reads one folder, so it gets a copy of both.
set -euo pipefail
output=${1:?the folder for the book}
mkdir -p "$output"
output=$(cd "$output" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/src"
mkdir -p "$work/src/tests/fixtures"
cp -R tests/fixtures/pipelines "$work/src/tests/fixtures"
cp -R README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md LICENSE action.yml docs config-examples packaging "$work/src"
# The paths in the list of pages are relative to docs/.
rm "$work/src/docs/SUMMARY.md"
sed -E 's#\]\(\.\./#](@#; s#\]\(([^@])#](docs/\1#; s#\]\(@#](#' docs/SUMMARY.md > "$work/src/SUMMARY.md"
sed 's#^src = .*#src = "src"#' book.toml > "$work/book.toml"
mdbook build --dest-dir "$output" "$work"
# Links to folders get a list of their files.
find "$output/packaging" "$output/config-examples" "$output/tests" -type d | while IFS= read -r folder; do
    [ -e "$folder/index.html" ] || (cd "$folder" && {
        printf '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>%s</title><ul>\n' "${folder##*/}"
        for file in *; do printf '<li><a href="%s">%s</a></li>\n' "$file" "$file"; done
        printf '</ul></html>\n'
    } > .index && mv .index index.html)
done
python3 packaging/book_links.py "$output"
