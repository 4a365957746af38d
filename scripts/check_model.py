"""Check that the plugin computes with your model what stock fairseq does, or Transformers.

    check_model.py PATH [-s de -t en] [--source-text FILE]
    check_model.py DIRECTORY --transformers [-s de -t en]

Both cut some lines into subwords, translate them, and are forced to decode the translations.  Log probabilities and the
attention weights of all heads are compared with the other's in float64, norms with their definition in float64.  Exit
status: 0 all is the same, 1 something differs or cannot be read, 2 bad usage.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from stock_models import Fairseq, Ids, Reference, Transformers
from torch import Tensor

import fairseq_norm_plugin as fnp
from alignment_eval.command_line import CommandParser, Input, add_fields, exit_status
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import MapName
from alignment_eval.profiles.profile import TextRecipe
from alignment_eval.reading import TextFile
from fairseq_norm_plugin.align.job import model_options
from fairseq_norm_plugin.checkpoints.files import is_of_transformers
from fairseq_norm_plugin.environment import silence_libraries
from fairseq_norm_plugin.model.model import UNTRANSLATED
from fairseq_norm_plugin.text.pair import Line, SentencePair

#: A line or two of each script; those are read whose subwords a model knows best.
LINES = """\
The old bridge was closed for repairs, and everyone had to walk along the river.
"Why don't you come in?" she asked; it's 25.5 °C outside -- well-known & loved.
Der Zug nach Köln fährt heute von Gleis 7 – nicht von Gleis 12.
Elle a dit : « Je reviendrai demain, peut-être », puis elle est partie.
Старый мост закрыли на ремонт, и всем пришлось идти вдоль реки.
Сколько стоит этот хлеб? Двадцать пять рублей.
Η παλιά γέφυρα έκλεισε για επισκευές και όλοι περπάτησαν δίπλα στο ποτάμι.
أغلقوا الجسر القديم للإصلاح، فسار الجميع بجانب النهر.
הגשר הישן נסגר לתיקונים, וכולם הלכו לאורך הנהר.
पुराना पुल मरम्मत के लिए बंद था, और सब नदी के किनारे चले।
สะพานเก่าปิดซ่อม ทุกคนจึงต้องเดินไปตามแม่น้ำ
旧桥正在维修，大家只好沿着河走。“这个面包多少钱？”
古い橋は修理のために閉まっていて、みんな川に沿って歩いた。２５円です。
낡은 다리가 수리 중이라 모두 강을 따라 걸어야 했다.
ძველი ხიდი დაკეტილი იყო და ყველა მდინარის გასწვრივ მიდიოდა.
Հին կամուրջը փակ էր, և բոլորը քայլեցին գետի երկայնքով։
""".splitlines()
#: The largest differences that rounding explains, of a large model in float32 from float64.
LIMITS = {"log probability": 1e-3, "attention weight": 1e-4, "norm (share of the largest in its row)": 1e-3}
_REPORT = "report it with the model's name and this output: its links would not be those of its maps"


def norms(attention: Any, weights: Tensor, states: Tensor) -> Tensor:
    """‖Σ_h α^h f^h(x)‖ [T, S] by its definition (Kobayashi et al. 2020), of weights [H, T, S] and states [S, D]."""
    values = attention.v_proj(states).unflatten(-1, (attention.num_heads, -1))
    projection = attention.out_proj.weight.unflatten(-1, (attention.num_heads, -1))  # [D, H, d]
    transformed = torch.einsum("shd,ehd->hse", values, projection)
    result: Tensor = torch.einsum("hts,hse->tse", weights.to(transformed), transformed).norm(dim=-1)
    return result


def pair_of(model: fnp.NormModel, source: Ids, target: Ids | None = None) -> SentencePair:
    """A pair as the plugin reads it; its target is to be found if it is None."""
    lines = []
    for which, ids in enumerate(filter(None, (source, target))):
        spelling = model.vocabularies[which].spell(torch.tensor(ids))
        lines.append(Line("", (), "", spelling.side, torch.tensor(ids), spelling.unknown, spelling.certain))
    return SentencePair(lines[0], lines[1] if target else UNTRANSLATED)


def translations(
    model: fnp.NormModel, reference: Reference, sources: Sequence[Ids], beam: int = 5
) -> tuple[list[Ids], list[Ids]]:
    """Those of the reference, one by one, and those of the plugin, in one batch."""
    expected = [reference.translate(source, beam) for source in sources]
    found = model.forward.search({number: pair_of(model, source) for number, source in enumerate(sources)}, beam)
    return expected, [found[number]["tokens"].tolist() for number in range(len(sources))]


@torch.no_grad()
def differences(model: fnp.NormModel, reference: Reference, pairs: Sequence[tuple[Ids, Ids]]) -> dict[str, float]:
    """The largest difference of each of :data:`LIMITS`, of the plugin in one batch from the reference in float64."""
    found, result = forced(model, pairs), dict.fromkeys(LIMITS, 0.0)
    reference.network.double()
    for maps, (source, target) in zip(found, pairs):
        expected = reference.decode(source, target)
        by_layer = zip(reference.decoder.layers, expected.weights)
        of_norms = torch.stack([norms(layer.encoder_attn, weights, expected.states) for layer, weights in by_layer])
        of_pair = (
            torch.tensor(maps.log_probs) - expected.log_probs,
            torch.tensor(maps.head_maps("attn_w")) - expected.weights,
            (torch.tensor(maps.layer_maps("attn_n")) - of_norms) / of_norms.amax(dim=-1, keepdim=True),
        )
        for name, difference in zip(LIMITS, of_pair):
            result[name] = float(torch.maximum(torch.tensor(result[name]), difference.abs().max()))  # keeps NaN
    reference.network.float()
    return result


def forced(model: fnp.NormModel, pairs: Sequence[tuple[Ids, Ids]]) -> list[Any]:
    """The maps of all layers, with log probabilities, in one batch."""
    names = [MapName(layer) for layer in range(model.layers)]
    numbered = {number: pair_of(model, *pair) for number, pair in enumerate(pairs)}
    found = model.forward.maps(numbered, ["attn_w", "attn_n"], names, log_probs=True)
    return [found[number] for number in numbered]


@torch.no_grad()
def seconds(job: Callable[[], object]) -> float:
    """The shortest of three times."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def chosen_lines(model: fnp.NormModel, path: str | None) -> list[str]:
    """The lines of a file, or those built in that the model knows best."""
    forward = model.forward
    lines = LINES if path is None else [line.decode() for _, line in TextFile(path).lines()]
    read = {line: forward.encode_line(forward.pipelines[0].read(line), 0) for line in lines}
    read = {line: own for line, own in read.items() if not forward.refusal([own])}
    if path is None:
        shares = {line: own.unknown / len(own.ids) for line, own in read.items()}
        read = {line: read[line] for line in sorted(shares, key=shares.__getitem__)[:6] if shares[line] < 0.5}
    if not read:
        raise InputError(
            f"{path or 'the lines built in'}: the model knows none of them: give --source-text FILE in its language, "
            f"in subwords if nothing cuts them"
        )
    return list(read)


