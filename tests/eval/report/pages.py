"""A report page taken apart again, independently of the code that makes it; gold of its tests."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.links.sets import GoldSentence
from alignment_eval.scoring.significance import Resampling

HOSTILE = "</script><img/src=x/onerror=alert(1)>"
GOLD = [
    GoldSentence(frozenset({(0, 0), (2, 2)}), frozenset({(1, 1)})),
    GoldSentence(frozenset({(5, 5)})),  # of the skipped sentence
    GoldSentence(frozenset()),
    GoldSentence(frozenset({(0, 1)})),
    GoldSentence(frozenset({(0, 0)})),
]
FAST = Resampling(100)


class Page(HTMLParser):
    """The elements of a page: ``blocks`` id -> unpacked data; ``tags``; ``contents`` tag -> texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.blocks: dict[str, bytes] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.contents: dict[str, list[str]] = {}
        self._open = ""
        self.feed(html)
        self.close()
        self.index = json.loads(self.blocks["index"])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        attributes = self.tags[-1][1] if self.tags else {}
        if self._open == "script" and attributes.get("type"):
            if data.strip():
                self.blocks[str(attributes["id"])] = zlib.decompress(base64.b64decode(data))
        else:
            self.contents.setdefault(self._open, []).append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def aers(self) -> NDArray[np.float64]:
        """Fractions, [maps and then systems, sentences]."""
        rows = len(self.index["maps"]) + len(self.index["systems"])
        return np.frombuffer(self.blocks["aers"], "<u2").reshape(rows, -1) / 10_000

    def sentence(self, place: int) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[np.bool_]]:
        """Entry, token maps of all map numbers [maps, T, S], links [maps, source words, target words]."""
        entry, kinds = self.index["sentences"][place], self.index["kinds"]
        S, T = len(entry["source"]["pieces"]), len(entry["target"]["pieces"])
        words = len(entry["source"]["words"]), len(entry["target"]["words"])
        L, M = len(self.index["layers"]), len(self.index["maps"])
        data = self.blocks[f"s{place}"]
        bits_size = M * -(-words[0] * words[1] // 8)
        normed = L * max((k["heads"] for k in kinds.values() if k["normed"]), default=0)
        planes = (len(data) - bits_size - 2 * normed * (S + T)) // (T * (S + 2))
        sizes = [normed * S, planes * T, normed * T]
        halves = np.frombuffer(data[: 2 * sum(sizes)], "<u2").astype("<u4") << 16
        flat, scales, of_normed = np.split(halves.view("<f4"), np.cumsum(sizes)[:2])
        norms = flat.reshape(L, -1, S)
        rest = data[2 * sum(sizes) :]
        steps = np.frombuffer(rest[: planes * T * S], np.uint8).reshape(planes, T, S) / self.index["steps"]
        stored = np.zeros(steps.shape)
        for plane, t, s in np.argwhere(steps):
            stored[plane, t, s] = steps[plane, t, s] * scales[plane * T + t]
            if plane < normed:
                both = 1 / scales[plane * T + t], flat[plane * S + s] / of_normed[plane * T + t]
                stored[plane, t, s] = steps[plane, t, s] / max(both)
        bits = np.frombuffer(rest[planes * T * S :], np.uint8).reshape(M, -1)
        links = np.unpackbits(bits, axis=-1, count=words[0] * words[1]).reshape(M, *words).astype(bool)
        maps = []
        for place_ in self.index["maps"]:
            kind, layer, head = kinds[place_["kind"]], place_["layer"], place_["head"]
            heads = stored[kind["head_plane"] + layer * kind["heads"] :][: kind["heads"]]
            if head is not None:
                maps.append(heads[head] * (norms[layer, head] if kind["normed"] else 1))
            elif kind["layer_plane"] is None:
                maps.append(heads.mean(axis=0))
            else:
                maps.append(stored[kind["layer_plane"] + layer])
        return entry, np.stack(maps), links
