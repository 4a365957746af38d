#!/usr/bin/env bash
# The main job on the bundled model and sentences: maps by forced scoring and by generation, word alignments, the AER
# table, heatmaps. Everything goes to OUT (default: out/demo), which is made anew if it is an earlier demo's.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-out/demo}
while [[ $OUT == *?/ ]]; do OUT=${OUT%/}; done  # link/ is what the link leads to
DEMO=data/demo
MARK=.made-by-demo.sh
# on a busy machine OpenMP's threads hold each other up unless those that wait sleep; norm-align sets this itself
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# OUT may come from the environment and mean something else
if [[ -L $OUT || ( -e $OUT && ! -f $OUT/$MARK && -n $(ls -A "$OUT") ) ]]; then
    echo "demo.sh: $OUT: already exists and is not of an earlier demo; choose another OUT or remove it" >&2
    exit 1
fi
rm -rf "${OUT:?}"
mkdir -p "$OUT/text"
touch "$OUT/$MARK"

say() { printf '\n== %s\n' "$*"; }
# fairseq logs at length: kept in a file, shown if a step fails
quietly() {
    local log=$OUT/$1.log
    shift
    "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
}

say "1. subwords and binary data ($(wc -l <$DEMO/demo.de) sentence pairs)"
for lang in de en; do
    subword-nmt apply-bpe --codes $DEMO/codes.bpe <$DEMO/demo.$lang >"$OUT/text/test.$lang"
done
quietly preprocess fairseq-preprocess --source-lang de --target-lang en --testpref "$OUT/text/test" \
    --srcdict $DEMO/dict.de.txt --tgtdict $DEMO/dict.en.txt --destdir "$OUT/bin"

say "2. forced scoring of the references, with the maps of all layers and heads"
quietly forced fairseq-generate "$OUT/bin" --path $DEMO/checkpoint.pt --user-dir fairseq_norm_plugin \
    --task translation_norm --score-reference --norm-layer 1 --norm-records "$OUT/forced" --norm-alignments "$OUT/forced.pharaoh"

say "3. translation with beam search, with its alignments"
quietly generated fairseq-generate "$OUT/bin" --path $DEMO/checkpoint.pt --user-dir fairseq_norm_plugin \
    --task translation_norm --beam 5 --print-alignment hard --norm-map attn_n --norm-layer 1 --norm-setting awo \
    --norm-records "$OUT/generated"
grep -E '^(S|H|A)-0\b' "$OUT/generated.log"

say "4. word alignments of the references from the norms of layer 1, and their score"
align-eval extract "$OUT/forced" --kind attn_n --heads 1 --setting awo --rule kobayashi2020 >"$OUT/hyp.pharaoh"
cmp "$OUT/hyp.pharaoh" "$OUT/forced.pharaoh"
align-eval score --gold $DEMO/demo.talp --gold-base 1 "$OUT/hyp.pharaoh"

say "5. every layer, head, kind, setting and rule"
align-eval sweep "$OUT/forced" --gold $DEMO/demo.talp --gold-base 1 -o "$OUT/sweep"

say "6. the default way, in one command: models of both directions with their profiles"
MODELS=(--path $DEMO/checkpoint.pt --reverse-path $DEMO/checkpoint.en-de.pt --cpu)
quietly align norm-align "${MODELS[@]}" --tokenizer none --source-text $DEMO/demo.de --target-text $DEMO/demo.en \
    -o "$OUT/both.pharaoh"
align-eval score --gold $DEMO/demo.talp --gold-base 1 "$OUT/both.pharaoh"

say "7. raw text with tags, translated: the tags move to the words that translate theirs"
echo 'Die <b>Kommission</b> hat den <a href="bericht.html">Bericht</a> angenommen.' | tee "$OUT/markup.de"
quietly markup norm-align "${MODELS[@]}" --source-text "$OUT/markup.de" --translate --markup html -o "$OUT/markup.en"
cat "$OUT/markup.en"

say "heatmaps and tables: $OUT/sweep/ ($(ls "$OUT/sweep" | wc -l) files)"
for links in "hyp: one layer" "both: both models, the default"; do
    echo "${links#*: }, 60 pairs: $(align-eval score --gold $DEMO/demo.talp --gold-base 1 "$OUT/${links%%:*}.pharaoh" 2>/dev/null | sed -n 1p)"
done