def compare(model: fnp.NormModel, reference: Reference, lines: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """What is compared, what is found, and whether it is the same."""
    sources = [reference.encode(line) for line in lines]
    read = (model.forward.encode_line(model.forward.pipelines[0].read(line), 0).ids.tolist() for line in lines)
    equal = sum(ours == theirs for ours, theirs in zip(read, sources))
    yield "ids of the source", f"{equal} of {len(lines)} lines", equal == len(lines)
    expected, found = translations(model, reference, sources)
    equal = sum(ours == theirs for ours, theirs in zip(found, expected))
    yield "translation, beam 5", f"{equal} of {len(lines)} lines", equal == len(lines)
    pairs = list(zip(sources, expected))
    for name, difference in differences(model, reference, pairs).items():
        yield name, f"{difference:.1e} at most, limit {LIMITS[name]:.0e}", difference <= LIMITS[name]
    ours = seconds(lambda: [forced(model, [pair]) for pair in pairs])
    theirs = seconds(lambda: [reference.decode(*pair) for pair in pairs])
    yield "time", f"{ours / theirs:.2f} × of {theirs:.2f} s, with maps and weights of all heads", True


def run(args: argparse.Namespace) -> None:
    """Print the comparison."""
    if args.transformers != is_of_transformers(args.path):
        what = "is not in the format" if args.transformers else "is in the format"
        raise UsageError(
            f"{args.path} {what} of Transformers: {'omit' if args.transformers else 'give'} --transformers"
        )
    model = fnp.load(**model_options(args))
    lines = chosen_lines(model, args.source_text)
    reference: Reference = Transformers(model, Path(args.path)) if args.transformers else Fairseq(model)
    print(f"{model!r} of {args.path}, and {reference.name}")
    differing = []
    for what, found, same in compare(model, reference, lines):
        print(f"{what:<40}{found:<50}{'' if same else 'DIFFERS'}".rstrip(), flush=True)
        differing += [] if same else [what]
    if differing:
        raise InputError(f"{args.path}: {', '.join(differing)} differ from {reference.name}: {_REPORT}")


def parse() -> argparse.Namespace:
    parser = CommandParser(prog="check_model.py", description=__doc__)
    parser.add_argument("path", metavar="PATH", help="a checkpoint, or the directory of a model; or demo")
    parser.add_argument("--transformers", action="store_true", help="compare with Transformers, whose format PATH has")
    parser.add_argument("--source-text", type=Input, metavar="FILE", help="lines of the source (default: built in)")
    parser.add_argument("-s", "--source-lang", metavar="LANG")
    parser.add_argument("-t", "--target-lang", metavar="LANG")
    parser.add_argument("--data", metavar="DIR", help="directory with dict.LANG.txt (default: that of PATH)")
    add_fields(parser, TextRecipe, "tokenizer", "normalize", "lowercase", "bpe")
    parser.add_argument("--bpe-codes", nargs="+", type=Input, metavar="CODES", help="of subword-nmt or fastBPE")
    parser.add_argument("--model-option", action="append", default=[], metavar="KEY=VALUE", help="as of norm-align")
    parser.set_defaults(user_dir=None, reverse_path="none", dtype="float32", words=["tokens"])
    return parser.parse_args()


if __name__ == "__main__":
    silence_libraries()
    sys.exit(exit_status("check_model.py", parse, run))
