"""The published leaderboard of OpenOOD v1.5 beside our figures."""

from dataclasses import dataclass
from importlib.resources import files

import pandas as pd

from dpn_plugin.bench.record import BenchRecord

#: where the figures of ``openood_results.csv`` come from
SOURCE = "leaderboard of OpenOOD v1.5 (https://zjysteven.github.io/OpenOOD/, state of 2025-07-19)"

#: our method: their training
TRAININGS = {
    "baseline": "CrossEntropy",
    "as-is": "CrossEntropy",
    "oe": "OE",
    "mixoe": "MixOE",
    "pixmix": "PixMix",
}
#: our detector: their postprocessor; Max.P is MSP, and the precision ranks like the energy
POSTPROCESSORS = {
    "dpn-maxp": "MSP",
    "max-softmax": "MSP",
    "dpn-precision": "EBO",
    "energy-based": "EBO",
    "max-logit": "MLS",
    "temperature-scaling": "TempScale",
    "odin": "ODIN",
    "mahalanobis": "MDS",
    "multi-mahalanobis": "MDSEns",
    "mahalanobis-pp": "MDS++",
    "rmd": "RMDS",
    "rmd-pp": "RMDS++",
    "open-max": "OpenMax",
    "kl-matching": "KLM",
    "gram": "Gram",
    "grad-norm": "GradNorm",
    "react": "ReAct",
    "vim": "VIM",
    "knn": "KNN",
    "dice": "DICE",
    "ash": "ASH",
    "she": "SHE",
    "gen": "GEN",
    "rank-feat": "RankFeat",
    "scale": "SCALE",
    "nacue": "NAC",
    "nnguide": "NNGuide",
    "fdbd": "fDBD",
    "nci": "NCI",
}
#: the start of our backbone: their architecture
ARCHITECTURES = {
    "resnet18": "ResNet18",
    "resnet50": "ResNet50",
    "vit_base_patch16": "ViT-B/16",
    "swin_tiny": "Swin-T",
    "regnety_160": "RegNet_Y_16GF",
}


@dataclass(frozen=True)
class OpenOODBenchmark:
    """
    A benchmark of OpenOOD, by the lists of images that it consists of.

    :param title: its name
    :param test: list of the in-domain test data
    :param near: lists of the near OOD sets
    :param far: lists of the far OOD sets
    :param architecture: of most rows of its leaderboard
    """

    title: str
    test: str
    near: tuple[str, ...]
    far: tuple[str, ...]
    architecture: str = "ResNet18"

    def matches(self, record: BenchRecord) -> bool:
        """Return whether a benchmark has this in-domain test data and all of these OOD sets."""
        groups = {"near": self.near, "far": self.far}
        return record.in_domain_test.source == f"openood:{self.test}" and all(
            {each.source for each in record.sets.get(group, {}).values()}
            == {f"openood:{name}" for name in names}
            for group, names in groups.items()
        )


def _cifar(name: str, other: str) -> OpenOODBenchmark:
    far = ("mnist", "svhn", "texture", "places365")
    return OpenOODBenchmark(
        name.upper().replace("R1", "R-1"),
        f"{name}/test_{name}",
        (f"{name}/test_{other}", f"{name}/test_tin"),
        tuple(f"{name}/test_{each}" for each in far),
    )


def _imagenet(title: str, folder: str, architecture: str) -> OpenOODBenchmark:
    far = ("inaturalist", "textures", "openimage_o")
    return OpenOODBenchmark(
        title,
        f"{folder}/test_{folder}",
        (f"{folder}/test_ssb_hard", f"{folder}/test_ninco"),
        tuple(f"{folder}/test_{each}" for each in far),
        architecture,
    )


BENCHMARKS = {
    "cifar10": _cifar("cifar10", "cifar100"),
    "cifar100": _cifar("cifar100", "cifar10"),
    "imagenet200": _imagenet("ImageNet-200", "imagenet200", "ResNet18"),
    "imagenet1k": _imagenet("ImageNet-1K", "imagenet", "ResNet50"),
}
_THEIRS = ["near", "near_std", "far", "far_std", "accuracy"]
_KEYS = ["spectrum", "training", "postprocessor"]


def find_openood_benchmark(record: BenchRecord) -> str | None:
    """Return the name of OpenOOD's benchmark that ours is, ``None`` if it is another one."""
    return next((name for name, each in BENCHMARKS.items() if each.matches(record)), None)


