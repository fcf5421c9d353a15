"""pytorch-ood's losses, and the methods that train with them, read from its source."""

import ast
from collections.abc import Iterator

from dpn_plugin.plugins.hookspecs import Entry, hookimpl
from dpn_plugin.plugins.host_source import exported_classes, host_folders, kebab_case, summary

# Losses that are known by another name than their class, and other names of losses.
_LOSS_NAMES = {"VirtualOutlierSynthesizingRegLoss": "vos"}
_LOSS_SHORT_NAMES = {
    "BackgroundClassLoss": ("background",),
    "CACLoss": ("class-anchor-clustering",),
    "CenterLoss": ("centre",),
    "EnergyMarginLoss": ("scone",),
    "EntropicOpenSetLoss": ("eos",),
    "VirtualOutlierSynthesizingRegLoss": ("virtual-outlier-synthesizing-reg",),
}

# Cross-entropy is our entry ``ce``.
_OURS = {"CrossEntropyLoss"}

# Losses that read more than logits and labels, and ours that calls them.
_WIRED = {
    "BackgroundClassLoss": "BackgroundClassLoss",
    "CACLoss": "ClassAnchorLoss",
    "CenterLoss": "CentreLoss",
    "ConfidenceLoss": "ConfidenceLoss",
    "DeepSADLoss": "DeepSADLoss",
    "DeepSVDDLoss": "DeepSVDDLoss",
    "IILoss": "IILoss",
    "MCHADLoss": "MCHADLoss",
    "ObjectosphereLoss": "ObjectosphereLoss",
    "VOSRegLoss": "VOSRegLoss",
    "VirtualOutlierSynthesizingRegLoss": "VOSLoss",
}

#: why a loss of the host, by the name of its class, is not a method
NOT_TRAINED = {
    "EnergyMarginLoss": "it needs the training loss of a network that was trained before, and a "
    "pass over the training data after every epoch",
}
#: the same for a loss that this version does not know
UNKNOWN = "it reads more than logits and labels, and how to wire it is not known"


@hookimpl
def dpn_losses() -> Iterator[Entry]:
    """Yield an entry for every class of ``pytorch_ood.loss``, except the cross-entropy of ours."""
    for name, node in _losses().items():
        ours = _WIRED.get(name)
        factory = f"dpn_plugin.losses:{ours}" if ours else f"pytorch_ood.loss:{name}"
        yield Entry(loss_name(name), factory, summary(node), _loss_aliases(name))


@hookimpl
def dpn_methods() -> Iterator[Entry]:
    """Yield a method for every loss of pytorch-ood that networks can be trained with."""
    for name, node in _losses().items():
        if why_not_trained(name, node) is None:
            factory = f"dpn_plugin.runs.host_methods:{name}"
            yield Entry(loss_name(name), factory, summary(node), _loss_aliases(name))


def why_not_trained(name: str, node: ast.ClassDef | None = None) -> str | None:
    """
    Return why networks cannot be trained with a loss of the host, ``None`` if they can.

    :param name: of its class
    :param node: its source, which is found if not given
    """
    if name in _WIRED:
        return None
    if name in NOT_TRAINED:
        return NOT_TRAINED[name]
    node = node or _losses()[name]
    return None if _reads_logits_and_labels(node) else UNKNOWN


def loss_name(name: str) -> str:
    """Return the name of a loss: ``"logit-norm"`` for ``"LogitNorm"``, ``"cac"`` for CACLoss."""
    return _LOSS_NAMES.get(name) or kebab_case(name.removesuffix("Loss"))


def _loss_aliases(name: str) -> tuple[str, ...]:
    return (name.lower(), *_LOSS_SHORT_NAMES.get(name, ()))


def _losses() -> dict[str, ast.ClassDef]:
    found = (each for folder in host_folders() for each in exported_classes(folder / "loss"))
    return {name: node for name, node in found if name not in _OURS}


def _reads_logits_and_labels(node: ast.ClassDef) -> bool:
    """Whether ``forward`` has two arguments, logits first, and nothing is needed to create it."""
    methods = {each.name: each.args for each in node.body if isinstance(each, ast.FunctionDef)}
    if "forward" not in methods or "__init__" not in methods:
        return False
    forward = [each.arg for each in methods["forward"].args]
    required = len(methods["__init__"].args) - len(methods["__init__"].defaults)
    return len(forward) == 3 and forward[1] == "logits" and required == 1
