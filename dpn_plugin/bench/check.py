"""Whether a plan can be carried out, found out without training anything."""

from collections.abc import Iterator

from dpn_plugin.backbones import describe_resizing
from dpn_plugin.bench.data import SuiteData
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.record import NotRun
from dpn_plugin.detectors import parse_combination, why_not_applicable
from dpn_plugin.errors import UserError
from dpn_plugin.runs import (
    TrainConfig,
    create_network,
    is_frozen,
    load_as_it_is,
    method_of,
    why_not_mixed,
)


def check_plan(plan: Plan, data: SuiteData) -> list[NotRun]:
    """
    Return the backbones and methods that cannot be trained on the data, and the detectors that do
    not apply.

    :param plan: what is planned
    :param data: its data
    :raises UserError: if no backbone can be trained
    """
    configs = {run.config.backbone: run.config for run in plan.runs}
    found = [each for config in configs.values() for each in _problems(plan, config, data)]
    unusable = [each for each in found if each.detector is None]
    if len(unusable) == len(configs):
        raise UserError(f"Nothing could be run. {unusable[0].reason}")
    return found + list(_unmixable(plan, data))


def describe_resizings(plan: Plan, data: SuiteData) -> list[str]:
    """
    Return what resizing costs, for every backbone that gets images of another size.

    :param plan: what is planned
    :param data: its data
    """
    shape = data.in_domain.inputs.shape
    if len(shape) != 4 or shape[2] != shape[3]:  # points, or images that no backbone takes
        return []
    stems = {run.config.backbone: run.config.stem for run in plan.runs}
    found = [describe_resizing(name, shape[2], stem) for name, stem in stems.items()]
    return [each for each in found if each is not None]


def _unmixable(plan: Plan, data: SuiteData) -> Iterator[NotRun]:
    """Yield the methods that mix samples of another kind than those of the data."""
    for label, config in {run.method: run.config for run in plan.runs}.items():
        kind = "images" if data.in_domain.inputs.ndim == 4 else "points"
        why = why_not_mixed(method_of(config), "features" if is_frozen(config) else kind)
        if why is not None:
            yield NotRun(method=label, reason=why)


def _problems(plan: Plan, config: TrainConfig, data: SuiteData) -> Iterator[NotRun]:
    method = method_of(config)
    shape, classes = tuple(data.in_domain.inputs.shape[1:]), data.in_domain.classes
    try:
        if method.trains:
            backbone = create_network(config, method.networks[0], shape, len(classes))
        else:
            backbone = load_as_it_is(config, method.networks[0], shape, classes)
    except UserError as error:
        yield NotRun(backbone=config.backbone, reason=str(error))
        return
    methods = {run.method: method_of(run.config) for run in plan.runs}
    if all(each.averages or each.has_ood_classifier for each in methods.values()):
        return  # these are scored without a detector that is wired to the network
    for name in plan.detectors:
        combination = parse_combination(name)
        members = (name,) if combination is None else combination.members
        reason = next(filter(None, (why_not_applicable(each, backbone) for each in members)), None)
        if reason is not None:
            yield NotRun(backbone=config.backbone, detector=name, reason=reason)
