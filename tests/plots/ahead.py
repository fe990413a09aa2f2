"""A forecast as the engine gives it, with round numbers."""

from __future__ import annotations

from typing import Any

GIB = 1 << 30

FOUND: dict[str, Any] = {
    "parameters": 4_200_000,
    "flops_per_token": 2.5e7,
    "flops": 2.05e13,
    "memory_bytes": 3 * GIB // 2,
    "memory": {
        "weights": GIB // 4, "gradients": GIB // 4, "optimizer": GIB // 2, "activations": GIB // 4, "logits": GIB // 4,
    },
    "device_memory_bytes": 16 * GIB,
    "tokens_per_second": 8192.0,
    "seconds": 100.0,
    "seconds_low": 80.0,
    "seconds_high": 125.0,
    "steps": 200,
    "tokens": 819_200,
    "cost": None,
    "schedules": {
        "progress": [0.1, 0.3, 0.5, 0.7, 0.9],
        "optimizer.lr": [0.001, 0.003, 0.002, 0.001, 0.0],
        "objective.mask_rate": [0.3, 0.25, 0.2, 0.15, 0.15],
        "optimizer.weight_decay": [0.01] * 5,
        "data.batch_size": [32.0] * 5,
        "data.sequence_length": [128.0] * 5,
    },
    "layers": {
        "forward": [[1.0, 1.0], [1.0, 1.0], [1.0, 0.5], [1.0, 0.5], [1.0, 0.0]],
        "backward": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.5], [0.0, 0.5], [0.0, 0.0]],
    },
    "notes": ["seconds of <training> only"],
    "compile_seconds": 40.0,
    "machine": "a machine that never was",
    "calibrated": "2026-01-01",
    "unusual": "",
    "refusal": "",
    "provisional": "",
    "preparation": "",
    "preparation_seconds": 0.0,
}  # fmt: skip
