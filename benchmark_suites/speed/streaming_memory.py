"""Peak memory and starts of streamed data, and the memory of processes that share a cache."""

import argparse
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmark_suites.speed.memory import peak_mib
from benchmark_suites.speed.streaming_steps import (
    CLASSES,
    FILE_SIZE,
    SIZE,
    load_photos,
    our_features,
    our_training,
    write_photos,
)
from dpn_plugin.backbones import create_backbone
from dpn_plugin.data import StorageOptions, Transform, channel_statistics, fingerprint
from dpn_plugin.runs import FrozenBase

#: of the peak for many images, relative to that for few, and of the second start to the first
MOST_MEMORY, MOST_START = 1.25, 0.1


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
    ready.wait(300)
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
        ready.wait(300)  # a process that failed must not block the others
        go_on.set()
        totals[name] = sum(pages.get() for _ in both)
        for each in both:
            each.join()
    size = options.shared * 3 * SIZE * SIZE / 2**20
    texts = ", ".join(f"{name} {total:.0f} MiB" for name, total in totals.items())
    print(f"two processes with {size:.0f} MiB of images, private memory: {texts}")
    saved = totals["two copies"] - totals["one cache"]
    return [] if saved > size else [f"two processes with one cache save only {saved:.0f} MiB"]
