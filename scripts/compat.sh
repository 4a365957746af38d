#!/usr/bin/env bash
# The supported fairseqs, each installed into an environment of its own and used: the demo, whose links must be those of
# compat.sha256; hypotheses with and without the plugin; training with monitoring, stopped and resumed; checkpoints that
# would run code.  By hand (make compat) and before a release.
# usage: compat.sh [NAME …] (default: all)
#        ENVS is where the environments lie and stay (default: out/compat); PYTHON310, … name interpreters (default:
#        python3.10, …); TORCH_INDEX names an index with CPU builds of torch; UPDATE=1 writes compat.sha256
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH
ENVS=$(realpath -m "${ENVS:-out/compat}")
NAMES=("$@")
((${#NAMES[@]})) || NAMES=(py310-fairseq py310-newest-fairseq py311-ve py312-ve py312-fixed py313-fixed)

say() { printf '\n== %s: %s\n' "$name" "$*"; }
fail() { echo "compat.sh: $name: $*" >&2; exit 1; }
# fairseq logs at length: kept in a file, shown if a step fails
quietly() {
    local log=$work/$1.log
    shift
    "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "$*"; }
}

install() {
    local python=PYTHON${name:2:3} torch===2.6.0  # the oldest that is supported
    [[ $name != py311-ve ]] || torch===2.13.0
    [[ $name != *-newest-* ]] || torch='>=2.6'
    test -e "$env/bin/pip" || "${!python:-python${name:2:1}.${name:3:2}}" -m venv "$env"
    local pip=("$env/bin/python" -m pip install --quiet)
    say "installing torch $torch, fairseq, then this package"
    # later ones refuse the metadata of fairseq 0.12.2 and its omegaconf, or lack the pkg_resources that old code imports
    "${pip[@]}" 'pip<24.1' 'setuptools<80' wheel
    "${pip[@]}" ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "torch$torch"
    case $name in
        *-fairseq) "${pip[@]}" "torch$torch" "torchaudio${torch/==/<=}" fairseq==0.12.2 ;;
        *-ve) "${pip[@]}" "torch$torch" "torchaudio${torch/==/<=}" ve-fairseq==0.12.3 ;;
        *-fixed)  # its build imports what it does not ask for
            "${pip[@]}" cython numpy
            "${pip[@]}" --no-build-isolation "torch$torch" "torchaudio${torch/==/<=}" fairseq-fixed==0.12.3.1 ;;
    esac
    local before
    before=$(fairseq_files)
    git ls-files -z | xargs -0 cp --parents --target-directory "$work/source"  # setuptools leaves a build folder
    "${pip[@]}" --force-reinstall --no-deps "$work/source"
    "${pip[@]}" "$work/source" pytest filelock hypothesis
    [[ $before == "$(fairseq_files)" ]] || fail "pip install . changed fairseq"
    echo "fairseq is as it was: $before"
    "$env/bin/norm-align" --version
}

# Where fairseq lies, its distribution and version, and a checksum of its files
fairseq_files() {
    (cd / && "$env/bin/python" - <<'END'
import hashlib
import importlib.metadata
import importlib.util
import pathlib

place = pathlib.Path(importlib.util.find_spec("fairseq").origin).parent
files = sorted(file for file in place.rglob("*") if file.is_file() and file.suffix != ".pyc")
found = importlib.metadata.packages_distributions()["fairseq"]
versions = [f"{name} {importlib.metadata.version(name)}" for name in sorted(set(found))]
print(place, *versions, hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16])
END
    )
}

# Of a log of fairseq-generate: source, target, hypotheses, token scores
hypotheses() { grep -E '^[STHDP]-' "$1" | sort; }

