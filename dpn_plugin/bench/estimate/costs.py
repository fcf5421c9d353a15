"""
The arithmetic of an estimate: what a run costs, from counts and from seconds per image.

Plain functions of numbers, so that a plan can also be worked out on paper. Time is that of
training, of one forward pass over every set, and of the detectors that read images again; these are
counted in forward passes, see :data:`PASSES`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: detector: forward passes beside the one that all share, for an image that it is fitted to and for
#: one that it scores. A backward pass counts as one: it computes gradients of inputs alone
PASSES: Mapping[str, tuple[float, float]] = {
    "gram": (0.2, 0.2),
    "grad-norm": (0.0, 0.2),
    "grad-uncertainty": (0.0, 0.2),
    "mahalanobis-odin": (0.0, 2.3),
    "mcd": (0.0, 30.0),
    "multi-mahalanobis": (0.1, 0.2),
    "nacue": (1.0, 1.0),
    "odin": (0.0, 2.0),
    "rank-feat": (0.0, 0.5),
}
#: of a detector that reads images and is not in the table
OTHER_PASSES = (1.0, 1.0)

#: seconds of a detector that reads stored outputs: at least, and for every image that it scores
STORED_SECONDS = (0.02, 4e-6)
#: the same of those that loop over images, or search for an optimum for every class
SLOW_STORED = {"open-max": (0.1, 5e-4), "knn": (0.5, 3e-5)}

#: bytes of a ``.npy`` file, and of ``entry.json``, without the numbers
ARRAY_HEADER, ENTRY_BYTES = 128, 900
#: bytes of ``run.json``, ``evaluation.json``, ``samples.json`` and the like of a run
RECORD_BYTES = 60_000


@dataclass(frozen=True)
class Speed:
    """
    What a network costs on a device.

    :param step: seconds of a training step without and with outliers
    :param forward: seconds of a forward pass, per image
    :param save: seconds of a checkpoint
    :param weights: bytes of the weights
    :param memory: bytes that training and forward passes need at most
    """

    step: tuple[float, float]
    forward: float
    save: float
    weights: int
    memory: int


@dataclass(frozen=True)
class Work:
    """
    What a run has to do.

    :param steps: training steps without and with outliers
    :param step_images: images of such steps
    :param saves: checkpoints of all networks
    :param held_out: images that select the weights, in all epochs
    :param collected: images whose outputs are stored
    :param networks: networks, or passes with dropout, that give these outputs
    :param fitted: images that detectors read again to be fitted
    :param scored: images that detectors read again to be scored
    :param fit_passes: forward passes for each of ``fitted``
    :param score_passes: forward passes for each of ``scored``
    :param stored_seconds: of the detectors that read stored outputs
    :param store: bytes of stored outputs
    :param weight_files: weight files that are written
    :param fit_memory: bytes of what detectors are fitted to
    """

    steps: tuple[int, int] = (0, 0)
    step_images: tuple[int, int] = (0, 0)
    saves: int = 0
    held_out: int = 0
    collected: int = 0
    networks: int = 1
    fitted: int = 0
    scored: int = 0
    fit_passes: float = 0.0
    score_passes: float = 0.0
    stored_seconds: float = 0.0
    store: int = 0
    weight_files: int = 0
    fit_memory: int = 0


@dataclass(frozen=True)
class Cost:
    """
    What a run, or a plan, costs.

    :param images: images that are read
    :param forwards: forward passes, of one image each; a training step and a backward pass too
    :param seconds: how long it takes
    :param disk: bytes that are written and kept
    :param memory: bytes that it needs at most
    """

    images: float = 0.0
    forwards: float = 0.0
    seconds: float = 0.0
    disk: int = 0
    memory: int = 0


def run_cost(work: Work, speed: Speed, base_memory: int = 0) -> Cost:
    """
    Return what a run costs.

    :param work: what is to be done
    :param speed: of its network
    :param base_memory: bytes of the process before it starts, with the data
    """
    trained = sum(n * size for n, size in zip(work.steps, work.step_images, strict=True))
    passes = float(work.collected * work.networks)
    passes += work.fitted * work.fit_passes + work.scored * work.score_passes
    training = sum(n * step for n, step in zip(work.steps, speed.step, strict=True))
    training += work.held_out * speed.forward + work.saves * speed.save
    return Cost(
        images=trained + work.held_out + work.collected + work.fitted + work.scored,
        forwards=trained + work.held_out + passes,
        seconds=training + passes * speed.forward + work.stored_seconds,
        disk=work.store + work.weight_files * speed.weights + RECORD_BYTES,
        memory=base_memory + max(speed.memory, work.fit_memory),
    )


def detector_passes(readers: Sequence[str], fitted: Sequence[str]) -> tuple[float, float]:
    """
    Return the forward passes for each image that detectors are fitted to, and that they score.

    :param readers: the detectors that read images
    :param fitted: those of them that are fitted to images
    """
    fit = sum(PASSES.get(name, OTHER_PASSES)[0] for name in fitted) + bool(fitted)
    score = sum(PASSES.get(name, OTHER_PASSES)[1] for name in readers) + bool(readers)
    return fit, score


def stored_seconds(names: Sequence[str], images: int) -> float:
    """
    Return the time of detectors that read stored outputs.

    :param names: the detectors
    :param images: that each of them scores
    """
    parts = (SLOW_STORED.get(name, STORED_SECONDS) for name in names)
    return sum(least + images * per_image for least, per_image in parts)


def store_bytes(sets: Mapping[str, int], widths: Sequence[int]) -> int:
    """
    Return the size of stored outputs.

    :param sets: number of samples of every set
    :param widths: bytes of one sample in every array
    """
    per_set = ENTRY_BYTES + ARRAY_HEADER * len(widths)
    return sum(per_set + count * sum(widths) for count in sets.values())


def makespan(
    seconds: Sequence[float], slots: int, waits_for: Mapping[int, Sequence[int]] | None = None
) -> float:
    """
    Return how long runs take if several are carried out at a time, in order.

    :param seconds: of every run
    :param slots: runs at a time
    :param waits_for: runs that must have ended before a run starts, by index
    """
    free, ends = [0.0] * max(1, slots), [0.0] * len(seconds)
    for index, duration in enumerate(seconds):
        ready = max((ends[each] for each in (waits_for or {}).get(index, ())), default=0.0)
        slot = min(range(len(free)), key=free.__getitem__)
        ends[index] = free[slot] = max(free[slot], ready) + duration
    return max(ends, default=0.0)


@dataclass(frozen=True)
class PlanCost:
    """
    What a plan costs.

    :param runs: of every run, in order
    :param waits_for: runs that a run waits for, whose networks it copies
    :param shared: what is done once for several runs: features of frozen networks
    :param data: bytes of the images, decoded
    """

    runs: Sequence[Cost]
    waits_for: Mapping[int, Sequence[int]] = field(default_factory=dict)
    shared: Cost = field(default_factory=Cost)
    data: int = 0

    @property
    def total(self) -> Cost:
        """All runs, one after the other."""
        parts = [*self.runs, self.shared]
        return Cost(
            images=sum(each.images for each in parts),
            forwards=sum(each.forwards for each in parts),
            seconds=sum(each.seconds for each in parts),
            disk=sum(each.disk for each in parts),
            memory=max(each.memory for each in parts),
        )

    def seconds_with(self, slots: int) -> float:
        """Return the time with so many runs at a time."""
        runs = [each.seconds for each in self.runs]
        return self.shared.seconds + makespan(runs, slots, self.waits_for)

    def memory_with(self, slots: int) -> int:
        """Return the bytes that the largest runs need together, so many at a time."""
        return sum(sorted((each.memory for each in self.runs), reverse=True)[:slots])
