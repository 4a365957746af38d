#!/usr/bin/env bash
# Learns BPE on prepared training text, applies it to all texts, and binarises them for fairseq.
set -euo pipefail

usage() {
    cat <<'END'
usage: prepare_bpe.sh --train PREFIX --valid PREFIX --test PREFIX[,PREFIX...]
                      --source-lang LANG --target-lang LANG --merges N --out DIR [--separate] [--workers N]

Texts are PREFIX.LANG, tokenised, one sentence a line. The BPE (subword-nmt) is learnt on the training text only:
  default     one BPE over both languages, one dictionary for both (fairseq-preprocess --joined-dictionary)
  --separate  one BPE and one dictionary for each language
Writes, into DIR, which must not exist:
  codes.bpe, or codes.LANG for both languages      the merges
  bpe/{train,valid,test,test1,...}.LANG            the texts in pieces; the test prefixes become test, test1, ...
  bin/                                             dictionaries and binarised texts, the argument of fairseq-train
Prints for every binarised text its sentences, its tokens (with one </s> a sentence), and how many are <unk>.
Exit status: 0 success, 1 bad data, 2 bad usage.
END
}

fail() {  # fail STATUS MESSAGE
    echo "prepare_bpe.sh: $2" >&2
    exit "$1"
}

line_count() {  # wc pads its output on some systems
    wc -l <"$1" | tr -d ' '
}

check_parallel() {  # check_parallel PREFIX: both texts are there, not empty, and have as many lines
    local lang
    for lang in "$src" "$tgt"; do
        [[ -f $1.$lang ]] || fail 1 "$1.$lang: no such file: expected a prepared text"
        [[ -s $1.$lang ]] || fail 1 "$1.$lang: empty: expected a prepared text"
        [[ -z $(tail -c 1 "$1.$lang") ]] || fail 1 "$1.$lang: its last line has no line end: expected one; add it"
    done
    [[ $(line_count "$1.$src") == $(line_count "$1.$tgt") ]] || fail 1 \
        "$1.$tgt: $(line_count "$1.$tgt") lines, but $1.$src has $(line_count "$1.$src"): expected as many"
}

apply_bpe() {  # apply_bpe PREFIX NAME: both texts in pieces
    local lang
    for lang in "$src" "$tgt"; do
        subword-nmt apply-bpe --codes "$work/$(codes_of "$lang")" <"$1.$lang" >"$work/bpe/$2.$lang"
    done
}

check_spelling() {  # check_spelling PREFIX NAME: gold links count words, so the pieces must spell them again
    local lang
    for lang in "$src" "$tgt"; do
        sed 's/@@ //g; s/@@$//' "$work/bpe/$2.$lang" | cmp -s - "$1.$lang" || fail 1 \
            "$1.$lang: its pieces do not spell it again: expected that of a gold text; does a word of it end in @@?"
    done
}

check_binarised() {  # check_binarised PREFIX NAME: fairseq read the lines and pieces that are there
    local lang ours theirs
    for lang in "$src" "$tgt"; do
        ours=$(LC_ALL=C awk '{ n += NF + 1 } END { print NR " sents, " n " tokens" }' "$work/bpe/$2.$lang")
        theirs=$(grep -F "[$lang] $work/bpe/$2.$lang: " "$work/bin/preprocess.log" |
            sed 's/.*: \(.* tokens\),.*/\1/') || theirs='no such text'
        [[ $ours == "$theirs" ]] || fail 1 \
            "$1.$lang: fairseq read $theirs: expected $ours; does the text hold carriage returns or Unicode spaces?"
    done
}

codes_of() {  # codes_of LANG
    if [[ $separate == yes ]]; then echo "codes.$1"; else echo codes.bpe; fi
}

train='' valid='' test='' src='' tgt='' merges='' out='' separate=no workers=1
while [[ $# -gt 0 ]]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --separate) separate=yes; shift; continue ;;
        --train | --valid | --test | --source-lang | --target-lang | --merges | --out | --workers) ;;
        *) fail 2 "$1: unknown option; see --help" ;;
    esac
    [[ $# -ge 2 ]] || fail 2 "$1: expected a value; see --help"
    case $1 in
        --train) train=$2 ;;
        --valid) valid=$2 ;;
        --test) test=$2 ;;
        --source-lang) src=$2 ;;
        --target-lang) tgt=$2 ;;
        --merges) merges=$2 ;;
        --out) out=${2%/} ;;
        --workers) workers=$2 ;;
    esac
    shift 2
done
for option in train valid test src tgt merges out; do
    [[ -n ${!option} ]] || fail 2 \
        "needs --train, --valid, --test, --source-lang, --target-lang, --merges and --out; see --help"
done
[[ $merges =~ ^[1-9][0-9]*$ ]] || fail 2 "--merges $merges: expected a positive whole number"
[[ $workers =~ ^[1-9][0-9]*$ ]] || fail 2 "--workers $workers: expected a positive whole number"
[[ $src != "$tgt" ]] || fail 2 "--source-lang and --target-lang are both $src: expected two languages"
[[ ! -e $out && ! -L $out ]] || fail 1 "$out: already exists; choose another path or remove it"
for tool in subword-nmt fairseq-preprocess; do
    command -v "$tool" >/dev/null || fail 1 "$tool: not on PATH: expected the tools of .venv/bin; put it on PATH"
done

IFS=, read -r -a tests <<<"$test"
prefixes=("$train" "$valid" "${tests[@]}")
for prefix in "${prefixes[@]}"; do
    check_parallel "$prefix"
done

mkdir -p "$(dirname "$out")"
[[ -t 2 ]] || export TQDM_DISABLE=1  # the progress bar of learn-bpe is for terminals
work=$(mktemp -d "$out.tmp.XXXXXXXXXX")  # a name that nobody can have planted
trap 'rm -rf "$work"' EXIT
chmod "$(printf %o $((0777 & ~0$(umask))))" "$work"
mkdir "$work/bpe"

if [[ $separate == yes ]]; then
    for lang in "$src" "$tgt"; do
        subword-nmt learn-bpe --symbols "$merges" <"$train.$lang" >"$work/codes.$lang"
    done
else
    cat "$train.$src" "$train.$tgt" | subword-nmt learn-bpe --symbols "$merges" >"$work/codes.bpe"
fi

testpref=''
names=(train valid)
apply_bpe "$train" train
apply_bpe "$valid" valid
for k in "${!tests[@]}"; do
    name=test
    [[ $k == 0 ]] || name=test$k  # fairseq's own names
    apply_bpe "${tests[k]}" "$name"
    check_spelling "${tests[k]}" "$name"
    testpref+=${testpref:+,}$work/bpe/$name
    names+=("$name")
done

joined=()
[[ $separate == yes ]] || joined=(--joined-dictionary)
fairseq-preprocess --source-lang "$src" --target-lang "$tgt" ${joined[@]+"${joined[@]}"} \
    --trainpref "$work/bpe/train" --validpref "$work/bpe/valid" --testpref "$testpref" \
    --destdir "$work/bin" --workers "$workers" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail 1 "fairseq-preprocess failed; its messages are above"
}
for k in "${!names[@]}"; do
    check_binarised "${prefixes[k]}" "${names[k]}"
done
rm "$work/log"
mv "$work" "$out"
# its report of each text, with the name that the file has now
grep ' sents, ' "$out/bin/preprocess.log" | sed "s|$work/||"
