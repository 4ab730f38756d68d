"""Accumulating uneven batches, on one and on several processes, equals one big batch to float error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.multiprocessing
from torch.nn import functional

import lengthwise as lw
from lengthwise.loss import Mean, batch_targets, batch_weights, target_weights
from lengthwise.torch import PackedCollator, PaddedCollator

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEANS: tuple[Mean, ...] = ("token", "sample")
WORDS, LENGTHS = 50, (3, 9, 4, 17, 2, 8, 30, 5, 6, 12, 7, 3, 25, 1, 10, 4)
Rows = list[dict[str, Any]]


def corpus() -> Rows:
    rng = np.random.default_rng(0)
    return [{"input_ids": rng.integers(0, WORDS, n)} for n in LENGTHS]


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(WORDS, 8), torch.nn.Tanh(), torch.nn.Linear(8, WORDS)).double()


def padded(rows: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, the next ones, and the sample of each."""
    batch = PaddedCollator()(rows)
    ids, labels = batch["input_ids"][:, :-1], batch["labels"][:, 1:]
    return ids, labels, torch.arange(len(rows))[:, None].expand(labels.shape)


def packed(rows: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch = PackedCollator(emit=["shift_labels", "document_ids"], capacity=64)(rows)
    return batch["input_ids"], batch["shift_labels"], batch["document_ids"]


def mean_loss(net: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor], mean: Mean) -> torch.Tensor:
    ids, labels, documents = batch
    losses = functional.cross_entropy(net(ids).flatten(0, 1), labels.flatten(), reduction="none", ignore_index=-100)
    weights = torch.from_numpy(target_weights(labels.numpy(), documents.numpy(), mean=mean).astype(np.float64))
    # float32 weights sum to 1 only to float32: the test is exact, so it rescales.
    weights /= max(float(weights.sum()), 1e-30)
    return (losses * weights.flatten()).sum()


def backward(loss: Any) -> None:
    loss.backward()


def gradient(net: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in net.parameters() if parameter.grad is not None])


def plan_of(layout: str, world_size: int, accumulate: int) -> lw.Plan:
    shape = lw.Packed(64) if layout == "packed" else lw.Padded(32, boundaries=[8, 32])
    return lw.Planner(LENGTHS, shape, world_size=world_size, accumulate=accumulate, seed=3).plan()


@pytest.mark.parametrize("layout", ["padded", "packed"])
@pytest.mark.parametrize("mean", ["token", "sample"])
def test_accumulation_equals_one_big_batch(layout: str, mean: Mean) -> None:
    make: Callable[[Rows], Any] = packed if layout == "packed" else padded
    plan, rows = plan_of(layout, 1, 3), corpus()
    assert any(len(row["input_ids"]) == 1 for row in rows), "one sample has no target at all"
    assert len(set(plan.sizes.tolist())) > 1
    for step in range(plan.steps):
        batches = [plan[3 * step + turn].tolist() for turn in range(3)]
        net, whole = model(), model()
        for turn, batch in enumerate(batches):
            weight = batch_weights(plan, mean=mean)[3 * step + turn]
            backward(weight * mean_loss(net, make([rows[i] for i in batch]), mean))
        together = [rows[i] for batch in batches for i in batch]
        backward(mean_loss(whole, padded(together), mean))
        torch.testing.assert_close(gradient(net), gradient(whole), rtol=1e-6, atol=1e-9)


def rank_process(rank: int, world_size: int, folder: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size)
    plan, rows = plan_of("padded", world_size, 2), corpus()
    for mean in MEANS:
        weights = batch_weights(plan, mean=mean)
        net = torch.nn.parallel.DistributedDataParallel(model())
        for turn in range(2):
            batch = turn * world_size + rank
            loss = mean_loss(net, padded([rows[i] for i in plan[batch]]), mean)
            backward(weights[batch] * loss)
        if rank == 0:
            torch.save(gradient(net.module), f"{folder}/{mean}.pt")
    torch.distributed.barrier()  # a rank that ends while another still talks to it may take that one down
    del net  # which holds on to the group, whose threads would outlive it
    torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_several_processes_equal_one_big_batch(tmp_path: Path) -> None:
    processes: Any = torch.multiprocessing
    processes.spawn(rank_process, (2, str(tmp_path)), nprocs=2)
    plan, rows = plan_of("padded", 2, 2), corpus()
    together = [rows[i] for batch in range(4) for i in plan[batch].tolist()]
    for mean in MEANS:
        whole = model()
        backward(mean_loss(whole, padded(together), mean))
        found = torch.load(tmp_path / f"{mean}.pt")
        torch.testing.assert_close(found, gradient(whole), rtol=1e-6, atol=1e-9)


def test_pairs_weigh_alike_whatever_their_lengths() -> None:
    rows = corpus()[:4]
    plan = lw.Planner([12, 21], lw.Padded(21, order="sorted"), accumulate=2).plan()
    net, whole = model(), model()
    for turn, weight in enumerate(batch_weights(plan, mean="pair")):
        pair = int(plan[turn][0])
        backward(weight * mean_loss(net, padded(rows[2 * pair : 2 * pair + 2]), "pair"))
    backward(mean_loss(whole, padded(rows), "pair"))
    torch.testing.assert_close(gradient(net), gradient(whole), rtol=1e-6, atol=1e-9)


def test_targets_are_counted_from_lengths_pieces_or_masks() -> None:
    planner = lw.Planner([5, 1, 9], lw.Padded(20, order="sorted"))
    plan = planner.plan()
    assert batch_targets(plan).sum() == 4 + 0 + 8
    supervised = np.array([2, 0, 3])
    expected = [int(supervised[batch].sum()) for batch in plan]
    assert batch_targets(plan, supervised).tolist() == expected
    split = planner.replace(layout=lw.Padded(4), overlong="split").plan()
    assert batch_targets(split).sum() == (3 + 0) + 0 + (3 + 3 + 0)
    with pytest.raises(lw.LengthwiseError, match="the plan cuts some"):
        batch_targets(split, supervised)
    with pytest.raises(lw.LengthwiseError, match="targets has 2 values, but the plan is of 3"):
        batch_targets(plan, [1, 2])


def test_weights_average_to_one() -> None:
    plan = lw.Planner(range(1, 200), lw.Padded(300), world_size=4, accumulate=2).plan()
    for averaged_over, total in (("ranks", 4), ("ranks_and_batches", 8), ("nothing", 1)):
        weights = batch_weights(plan, averaged_over=averaged_over)  # type: ignore[arg-type]
        np.testing.assert_allclose(weights.reshape(-1, 8).sum(axis=1), total)
    empty = lw.Planner([1, 1], lw.Padded(1)).plan()
    assert batch_weights(empty).tolist() == [0, 0]


def test_bad_arguments_are_named() -> None:
    plan = lw.Planner([1, 2], lw.Padded(2)).plan()
    with pytest.raises(lw.LengthwiseError, match="mean is 'median'"):
        batch_weights(plan, mean="median")  # type: ignore[arg-type]
    with pytest.raises(lw.LengthwiseError, match="averaged_over is 'rank'"):
        batch_weights(plan, averaged_over="rank")  # type: ignore[arg-type]
    with pytest.raises(lw.LengthwiseError, match="shape"):
        target_weights(np.zeros((1, 3)), np.zeros((1, 4)))
