#!/usr/bin/env bash
# Build the wheel, install it into an environment of its own, and use it away from the repository.
# usage: check_wheel.sh; PYTHON names the interpreter, TORCH_INDEX an index with CPU builds of torch
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/env"
pip=("$work/env/bin/pip" install --quiet --constraint constraints.txt)
"${pip[@]}" ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} torch
# of a copy: setuptools leaves a build folder, and packs into the next wheel what stands in an old one
mkdir "$work/source"
git ls-files -z | xargs -0 cp --parents --target-directory "$work/source"
"$work/env/bin/pip" wheel --quiet --no-deps --wheel-dir "$work" "$work/source"
"${pip[@]}" "$work"/*.whl

cd "$work"
export PATH="$work/env/bin:$PATH"
demo=$root/data/demo
plugin=$(python -m fairseq_norm_plugin)
case $plugin in
    "$root"*) echo "check_wheel.sh: $plugin is the repository's, not the installed one" >&2; exit 1 ;;
esac
norm-align --path "$demo/checkpoint.pt" --reverse-path "$demo/checkpoint.en-de.pt" --data "$demo" -s de -t en \
    --bpe-codes "$demo/codes.bpe" --source-text "$demo/demo.de" --target-text "$demo/demo.en" -o demo.pharaoh --cpu
align-eval score --gold "$demo/demo.talp" --gold-base 1 demo.pharaoh
