"""A worker of Ray has the names in the hosts, though nothing of ours is imported."""

import subprocess
import sys
from pathlib import Path

# A process of its own: this one has imported our package, and Ray would send it along.
DRIVER = """
import ray

@ray.remote
def names():
    import timm
    from pytorch_ood.loss import dpn_minus
    from timm.loss import RepresentationGapLoss
    return timm.is_model("vgg16_cifar"), RepresentationGapLoss.__name__, dpn_minus.__name__

ray.init(address="auto", log_to_driver=False)
print(*ray.get(names.remote()))
"""


def test_workers_of_ray_have_the_names(address: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.stdout == "True RepresentationGapLoss dpn_minus\n", done.stderr
