"""Package metadata; tool settings live in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
#: The version is written there only.
VERSION = re.search('^__version__ = "(.+)"$', (HERE / "alignment_eval/__init__.py").read_text("utf-8"), re.MULTILINE)[1]
#: The bundled models, with what is needed to use them: fairseq_norm_plugin.load("demo").
DEMO = ["*.pt", "*.json", "*.parquet", "*.txt", "codes.bpe", "demo.*", "*.pharaoh", "README.md"]

#: What alignment_eval and align-eval need; the clusters of an older regex do not join consonants of Khmer and Burmese.
CORE = ["numpy", "pandas", "pyarrow", "matplotlib", "jinja2", "msgspec", "regex>=2025.11.3", "tqdm"]
#: What fairseq_norm_plugin needs more, beside a fairseq, which brings torch.  Small, so always installed: whoever has a
#: fairseq needs nothing but this package.
PLUGIN = ["sacremoses", "subword-nmt"]
#: A fairseq with compiled modules where there are wheels of one (its main branch), and a torch that reads checkpoints
#: without running code.  Which fairseq serves elsewhere: fairseq_norm_plugin/environment.py.
HAS_WHEEL = "python_version >= '3.11' and python_version < '3.13' and platform_machine == 'x86_64'"
FAIRSEQ = ["torch>=2.6", f"ve-fairseq==0.12.3; sys_platform == 'linux' and {HAS_WHEEL}"]
#: TensorBoard of fairseq-train.
TENSORBOARD = ["tensorboard"]
#: Models in the format of Hugging Face Transformers, and their text.
HUGGINGFACE = ["safetensors", "sentencepiece>=0.2.2", "tokenizers"]
#: norm-align --ray, and AlignBatch in Ray Data.
RAY = ["ray[data]"]
#: --split-sentences.
SENTENCES = ["sentencex>=1.0.32"]
DOCS = ["mkdocs-material", "mkdocstrings-python", "mkdocs-jupyter", "latex2mathml"]
TEST = [
    "pytest",
    "pytest-xdist",
    "pytest-cov",
    "filelock",
    "hypothesis",
    "scipy",
    "ruff",
    "mypy",
    "import-linter",
    "pandas-stubs",
    "selenium",  # the report in a real browser, where there is one
    "nbclient",  # runs docs/tour.ipynb
    "ipykernel",
    "transformers",  # what converted models are compared with
]

setup(
    name="fairseq-norm-plugin",
    version=VERSION,
    description="Norm-weighted attention maps of trained fairseq Transformers, and the word alignments in them",
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=[*find_packages(include=["fairseq_norm_plugin*", "alignment_eval*"]), "fairseq_norm_plugin.demo"],
    package_dir={"fairseq_norm_plugin.demo": "data/demo"},
    package_data={
        "fairseq_norm_plugin": ["py.typed"],
        "fairseq_norm_plugin.demo": DEMO,
        "alignment_eval": ["py.typed", "figures/*.html", "figures/*.js", "figures/*.css", "figures/*.mplstyle"],
    },
    install_requires=[*CORE, *PLUGIN],
    extras_require={
        "fairseq": FAIRSEQ,
        "huggingface": HUGGINGFACE,
        "sentencepiece": ["sentencepiece>=0.2.2"],
        "ray": RAY,
        "sentences": SENTENCES,
        "tensorboard": TENSORBOARD,
        "docs": DOCS,
        "test": [*TEST, *HUGGINGFACE, *RAY, *SENTENCES, *DOCS],
    },
    entry_points={
        "console_scripts": [
            "align-eval=alignment_eval.commands:main",
            "norm-align=fairseq_norm_plugin.align.cli:main",
            "norm-analyze=fairseq_norm_plugin.analyze.cli:main",
        ]
    },
)
