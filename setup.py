"""Package metadata; tool settings live in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

setup(
    name="fairseq-norm-plugin",
    version="0.1.0",
    description="Norm-weighted attention maps of trained fairseq Transformers, and the word alignments in them",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.9",
    packages=find_packages(include=["fairseq_norm_plugin*", "alignment_eval*"]),
    package_data={
        "fairseq_norm_plugin": ["py.typed"],
        "alignment_eval": ["py.typed", "report/*.html", "report/*.js", "report/*.css"],
    },
    install_requires=[
        "numpy",
        "pandas",
        "pyarrow",
        "matplotlib",
        "jinja2",
        "msgspec",
        "torch>=2.6",  # torch.load does not unpickle anything unless told so, from that version on
        "tqdm",
        # PyPI's fairseq 0.12.2 does not import on Python >= 3.11; ve-fairseq is its main branch with that mended.
        "ve-fairseq==0.12.3; python_version >= '3.11'",
        "fairseq==0.12.2; python_version < '3.11'",
    ],
    extras_require={
        "data": ["sacremoses", "subword-nmt"],
        "bert": ["safetensors", "tokenizers"],
        "sentencepiece": ["sentencepiece"],
        "marian": ["safetensors", "sentencepiece"],
        "ray": ["ray[data]<2.64; python_version >= '3.10'"],  # 2.64 takes limits of restarts by another name
        "docs": ["mkdocs-material", "mkdocstrings-python", "mkdocs-jupyter", "latex2mathml"],
        "dev": [
            "sacremoses",
            "subword-nmt",
            "safetensors; python_version >= '3.11'",
            "tokenizers; python_version >= '3.11'",
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
            "nbclient; python_version >= '3.11'",  # runs docs/tour.ipynb
            "ipykernel; python_version >= '3.11'",
            "sentencepiece",
            "ray[data]; python_version >= '3.11'",
            "transformers; python_version >= '3.11'",  # what converted models are compared with
            "mkdocs-material; python_version >= '3.11'",
            "mkdocstrings-python; python_version >= '3.11'",
            "mkdocs-jupyter; python_version >= '3.11'",
            "latex2mathml; python_version >= '3.11'",
        ],
    },
    entry_points={
        "console_scripts": [
            "align-eval=alignment_eval.cli:main",
            "norm-align=fairseq_norm_plugin.align.cli:main",
            "norm-analyze=fairseq_norm_plugin.analyze.cli:main",
        ]
    },
)
