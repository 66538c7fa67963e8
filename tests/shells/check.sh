#!/bin/sh
# Loads the files that gantry generates for shells, man and kubectl in the real programs: tests/shells/check.sh PATH-TO-GANTRY
set -eu
gantry=$(realpath "$1")
packaging=$(realpath "$(dirname "$0")/../../packaging")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
ln -s "$gantry" "$folder/bin/gantry"
ln -s "$gantry" "$folder/bin/kubectl-gantry"
ln -s "$packaging/kubectl_complete-gantry" "$folder/bin/"
PATH=$folder/bin:$PATH

mkdir "$folder/zsh"
gantry completions zsh > "$folder/zsh/_gantry"
zsh -f -c "fpath=($folder/zsh \$fpath); autoload -U compinit && compinit -u -d $folder/dump && [ \"\$_comps[gantry]\" = _gantry ] && autoload +X _gantry"
echo "zsh: loaded"

gantry completions fish > "$folder/gantry.fish"
fish --no-config -c "source $folder/gantry.fish; complete -C 'gantry snap'" | grep -q '^snapshot'
echo "fish: gantry snap completes to snapshot"

gantry man "$folder/man/man1"
for page in "$folder"/man/man1/*.1; do man --warnings -l "$page" > /dev/null 2> "$folder/warnings"; [ ! -s "$folder/warnings" ] || { cat "$folder/warnings"; exit 1; }; done
echo "man: every page is formatted without a warning"

kubectl gantry check --help | grep -q '^Usage: kubectl gantry check'
kubectl plugin list 2> /dev/null | grep -q kubectl-gantry
kubectl __complete gantry snap | grep -q '^snapshot'
echo "kubectl: gantry is a plugin, and gantry snap completes to snapshot"
