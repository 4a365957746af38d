#!/usr/bin/env bash
# Build the wheel twice, install it into an environment of its own, and use it away from the repository.
# usage: check_wheel.sh; PYTHON names the interpreter, TORCH_INDEX an index with CPU builds of torch
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/env"
pip=("$work/env/bin/pip" install --quiet --constraint constraints.txt)
"${pip[@]}" build
for time in first second; do
    PYTHON=$work/env/bin/python bash scripts/build_dist.sh "$work/$time"
done
for file in "$work"/first/*; do
    cmp "$file" "$work/second/$(basename "$file")"  # the same commit, the same bytes
done
wheel=$(echo "$work"/first/*.whl)
bytes=$(stat --format %s "$wheel")
((bytes < 25000000)) || { echo "check_wheel.sh: $wheel: $bytes bytes, expected less than 25 MB" >&2; exit 1; }
"${pip[@]}" ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} torch
"${pip[@]}" "$wheel[fairseq]"

cd "$work"
export PATH="$work/env/bin:$PATH"
plugin=$(python -m fairseq_norm_plugin)
case $plugin in
    "$root"*) echo "check_wheel.sh: $plugin is the repository's, not the installed one" >&2; exit 1 ;;
esac
python - <<'END'
import importlib.util

import fairseq_norm_plugin as fnp

links = fnp.load("demo").align("Das Haus war groß.", "The house was big.").links
assert links == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)], links
heavy = [name for name in ("ray", "transformers", "mkdocs") if importlib.util.find_spec(name)]
assert not heavy, f"a plain installation has {heavy}"
END
demo=$plugin/demo
norm-align --path demo --tokenizer none --source-text "$demo/demo.de" --target-text "$demo/demo.en" -o demo.pharaoh --cpu
align-eval score --gold "$demo/demo.talp" --gold-base 1 demo.pharaoh
