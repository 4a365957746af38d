#!/usr/bin/env bash
# Build the sdist, and the wheel from it: the same bytes from the same commit.
# usage: build_dist.sh OUT; PYTHON names an interpreter that has the package build
set -euo pipefail
umask 022
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
python=$(command -v "${PYTHON:-python3}")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export PIP_CONSTRAINT=$PWD/constraints.txt  # setuptools writes its version into the wheel
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# of a copy: setuptools leaves a build folder, and packs into the next wheel what stands in an old one
mkdir "$work/source" "$work/made"
git ls-files -z | xargs -0 cp --parents --target-directory "$work/source"
chmod -R u=rwX,go=rX "$work/source"
"$python" -m build --outdir "$work/made" "$work/source" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

# setuptools keeps the owners and times of the files in the sdist
tar --extract --file "$work"/made/*.tar.gz --directory "$work/made"
rm "$work"/made/*.tar.gz
for folder in "$work"/made/*/; do
    name=$(basename "$folder")
    tar --create --sort=name --format=pax --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --pax-option=delete=atime,delete=ctime --directory "$work/made" "$name" | gzip -n >"$out/$name.tar.gz"
done
mv "$work"/made/*.whl "$out"
