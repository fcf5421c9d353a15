"""The papers that the losses and detectors implement, and the ``info`` records that cite them."""

from pytorch_ood.api import DetectorInfo, LossInfo, Paper, Representation, Task

PRIOR_NETWORKS = Paper(
    title="Predictive Uncertainty Estimation via Prior Networks",
    venue="NeurIPS",
    year=2018,
    url="https://arxiv.org/abs/1802.10501",
    code="https://github.com/KaosEngineer/PriorNetworks",
)
EVIDENTIAL = Paper(
    title="Evidential Deep Learning to Quantify Classification Uncertainty",
    venue="NeurIPS",
    year=2018,
    url="https://arxiv.org/abs/1806.01768",
)
REVERSE_KL = Paper(
    title="Reverse KL-Divergence Training of Prior Networks: Improved Uncertainty and "
    "Adversarial Robustness",
    venue="NeurIPS",
    year=2019,
    url="https://arxiv.org/abs/1905.13472",
    code="https://github.com/KaosEngineer/PriorNetworks",
)
REPRESENTATION_GAP = Paper(
    title="Towards Maximizing the Representation Gap between In-Domain & "
    "Out-of-Distribution Examples",
    venue="NeurIPS",
    year=2020,
    url="https://arxiv.org/abs/2010.10474",
    code="https://github.com/jayjaynandy/maximize-representation-gap",
)

OUTLIER_EXPOSURE = Paper(
    title="Deep Anomaly Detection with Outlier Exposure",
    venue="ICLR",
    year=2019,
    url="https://arxiv.org/abs/1812.04606",
    code="https://github.com/hendrycks/outlier-exposure",
)
MIXTURE_EXPOSURE = Paper(
    title="Mixture Outlier Exposure: Towards Out-of-Distribution Detection in Fine-Grained "
    "Environments",
    venue="WACV",
    year=2023,
    url="https://arxiv.org/abs/2106.03917",
    code="https://github.com/zjysteven/MixOE",
)

FEATURE_NORMALIZATION = Paper(
    title="Mahalanobis++: Improving OOD Detection via Feature Normalization",
    venue="ICML",
    year=2025,
    url="https://arxiv.org/abs/2505.18032",
)

#: every loss and detector of logits of this package works on logits B x K and B x K x H x W
_TASKS = {Task.CLASSIFICATION, Task.SEGMENTATION}


def detector_info(paper: Paper) -> DetectorInfo:
    """Return the ``info`` of a detector of logits."""
    return DetectorInfo(tasks=_TASKS, paper=paper, ai_coded=True)


def features_detector_info(paper: Paper) -> DetectorInfo:
    """Return the ``info`` of a detector of features, which belong to whole images."""
    return DetectorInfo(tasks={Task.CLASSIFICATION}, paper=paper, ai_coded=True)


def loss_info(paper: Paper, *, supervised: bool) -> LossInfo:
    """
    Return the ``info`` of a loss of logits.

    :param paper: the paper that describes it
    :param supervised: whether the loss uses OOD samples
    """
    return LossInfo(
        paper=paper,
        tasks=_TASKS,
        inputs={Representation.LOGITS},
        supervised=supervised,
        ai_coded=True,
    )
