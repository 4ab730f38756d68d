"""Read damaged copies of good files, in a process of its own: `python mutate.py FOLDER ROUNDS SEED`.

Every read must end in lengths or in a LengthwiseError that names the file. Anything else (another exception, a crash, a
hang, memory without bound) ends this process in a way that the test sees. The name of the last file is printed before
it is read, so that a crash can be reproduced.
"""

from __future__ import annotations

import random
import resource
import sys
import warnings
from pathlib import Path

import lengthwise as lw
from lengthwise.sources import arrays

#: Address space, in bytes: a damaged file must not make the reader allocate more.
MEMORY = 12 << 30
INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)
COLUMNS = (None, "lists", "numbers", "encoded", "runs", "views", "gaps", "fixed", "nested", "nested.ids")


def mutated(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    kind = rng.randrange(6)
    if kind == 0:
        return bytes(data[: rng.randrange(len(data))])
    if kind == 1:
        start = rng.randrange(len(data))
        return bytes(data[:start] + data[start + rng.randrange(1, 64) :])
    if kind == 2:
        start = rng.randrange(len(data))
        return bytes(data[:start] + rng.randbytes(rng.randrange(1, 16)) + data[start:])
    # Metadata is at both ends of these formats: aim there as often as anywhere.
    spans = ((0, len(data)), (0, min(1_024, len(data))), (max(0, len(data) - 1_024), len(data)))
    for _ in range(rng.randrange(1, 9)):
        index = rng.randrange(*rng.choice(spans))
        data[index] = rng.choice((rng.randrange(256), rng.choice(INTERESTING), data[index] ^ 1 << rng.randrange(8)))
    return bytes(data)


def main(folder: Path, rounds: int, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    originals = sorted(path for path in folder.iterdir() if path.is_file())
    outcomes = {"read": 0, "refused": 0}
    for turn in range(rounds):
        original = originals[turn % len(originals)]
        damaged = folder / "damaged" / original.name
        damaged.parent.mkdir(exist_ok=True)
        damaged.write_bytes(mutated(original.read_bytes(), rng))
        print(f"{turn} {damaged}", flush=True)  # noqa: T201 - what a crash leaves behind
        # Small chunks are read by pyarrow, larger ones by the core: these are small, and must be safe in both.
        arrays.ROWS_PER_CHUNK = rng.choice((0, 512))  # type: ignore[misc]
        for column in COLUMNS:
            try:
                lw.read_lengths(damaged, column, nulls="zero", progress=False)
                outcomes["read"] += 1
            except lw.LengthwiseError as error:
                outcomes["refused"] += 1
                if original.name not in str(error):
                    raise RuntimeError(f"the error does not name the file: {error}") from error
    print(outcomes)  # noqa: T201 - likewise


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
