"""A real corpus that every machine has: the definitions of Python's standard library, as tokens on disk.

Each top-level function and class of the standard library's sources is a sample, tokenised with the cl100k vocabulary
that ships inside the `bpe-openai` package. Tokens outside the `VOCABULARY - 1` most frequent become token 0, so that a
model small enough for a CPU can learn something. Nothing is downloaded.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import bpe_openai
import datasets
import numpy as np

VOCABULARY = 1024


def definitions() -> Iterator[str]:
    """Yield the source of every top-level function and class of the standard library."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
        except (UnicodeDecodeError, SyntaxError):
            continue  # the library ships a few files that test exactly this
        lines = source.splitlines(keepends=True)
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield "".join(lines[node.lineno - 1 : node.end_lineno])


def write_corpus(folder: Path | str, *, max_length: int = 512) -> None:
    """Tokenise the corpus and save it to `folder` with `save_to_disk`; samples above `max_length` tokens are cut."""
    encode = bpe_openai.get_encoding("cl100k_base").encode_ordinary
    samples = [np.asarray(encode(text)[:max_length]) for text in definitions()]
    tokens, counts = np.unique(np.concatenate(samples), return_counts=True)
    kept = tokens[np.argsort(-counts, kind="stable")[: VOCABULARY - 1]]
    small = np.zeros(int(tokens.max()) + 1, dtype=np.int32)
    small[kept] = np.arange(1, kept.size + 1)
    rows = {
        "input_ids": [small[sample] for sample in samples],
        "loss_mask": [(small[sample] > 0).astype(np.int8) for sample in samples],
        "seq_len": [sample.size for sample in samples],
    }
    datasets.Dataset.from_dict(rows).save_to_disk(str(folder))
