"""
Time frozen features and heads on them beside bare loops.

    python -m benchmark_suites.speed.frozen

computes the features of the same images with ``FrozenFeatures``, which stores them, and with a
bare loop over a timm model; then trains the same head with the trainer and with a bare torch loop:
one with a hidden layer of 256 units, and a linear one, whose steps take less than a millisecond, so
that seeding, schedule and checks of every step show. Each pair is timed alternately on one thread
in processor time; the ratios are printed. It exits with 1 if features differ or a ratio is below
its limit.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from dpn_plugin._distributed import Processes
from dpn_plugin._signals import stop_on_signals
from dpn_plugin.backbones import WeightsFile, create_head
from dpn_plugin.data import Samples, SourceSpec, Transform
from dpn_plugin.outputs import FrozenFeatures, OutputStore
from dpn_plugin.plugins import registry
from dpn_plugin.runs import Checkpoints, FrozenBase, Recipe, TrainConfig, load_base
from dpn_plugin.training import SilentMonitor, Trainer, TrainingData

CLASSES, BATCH, ROUNDS, EPOCHS, WIDTH = 10, 256, 3, 5, 1280
LEAST_FEATURES = 0.95
#: width of the hidden layer: the least speed relative to a bare loop
LEAST_HEADS = {256: 0.9, None: 0.55}


def images(count: int, size: int) -> Samples:
    """Return images of noise."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=generator)
    names = tuple(map(str, range(CLASSES)))
    return Samples(pixels, torch.arange(count) % CLASSES, "noise", names)


def frozen_base(backbone: str, size: int, folder: Path) -> FrozenBase:
    """Return a network with weights from a file."""
    torch.manual_seed(0)
    path = folder / "weights.safetensors"
    save_file(timm.create_model(backbone).state_dict(), path)
    config = TrainConfig(
        backbone=backbone,
        method="baseline",
        in_domain=SourceSpec.parse("sklearn:digits", "in_domain"),
        recipe=Recipe.named("small", freeze=True),
        weights=WeightsFile.at(path),
        network_size=size,
    )
    return load_base(config, (3, size, size))


def stored_features(features: FrozenFeatures, samples: Samples) -> Tensor:
    """Return the features that are computed into a store."""
    return features.as_points(samples).all_rows()


def bare_features(model: nn.Module, transform: Transform, samples: Samples) -> Tensor:
    """Return the features of a plain loop over a timm model."""
    with torch.inference_mode():
        return torch.cat([model(transform(x)) for x in samples.all_rows().split(BATCH)])


def measure_features(options: argparse.Namespace) -> tuple[float, float]:
    """Return the speed relative to a bare loop, and the largest difference of features."""
    samples, ours, bare, difference = images(options.images, options.size), [], [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        base = frozen_base(options.backbone, options.size, Path(folder))
        model = timm.create_model(options.backbone, num_classes=0).eval()
        model.load_state_dict(base.backbone.model.state_dict(), strict=False)
        for index in range(ROUNDS):
            store = OutputStore(Path(folder) / f"store-{index}")
            features = FrozenFeatures(base, store, Processes(torch.device("cpu")))
            seconds, found = timed(partial(stored_features, features, samples))
            ours.append(seconds)
            seconds, expected = timed(lambda: bare_features(model, base.transform, samples))
            bare.append(seconds)
            difference = max(difference, float((found - expected).abs().max()))
    return min(bare) / min(ours), difference


def measure_heads(count: int, hidden: int | None) -> float:
    """Return the speed of training a head relative to a bare loop."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(count, WIDTH, generator=generator)
    names = tuple(map(str, range(CLASSES)))
    samples = Samples(points, torch.arange(count) % CLASSES, "features", names)
    data = TrainingData(samples, samples.subset(torch.arange(BATCH)))
    ours, bare = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(timed(partial(with_trainer, data, Path(folder), hidden))[0])
        bare.append(timed(partial(with_loop, data, hidden))[0])
    return min(bare) / min(ours)


def with_trainer(data: TrainingData, folder: Path, hidden: int | None) -> Tensor:
    """Train a head with the trainer."""
    recipe = Recipe.named("small", epochs=EPOCHS, batch_size=BATCH)
    losses = tuple(
        registry.create_loss("ce", num_classes=CLASSES, reduction="none") for _ in range(2)
    )
    head = create_head("noise", WIDTH, CLASSES, hidden, 0.0)
    trainer = Trainer(
        head,
        (losses[0], losses[1]),
        data,
        Transform((), ()),
        recipe,
        Checkpoints(folder, "speed"),
        Processes.join("cpu"),
        seed=0,
    )
    with stop_on_signals() as stop:
        return next(iter(trainer.run(SilentMonitor(), stop).values()))


def with_loop(data: TrainingData, hidden: int | None) -> Tensor:
    """Train a head with a bare loop: the same steps, and the held-out loss after every epoch."""
    head: nn.Module = nn.Linear(WIDTH, CLASSES)
    if hidden is not None:
        layers = nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Dropout(0.0)
        head = nn.Sequential(*layers, nn.Linear(hidden, CLASSES))
    optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3, weight_decay=0.05)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(data.train), generator=torch.Generator().manual_seed(epoch))
        for rows in order[: len(order) // BATCH * BATCH].split(BATCH):
            loss = F.cross_entropy(head(data.train.rows(rows)), data.train.labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            F.cross_entropy(head(data.held_out.all_rows()), data.held_out.labels).item()
    return next(head.parameters())


def timed(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Return the seconds of processor time, and the result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> int:
    """Return the exit code: 1 if features differ or a ratio is below its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=768)
    parser.add_argument("--size", type=int, default=96, help="pixels along a side")
    parser.add_argument("--samples", type=int, default=20_000, help="that heads are trained on")
    parser.add_argument("--backbone", default="mobilenetv2_100")
    options = parser.parse_args()
    torch.set_num_threads(1)
    features, difference = measure_features(options)
    print(f"features: {features:.2f} of a bare timm loop, largest difference {difference:.1e}")
    slow = features < LEAST_FEATURES
    for hidden, least in LEAST_HEADS.items():
        ratio = measure_heads(options.samples, hidden)
        slow |= ratio < least
        kind = "linear" if hidden is None else f"{hidden} hidden units"
        print(f"heads, {kind}: {ratio:.2f} of a bare torch loop")
    return int(slow or difference > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
