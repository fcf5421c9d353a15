"""
Time frozen features and heads on them beside bare loops.

    python -m benchmark_suites.speed.frozen

computes the features of the same images with ``FrozenFeatures``, which stores them, and with a
bare loop over a timm model; then trains the same head with the trainer and with a bare torch loop
that does what the recipe asks for: the same loss, clipping, schedule and figures. One head has a
hidden layer of 256 units; the other is linear, with steps below a millisecond, so that whatever the
trainer adds to a step shows. A loop without clipping, schedule and figures is timed as well, and
has no limit. All are timed in turn on one thread in processor time; the ratios are printed. It
exits with 1 if features differ or a ratio is below its limit.
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
from timm.optim import create_optimizer_v2
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

CLASSES, BATCH, ROUNDS, EPOCHS, WIDTH = 10, 256, 5, 12, 1280
LEAST_FEATURES = 0.95
#: width of the hidden layer: the least speed relative to a bare loop; steps of a linear head take
#: 0.7 ms, of which the means of both groups and the checks of finite values are a tenth
LEAST_HEADS = {256: 0.9, None: 0.8}


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


def measure_heads(count: int, hidden: int | None) -> tuple[float, float]:
    """Return the speed of training a head relative to a plain loop, and to the shortest one."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(count, WIDTH, generator=generator)
    names = tuple(map(str, range(CLASSES)))
    samples = Samples(points, torch.arange(count) % CLASSES, "features", names)
    data = TrainingData(samples, samples.subset(torch.arange(BATCH)))
    seconds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for train in (with_trainer, with_loop, with_least_loop):
            with tempfile.TemporaryDirectory() as folder:
                found, _ = timed(partial(train, data, Path(folder), hidden))
            seconds.setdefault(train.__name__, []).append(found)
    ours, plain, least = (min(each) for each in seconds.values())
    return plain / ours, least / ours


def with_trainer(data: TrainingData, folder: Path, hidden: int | None) -> Tensor:
    """Train a head with the trainer."""
    losses = tuple(
        registry.create_loss("ce", num_classes=CLASSES, reduction="none") for _ in range(2)
    )
    head = create_head("noise", WIDTH, CLASSES, hidden, 0.0)
    trainer = Trainer(
        head,
        (losses[0], losses[1]),
        data,
        Transform((), ()),
        _recipe(),
        Checkpoints(folder, "speed", seconds_between=2.0),
        Processes.join("cpu"),
        seed=0,
    )
    with stop_on_signals() as stop:
        return next(iter(trainer.run(SilentMonitor(), stop).values()))


def with_loop(data: TrainingData, folder: Path, hidden: int | None) -> Tensor:
    """
    Train a head with a plain loop that does what the recipe asks for and no more: the same loss,
    optimizer, schedule and clipping; loss and accuracy of the training and of the held-out data.
    """
    head, recipe = _bare_head(hidden), _recipe()
    loss_of = registry.create_loss("ce", num_classes=CLASSES)
    # timm's groups: no weight decay for biases
    optimizer = create_optimizer_v2(
        head, opt=recipe.optimizer, lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    steps = len(data.train) // BATCH * EPOCHS
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    assert recipe.clip_grad is not None
    for epoch in range(EPOCHS):
        order = torch.randperm(len(data.train), generator=torch.Generator().manual_seed(epoch))
        total, correct = 0.0, 0
        for rows in order[: len(order) // BATCH * BATCH].split(BATCH):
            labels = data.train.labels[rows]
            logits = head(data.train.rows(rows))
            loss = loss_of(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(head.parameters(), recipe.clip_grad)
            optimizer.step()
            schedule.step()
            total += loss.item()
            correct += int((logits.argmax(dim=1) == labels).sum())
        with torch.no_grad():
            logits = head(data.held_out.all_rows())
            loss_of(logits, data.held_out.labels).item()
            int((logits.argmax(dim=1) == data.held_out.labels).sum())
    return next(head.parameters())


def with_least_loop(data: TrainingData, folder: Path, hidden: int | None) -> Tensor:
    """Train a head with the shortest loop: neither clipping, schedule nor figures."""
    head = _bare_head(hidden)
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


def _recipe() -> Recipe:
    return Recipe.named("small", epochs=EPOCHS, batch_size=BATCH)


def _bare_head(hidden: int | None) -> nn.Module:
    if hidden is None:
        return nn.Linear(WIDTH, CLASSES)
    layers = nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Dropout(0.0)
    return nn.Sequential(*layers, nn.Linear(hidden, CLASSES))


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
        ratio, shortest = measure_heads(options.samples, hidden)
        slow |= ratio < least
        kind = "linear" if hidden is None else f"{hidden} hidden units"
        print(f"heads, {kind}: {ratio:.2f} of a bare loop, {shortest:.2f} of the shortest one")
    return int(slow or difference > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
