"""A report page taken apart again, independently of the code that makes it; gold of its tests."""

import base64
import json
import zlib
from html.parser import HTMLParser

import numpy as np

from alignment_eval.links.formats import GoldSentence
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

    def __init__(self, html):
        super().__init__()
        self.blocks = {}
        self.tags = []
        self.contents = {}
        self._open = ""
        self.feed(html)
        self.close()
        self.index = json.loads(self.blocks["index"])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data):
        attributes = self.tags[-1][1] if self.tags else {}
        if self._open == "script" and attributes.get("type"):
            if data.strip():
                self.blocks[str(attributes["id"])] = zlib.decompress(base64.b64decode(data))
        else:
            self.contents.setdefault(self._open, []).append(data)

    def handle_endtag(self, tag):
        self._open = ""

    def aers(self):
        """Fractions, [maps and then systems, sentences]."""
        rows = len(self.index["maps"]) + len(self.index["systems"])
        return np.frombuffer(self.blocks["aers"], "<u2").reshape(rows, -1) / 10_000

    def sentence(self, place):
        """Entry, token maps of all map numbers [maps, T, S], links [maps, source words, target words]."""
        entry, kinds = self.index["sentences"][place], self.index["kinds"]
        S, T = len(entry["source"]["pieces"]), len(entry["target"]["pieces"])
        words = len(entry["source"]["words"]), len(entry["target"]["words"])
        M = len(self.index["maps"])
        data = self.blocks[f"s{place}"]
        rows = (len(data) - M * -(-words[0] * words[1] // 8)) // (S + 2)
        scales = (np.frombuffer(data[: 2 * rows], "<u2").astype("<u4") << 16).view("<f4")
        steps = np.frombuffer(data[2 * rows :][: rows * S], np.uint8).reshape(rows, S)
        stored = (steps / self.index["steps"] * scales[:, None]).reshape(-1, T, S)
        bits = np.frombuffer(data[rows * (S + 2) :], np.uint8).reshape(M, -1)
        links = np.unpackbits(bits, axis=-1, count=words[0] * words[1]).reshape(M, *words).astype(bool)
        maps = []
        for map_ in self.index["maps"]:
            heads, plane = (kinds[map_["kind"]][name] for name in ("heads", "plane"))
            head = heads if map_["head"] is None else map_["head"]
            maps.append(stored[plane + map_["layer"] * (heads + 1) + head])
        return entry, np.stack(maps), links
