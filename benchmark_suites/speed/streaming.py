"""
Measure data that does not lie in memory: JPEG files that are decoded when they are used.

``python -m benchmark_suites.speed.streaming`` writes JPEG files into a temporary folder and prints

- images per second of a feature pass, relative to timm's own loader with the same network and
  worker processes (at least 0.95), and of training, relative to a bare loop over the same loader
  (at least 0.9);
- peak memory above the imports, and seconds of the first and the second start, for a small and a
  large number of images that are streamed (Linux);
- memory of two processes that share a cache, and of two with a copy each (Linux).

``--quick`` takes half a minute. The exit code is 1 if a share is below its limit, if the peak for
many images is more than a quarter above that for few, or if the second start takes a tenth of
the first or more.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from timm.data import ImageDataset, create_loader
from torch import Tensor, nn

from benchmark_suites.speed.measures import best_times
from benchmark_suites.speed.streaming_memory import measure_memory, measure_sharing
from benchmark_suites.speed.streaming_steps import (
    BATCH,
    CLASSES,
    FILE_SIZE,
    SIZE,
    load_photos,
    our_features,
    our_training,
    write_photos,
)
from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.data import (
    StorageOptions,
    Transform,
    channel_statistics,
)
from dpn_plugin.runs import FrozenBase

#: the least speeds, relative to timm's loader and to a bare loop
LEAST_FEATURES, LEAST_TRAINING = 0.95, 0.9


def network(name: str) -> Backbone:
    """Return a network with the same weights every time."""
    torch.manual_seed(0)
    return create_backbone(name, CLASSES, in_chans=3, image_size=SIZE)


def timm_batches(folder: Path, workers: int, *, train: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Return the batches of timm's own loader, resized and normalised as ours are."""
    dataset = ImageDataset(str(folder))
    return iter(
        create_loader(
            dataset,
            (3, SIZE, SIZE),
            BATCH,
            is_training=train,
            no_aug=True,
            interpolation="bilinear",
            crop_pct=1.0,
            num_workers=workers,
            use_prefetcher=False,
            device=torch.device("cpu"),
            persistent_workers=False,
        )
    )


def bare_features(folder: Path, model: nn.Module, workers: int) -> int:
    """Run a network over timm's loader and return the number of images."""
    with torch.inference_mode():
        return sum(len(model(x)) for x, _ in timm_batches(folder, workers, train=False))


def bare_training(folder: Path, backbone: Backbone, workers: int) -> None:
    """Train for one epoch with a plain loop over timm's loader."""
    backbone.train()
    optimizer = torch.optim.SGD(backbone.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    for x, y in timm_batches(folder, workers, train=True):
        loss = nn.functional.cross_entropy(backbone(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def measure_speed(folder: Path, options: argparse.Namespace) -> list[str]:
    """Print images per second and return what is too slow."""
    write_photos(folder, options.images, options.images, FILE_SIZE)
    workers = options.workers
    samples = load_photos(folder, StorageOptions(folder.parent / "cache", 0, workers))
    backbone = network(options.model)
    mean, std = channel_statistics(samples)
    transform = Transform(mean, std, (SIZE, SIZE))
    base = FrozenBase(backbone.eval(), transform, "")
    jobs = {
        "features": (
            LEAST_FEATURES,
            lambda: bare_features(folder, backbone.eval(), workers),
            lambda: our_features(samples, base),
        ),
        "training": (
            LEAST_TRAINING,
            lambda: bare_training(folder, network(options.model), workers),
            lambda: our_training(samples, network(options.model), transform),
        ),
    }
    print(f"{'images/s':>10} {'timm':>7} {'ours':>7} {'share':>6}")
    slow = []
    for name, (least, bare, ours) in jobs.items():
        times = best_times({"bare": bare, "ours": ours}, options.rounds)
        rates = {key: len(samples) / each for key, each in times.items()}
        share = rates["ours"] / rates["bare"]
        print(f"{name:>10} {rates['bare']:>7.0f} {rates['ours']:>7.0f} {share:>6.2f}", flush=True)
        slow += [f"{name} ({share:.2f} of {least})"] * (share < least)
    return slow


def main() -> int:
    """Return the exit code: 1 if something is slower or larger than its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    options.images, options.rounds = (256, 2) if options.quick else (1024, 3)
    options.few, options.many = (500, 5_000) if options.quick else (2_000, 100_000)
    options.shared = 3_000 if options.quick else 12_000
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wrong = measure_speed(folder / "photos", options)
        wrong += measure_memory(folder, options)
        wrong += measure_sharing(folder / "more", options)
    for each in wrong:
        print(f"above its limit: {each}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
