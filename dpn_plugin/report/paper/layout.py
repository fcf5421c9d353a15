"""
The layout of the paper's tables: which figure stands in which row and column, and which figures
compete for bold.

A figure is found by the keys of its row, of its column and of its grid together. Tables that the
paper prints for several tasks are built for those that there are results of.
"""

from collections.abc import Callable, Iterable

from dpn_plugin.report.paper.grid import Grid, Keys, Layout, Line
from dpn_plugin.report.paper.names import MEASURES, METHODS, SETS

#: in the order of the paper
TASKS = ("C10", "C100", "TIM")
#: the methods of the tables in the appendix; those in the text leave out EDL and DPN_fwd
_ALL = tuple(METHODS)[:9]
_SHORT = ("baseline", "mcdp", "deep-ensemble", "oe", "dpn-rev", "dpn-plus", "dpn-minus")
#: entropy is in the appendix only
_SHORT_MEASURES = ("dpn-maxp", "dpn-mi", "dpn-precision", "dpn-dent")
_MAIN_SETS = {
    "C10": ("tinyimagenet", "stl10", "lsun"),
    "C100": ("tinyimagenet", "stl10", "lsun"),
    "TIM": ("cifar10", "cifar100", "textures"),
}
_GAP_SETS = {
    "C10": ("tinyimagenet", "lsun"),
    "C100": ("tinyimagenet", "lsun"),
    "TIM": ("cifar10", "cifar100"),
}
_FIVE_SETS = ("tinyimagenet", "stl10", "lsun", "places365", "textures")
_EXTENDED_SETS = {
    "C10": _FIVE_SETS,
    "C100": _FIVE_SETS,
    "TIM": ("cifar10", "cifar100", "stl10", "lsun", "places365", "textures"),
}
_EXTENDED_GAP_SETS = {
    "C10": (("stl10", "tinyimagenet", "lsun", "places365", "textures"),),
    "C100": (("stl10", "tinyimagenet", "lsun", "places365", "textures"),),
    "TIM": (("stl10", "cifar10", "cifar100"), ("lsun", "places365", "textures")),
}
_CALIBRATED_WITH = {"C10": "stl10", "C100": "stl10", "TIM": "cifar100"}
_DPN = ("dpn-fwd", "dpn-rev", "dpn-plus", "dpn-minus")
#: directions of the divergence by name: the metric of a kind of samples, the title
_DIRECTIONS = {
    "in_ood": ("kl_{}_ood", "KL(in-domain ‖ OOD)"),
    "ood_in": ("kl_ood_{}", "KL(OOD ‖ in-domain)"),
}


def layouts(tasks: Iterable[str]) -> list[Layout]:
    """
    Return the tables of the paper that have figures of some of these tasks.

    Tables of the Gaussian divergence are there twice, once for each direction.

    :param tasks: of ``C10``, ``C100``, ``TIM``
    """
    chosen = [task for task in TASKS if task in set(tasks)]
    gaps = [build for way in _DIRECTIONS for build in (_gap(way), _extended_gap(way))]
    builders = [_ood, _misclassification, *_ablations(), _binary, _calibration, *gaps]
    found = [build(chosen) for build in [*builders, _extended_misclassification]]
    extended = [_extended_ood(11 + TASKS.index(task), task) for task in chosen]
    tables = [table for table in [*found, *extended] if table.grids]
    return sorted(tables, key=lambda table: table.number)


def _ood(tasks: list[str]) -> Layout:
    grids = [_ood_grid("ood_detection", task, _SHORT, _MAIN_SETS[task]) for task in tasks]
    return Layout(1, "ood", "AUROC of OOD detection", tuple(grids))


def _ood_grid(table: str, task: str, methods: Iterable[str], sets: Iterable[str]) -> Grid:
    columns = tuple(
        Line((SETS[name], MEASURES[detector]), {"dataset": name, "detector": detector}, name)
        for name in sets
        for detector in _SHORT_MEASURES
    )
    keys = {"paper_task": task, "table": table, "metric": "auroc"}
    return Grid(task, _methods(methods), columns, keys)


def _methods(names: Iterable[str]) -> tuple[Line, ...]:
    return tuple(Line((METHODS[name],), {"method": name}) for name in names)


def _misclassification(tasks: list[str]) -> Layout:
    columns = tuple(
        Line((task, MEASURES[detector]), {"paper_task": task, "detector": detector}, task)
        for task in tasks
        for detector in _SHORT_MEASURES
    )
    keys = {"table": "misclassification", "metric": "auroc"}
    grids = (Grid("", _methods(_SHORT), columns, keys),)
    return Layout(2, "misclassification", "AUROC of misclassification detection", grids)


def _gap(way: str) -> Callable[[list[str]], Layout]:
    def build(tasks: list[str]) -> Layout:
        columns = tuple(
            column
            for task in tasks
            for column in _gap_columns(way, _GAP_SETS[task], {"paper_task": task}, (task,))
        )
        grid = Grid("", _methods(_DPN[1:]), columns, {"table": "gaussian_kl"})
        return Layout(3, f"gap-{way}", f"Representation gap, {_DIRECTIONS[way][1]}", (grid,))

    return build


