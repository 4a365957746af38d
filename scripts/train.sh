#!/usr/bin/env bash
# Train a Transformer under the plugin, as docs/reproduction.md has it.  usage: train.sh DATA SOURCE TARGET SAVE_DIR [fairseq-train options]
# The CPU setting: 3 + 3 layers, d 256, one shared dictionary.  Started again with the same SAVE_DIR it goes on from its last checkpoint.
set -euo pipefail
[ $# -ge 4 ] || { sed -n 2p "$0" >&2; exit 2; }
data=$1 source=$2 target=$3 save=$4
shift 4
exec fairseq-train "$data" --user-dir "$(python -m fairseq_norm_plugin)" --task translation_norm -s "$source" -t "$target" --cpu --seed 1 \
    --arch transformer --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256 \
    --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4 \
    --share-all-embeddings --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 1.0 \
    --lr 1e-3 --lr-scheduler inverse_sqrt --warmup-updates 500 --warmup-init-lr 1e-7 --max-tokens 3000 --max-update 40000 \
    --save-dir "$save" --save-interval-updates 200 --no-epoch-checkpoints --validate-interval-updates 200 \
    --log-interval 50 --log-format json --num-workers 0 "$@"
