#!/bin/sh
# Makes the pictures of the HTML report in docs/pictures.
#
#     tests/html/pictures.sh GANTRY
#
# GANTRY is the built program. Needs Python 3 and Chromium (Debian: apt-get install chromium). The page has a fixed time,
# so the same program, browser and fonts make the same pictures.
set -eu

gantry=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/live"
cp "$root/docs/pictures/live/bakery.yaml" "$root/tests/html/objects.yaml" "$work/live"
cp -r "$root/docs/pictures/breaking" "$work"
code=0
(cd "$work" && SOURCE_DATE_EPOCH=1795219200 "$gantry" check -f breaking --target dir:live -o html=page.html 2>/dev/null) || code=$?
# The check blocks.
[ "$code" -eq 3 ]
"$root/tests/html/check.py" "$work/page.html" "$work/pictures"
for scheme in light dark; do
  cp "$work/pictures/1280-$scheme.png" "$root/docs/pictures/page-$scheme.png"
  cp "$work/pictures/390-$scheme.png" "$root/docs/pictures/page-phone-$scheme.png"
  cp "$work/pictures/1920-$scheme.png" "$root/docs/pictures/page-wide-$scheme.png"
done
for picture in "$root"/docs/pictures/page-*.png; do
  size=$(wc -c < "$picture")
  echo "$picture: $size bytes"
  if [ "$size" -gt 200000 ]; then
    echo "larger than 200,000 bytes: $picture" >&2
    exit 1
  fi
done