use() {
    local demo=$work/demo
    say "the demo: fairseq-generate with records, forced scoring, norm-align"
    quietly demo env OUT="$demo" bash scripts/demo.sh
    (cd "$demo" && sha256sum hyp.pharaoh forced.pharaoh both.pharaoh markup.en) >"$work/sha256"
    [[ ! ${UPDATE:-} ]] || cp "$work/sha256" scripts/compat.sha256
    diff scripts/compat.sha256 "$work/sha256" || fail "other links than those of compat.sha256"
    tail -n 2 "$work/demo.log"

    say "hypotheses and scores with and without the plugin"
    local generate=(fairseq-generate "$demo/bin" --path data/demo/checkpoint.pt) stock=() mode
    # fairseq's packages do not bring its tests: these are their settings of the search
    local -A modes=(
        [search]='--beam 5' [scoring]=--score-reference [sampling]='--sampling --beam 2 --nbest 2'
        # the diverse search of 0.12.3 fails where sentences are lost: it takes ids for places in a batch
        [diverse]='--diverse-beam-groups 2 --beam 4 --required-batch-size-multiple 1' [prefix]='--beam 3 --prefix-size 2'
        [no-repeat]='--no-repeat-ngram-size 2 --lenpen 0.5' [unk]='--unkpen 3 --min-len 4 --remove-bpe'
    )
    if [[ $name == *-fairseq ]]; then
        # the fused encoder layer of 0.12.2 fails with torch >= 1.13 where a batch has padding: stock fairseq without it
        mkdir "$work/unfused"
        cat >"$work/unfused/__init__.py" <<'END'
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

TransformerEncoderLayerBase.can_use_fastpath = property(lambda layer: False, lambda layer, value: None)
END
        stock=(--user-dir "$work/unfused")
    fi
    local trusting=(env TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1)  # stock fairseq of today's torch reads checkpoints only so
    for mode in "${!modes[@]}"; do
        # shellcheck disable=SC2086  # several words
        quietly "$mode-stock" "${trusting[@]}" "${generate[@]}" ${modes[$mode]} "${stock[@]}"
        # shellcheck disable=SC2086
        quietly "$mode-plugin" "${generate[@]}" ${modes[$mode]} --user-dir "$(python -m fairseq_norm_plugin)" \
            --task translation_norm --norm-records "$work/records-$mode"
        # the plugin also writes the sentences that stock fairseq loses
        ! comm -23 <(hypotheses "$work/$mode-stock.log") <(hypotheses "$work/$mode-plugin.log") | grep . ||
            fail "$mode: other lines with the plugin"
        echo "$mode: $(hypotheses "$work/$mode-stock.log" | grep -c '^H-') hypotheses, byte for byte the same"
    done

    say "ten updates of training with monitoring, stopped after five"
    quietly binarise fairseq-preprocess -s de -t en --trainpref "$demo/text/test" --validpref "$demo/text/test" \
        --testpref "$demo/text/test" --destdir "$work/train-data" --srcdict data/demo/dict.de.txt \
        --tgtdict data/demo/dict.en.txt
    local updates
    for updates in 5 10; do
        quietly "train-$updates" bash scripts/train.sh cpu "$work/train-data" de en "$work/trained" \
            --finetune-from-model data/demo/checkpoint.pt --max-update "$updates" --aer-gold test=data/demo/demo.talp \
            --aer-gold-base 1 --valid-subset test,valid --best-checkpoint-metric aer --validate-interval-updates 5 \
            --save-interval-updates 5 --log-file "$work/train.json"
    done
    grep -q 'Loaded checkpoint .*checkpoint_last.pt' "$work/train-10.log" || fail "training was not resumed"
    say "its checkpoint in stock fairseq"
    local of_stock=("$work/train-data" --path "$work/trained/checkpoint_last.pt" --task translation "${stock[@]}")
    quietly stock-validate "${trusting[@]}" fairseq-validate "${of_stock[@]}" --valid-subset valid --max-tokens 2000
    quietly stock-generate "${trusting[@]}" fairseq-generate "${of_stock[@]}"
    quietly validate fairseq-validate "${of_stock[@]}" --valid-subset test --max-tokens 2000 --task translation_norm \
        --user-dir "$(python -m fairseq_norm_plugin)" --aer-gold test=data/demo/demo.talp --aer-gold-base 1
    grep -ohE '"test_(num_updates|aer)": "[^"]+"' "$work/train.json" | paste -sd ' '

    say "checkpoints that would run code, and tests of what touches fairseq"
    (cd "$ROOT" && python -m pytest -q -p no:cacheprovider tests/integration/models/test_hostile.py \
        tests/plugin/checkpoints tests/plugin/capture tests/plugin/formulas tests/plugin/hooks)
}

ROOT=$PWD
for name in "${NAMES[@]}"; do
    env=$ENVS/$name work=$ENVS/$name/work
    rm -rf "$work"
    (
        SECONDS=0
        mkdir -p "$work/source"
        install
        export PATH="$env/bin:$PATH"
        use
        say "passed in $SECONDS s"
    )
done
