"""Orders and layouts side by side, on one's own lengths."""

from __future__ import annotations

import html
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._choices import as_choice
from lengthwise._core import LengthwiseError
from lengthwise.layouts import Layout, Padded
from lengthwise.packed import Packed
from lengthwise.pairs import DEFAULT_CELLS, PaddedPairs
from lengthwise.planner import Overlong, Planner

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

    from lengthwise.summary import Summary

_HEADERS = {
    "name": "",
    "ratio": "padded/real",
    "speed": "speed",
    "batches": "batches",
    "steps": "steps",
    "batchmates_again": "batchmates again",
    "neighbour_correlation": "neighbours",
    "step_spread": "step spread",
    "planning_ms": "planning ms",
}


@dataclass(frozen=True)
class Row:
    """One layout, planned for one epoch.

    Attributes:
        name: what the layout is called in the table.
        layout: the layout.
        summary: the plan in numbers.
        planning_ms: how long planning the epoch took, in milliseconds.
    """

    name: str
    layout: Layout
    summary: Summary
    planning_ms: float


@dataclass(frozen=True)
class Comparison:
    """A table of layouts: prints in a terminal, shows in a notebook, converts to Arrow."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Row:
        """Return the row called `name`.

        Raises:
            LengthwiseError: there is none.
        """
        rows = {row.name: row for row in self.rows}
        as_choice(name, "name", list(rows))
        return rows[name]

    def records(self) -> list[dict[str, Any]]:
        """Return the table as plain values, one dict a row.

        `speed` is in real tokens a second, predicted from padding alone, as a fraction of the best row's.
        """
        best = min((row.summary.ratio for row in self.rows), default=1.0)
        return [
            {
                "name": row.name,
                "ratio": row.summary.ratio,
                "speed": best / row.summary.ratio,
                "batches": row.summary.batches,
                "steps": row.summary.steps,
                "batchmates_again": row.summary.mixing.batchmates_again,
                "neighbour_correlation": row.summary.mixing.neighbour_correlation,
                "step_spread": row.summary.mixing.step_spread,
                "planning_ms": row.planning_ms,
            }
            for row in self.rows
        ]

    def to_arrow(self) -> pa.Table:
        """Return the table as `pyarrow.Table`, one row a layout."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.records())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the padding of every layout; needs matplotlib.

        Args:
            ax: matplotlib axes to draw on; a new figure by default.

        Raises:
            LengthwiseError: matplotlib is not installed.
        """
        from lengthwise.plots import plot_comparison

        return plot_comparison(self, ax)

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(_HEADERS))]
        aligned = (
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs)
            ).rstrip()
            for pairs in (zip(line, widths, strict=True) for line in cells)
        )
        return "\n".join(aligned)

    def _repr_html_(self) -> str:
        head, *body = self._cells()
        rows = [f"<tr>{''.join(f'<th>{html.escape(cell)}</th>' for cell in head)}</tr>"]
        rows += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in line)}</tr>" for line in body]
        return f"<table>{''.join(rows)}</table>"

    def _cells(self) -> list[list[str]]:
        lines = [
            [
                record["name"],
                f"{record['ratio']:.4f}",
                f"{record['speed']:.0%}",
                f"{record['batches']:,}",
                f"{record['steps']:,}",
                f"{record['batchmates_again']:.2%}",
                f"{record['neighbour_correlation']:.3f}",
                f"{record['step_spread']:.2f}",
                f"{record['planning_ms']:.1f}",
            ]
            for record in self.records()
        ]
        return [list(_HEADERS.values()), *lines]


def compare(
    lengths: Any,
    *,
    max_tokens: int,
    layouts: Mapping[str, Layout] | None = None,
    seed: int = 0,
    world_size: int = 1,
    overlong: Overlong = "error",
) -> Comparison:
    """Plan one epoch under each order, and packed, and put the numbers side by side.

    Args:
        lengths: integers[n], in tokens; integers[n, 2] for samples of two lengths.
        max_tokens: the budget of a batch, in padded tokens.
        layouts: name -> layout; by default sorted, shuffled and bucketed under `max_tokens`, and packed into rows of
            as many (unless over-long samples are "alone", which packs cannot hold); for samples of two lengths, one
            cell (which shuffles all together) and 32 cells.
        seed: names the random bits.
        world_size: how many ranks share a step.
        overlong: what to do with samples that fit no batch, as in `Planner`.

    Raises:
        LengthwiseError: anything that cannot be planned.

    Cost: two plans and a summary for each layout, about 0.1 s for a million samples; packing adds about as much.

    Example:
        >>> import lengthwise as lw
        >>> table = lw.compare(range(1, 1001), max_tokens=10_000)
        >>> [row.name for row in table.rows]
        ['sorted', 'shuffled', 'bucketed', 'packed']
        >>> table["sorted"].summary.ratio < table["bucketed"].summary.ratio < table["shuffled"].summary.ratio
        True
    """
    sides = np.ndim(lengths[:1]) if isinstance(lengths, (list, tuple)) else getattr(lengths, "ndim", 1)
    if layouts is None and sides == 2:
        layouts = {
            "one cell": PaddedPairs(max_tokens, cells=1),
            f"{DEFAULT_CELLS} cells": PaddedPairs(max_tokens, cells=DEFAULT_CELLS),
        }
    elif layouts is None:
        layouts = {order: Padded(max_tokens, order=order) for order in ("sorted", "shuffled", "bucketed")}
        if overlong != "alone":
            layouts["packed"] = Packed(min(max_tokens, MAX_LENGTH))
    if not isinstance(layouts, Mapping):
        raise LengthwiseError(f"layouts is {layouts!r:.60}, but must map names to layouts")
    rows = []
    for name, layout in layouts.items():
        planner = Planner(lengths, layout, seed=seed, world_size=world_size, overlong=overlong)
        lengths = planner.lengths
        start = time.perf_counter()
        plan = planner.plan()
        planning_ms = 1e3 * (time.perf_counter() - start)
        rows.append(Row(name, layout, plan.summary, planning_ms))
    return Comparison(tuple(rows))
