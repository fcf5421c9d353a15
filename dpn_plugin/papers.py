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
RELAXED_EVIDENTIAL = Paper(
    title="R-EDL: Relaxing Nonessential Settings of Evidential Deep Learning",
    venue="ICLR",
    year=2024,
    url="https://openreview.net/forum?id=Si3YFA641c",
    code="https://github.com/MengyuanChen21/ICLR2024-REDL",
)
REVISITED_EVIDENTIAL = Paper(
    title="Revisiting Essential and Nonessential Settings of Evidential Deep Learning",
    venue="TPAMI",
    year=2025,
    url="https://arxiv.org/abs/2410.00393",
    code="https://github.com/MengyuanChen21/Re-EDL",
)
FISHER_EVIDENTIAL = Paper(
    title="Uncertainty Estimation by Fisher Information-based Evidential Deep Learning",
    venue="ICML",
    year=2023,
    url="https://arxiv.org/abs/2303.02045",
    code="https://github.com/danruod/IEDL",
)
BELIEF_MATCHING = Paper(
    title="Being Bayesian about Categorical Probability",
    venue="ICML",
    year=2020,
    url="https://arxiv.org/abs/2002.07965",
    code="https://github.com/tjoo512/belief-matching-framework",
)
DENSITY_AWARE = Paper(
    title="Uncertainty Estimation by Density Aware Evidential Deep Learning",
    venue="ICML",
    year=2024,
    url="https://arxiv.org/abs/2409.08754",
    code="https://github.com/TaeseongYoon/DAEDL",
)
FLEXIBLE_EVIDENTIAL = Paper(
    title="Uncertainty Estimation by Flexible Evidential Deep Learning",
    venue="NeurIPS",
    year=2025,
    url="https://arxiv.org/abs/2510.18322",
    code="https://github.com/TaeseongYoon/F-EDL",
)
ENSEMBLE_DISTILLATION = Paper(
    title="Ensemble Distribution Distillation",
    venue="ICLR",
    year=2020,
    url="https://arxiv.org/abs/1905.00076",
    code="https://github.com/KaosEngineer/PriorNetworks",
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
