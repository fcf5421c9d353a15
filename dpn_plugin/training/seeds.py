"""Random seeds of training steps."""

import numpy as np
import torch

#: Seeds are computed in blocks: one at a time, between two steps, each takes ten times as long.
_BLOCK = 256


class StepSeeds:
    """
    A seed for every step, which depends on nothing but the numbers given here and the step.

    :param seed: of the training
    :param rank: of this process
    """

    def __init__(self, seed: int, rank: int) -> None:
        self.seed, self.rank = seed, rank
        self._first, self._block = 0, np.empty(0, np.uint32)

    def of(self, step: int) -> int:
        """Return the seed of a step."""
        if not 0 <= step - self._first < len(self._block):
            self._first, steps = step, range(step, step + _BLOCK)
            sequences = (np.random.SeedSequence([self.seed, each, self.rank]) for each in steps)
            self._block = np.array([each.generate_state(1)[0] for each in sequences])
        return int(self._block[step - self._first])


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed the random numbers that layers draw, e.g. for dropout."""
    # torch.manual_seed formats a traceback for every other kind of device
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)
