"""How the text of a model is made of raw text: as it is stated, found with the model, and kept in its profile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional, Union

from alignment_eval.command_line import option
from alignment_eval.errors import InputError, printable, warn_user
from alignment_eval.reading import file_hash
from alignment_eval.signature import Value

#: How raw text is normalised before it is tokenised.
NORMALIZATIONS = ("none", "nfc", "moses")
#: What the words are that links count.
WORDS = ("tokens", "whitespace", "characters")


@dataclass(frozen=True)
class TextRecipe:
    """How raw text becomes the words that links count and the subwords that a model reads.

    What is None is not stated: it is as another recipe says (:meth:`over`), or as a default.
    """

    tokenizer: Optional[str] = option("of fairseq: moses, nltk, space; none: the text is tokenised", metavar="NAME")
    lowercase: Optional[bool] = option("the model reads lower case", action="store_const", const=True)
    bpe: Optional[str] = option(
        "subwords of fairseq: subword-nmt, fastbpe, sentencepiece, tokenizers, …; none: the text is in subwords "
        "(default: by --bpe-codes)",
        metavar="NAME",
    )
    #: options of both that are no files, by fairseq's names
    options: dict[str, Union[bool, str]] = field(default_factory=dict)
    #: option -> its files, of both languages or of source and target; a profile has their names in its directory
    files: dict[str, list[str]] = field(default_factory=dict)
    normalize: Optional[str] = option(
        "before the tokenizer: nfc, composed and only printed characters; moses, plain punctuation, too",
        choices=NORMALIZATIONS,
    )
    languages: Optional[tuple[str, str]] = None  #: of source and target; None: not known
    hashes: dict[str, str] = field(default_factory=dict)  #: name of a file -> hash of its content, in a profile
    words: tuple[str, str] = option(
        "the words that are linked: tokens, of the tokenizer; whitespace, what it separates; characters, in scripts "
        "without spaces; or a file with the words of each line; one for both texts, or two (default: tokens)",
        ("tokens", "tokens"),
        nargs="+",
        metavar="WHAT",
    )
    mark: str = "auto"  #: the subword mark of text in subwords; as the words, not in a profile

    @property
    def says_subwords(self) -> bool:
        """Whether it says what the subwords are."""
        return self.bpe is not None or "bpe_codes" in self.files

    @property
    def paths(self) -> list[str]:
        """All files that there are."""
        return [file for _, files in sorted(self.files.items()) for file in files if Path(file).is_file()]

    def over(self, other: TextRecipe) -> TextRecipe:
        """This recipe; what it does not state is as ``other`` has it."""
        stated = {name: value for name, value in vars(self).items() if value is not None}
        both = {name: {**getattr(other, name), **getattr(self, name)} for name in ("options", "files", "hashes")}
        return replace(other, **{**stated, **both})

    def exchanged(self, codes: Sequence[str] = ()) -> TextRecipe:
        """That of the other direction: source and target change places, and it may have ``codes`` of its own."""
        files = {name: files[::-1] for name, files in self.files.items()}
        return replace(self, files={**files, **({"bpe_codes": [*codes]} if codes else {})}, words=self.words[::-1])

    # ---- in a profile

    def check_names(self) -> TextRecipe:
        """Check that all files lie beside the profile; returns the recipe itself.

        Raises:
            ValueError: one does not.
        """
        # fairseq would read the file that an option names, or download it
        values = [(option, [value]) for option, value in self.options.items() if isinstance(value, str)]
        for what, names in (*values, *self.files.items(), ("languages", self.languages or ())):
            for name in names:
                if Path(name).name != name:
                    place = f"text_recipe: {printable(what, 80)}: {printable(name, 80)}"
                    raise ValueError(f"{place} is a path, outside of the directory of the profile")
        return self

    def kept_in(self, directory: Path, languages: tuple[str, str]) -> TextRecipe:
        """The recipe for a profile in ``directory``; warns of files that lie elsewhere."""
        for file in (Path(file) for files in self.files.values() for file in files):
            if file.resolve().parent != directory.resolve():
                warn_user(
                    f"{file}: is not in {directory}, where the profile looks for it; copy it there, or state it in "
                    f"each call"
                )
        return TextRecipe(
            tokenizer=None if self.tokenizer == "none" else self.tokenizer,
            lowercase=self.lowercase,
            bpe=self.bpe,
            options={name: {"true": True, "false": False}.get(str(v).lower(), v) for name, v in self.options.items()},
            files={option: [Path(file).name for file in files] for option, files in self.files.items()},
            normalize=None if self.normalize == "none" else self.normalize,
            languages=languages,
            hashes={Path(file).name: file_hash(file) for files in self.files.values() for file in files},
        ).check_names()

    def found_in(self, directory: Path) -> TextRecipe:
        """The recipe of a profile in ``directory``, with the paths of its files."""
        named = {key: names for key, names in self.files.items() if names}
        return replace(self, files={o: [str(directory / name) for name in names] for o, names in named.items()})

    def check_files(self, files: dict[str, list[str]], exist: bool) -> None:
        """Check that the ``files`` of a model's text are as when its profile, of which this is, was written.

        ``exist``: its own must be there.

        Raises:
            InputError: a file is missing, or another one.
        """
        for file in (file for named in self.files.values() for file in named if exist):
            if not Path(file).is_file():
                raise InputError(
                    f"{file}: no such file, but the profile names it; copy it there, or state tokenizer and subwords"
                )
        for key, named in self.files.items():
            used = files.get(key, [])
            for file, name in ((used[end], Path(named[end]).name) for end in (0, -1) if used and named):
                if self.hashes.get(name) not in (None, file_hash(file)):
                    raise InputError(
                        f"{file}: is not the {printable(name, 80)} that the model was calibrated with; give that file, "
                        f"or state this one and calibrate again"
                    )

    # ---- for readers

    def fields(self) -> dict[str, Value]:
        """What a signature says of the text."""
        options = {name: str(value) for name, value in sorted(self.options.items())}
        return {
            "tokenizer": self.tokenizer or "default",
            "normalize": self.normalize or "none",
            "lowercase": bool(self.lowercase),
            "bpe": self.bpe or "default",
            "codes": ",".join(map(file_hash, self.paths)) or None,
            "words": ",".join(self.words),
            "mark": self.mark,
            **({"text_options": json.dumps(options).replace("|", r"\u007c")} if options else {}),
        }

    @property
    def described(self) -> str:
        """The recipe in words."""
        normalised = "" if self.normalize in (None, "none") else f"normalisation {self.normalize}, "
        tokenizer = "no tokenizer" if self.tokenizer in (None, "none") else f"tokenizer {self.tokenizer}"
        case = ", lower case" if self.lowercase else ""
        subwords = f"subwords {self.bpe or ('by codes' if self.says_subwords else 'none')}"
        return f"{normalised}{tokenizer}{case}, {subwords}" + (f" ({', '.join(self.paths)})" if self.paths else "")
