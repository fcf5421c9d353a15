"""What a user asks of a benchmark."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """
    What a user asks for; the suite decides what is empty or ``None``.

    :param suite: a suite's name or the path of a suite file
    :param out: the folder of the benchmark
    :param pretrained: start from the weights that timm publishes
    :param weights: start from the weights of this file
    :param freeze: train heads on the features of the given weights, and nothing else
    :param limit: use at most this many samples of every set
    :param fit_samples: fit detectors to at most this many training and held-out samples
    :param tune: search the detectors' hyper-parameters on held-out data
    :param again: methods that are trained and detectors that are evaluated even if that has been
        done before
    :param only_asked: write results of what is asked for only, not of all runs in the folder
    :param only_eval: the folder of a finished run that is evaluated instead of training anything
    :param skip_missing: leave out OOD test sets that are missing
    :param data_root: the folder of downloaded data sets
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :param cache_memory: bytes of decoded images that are kept; a quarter of the machine's memory
    :param loaders: processes that decode images; one for each core, at most four
    """

    suite: str
    out: Path
    backbones: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    detectors: tuple[str, ...] = ()
    seeds: int | None = None
    epochs: int | None = None
    pretrained: bool = False
    weights: Path | None = None
    freeze: bool = False
    limit: int | None = None
    fit_samples: int | None = None
    tune: bool = False
    again: tuple[str, ...] = ()
    only_asked: bool = False
    only_eval: Path | None = None
    skip_missing: bool = False
    data_root: Path = Path("data")
    device: str = "auto"
    cache_memory: int | None = None
    loaders: int | None = None

    def __post_init__(self) -> None:
        for name in ("out", "only_eval", "data_root", "weights"):  # a path may be given as a string
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, Path(value))
