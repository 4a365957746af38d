"""A translation model as stock fairseq, or Transformers, runs it without the plugin: ids, translations, forced passes.

What check_model.py and the tests compare the plugin with.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import __version__, checkpoint_utils
from torch import Tensor

import fairseq_norm_plugin as fnp
from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.capture.attention import teacher_forcing
from fairseq_norm_plugin.checkpoints.read import fairseq_errors
from fairseq_norm_plugin.text.offsets import normalised
from fairseq_norm_plugin.text.recipe import build_encoder

#: Ids of tokens with all tags and ``</s>``, in fairseq's numbers.
Ids = list[int]


class Decoded(NamedTuple):
    """What forced decoding of one pair gives."""

    log_probs: Tensor  #: of the target's tokens, [T]
    weights: Tensor  #: of the encoder-decoder attention, [L, H, T, S]
    states: Tensor  #: what the encoder gives, [S, D]


class Fairseq:
    """Stock fairseq: its tokenizers, network and search, by the task and dictionaries of a loaded model."""

    name = f"stock fairseq {__version__}"

    def __init__(self, model: fnp.NormModel) -> None:
        path, self._recipe = model.forward.name, model.text
        if len(model.models) > 1:
            raise UsageError(f"{path}: an ensemble: give one checkpoint at a time")
        self.task, self._first = model.task, model.forward.special_tokens.first
        with fairseq_errors(f"{path}: stock fairseq cannot load the model", "give one that it can translate with"):
            state = checkpoint_utils.load_checkpoint_to_cpu(path)
            self.network = self.task.build_model(state["cfg"].model)
            self.network.load_state_dict(state["model"], strict=True, model_cfg=state["cfg"].model)
        self.decoder = self.network.eval().decoder
        self._encoders = [self._built(language, which) for which, language in enumerate(model.languages)]

    def _built(self, language: str, which: int) -> list[Any]:
        """fairseq's tokenizer and subwords of the source (``which`` 0) or the target (1); None: there are none."""
        recipe = self._recipe
        bpe = (recipe.bpe or ("subword_nmt" if "bpe_codes" in recipe.files else "none")).replace("-", "_")
        options = {**recipe.options, **{name: files[-which] for name, files in recipe.files.items()}}
        languages = {"source_lang": language, "target_lang": language}
        chosen = [("tokenizer", recipe.tokenizer, languages), ("bpe", bpe, {})]
        return [
            None if name in (None, "none") else build_encoder(registry, name, options, **more)
            for registry, name, more in chosen
        ]

    def encode(self, line: str, which: int = 0) -> Ids:
        """A raw source (``which`` 0) or target (1) as fairseq-interactive reads it.

        Normalisation and lower case, which it lacks, are the plugin's.
        """
        tokenizer, bpe = self._encoders[which]
        line = normalised(line, self._recipe.normalize or "none").text
        line = line if tokenizer is None else tokenizer.encode(line)
        line = line.lower() if self._recipe.lowercase else line
        line = line if bpe is None else bpe.encode(line)
        dictionary = (self.task.source_dictionary, self.task.target_dictionary)[which]
        ids = dictionary.encode_line(line, add_if_not_exist=False).long()
        data = self.task.build_dataset_for_inference([ids], [len(ids)])
        tokens: Ids = data.collater([data[0]])["net_input"]["src_tokens"][0].tolist()
        return tokens

    def translate(self, source: Ids, beam: int) -> Ids:
        """The best hypothesis of a beam search."""
        generator = self.task.build_generator([self.network], Namespace(beam=beam))
        sample = {"net_input": {"src_tokens": torch.tensor([source]), "src_lengths": torch.tensor([len(source)])}}
        ((best, *_),) = self.task.inference_step(generator, [self.network], sample)
        tokens: Ids = best["tokens"].tolist()
        return tokens

    def decode(self, source: Ids, target: Ids) -> Decoded:
        """Force the decoder to give ``target``."""
        weights: list[Tensor] = []
        network, sample = self.network, {"target": torch.tensor([target])}
        needed = {"need_weights": True, "need_head_weights": True}
        with teacher_forcing(network), ExitStack() as stack:
            for layer in self.decoder.layers:
                ask = layer.encoder_attn.register_forward_pre_hook(
                    lambda _, args, kw: (args, {**kw, **needed}), with_kwargs=True
                )
                keep = layer.encoder_attn.register_forward_hook(lambda _, args, output: weights.append(output[1][:, 0]))
                stack.callback(ask.remove)
                stack.callback(keep.remove)
            encoded = network.encoder(torch.tensor([source]), torch.tensor([len(source)]))
            output = network.decoder(torch.tensor([[self._first, *target[:-1]]]), encoder_out=encoded)
        log_probs = network.get_normalized_probs(output, log_probs=True, sample=sample)[0]
        return Decoded(_of(log_probs, target), torch.stack(weights), encoded["encoder_out"][0][:, 0])


