"""One speed: tokens over the last ten seconds of training, while it trains and read back."""

import numpy as np

from workbench.telemetry.speed import RecentSpeed, recent_speeds


def test_a_speed_is_steps_times_tokens_over_ten_seconds_whatever_single_steps_take():
    rng = np.random.default_rng(0)
    # Steps of 256 tokens that take 0.01 s or 0.6 s: the last one alone says 25,600 or 427.
    seconds_N = np.cumsum(rng.choice([0.01, 0.6], 200))
    tokens_N = 256.0 * np.arange(1, 201)
    live = RecentSpeed(0, 0.0)
    told = [live.after(int(tokens), float(seconds)) for seconds, tokens in zip(seconds_N, tokens_N, strict=True)]
    slow = []
    for seconds, tokens in zip(seconds_N, tokens_N, strict=True):
        before = [(0.0, 0.0), *((s, t) for s, t in zip(seconds_N, tokens_N, strict=True) if s < seconds)]
        since, of = next((pair for pair in reversed(before) if seconds - pair[0] >= 10), before[0])
        slow.append((tokens - of) / (seconds - since))
    np.testing.assert_allclose(told, slow)
    read = recent_speeds(seconds_N, tokens_N, first=told[0])
    # Read back there is no start before the first record.
    np.testing.assert_allclose(read[40:], told[40:])
    assert read[0] == told[0]


def test_a_step_longer_than_ten_seconds_is_its_own_speed():
    seconds_N, tokens_N = np.array([20.0, 40.0, 80.0]), np.array([1000.0, 2000.0, 3000.0])
    assert recent_speeds(seconds_N, tokens_N, 50.0).tolist() == [50.0, 50.0, 25.0]
    assert recent_speeds(np.empty(0), np.empty(0)).tolist() == []
