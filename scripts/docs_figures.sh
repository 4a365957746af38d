#!/usr/bin/env bash
# Draws docs/figures anew from the demo's records (make demo). The two other pictures have commands of their own:
# bench-length.png is made by scripts/bench/lengths.py, curve-en-de.png by align-eval curve from a training log.
set -euo pipefail
cd "$(dirname "$0")/.."
RECORDS=${1:-out/demo/forced}
align-eval plot "$RECORDS" --sentence 3 --layer 1 --kinds attn_w,attn_n --setting awo --gold data/demo/demo.talp --gold-base 1 \
    --no-heading --overwrite -o docs/figures/weights-and-norms.png
