#!/usr/bin/env bash
# Draws the pictures of the README and docs anew from what make demo left (docs_figures.sh OUT: from another demo's OUT).
# Not drawn: report.png, a browser's picture.
set -euo pipefail
cd "$(dirname "$0")/.."
DEMO=${1:-out/demo}
TO=docs/figures
MADE=$(mktemp -d)
trap 'rm -rf "$MADE"' EXIT
GOLD=(--gold data/demo/demo.talp --gold-base 1)

align-eval plot "$DEMO/forced" --sentence 24 --heads 1 --kinds attn_w,attn_n --setting awo "${GOLD[@]}" --width 12cm \
    --title 'Where each English word comes from' --overwrite -o $TO/plot.png
align-eval sweep "$DEMO/forced" "${GOLD[@]}" --figure-formats png -o "$MADE/sweep"
align-eval curve data/demo/training.log --overwrite -o $TO/curve.png
norm-analyze "$DEMO/bin" --path data/demo/checkpoint.pt --cpu --figure-formats png -o "$MADE/analysis"
python scripts/results/systems.py figure $TO/systems.csv $TO/systems.png
python scripts/results/confidences.py figure $TO/confidences.csv $TO/confidences.png
python scripts/results/faithfulness.py figure $TO/faithfulness.csv $TO/faithfulness.png
python scripts/results/updates.py $TO/updates.csv $TO/updates.png
cp "$MADE/sweep/summary.png" $TO/sweep.png
cp "$MADE/analysis/mixing-encoder-self.png" $TO/analysis.png
python - $TO/{plot,curve,sweep,analysis,systems,confidences,faithfulness,updates}.png <<'EOF'
"""150 dots per inch, and at most 256 colours: fewer would change the colour of the dots."""
import sys

from PIL import Image

for path in sys.argv[1:]:
    with Image.open(path) as image:
        small = image.convert("RGB").reduce(2).quantize(256)
    small.save(path, optimize=True)
EOF
