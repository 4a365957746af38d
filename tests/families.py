"""Random models of each family in the format of Transformers, with tokenizers of a text in many scripts."""

import io
import json
import sys
from typing import Any

import pytest
import torch
from check_model import LINES

#: The classes of a model, and the languages of the tests; a name of Transformers' directories may be of two families.
KINDS = {
    "marian": ("Marian", "MarianMTModel", ("de", "en")),
    "m2m_100": ("M2M100", "M2M100ForConditionalGeneration", ("de", "fr")),
    "nllb": ("M2M100", "M2M100ForConditionalGeneration", ("deu_Latn", "fra_Latn")),
    "mbart": ("MBart", "MBartForConditionalGeneration", ("de_DE", "fr_XX")),
    "fsmt": ("FSMT", "FSMTForConditionalGeneration", ("de", "en")),
}
NLLB_CODES = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans"]
MBART50_CODES = """\
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO
ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF
pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"""
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
_SPM = "sentencepiece.bpe.model"


def transformers(name):
    """A class of the package, without torchaudio, which fairseq installs and which may be of another torch build."""
    modules: Any = sys.modules
    known = modules.pop("torchaudio", None)
    modules["torchaudio"] = None  # Python then says that there is none
    try:
        return getattr(pytest.importorskip("transformers"), name)
    finally:
        del modules["torchaudio"]
        if known is not None:
            modules["torchaudio"] = known


