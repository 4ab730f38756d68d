"""Which batches run together: what a planner does with the batches of its layout before they run.

A step is `accumulate` batches on each rank. How its batches are chosen decides two things that pull apart: whether
every step looks like the whole data set (mixing), and whether its ranks finish together (balance). See `Planner` for
the methods, the guide on steps for the trade in numbers, the core's `steps` module for how.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from lengthwise import _core
from lengthwise._choices import as_choice
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise.summary import real_tokens, shape_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from lengthwise._arrays import Lengths
    from lengthwise.layouts import Layout, PlanArrays

Method = Literal["shuffled", "stratified", "windowed", "same_shape", "routed"]
StepsChoice = Literal["auto"] | Method | tuple[Literal["windowed"], int]

#: Steps in a window of `steps="windowed"`: with costs that vary by a quarter, ranks wait for 2 to 3 % of the time.
DEFAULT_WINDOW: Final = 16


@dataclass(frozen=True, slots=True)
class Steps:
    """How batches become steps; the arguments of `Planner`, checked.

    Attributes:
        method: how a step's batches are chosen.
        window: steps in a window, where the method is "windowed".
        world_size: ranks.
        accumulate: batches of each rank in a step.
        cost: what a padded token costs, and a squared one.
        rank_speed: how fast each rank is; empty where all are alike.
    """

    method: Method
    window: int
    world_size: int
    accumulate: int
    cost: tuple[float, float]
    rank_speed: tuple[float, ...]

    @classmethod
    def of(
        cls,
        steps: Any,
        *,
        layout: Layout,
        world_size: int,
        accumulate: int,
        cost: Any,
        rank_speed: Sequence[float] | None,
    ) -> Steps:
        """Check the arguments of a planner.

        Raises:
            LengthwiseError: an unknown method, coefficients or speeds that are not positive numbers, speeds that are
                not one a rank, steps of one shape from batches of many.
        """
        method, window = steps if isinstance(steps, (tuple, list)) and len(steps) == 2 else (steps, DEFAULT_WINDOW)
        as_choice(method, "steps", ("auto", *get_args(Method)) if steps is method else ("windowed",))
        window = as_integer(window, "steps[1]", 1, 2**31 - 1, "a window is a number of steps")
        speeds = () if rank_speed is None else _numbers(rank_speed, "rank_speed", positive=True)
        if speeds and len(speeds) != world_size:
            raise LengthwiseError(
                f"rank_speed has {len(speeds)} values, but world_size is {world_size}; give one a rank"
            )
        coefficients = _numbers(cost, "cost", positive=False)
        if len(coefficients) != 2 or not any(coefficients):
            raise LengthwiseError(
                f"cost is {cost!r:.60}, but must be two numbers, (per padded token, per squared length), not both 0"
            )
        if method == "auto":
            method = _default(layout.config, world_size, accumulate, attention=coefficients[1] > 0)
        if method == "same_shape" and layout.config.get("pad_to") in ("longest", "fill"):
            raise LengthwiseError(
                'steps="same_shape" needs few padded lengths, but the layout has '
                f'pad_to="{layout.config["pad_to"]}"; use pad_to="boundary" (or "capacity" for packs)'
            )
        return cls(method, window, world_size, accumulate, (coefficients[0], coefficients[1]), speeds)

    @property
    def whole(self) -> tuple[int, int]:
        """Of how many ranks, and batches of each, the layout must hand over whole steps."""
        return (1, 1) if self.method == "same_shape" else (self.world_size, self.accumulate)

    @property
    def as_planned(self) -> bool:
        """Whether batches run as the layout hands them over."""
        return self.method == "shuffled" and self.accumulate == 1 and not self.rank_speed

    @property
    def by_tokens(self) -> bool:
        """Whether the layout should count the real tokens of every batch: it can while it fills them."""
        return not self.as_planned and self.method != "same_shape"

    def costs(self, batches: Any, layout: Layout, lengths: Lengths) -> npt.NDArray[np.float64]:
        """Return float64[b]: the cost of each batch; `batches` are a plan or its arrays."""
        token, square = self.cost
        costs = token * layout.batch_tokens(batches.sizes, batches.padded_lengths).astype(np.float64)
        if square:
            costs += square * layout.batch_squares(batches, lengths)
        return costs

    def arrange(
        self, arrays: PlanArrays, *, layout: Layout, lengths: Lengths, seed: int, epoch: int, remainder: str
    ) -> PlanArrays:
        """Return the batches in the order in which they run: (step, turn, rank)."""
        if self.as_planned:
            return arrays
        if self.method == "same_shape":
            arrays = self._of_one_shape(arrays, layout, remainder)
        tokens = real_tokens(arrays, lengths) if arrays.real_tokens is None else arrays.real_tokens
        order = _core.arrange(
            arrays.sizes,
            shape_numbers(arrays.padded_lengths, layout),
            tokens,
            self.costs(arrays, layout, lengths),
            world_size=self.world_size,
            accumulate=self.accumulate,
            speeds=list(self.rank_speed),
            method=self.method,
            window=self.window,
            longest_first=bool(layout.config.get("longest_first")),
            seed=seed,
            epoch=epoch,
        )
        order = order.astype(np.intp)  # once, not for each column
        columns = ("starts", "sizes", "padded_lengths")
        moved = {name: getattr(arrays, name).take(order, axis=0) for name in columns}
        return arrays._replace(**moved, real_tokens=tokens.take(order))

    def _of_one_shape(self, arrays: PlanArrays, layout: Layout, remainder: str) -> PlanArrays:
        multiple = layout.config.get("samples_multiple_of", 1)
        shapes = shape_numbers(arrays.padded_lengths, layout)
        table = (arrays.starts, arrays.sizes, shapes, self.world_size, self.accumulate)
        starts, sizes, padded_lengths, cut, repeated, dropped = _core.of_one_shape(*table, remainder, multiple)
        if arrays.padded_lengths.ndim == 2:  # from numbers, 1 and up, back to shapes
            padded_lengths = arrays.padded_lengths[np.unique(shapes, return_index=True)[1]][padded_lengths - 1]
        accounts = dict(arrays.accounts)
        for name, count in (("cut_batches", cut), ("repeated", repeated), ("dropped", dropped)):
            accounts[name] += count
        return arrays._replace(
            starts=starts, sizes=sizes, padded_lengths=padded_lengths, accounts=accounts, real_tokens=None
        )


def _default(layout: dict[str, Any], world_size: int, accumulate: int, *, attention: bool) -> Method:
    """The method where none is asked for.

    One batch a step has nothing to be mixed with, batches of shuffled samples are mixed. Where ranks run several
    batches a step, or batches of equal tokens cost the same, mixing is free. Single packs whose attention counts are
    the one case where it is not: their ranks would wait.
    """
    if world_size * accumulate == 1 or layout.get("order") == "shuffled":
        return "shuffled"
    return "windowed" if layout["layout"] == "packed" and accumulate == 1 and attention else "stratified"


def _numbers(values: Any, name: str, *, positive: bool) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise LengthwiseError(f"{name} is {values!r:.60}, but must be a sequence of numbers") from error
    for index, number in enumerate(numbers):
        if not (0 < number < float("inf") or (number == 0 and not positive)):
            least = "a positive number" if positive else "a number of at least 0"
            raise LengthwiseError(f"{name}[{index}] is {number}, but must be {least}")
    return numbers
