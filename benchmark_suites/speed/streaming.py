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
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from timm.data import ImageDataset, create_loader
from torch import Tensor, nn

from benchmark_suites.speed.measures import best_times
from benchmark_suites.speed.memory import peak_mib
from dpn_plugin._distributed import Processes
from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.data import (
    DatasetCache,
    Samples,
    SourceSpec,
    StorageOptions,
    Transform,
    channel_statistics,
    fingerprint,
)
from dpn_plugin.runs import NO_VIEW, Checkpoints, FrozenBase, Recipe
from dpn_plugin.training import TrainingData
from dpn_plugin.training.trainer import Trainer

CLASSES = 4
BATCH = 64
#: of a feature pass, as in a benchmark
FEATURE_BATCH = 256
#: height and width of the files, and of the images that networks see
FILE_SIZE, SIZE = 96, 64
LEAST_FEATURES, LEAST_TRAINING, MOST_MEMORY, MOST_START = 0.95, 0.9, 1.25, 0.1


def write_photos(folder: Path, files: int, images: int, size: int) -> None:
    """Write JPEG files, one folder for each class; further images are links to the first files."""
    generator = np.random.default_rng(0)
    smooth = generator.integers(0, 256, (files, 6, 6, 3), dtype=np.uint8)
    for number in range(images):
        path = folder / f"class{number % CLASSES}" / f"{number:06}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < files:
            picture = Image.fromarray(smooth[number]).resize((size, size))
            picture.save(path, quality=90)
        else:
            first = number % files // CLASSES * CLASSES + number % CLASSES
            os.link(folder / f"class{first % CLASSES}" / f"{first:06}.jpg", path)
    for path in folder.rglob("*.jpg"):
        os.utime(path, (time.time() - 60,) * 2)  # files as new as now are hashed at every start


def load_photos(folder: Path, storage: StorageOptions, size: int = SIZE) -> Samples:
    """Return the files as in-domain samples."""
    datasets = DatasetCache(folder.parent, storage=storage)
    spec = SourceSpec(source=f"folder:{folder.name}")
    return datasets.load(spec, image_size=(size, size), channels=3, in_domain=True)


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


def our_features(samples: Samples, base: FrozenBase) -> int:
    """Run a network over streamed samples and return the number of images."""
    images = NO_VIEW.batches(samples, FEATURE_BATCH)
    return sum(len(each) for each in base.features(images, torch.device("cpu")))


def bare_training(folder: Path, backbone: Backbone, workers: int) -> None:
    """Train for one epoch with a plain loop over timm's loader."""
    backbone.train()
    optimizer = torch.optim.SGD(backbone.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    for x, y in timm_batches(folder, workers, train=True):
        loss = nn.functional.cross_entropy(backbone(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def our_training(samples: Samples, backbone: Backbone, transform: Transform) -> None:
    """Train for one epoch with the steps of ``dpn train``."""
    none = {"shift": 0.0, "rotation": 0.0, "flip": False}
    recipe = Recipe.named("c10", lr=1e-3, batch_size=BATCH, augmentation=none)
    losses = (nn.CrossEntropyLoss(reduction="none"), nn.CrossEntropyLoss(reduction="none"))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            backbone,
            losses,
            TrainingData(samples, samples),
            transform,
            recipe,
            Checkpoints(Path(folder), owner=""),
            Processes(torch.device("cpu")),
            seed=0,
        )
        trainer.task.train()
        for x, y in trainer.batches.rest_of(epoch=0, step=0):
            trainer._train_step(x, y, epoch=0)


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


def in_process(function: Any, *arguments: Any) -> Any:
    """Return what a function returns in a new process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    return found


def _answer(connection: Connection, function: Any, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    connection.send(function(*arguments))


def streamed_pass(folder: Path, cache: Path, workers: int) -> tuple[float, float]:
    """Start, train on a quarter and run over all images; return seconds of the start and memory."""
    before, start = peak_mib(), time.perf_counter()
    samples = load_photos(folder, StorageOptions(cache, 0, workers), 16)
    fingerprint(samples)
    seconds = time.perf_counter() - start
    channel_statistics(samples)
    backbone = create_backbone("test_resnet", CLASSES, in_chans=3, image_size=16)
    transform = Transform((0.5,) * 3, (0.25,) * 3, (16, 16))
    our_training(samples.subset(torch.arange(0, len(samples), 4)), backbone, transform)
    our_features(samples, FrozenBase(backbone.eval(), transform, ""))
    return seconds, peak_mib() - before


def measure_memory(folder: Path, options: argparse.Namespace) -> list[str]:
    """Print peaks and seconds of starts, and return what is above its limit."""
    print(f"{'streamed':>10} {'peak MiB':>9} {'first start':>12} {'second':>7}")
    peaks, wrong = [], []
    for count in (options.few, options.many):
        photos, cache = folder / f"photos{count}", folder / f"cache{count}"
        write_photos(photos, min(count, 2000), count, 24)
        first, peak = in_process(streamed_pass, photos, cache, options.workers)
        second, again = in_process(streamed_pass, photos, cache, options.workers)
        peaks.append(max(peak, again))
        print(f"{count:>10,} {peaks[-1]:>9.0f} {first:>11.1f}s {second:>6.1f}s", flush=True)
    if peaks[1] > MOST_MEMORY * peaks[0]:
        wrong.append(f"memory of {options.many:,} images ({peaks[1]:.0f} MiB)")
    if second > max(MOST_START * first, 1.0):
        wrong.append(f"the second start ({second:.1f} s)")
    return wrong


def hold(folder: Path, cache: Path | None, ready: Any, go_on: Any, pages: Any) -> None:
    """Read all images in this process, and report the memory that it does not share."""
    samples = load_photos(folder, StorageOptions(cache))
    fingerprint(samples)
    samples.rows(torch.arange(0, len(samples), 2))
    text = Path("/proc/self/smaps_rollup").read_text("ascii")
    fields = dict(line.split()[:2] for line in text.splitlines()[1:])
    pages.put(int(fields["Private_Dirty:"]) / 1024)
    ready.wait()
    go_on.wait()


def measure_sharing(folder: Path, options: argparse.Namespace) -> list[str]:
    """Print the memory that two processes need with one cache, and with a copy each."""
    context, totals = multiprocessing.get_context("spawn"), {}
    write_photos(folder, min(options.shared, 2000), options.shared, FILE_SIZE)
    for name, cache in (("one cache", folder.parent / "shared"), ("two copies", None)):
        ready, go_on, pages = context.Barrier(3), context.Event(), context.Queue()
        arguments = (folder, cache, ready, go_on, pages)
        both = [context.Process(target=hold, args=arguments) for _ in range(2)]
        for each in both:
            each.start()
        ready.wait()
        go_on.set()
        totals[name] = sum(pages.get() for _ in both)
        for each in both:
            each.join()
    size = options.shared * 3 * SIZE * SIZE / 2**20
    texts = ", ".join(f"{name} {total:.0f} MiB" for name, total in totals.items())
    print(f"two processes with {size:.0f} MiB of images, private memory: {texts}")
    saved = totals["two copies"] - totals["one cache"]
    return [] if saved > size else [f"two processes with one cache save only {saved:.0f} MiB"]


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
