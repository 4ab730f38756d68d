"""`lengthwise demo`: the story on one screen, from a data set on disk to plans."""

from __future__ import annotations

import click


@click.command(short_help="The whole way in a few seconds, on a published data set.")
def demo() -> None:
    """Show the whole way in a few seconds: a data set, its lengths, six plans of an epoch.

    Writes the 902,087 lengths of a published training run into a temporary folder as a Hugging Face data set, reads
    them back, and compares the ways to batch them. Nothing stays behind, and nothing is downloaded.
    """
    import tempfile
    from pathlib import Path
    from time import perf_counter

    from lengthwise.cli import screen
    from lengthwise.demo import compare_orders, write_dataset
    from lengthwise.lengths import read_lengths
    from lengthwise.report import story

    console = screen.results()
    width = console.width - 2 * screen.MARGIN
    with tempfile.TemporaryDirectory(prefix="lengthwise-demo-") as temporary:
        with screen.working("writing a data set"):
            folder = write_dataset(Path(temporary) / "completions")
        written = sum(file.stat().st_size for file in folder.iterdir())
        started = perf_counter()
        lengths = read_lengths(folder)
        read_seconds = perf_counter() - started
        screen.show(console, story.opening(folder, written, lengths, read_seconds))
        screen.show(console, story.distribution(lengths, width))
        with screen.working("planning six epochs"):
            rows = compare_orders(lengths)
        screen.show(console, story.orders(rows, width))
    screen.show(console, story.closing())
