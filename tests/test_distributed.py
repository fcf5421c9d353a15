"""A process that cannot join others says so and leaves its environment as it was."""

import os

import pytest

from dpn_plugin._distributed import Processes
from dpn_plugin.errors import UserError


def test_an_interactive_slurm_job_is_refused_without_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"NTASKS": "2", "PROCID": "0", "LOCALID": "0"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    before = dict(os.environ)
    with pytest.raises(UserError, match="Start them with torchrun, or unset the variable"):
        Processes.join("cpu")
    assert dict(os.environ) == before
