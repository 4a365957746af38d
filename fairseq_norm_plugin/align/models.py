"""The models of a command line, and how text is cut for them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch

from fairseq_norm_plugin.align.direction import Direction
from fairseq_norm_plugin.align.text import Segmenter
from fairseq_norm_plugin.api import NormModel, load
from fairseq_norm_plugin.tokens import dictionary_mark


def load_models(args: argparse.Namespace) -> list[NormModel]:
    """The source-target model, and the target-source model if there is one, on their device.

    Raises:
        InputError: a checkpoint or a dictionary cannot be used.
    """
    models = [load(args.path, args.data, args.source_lang, args.target_lang, subword_mark=args.subword_mark)]
    if args.reverse_path is not None:
        cfg, data = models[0].task.cfg, args.reverse_data or args.data
        models.append(load(args.reverse_path, data, cfg.target_lang, cfg.source_lang, subword_mark=args.subword_mark))
    if torch.cuda.is_available() and not args.cpu:
        for model in models:
            for one in model.models:
                one.cuda()
    return models


def directions_of(args: argparse.Namespace, models: Sequence[NormModel]) -> list[Direction]:
    """The models with what cuts text into their subwords.

    Raises:
        InputError: BPE codes cannot be read.
    """
    codes = args.bpe_codes
    each = [(args.path, codes), (args.reverse_path, args.reverse_bpe_codes or (codes and codes[::-1]))]
    directions = []
    for model, (path, of_model) in zip(models, each):
        dictionaries = model.task.source_dictionary, model.task.target_dictionary
        if of_model is None:
            marks = [dictionary_mark(dictionary, args.subword_mark) for dictionary in dictionaries]
            segmenters = Segmenter(None, marks[0]), Segmenter(None, marks[1])
        else:
            segmenters = Segmenter(of_model[0]), Segmenter(of_model[-1])
        directions.append(Direction(model.models, dictionaries, segmenters, path))
    return directions
