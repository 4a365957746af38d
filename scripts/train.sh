#!/usr/bin/env bash
# Train a Transformer under the plugin, as docs/reproduction.md has it.
# usage: train.sh cpu|cpu-bf16|paper|europarl DATA SOURCE TARGET SAVE_DIR [fairseq-train options]
#   cpu       3 + 3 layers, d 256, one shared dictionary, 3,000 tokens an update
#   cpu-bf16  the same, its matrix products in bfloat16: for CPUs that have instructions for it (avx512_bf16, amx_bf16)
#   paper     the Transformer of Kobayashi et al. (2020): 6 + 6 layers, d 512, a dictionary a language, 32,000 tokens an update, fp16, one GPU
#   europarl  paper, with the updates that full Europarl takes (1.9 million pairs; paper: for some 300,000)
# The learning rate warms up to 1e-3 and falls with the inverse square root; --lr-scheduler replaces that, warm-up too.
# Started again with the same SAVE_DIR it goes on from its last checkpoint.
set -euo pipefail
[ $# -ge 5 ] || { sed -n 2,9p "$0" >&2; exit 2; }
setting=$1 data=$2 source=$3 target=$4 save=$5
shift 5

train=(fairseq-train)
small=(--cpu --arch transformer --encoder-layers 3 --decoder-layers 3 --encoder-embed-dim 256 --decoder-embed-dim 256
    --encoder-ffn-embed-dim 512 --decoder-ffn-embed-dim 512 --encoder-attention-heads 4 --decoder-attention-heads 4
    --share-all-embeddings --max-tokens 3000 --max-update 40000
    --save-interval-updates 200 --validate-interval-updates 200)
large=(--arch transformer_iwslt_de_en --fp16 --max-tokens 16000 --update-freq 2
    --save-interval-updates 2000 --validate-interval-updates 2000 --keep-interval-updates 10)
case $setting in
    cpu | cpu-bf16)
        # glibc hands large blocks back to the system and faults them in again: a fifth of the time, measured
        export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=268435456 ;;
esac
case $setting in
    cpu) options=("${small[@]}") warmup=500 ;;
    cpu-bf16) options=("${small[@]}") warmup=500 train=(python "$(dirname "$0")/train_bf16.py") ;;
    paper) options=("${large[@]}" --max-update 30000) warmup=4000 ;;
    europarl) options=("${large[@]}" --max-update 100000) warmup=4000 ;;
    *) echo "$0: no setting '$setting': choose of cpu, cpu-bf16, paper, europarl" >&2; exit 2 ;;
esac
options+=(--lr 1e-3)
schedule=(--lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --warmup-updates "$warmup")
case " $* " in
    *" --lr-scheduler "* | *" --lr-scheduler="*) ;;  # not every scheduler takes these options
    *) options+=("${schedule[@]}") ;;
esac
exec "${train[@]}" "$data" --user-dir "$(python -m fairseq_norm_plugin)" --task translation_norm -s "$source" -t "$target" --seed 1 \
    --dropout 0.1 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 1.0 \
    --save-dir "$save" --no-epoch-checkpoints --log-interval 50 --log-format json --num-workers 0 "${options[@]}" "$@"