def openood_figures(benchmark: str) -> pd.DataFrame:
    """
    Return the leaderboard of a benchmark, in per cent.

    :param benchmark: a key of :data:`BENCHMARKS`
    :return: the columns ``spectrum`` (``ood`` or ``full_spectrum``), ``training``,
        ``postprocessor``, ``architecture``, ``outliers``, ``near``, ``far`` and ``accuracy``, with
        standard deviations over seeds where they are published
    """
    with files("dpn_plugin.bench").joinpath("openood_results.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, comment="#")
    return table[table["benchmark"].eq(benchmark)].drop(columns="benchmark")


def compare_with_openood(summary: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """
    Return every row of our leaderboard beside its counterpart in OpenOOD's, in per cent.

    Where OpenOOD has several architectures, that of our backbone is taken, or else the usual one of
    the benchmark. Rows without a counterpart follow, first ours, then OpenOOD's.

    :param summary: what :func:`dpn_plugin.metrics.over_seeds` returns, of one suite
    :param benchmark: a key of :data:`BENCHMARKS`
    """
    theirs = openood_figures(benchmark)
    ours = _our_rows(summary)
    ours["training"] = ours["method"].map(TRAININGS)
    ours["postprocessor"] = ours["detector"].map(POSTPROCESSORS)
    theirs = theirs[theirs["spectrum"].isin(ours["spectrum"])]
    usual, parts = BENCHMARKS[benchmark].architecture, []
    for backbone, rows in ours.groupby("backbone", sort=False):
        own = _architecture(str(backbone))
        preferred = theirs["architecture"].map({own: 0, usual: 1} if own else {usual: 1})
        chosen = theirs[preferred.notna()].assign(rank=preferred).sort_values("rank", kind="stable")
        chosen = chosen.drop_duplicates(_KEYS).drop(columns="rank")
        renamed = chosen.rename(columns={name: f"openood_{name}" for name in _THEIRS})
        parts.append(rows.merge(renamed.drop(columns="accuracy_std"), on=_KEYS, how="left"))
    joined = pd.concat(parts)
    for group in ("near", "far"):
        joined[f"difference_{group}"] = joined[group] - joined[f"openood_{group}"]
    joined["counterpart"] = joined["openood_near"].notna()
    joined = joined.sort_values(["spectrum", "counterpart", "far"], ascending=False, kind="stable")
    joined[["training", "postprocessor"]] = joined[["training", "postprocessor"]].where(
        joined["counterpart"]
    )
    return pd.concat([joined, _only_theirs(theirs, joined)], ignore_index=True)


def _only_theirs(theirs: pd.DataFrame, joined: pd.DataFrame) -> pd.DataFrame:
    """Return OpenOOD's rows that are beside none of ours."""
    keys = [*_KEYS, "architecture"]
    taken = pd.MultiIndex.from_frame(joined.loc[joined["counterpart"], keys])
    rest = theirs[~pd.MultiIndex.from_frame(theirs[keys]).isin(taken)]
    renamed = rest.rename(columns={name: f"openood_{name}" for name in _THEIRS})
    return renamed.drop(columns="accuracy_std").assign(counterpart=False)


def _our_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """Return near and far AUROC and the accuracy of every backbone, method and detector."""
    keys = ["spectrum", "backbone", "method", "detector"]
    chosen = summary[
        summary["task"].isin(["ood", "full_spectrum"])
        & summary["metric"].eq("auroc")
        & summary["dataset"].isin(["near", "far"])
    ].rename(columns={"task": "spectrum"})
    wide = chosen.pivot_table(index=keys, columns="dataset", values=["mean", "std"], sort=False)
    found = pd.DataFrame(index=wide.index)
    for group in ("near", "far"):
        found[group] = 100 * wide["mean", group]
        known = ("std", group) in wide  # of one seed there is none
        found[f"{group}_std"] = 100 * wide["std", group] if known else float("nan")
    accuracy = summary[summary["metric"].eq("accuracy") & summary["dataset"].eq("")]
    accuracy = accuracy.assign(
        spectrum=accuracy["task"].replace("classification", "ood"), accuracy=100 * accuracy["mean"]
    )[["spectrum", "backbone", "method", "accuracy", "n"]]
    return found.reset_index().merge(accuracy, on=["spectrum", "backbone", "method"], how="left")


def _architecture(backbone: str) -> str | None:
    return next((name for start, name in ARCHITECTURES.items() if backbone.startswith(start)), None)
