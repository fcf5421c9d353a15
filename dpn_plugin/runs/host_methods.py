"""
The methods of pytorch-ood's losses, one attribute for each class of ``pytorch_ood.loss``.

They are made when they are asked for: a loss that a later version of pytorch-ood adds is a method
without a line here.
"""

from typing import Any

from pytorch_ood import loss as host

from dpn_plugin.plugins import loss_name
from dpn_plugin.runs.methods import Method

#: hyper-parameters of the authors' code or paper, where those of the host are others
AUTHORS: dict[str, dict[str, Any]] = {
    "EnergyRegularizedLoss": {"margin_in": -23.0, "margin_out": -5.0},
    "LogitNorm": {"t": 0.04},
}

#: losses whose networks have an OOD score of their own
OWN_SCORES = {
    "BackgroundClassLoss",
    "CenterLoss",
    "ConfidenceLoss",
    "DeepSADLoss",
    "DeepSVDDLoss",
    "VOSRegLoss",
    "VirtualOutlierSynthesizingRegLoss",
}


def __getattr__(name: str) -> Method:
    """Return the method of the host's loss of this name."""
    kind = getattr(host, name, None)
    if not (isinstance(kind, type) and hasattr(kind, "info")):
        raise AttributeError(f"pytorch_ood.loss has no loss {name!r}")
    return Method(
        loss_name(name),
        loss=loss_name(name),
        loss_options=AUTHORS.get(name, {}),
        needs_outliers=kind.info.supervised,
        has_own_score=name in OWN_SCORES,
    )