def _gap_columns(
    way: str, sets: Iterable[str], keys: Keys, heads: tuple[str, ...] = ()
) -> tuple[Line, ...]:
    kinds = {"misclassified": "Miss", "correct": "Correct"}
    metric = _DIRECTIONS[way][0]
    # every column is a contest of its own
    return tuple(
        Line(
            (*heads, SETS[name], title),
            {**keys, "dataset": name, "metric": metric.format(kind)},
            f"{heads} {name} {kind}",
        )
        for name in sets
        for kind, title in kinds.items()
    )


def _ablations() -> list[Callable[[list[str]], Layout]]:
    def build(
        number: int, name: str, caption: str, methods: tuple[str, ...]
    ) -> Callable[[list[str]], Layout]:
        sets = _MAIN_SETS["C100"]
        return lambda tasks: Layout(
            number,
            name.replace("_", "-"),
            f"AUROC of OOD detection, {caption}",
            (_ood_grid(name, "C100", methods, sets),) if "C100" in tasks else (),
        )

    weights = ("dpn-minus-in0", "dpn-minus-out0", "dpn-minus")
    return [
        build(4, "ablation_lambda", "DPN- with other weights of the regulariser", weights),
        build(5, "ablation_rkl", "DPN_rev by OOD target", ("dpn-rev-ood0.1", "dpn-rev")),
    ]


def _binary(tasks: list[str]) -> Layout:
    tasks = [task for task in tasks if task != "TIM"]
    columns = tuple(
        Line(
            (task, title, METHODS[method]),
            {"paper_task": task, "metric": metric, "method": method},
            f"{task} {metric}",
        )
        for task in tasks
        for metric, title in (("auroc", "AUROC"), ("aupr_out", "AUPR"))
        for method in ("binary", "dpn-minus")
    )
    # two networks are compared on one set, so a row is a contest
    rows = tuple(Line((SETS[name],), {"dataset": name}, name) for name in _FIVE_SETS)
    caption = "A binary classifier of OOD samples, and DPN- with its best measure"
    grid = Grid("", rows, columns, {"table": "ablation_binary"}, ("OOD",))
    return Layout(6, "binary", caption, (grid,) if tasks else ())


def _calibration(tasks: list[str]) -> Layout:
    columns = tuple(
        Line((task,), {"paper_task": task, "dataset": _CALIBRATED_WITH[task]}, task)
        for task in tasks
    )
    methods = _methods(name for name in _ALL if name != "dpn-fwd")
    grid = Grid("", methods, columns, {"table": "calibration", "metric": "rms_error"})
    return Layout(8, "calibration", "RMS calibration error, lower is better", (grid,))


def _joined(detector_metrics: Keys) -> tuple[Line, ...]:
    """Return the columns of AUROC and AUPR side by side, five measures each."""
    return tuple(
        Line((title, MEASURES[detector]), {"metric": metric, "detector": detector}, metric)
        for metric, title in detector_metrics.items()
        for detector in MEASURES
    )


def _extended_misclassification(tasks: list[str]) -> Layout:
    accuracy = Line(("", "Acc."), {"metric": "accuracy", "detector": ""}, "accuracy")
    columns = (*_joined({"auroc": "AUROC", "aupr": "AUPR"}), accuracy)
    grids = tuple(
        Grid(
            task,
            _methods(_methods_of(task)),
            columns,
            {"paper_task": task, "table": "misclassification"},
        )
        for task in tasks
    )
    caption = "Accuracy and misclassification detection"
    return Layout(9, "misclassification-extended", caption, grids)


def _methods_of(task: str) -> tuple[str, ...]:
    # the paper trains DPN_fwd on CIFAR-10 only
    return tuple(name for name in _ALL if name != "dpn-fwd" or task == "C10")


def _extended_gap(way: str) -> Callable[[list[str]], Layout]:
    def build(tasks: list[str]) -> Layout:
        grids = tuple(
            Grid(
                task,
                _methods(name for name in _DPN if name in _methods_of(task)),
                _gap_columns(way, sets, {}),
                {"paper_task": task, "table": "gaussian_kl"},
            )
            for task in tasks
            for sets in _EXTENDED_GAP_SETS[task]
        )
        caption = f"Representation gap, {_DIRECTIONS[way][1]}, all OOD sets"
        return Layout(10, f"gap-extended-{way}", caption, grids)

    return build


def _extended_ood(number: int, task: str) -> Layout:
    rows = tuple(
        Line((SETS[name], METHODS[method]), {"dataset": name, "method": method}, name)
        for name in _EXTENDED_SETS[task]
        for method in _methods_of(task)
    )
    columns = _joined({"auroc": "AUROC", "aupr_out": "AUPR"})
    keys = {"paper_task": task, "table": "ood_detection"}
    grid = Grid("", rows, columns, keys, ("OOD", "Method"))
    return Layout(number, f"ood-{task.lower()}", f"OOD detection, {task}", (grid,))
