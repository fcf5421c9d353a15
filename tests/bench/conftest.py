"""One thread: the tests compare results bit for bit, and the machines that run them are small."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)
