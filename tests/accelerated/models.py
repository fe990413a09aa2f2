"""Models, data and losses of a user's own, as tests of ``wb.accelerate`` train them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from workbench.accelerated.run import AcceleratedRun
from workbench.store import control

Start = Callable[..., AcceleratedRun]


class Block(nn.Module):
    """x + MLP(LN(x))."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.dropout(self.down(torch.relu(self.up(self.norm(x)))))


class Stacked(nn.Module):
    """A plain torch model with a stack of layers and running means."""

    def __init__(self, layers: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.first, self.mean = nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16)
        self.blocks = nn.ModuleList(Block(16, dropout) for _ in range(layers))
        self.last = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mean(self.first(x))
        for block in self.blocks:
            x = block(x)
        return self.last(x)


class Paired(Block):
    """A block that gives a tuple: its output, and a cost of its own."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        return super().forward(x), x.square().mean()


class PairedStack(Stacked):
    """A stack of blocks that give tuples.

    Args:
        costs: whether the model reads more of the tuples than the outputs.
    """

    def __init__(self, costs: bool = False, layers: int = 4) -> None:
        super().__init__(layers)
        self.blocks, self.costs = nn.ModuleList(Paired(16, 0.1) for _ in range(layers)), costs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, cost = self.mean(self.first(x)), 0.0
        for block in self.blocks:
            out = block(x)
            x, cost = out[0], cost + out[1] if self.costs else 0.0
        return self.last(x) + cost


def stacked(seed: int = 0, **options: Any) -> Stacked:
    torch.manual_seed(seed)
    return Stacked(**options)


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=4, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=16, num_labels=3,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def points() -> TensorDataset:
    x = torch.randn(60, 8, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, x[:, :3].argmax(1))


def shuffled() -> DataLoader:
    """Batches of 16, 16, 16 and 12 rows."""
    return DataLoader(points(), batch_size=16, shuffle=True)


def sentences(batches: int = 5) -> list[dict[str, torch.Tensor]]:
    """Batches as a tokenizer gives them, with padding."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(5, 64, (batches, 8, 12), generator=generator)
    mask = torch.ones_like(ids)
    mask[:, ::2, 9:] = 0
    return [{"input_ids": i, "attention_mask": m, "labels": i[:, 0] % 3} for i, m in zip(ids, mask, strict=True)]


def cross_entropy(model: nn.Module, batch: Any) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


class Uneven(nn.Module):
    """Layers of which one changes the width, and no two of which are called in order."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = part(x).relu()
        return x


class Outside(Uneven):
    """Layers whose residual sum is written in the model, as many write it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = x + part(x)
        return x


class Straight(Uneven):
    """Layers that neither add to their input nor have anything between them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = part(x)
        return x


class Two(nn.Module):
    """Two stacks of equal rights."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = Stacked(), Stacked()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x) + self.decoder(x)


class MostlyFrozen(nn.Module):
    """A large frozen layer, as of a model that is tuned at its end, and integers, as quantized models hold."""

    def __init__(self) -> None:
        super().__init__()
        self.large, self.last = nn.Linear(8, 2**18).requires_grad_(False), nn.Linear(8, 3)
        self.scales = nn.Parameter(torch.ones(3, dtype=torch.int8), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x + self.large(x)[:, :8]) * self.scales


def stop_after(steps: int, loss: Callable[..., torch.Tensor] = cross_entropy) -> Callable[..., torch.Tensor]:
    """A loss that asks its run to stop in a step; ``.run`` says which."""

    def counted(model: nn.Module, batch: Any) -> torch.Tensor:
        counted.calls += model.training and torch.is_grad_enabled()
        # The first passes look at the model and warm it up.
        if counted.calls == steps + 1:
            control.send(counted.run.folder, "stop")
        return loss(model, batch)

    counted.calls = 0
    return counted
