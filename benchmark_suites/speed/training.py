"""
Time the training loop.

    python benchmark_suites/speed/training.py

compares, in one run and on the same network, batches and optimizer,

- ``bare``: a plain PyTorch loop over tensors in memory (index, normalise, forward, backward, step);
- ``ours``: the loop of ``dpn train`` without augmentation, which adds seeding, checks for
  non-finite values, metrics and the handling of Ctrl-C, and must reach 0.90 of the bare loop;
- ``augmented``: the same with the paper's augmentation, for information;

and the cost of the representation-gap loss against plain cross-entropy in one step of the same
network on the same batch, which must stay below 2 %.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmark_suites.speed.measures import best_times
from dpn_plugin._distributed import Processes
from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.data import Augmentation, Samples
from dpn_plugin.losses import dpn_minus
from dpn_plugin.runs import Checkpoints, Recipe
from dpn_plugin.training import TrainingData
from dpn_plugin.training.trainer import Trainer

BACKBONES = ("vgg16_cifar", "resnet18")
BATCH, STEPS, ROUNDS, CLASSES = 32, 2, 3, 10
LEAST_SHARE, MOST_COST = 0.90, 0.02
#: repetitions of a loss in one measurement: a single one is too short to be timed
REPETITIONS = 12


def training_data() -> TrainingData:
    """Return noise of CIFAR's shape: the content of the images does not change the time."""
    generator = torch.Generator().manual_seed(0)
    count = BATCH * STEPS * ROUNDS
    images = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    samples = Samples(images, labels, "noise", tuple(map(str, range(CLASSES))))
    return TrainingData(samples, samples)


class Bare:
    """A plain PyTorch training loop."""

    def __init__(self, name: str, data: TrainingData) -> None:
        self.backbone, self.data = _backbone(name), data
        self.transform = data.create_transform(self.backbone)
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(
            self.backbone.parameters(), lr=1e-3, momentum=0.9, nesterov=True
        )
        self.backbone.train()

    def steps(self) -> None:
        """Train for ``STEPS`` steps."""
        order = torch.randperm(len(self.data.train))
        for step in range(STEPS):
            rows = order[step * BATCH : (step + 1) * BATCH]
            x = self.transform(self.data.train.rows(rows))
            loss = self.loss(self.backbone(x), self.data.train.labels[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Ours:
    """The steps of ``dpn train``, without what is done once an epoch: checkpoints and selection."""

    def __init__(self, name: str, data: TrainingData, augmentation: Augmentation) -> None:
        backbone = _backbone(name)
        both = dict.fromkeys(("augmentation", "outlier_augmentation"), vars(augmentation))
        recipe = Recipe.named("c10", lr=1e-3, batch_size=BATCH, **both)
        losses = (nn.CrossEntropyLoss(reduction="none"), nn.CrossEntropyLoss(reduction="none"))
        self.folder = tempfile.TemporaryDirectory()
        self.trainer = Trainer(
            backbone,
            losses,
            data,
            data.create_transform(backbone),
            recipe,
            Checkpoints(Path(self.folder.name), owner=""),
            Processes(torch.device("cpu")),
            seed=0,
        )
        self.trainer.task.train()

    def steps(self) -> None:
        """Train for ``STEPS`` steps."""
        batches = self.trainer.batches.rest_of(epoch=0, step=0)
        for _, (inputs, labels) in zip(range(STEPS), batches, strict=False):
            self.trainer._train_step(inputs, labels, epoch=0)


def _backbone(name: str) -> Backbone:
    torch.manual_seed(0)
    return create_backbone(name, CLASSES, in_chans=3, image_size=32)


def loss_cost(name: str, data: TrainingData) -> float:
    """Return the relative additional time of a step with the representation-gap loss."""
    backbone = _backbone(name)
    x = data.create_transform(backbone)(data.train.rows(torch.arange(BATCH + BATCH // 2)))
    target = data.train.labels[: len(x)].clone()
    outliers = target.clone()
    outliers[BATCH:] = -1
    gap = dpn_minus(CLASSES)
    # the network is the same in both steps, so the losses are timed separately and the network
    # once: the difference of two long times would be noise
    logits = backbone(x).detach().requires_grad_()
    times = best_times(
        {
            "network": lambda: backbone(x).sum().backward(),
            "ce": partial(_repeat, lambda: _loss_step(nn.CrossEntropyLoss(), logits, target)),
            "gap": partial(_repeat, lambda: _loss_step(gap, logits, outliers)),
        },
        ROUNDS,
    )
    ce, gapped = times["ce"] / REPETITIONS, times["gap"] / REPETITIONS
    return (gapped - ce) / (times["network"] + ce)


def _repeat(function: Callable[[], object]) -> None:
    for _ in range(REPETITIONS):
        function()


def _loss_step(loss: nn.Module, logits: Tensor, target: Tensor) -> None:
    logits.grad = None
    loss(logits, target).backward()


def main() -> None:
    """Print a line per backbone; fail if the loop or the loss is slower than its limit."""
    torch.set_num_threads(1)
    data = training_data()
    print(
        f"{'images/s':>12} {'bare':>7} {'ours':>7} {'share':>6} {'augmented':>10} {'gap loss':>9}"
    )
    failed = []
    for name in BACKBONES:
        loops: dict[str, Bare | Ours] = {
            "bare": Bare(name, data),
            "ours": Ours(name, data, Augmentation()),
            "augmented": Ours(name, data, Augmentation(shift=0.1, rotation=15.0, flip=True)),
        }
        times = best_times({key: loop.steps for key, loop in loops.items()}, ROUNDS)
        rates = {key: BATCH * STEPS / each for key, each in times.items()}
        share, cost = rates["ours"] / rates["bare"], loss_cost(name, data)
        print(
            f"{name:>12} {rates['bare']:>7.0f} {rates['ours']:>7.0f} {share:>6.2f} "
            f"{rates['augmented']:>10.0f} {cost:>+9.2%}",
            flush=True,
        )
        failed += [name] * (share < LEAST_SHARE or cost > MOST_COST)
    if failed:
        raise SystemExit(f"too slow: {', '.join(failed)}")


if __name__ == "__main__":
    main()
