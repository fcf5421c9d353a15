"""Weights that timm publishes, where the hub cannot be reached."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

CODE = """
import sys, torch, warnings
from dpn_plugin.backbones import create_backbone
from dpn_plugin.errors import UserError
try:
    backbone = create_backbone("test_resnet", 1000, pretrained=True)
except UserError as error:
    sys.exit(str(error))
print(backbone.weights_classes, float(backbone.model.conv1[0].weight.sum()))
"""


def create(cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: each for key, each in os.environ.items() if not key.startswith("HF_")}
    return subprocess.run(
        [sys.executable, "-c", CODE],
        env={**inherited, "HF_HUB_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, "cannot be reached"),
        ({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"),
    ],
)
def test_an_unreachable_hub_is_one_sentence(
    environment: dict[str, str], reason: str, tmp_path: Path
) -> None:
    done = create(tmp_path, **environment)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "The weights of 'test_resnet' are not in the cache" in line
    assert reason in line
    assert list(tmp_path.iterdir()) == []


def test_a_hub_that_does_not_answer_is_given_up_after_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dpn_plugin.backbones import hub
    from dpn_plugin.errors import UserError

    monkeypatch.setattr(hub, "SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(UserError, match="cannot be reached"):
        hub._check_reachable("resnet18", "a test", "http://192.0.2.1")  # reserved for tests
    assert time.monotonic() - start < 5


def test_cached_weights_are_used_without_the_hub(tmp_path: Path) -> None:
    repository = timm.get_pretrained_cfg("test_resnet").hf_hub_id
    model = timm.create_model("test_resnet")
    folder = tmp_path / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("0" * 40)
    snapshot = folder / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    save_file(model.state_dict(), snapshot / "model.safetensors")
    done = create(tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    classes, total = done.stdout.split()
    assert classes == "1000"
    assert float(total) == pytest.approx(float(torch.sum(model.conv1[0].weight)), rel=1e-4)
