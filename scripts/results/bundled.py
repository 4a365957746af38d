"""The bundled models in this process: their default methods, and texts that they have read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import fairseq_norm_plugin
from alignment_eval.extraction.corpus import align_corpus, read_direction
from alignment_eval.extraction.defaults import both_directions, one_direction
from alignment_eval.extraction.extract import PairMap
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.options import ExtractionOptions, MapName
from alignment_eval.files import write_bytes
from alignment_eval.links.table import Links, transpose
from alignment_eval.selection.profile import profile_path, read_profile
from fairseq_norm_plugin.aligning.aligner import length_batches
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.text import TokenPair

MAX_TOKENS = 4000
BOTH, FORWARD, REVERSE = "both", "de-en", "en-de"
LEXICON = ", lexicon"


class Models:
    """The bundled models and how their profiles read them."""

    def __init__(self, folder: Path) -> None:
        paths = {FORWARD: folder / "checkpoint.pt", REVERSE: folder / "checkpoint.en-de.pt"}
        codes = str(folder / "codes.bpe")
        model = fairseq_norm_plugin.load(
            paths[FORWARD], folder, "de", "en", bpe_codes=codes, reverse_path=paths[REVERSE]
        )
        self.directions = {FORWARD: model.with_reverse[0].direction, REVERSE: model.with_reverse[1].direction}
        self.maps = {way: read_profile(profile_path(path)).streamed.forward for way, path in paths.items()}


def default_method(name: str, maps: Mapping[str, ExtractionOptions]) -> AlignmentMethod:
    """The default method for the maps of one direction or of both, with a lexicon or without."""
    way, lexicon = name.removesuffix(LEXICON), name.endswith(LEXICON)
    if way == BOTH:
        return both_directions(maps[FORWARD], maps[REVERSE], lexicon)
    return one_direction(maps[way], lexicon)


class Text:
    """Sentence pairs that both models have read, and what they read in them."""

    def __init__(
        self,
        pairs: Sequence[TokenPair],
        maps: Mapping[str, ExtractionOptions],
        found: Mapping[str, Sequence[PairMap]],
    ) -> None:
        self.pairs = pairs
        self._maps = maps
        self._read = found

    @classmethod
    def of(cls, models: Models, pairs: Sequence[TokenPair]) -> Text:
        """Read the maps that the profiles name."""
        ways = both_ways(pairs).items()
        return cls(
            pairs, models.maps, {way: read(models.directions[way], [models.maps[way]], of)[0] for way, of in ways}
        )

    def links(self, name: str, lines: Sequence[int]) -> list[Links]:
        """Source-target links of these lines, aligned as one text by :func:`default_method`."""
        way = name.removesuffix(LEXICON)
        first = self._read[FORWARD if way == BOTH else way]
        pairs = [(first[n], self._read[REVERSE][n] if way == BOTH else None) for n in lines]
        found = {pair.id: pair.links for pair in align_corpus(pairs, default_method(name, self._maps))}
        links = [frozenset() if (of := found[n]) is None else of.links for n in lines]
        return [transpose(of) for of in links] if way == REVERSE else links

    def all(self, name: str) -> list[Links]:
        """:meth:`links` of all lines."""
        return self.links(name, range(len(self.pairs)))


def both_ways(pairs: Sequence[TokenPair]) -> dict[str, Sequence[TokenPair]]:
    """The pairs as each model reads them."""
    return {FORWARD: pairs, REVERSE: [(target, source) for source, target in pairs]}


def read(direction: Direction, options: Sequence[ExtractionOptions], pairs: Sequence[TokenPair]) -> list[list[PairMap]]:
    """Links and word maps of each pair in one direction, for each of ``options``; a pair's number is its id."""
    kinds, layers = {of.kind for of in options}, {MapName(name.layer) for of in options for name in of.maps}
    encoded = [direction.encode(pair) for pair in pairs]
    lengths = np.array([[len(side.ids) for side in pair] for pair in encoded], dtype=np.int64)
    found: dict[int, list[PairMap]] = {}
    for rows in length_batches(lengths, MAX_TOKENS):
        maps = direction.maps({n: encoded[n] for n in rows}, sorted(kinds), sorted(layers))
        found.update((n, [read_direction(maps[n], of) for of in options]) for n in rows)
    return [[found[n][k] for n in range(len(pairs))] for k in range(len(options))]


def links_of(way: str, found: Sequence[PairMap], options: ExtractionOptions) -> list[Links]:
    """Source-target links of one model alone."""
    links = [frozenset() if one.scores is None else one.links(options).links for one in found]
    return [transpose(of) for of in links] if way == REVERSE else links


def read_pairs(source: Path, target: Path, lower: bool = True) -> list[TokenPair]:
    """The words of two texts."""
    texts = [path.read_text(encoding="utf-8") for path in (source, target)]
    sides = [[line.split() for line in (text.lower() if lower else text).splitlines()] for text in texts]
    return list(zip(*sides))


def write_links(path: Path, links: Sequence[Links]) -> None:
    """Write Pharaoh lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [" ".join(f"{i}-{j}" for i, j in sorted(of)) for of in links]
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