def sentencepiece_model(path, lines, size, kind="unigram"):
    """Write a SentencePiece model of a text; returns its pieces."""
    sentencepiece = pytest.importorskip("sentencepiece")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*lines] * 3), model_writer=written, vocab_size=size, model_type=kind, minloglevel=2,
        character_coverage=0.995, hard_vocab_limit=False,
    )  # fmt: skip
    path.write_bytes(written.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    return [processor.IdToPiece(number) for number in range(processor.GetPieceSize())]


def tokenizer(directory, name, lines=LINES, size=420):
    """Write the files of a tokenizer as they are released, or as Transformers saves them; returns the rows it needs.

    SentencePiece makes ``size`` pieces of the text; fewer for Marian, which has two models.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if name == "fsmt":
        return _fsmt(directory, lines)
    if name == "marian":
        tokens = ["</s>", "<unk>"]
        for side, fewer in (("source", 120), ("target", 100)):
            pieces = sentencepiece_model(directory / f"{side}.spm", lines, size - fewer)[3:]
            tokens += [piece for piece in pieces if piece not in tokens]
        _vocabulary(directory / "vocab.json", [*tokens, "<pad>"])
        _write(directory, "tokenizer_config", {"source_lang": "de", "target_lang": "en"})
        return len(tokens) + 1
    pieces = sentencepiece_model(directory / _SPM, lines, size, "bpe" if name == "nllb" else "unigram")[3:]
    if name == "m2m_100":
        _vocabulary(directory / "vocab.json", [*SPECIALS, *pieces[::-1]])
        _write(directory, "tokenizer_config", {"tokenizer_class": "M2M100Tokenizer"})
        return len(pieces) + 4 + 100 + 8
    if name == "mbart":
        _write(directory, "tokenizer_config", {"tokenizer_class": "MBart50Tokenizer"})
        _write(directory, "special_tokens_map", {"additional_special_tokens": MBART50_CODES.split()})
        return len(pieces) + 4 + len(MBART50_CODES.split()) + 1
    _write(directory, "tokenizer_config", {"tokenizer_class": "NllbTokenizer"})
    made = transformers("NllbTokenizer").from_pretrained(directory, extra_special_tokens=NLLB_CODES)
    made.save_pretrained(directory)
    return len(pieces) + 4 + len(NLLB_CODES) + 3


def _fsmt(directory, lines):
    learn = pytest.importorskip("subword_nmt.learn_bpe").learn_bpe
    words = pytest.importorskip("sacremoses").MosesTokenizer("de")
    text = [words.tokenize(line, return_str=True, aggressive_dash_splits=True) for line in lines]
    codes = io.StringIO()
    learn(io.StringIO("\n".join(text * 2)), codes, 200)
    merges = codes.getvalue().splitlines()[1:]
    (directory / "merges.txt").write_text("".join(f"{merge}\n" for merge in merges), encoding="utf-8")
    characters = sorted(set("".join(text)) - {" "})
    pieces = [*characters, *(f"{one}</w>" for one in characters), *(merge.replace(" ", "") for merge in merges)]
    tokens = [*SPECIALS, *dict.fromkeys(pieces)]
    for side, of_side in (("src", tokens), ("tgt", [*tokens[:4], *tokens[:3:-1]])):
        _vocabulary(directory / f"vocab-{side}.json", of_side)
    _write(directory, "tokenizer_config", {"langs": ["de", "en"], "tokenizer_class": "FSMTTokenizer"})
    return len(tokens)


def config(name, rows, width=16, layers=(2, 3), **options):
    """Transformers' configuration of a small model of a family, of other sizes in the encoder than in the decoder."""
    kind = KINDS[name][0]
    sizes = {"src_vocab_size": rows, "tgt_vocab_size": rows} if name == "fsmt" else {"vocab_size": rows}
    if name == "marian":
        sizes.update(decoder_vocab_size=rows, pad_token_id=rows - 1, decoder_start_token_id=rows - 1, eos_token_id=0)
    if name == "mbart":
        sizes.update(decoder_start_token_id=2)
    made = {
        "d_model": width,
        "encoder_layers": layers[0],
        "decoder_layers": layers[1],
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 128,
        "scale_embedding": True,
        **({"langs": ["de", "en"]} if name == "fsmt" else {}),
        **sizes,
        **options,
    }
    return transformers(f"{kind}Config")(**made)


@torch.no_grad()
def save(directory, name, text=(LINES, 420), sharp=False, **options):
    """Write a model with random weights, so large that translations depend on the source; returns it.

    ``</s>`` is likely enough to end a translation after some tokens.

    Args:
        directory: to write to.
        name: one of :data:`KINDS`.
        text: the arguments of :func:`tokenizer`.
        sharp: attend to single tokens, so that nearly each source has another translation; but rounding grows, too.
        options: of config.json.
    """
    made = config(name, tokenizer(directory, name, *text), **options)
    model = transformers(KINDS[name][1])(made).eval()
    generator = torch.Generator().manual_seed(1)
    small = made.d_model**-0.5
    large = 1.5 * small if name in ("marian", "fsmt") else small  # states grow where layer norms come first
    for entry, parameter in model.named_parameters():
        embedding = "embed" in entry or "shared" in entry or "output_projection" in entry
        std = (0.5 * small if made.scale_embedding else 0.5) if embedding else large
        if "encoder_attn.v_proj" in entry or "encoder_attn.out_proj" in entry:
            std *= 1.5  # what is translated depends on it
        if sharp:
            mixes = "encoder.layers" in entry and "self_attn.out_proj" in entry  # the tokens of the source
            std *= 3.0 if embedding else 2.0 if "encoder_attn" in entry else 0.3 if mixes else 1.0
        if entry.endswith("bias"):
            std *= 0.2
        if "norm" in entry:
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.15 + float("weight" in entry))
        elif "embed_positions" not in entry or name == "mbart":
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    eos = model.get_output_embeddings().weight[made.eos_token_id]
    decoder = model.model.decoder
    norm = decoder.layers[-1].final_layer_norm if name in ("marian", "fsmt") else decoder.layer_norm
    if sharp:
        norm.weight *= 3  # and to few words
    norm.bias += eos * ((6.0 if sharp else 4.0) / eos.square().sum())
    if name == "marian":
        if not made.share_encoder_decoder_embeddings:
            tokens = list(json.loads((directory / "vocab.json").read_text(encoding="utf-8")))
            _vocabulary(directory / "target_vocab.json", [*tokens[:2], *tokens[-2:1:-1], tokens[-1]])
        model.final_logits_bias += torch.randn(model.final_logits_bias.shape, generator=generator) * 0.3
    model.save_pretrained(directory)
    return model


def _vocabulary(path, tokens):
    path.write_text(json.dumps({token: number for number, token in enumerate(tokens)}), encoding="utf-8")


def _write(directory, name, content):
    (directory / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
