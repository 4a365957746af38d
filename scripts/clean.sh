#!/usr/bin/env bash
# Remove directories that carry the mark of what made them; others stay, and so do links.
# usage: clean.sh DIRECTORY MARK [DIRECTORY MARK]...
set -euo pipefail
while [[ $# -ge 2 ]]; do
    directory=$1 mark=$2
    shift 2
    while [[ $directory == *?/ ]]; do directory=${directory%/}; done  # link/ is what the link leads to
    if [[ ! -e $directory && ! -L $directory ]]; then
        continue
    elif [[ -L $directory || ! -f $directory/$mark ]]; then
        echo "clean.sh: $directory: kept: there is no $mark in it, so it was not made here; remove it yourself" >&2
    else
        rm -rf "${directory:?}"
    fi
done