class Transformers:
    """Transformers' own tokenizer and network of a directory, in fairseq's numbers."""

    def __init__(self, model: fnp.NormModel, directory: Path) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # else it may look for other forms of the weights
        try:
            library = importlib.import_module("transformers")
            networks, tokenizers = library.AutoModelForSeq2SeqLM, library.AutoTokenizer
        except (ImportError, OSError, RuntimeError) as error:  # a torchaudio of another build raises all of these
            raise InputError(f"--transformers: Transformers cannot be imported ({error}); install it") from error
        self.name, special = f"Transformers {library.__version__}", model.forward.special_tokens
        with fairseq_errors(f"{directory}: Transformers cannot load the model", "expected one that it can run"):
            options = {"attn_implementation": "eager", "dtype": torch.float32, "trust_remote_code": False}
            self.network = networks.from_pretrained(directory, **options).eval()
            self.decoder = self.network.model.decoder
            self._config = self.network.config
            self._marian, fsmt = (self._config.model_type == name for name in ("marian", "fsmt"))
            languages = {} if self._marian or fsmt else dict(zip(("src_lang", "tgt_lang"), model.languages))
            self.tokenizer = tokenizers.from_pretrained(directory, trust_remote_code=False, **languages)
        if fsmt:  # its own function fails in float64
            vars(sys.modules[type(self.network).__module__])["fill_with_neg_inf"] = lambda mask: mask.fill_(-1e9)
        dictionaries = [vocabulary.dictionary for vocabulary in model.vocabularies]
        self._ours: list[dict[int, int]] = []  # Transformers' ids -> fairseq's, of source and target
        for dictionary, name in zip(dictionaries, ("vocab.json", "target_vocab.json")):
            numbers = {number: number for number in range(len(dictionary))}
            if self._marian:
                file = directory / (name if (directory / name).exists() else "vocab.json")
                tokens = json.loads(file.read_text(encoding="utf-8"))
                numbers = {number: dictionary.index(token) for token, number in tokens.items()}
            self._ours.append(numbers)
        self._theirs = [{ours: number for number, ours in numbers.items()} for numbers in self._ours]
        self._first = self._config.decoder_start_token_id if self._marian else special.first
        self._tag = special.target_prefix[0] if special.target_prefix else None
        self._after_end = special.target_suffix[1:]  # which Transformers leaves out
        self._longest = min(200, model.forward.limits[1] - 1)

    def encode(self, line: str, which: int = 0) -> Ids:
        """A raw source (``which`` 0) or target (1) as ids."""
        encoded = self.tokenizer(**{("text", "text_target")[which]: line})["input_ids"]
        return [self._ours[which][number] for number in encoded]

    def translate(self, source: Ids, beam: int) -> Ids:
        """The best hypothesis of a beam search."""
        eos, pad = self._config.eos_token_id, self._config.pad_token_id
        ids = torch.tensor([[self._theirs[0][number] for number in source]])

        def force(tokens: Tensor, scores: Tensor) -> Tensor:
            """Force a tag and the last </s> as fairseq does; Transformers' way gives them the log probability 0."""
            forced = eos if tokens.size(1) > self._longest else self._tag if tokens.size(1) == 1 else None
            if forced is not None:
                scores[:, torch.arange(scores.size(1)) != forced] = -torch.inf
            return scores

        found = self.network.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=beam, max_new_tokens=self._longest + 1,
            min_new_tokens=1, do_sample=False, early_stopping=True, bad_words_ids=[[pad]], forced_eos_token_id=None,
            forced_bos_token_id=None, no_repeat_ngram_size=0, max_length=None, pad_token_id=pad, eos_token_id=eos,
            decoder_start_token_id=self._first, length_penalty=1.0, logits_processor=[force],
        )  # fmt: skip
        tokens = [self._ours[1][number] for number in found[0, 1:].tolist()]
        return [*tokens[: tokens.index(2) + 1], *self._after_end]

    def decode(self, source: Ids, target: Ids) -> Decoded:
        """Force the decoder to give ``target``."""
        ids = torch.tensor([[self._theirs[0][number] for number in source]])
        wanted = [self._theirs[1][number] for number in target]
        inputs = torch.tensor([[self._first, *wanted[:-1]]])
        options = {"attention_mask": torch.ones_like(ids), "output_attentions": True, "use_cache": False}
        output = self.network(input_ids=ids, decoder_input_ids=inputs, **options)
        log_probs = _of(output.logits[0].log_softmax(-1), wanted)
        return Decoded(log_probs, torch.cat(output.cross_attentions), output.encoder_last_hidden_state[0])


def _of(log_probs: Tensor, target: Ids) -> Tensor:
    """Those of the target's tokens [T], of all tokens [T, V]."""
    return log_probs.gather(-1, torch.tensor(target)[:, None])[:, 0]


Reference = Fairseq | Transformers
