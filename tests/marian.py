"""Random Marian models in the format of Transformers."""

import json

import torch

ENDS = ["</s>", "<unk>", "<pad>"]
ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")


def vocabulary(size, pad=None):
    """Tokens by Marian's ids, ``<pad>`` by default as the last; every third begins no word."""
    tokens = [*ENDS[:2], *(f"{'▁' if i % 3 else ''}w{i}" for i in range(size - 3))]
    tokens.insert(size if pad is None else pad, ENDS[2])
    return tokens


def config(size=40, **options):
    """config.json of a Marian model: a small one of OPUS-MT's form, but for ``options``."""
    return {
        "model_type": "marian",
        "activation_function": "swish",
        "vocab_size": size,
        "decoder_vocab_size": size,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 64,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "normalize_before": False,
        "eos_token_id": 0,
        "pad_token_id": size - 1,
        "decoder_start_token_id": size - 1,
        **options,
    }


def tensors(config):
    """Random tensors under Transformers' names, so large that translations depend on the source.

    None is 0, also the row of ``<pad>``.  ``</s>`` is likely enough to end a translation after some tokens.
    """
    generator = torch.Generator().manual_seed(1)
    width = config["d_model"]
    small = width**-0.5

    def tensor(*shape, std=2 * small):
        return torch.randn(*shape, generator=generator) * std

    result = {}
    for stack in ("encoder", "decoder"):
        attentions = ("self_attn", "encoder_attn")[: 2 if stack == "decoder" else 1]
        for number in range(config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{number}"
            shapes = {f"{attention}.{part}": (width, width) for attention in attentions for part in ATTENTION}
            inner = config[f"{stack}_ffn_dim"]
            shapes.update({"fc1": (inner, width), "fc2": (width, inner)})
            for name, shape in shapes.items():
                result[f"{layer}.{name}.weight"], result[f"{layer}.{name}.bias"] = tensor(*shape), tensor(shape[0])
            for name in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
                result[f"{layer}.{name}.weight"] = 1 + tensor(width, std=0.2)
                result[f"{layer}.{name}.bias"] = tensor(width, std=0.1)
    result["model.shared.weight"] = tensor(config["vocab_size"], width, std=small)
    result["final_logits_bias"] = tensor(1, config["vocab_size"], std=0.3)
    result["final_logits_bias"][0, 0] = torch.tensor(config["vocab_size"]).log() - 2
    return result


def save(directory, config, weights=None, tokens=()):
    """Write a model in Transformers' format; the SentencePiece models are none."""
    from safetensors.torch import save_file

    directory.mkdir(parents=True, exist_ok=True)
    sizes = ("vocab_size", "decoder_vocab_size")
    tokens = tokens or [vocabulary(config[size], config["pad_token_id"]) for size in sizes]
    files = {"config.json": config, "tokenizer_config.json": {"source_lang": "de", "target_lang": "en"}}
    for name, of_side in zip(("vocab.json", "target_vocab.json"), tokens):
        files[name] = {token: number for number, token in enumerate(of_side)}
    if tokens[0] == tokens[-1]:
        files.pop("target_vocab.json", None)
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content), encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(b"none")
    save_file(tensors(config) if weights is None else weights, directory / "model.safetensors")
    return directory
