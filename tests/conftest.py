"""Settings of all tests."""

import pytest
import torch
from hypothesis import settings

# the first call of a function in torch may take longer than hypothesis' deadline
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Tests compare weights and results bit for bit, and the machines that run them are small."""
    torch.set_num_threads(1)
