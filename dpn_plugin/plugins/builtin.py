"""The entries of this package. The factories are imported on first use."""

from collections.abc import Iterator

from dpn_plugin.plugins.hookspecs import Entry, hookimpl

_DETECTORS = "dpn_plugin.detectors"
_LOSSES = "dpn_plugin.losses"
_METHODS = "dpn_plugin.runs.methods"
_SOURCES = "dpn_plugin.data.sources"


@hookimpl
def dpn_detectors() -> Iterator[Entry]:
    """The measures of the paper and the scorer on top of them; Mahalanobis on unit length."""
    yield Entry("dpn-maxp", f"{_DETECTORS}:MaxProbability", "Largest mean probability")
    yield Entry("dpn-entropy", f"{_DETECTORS}:PredictiveEntropy", "Entropy of the mean prediction")
    yield Entry("dpn-mi", f"{_DETECTORS}:MutualInformation", "Mutual information of label and mean")
    yield Entry("dpn-precision", f"{_DETECTORS}:Precision", "Precision of the Dirichlet, alpha0")
    yield Entry(
        "dpn-dent", f"{_DETECTORS}:DifferentialEntropy", "Differential entropy of the Dirichlet"
    )
    yield Entry(
        "dpn-gaussian-kl",
        f"{_DETECTORS}:GaussianKL",
        "Gaussians over Max.P and D.Ent of correct, misclassified and OOD samples",
    )
    yield Entry(
        "total-variance",
        f"{_DETECTORS}:TotalVariance",
        "Sum of the variances of the class probabilities",
        ("f-edl",),
    )
    yield Entry(
        "daedl",
        f"{_DETECTORS}:DensityAware",
        "Logits scaled by a normalised Gaussian density of the features",
    )
    yield Entry(
        "mahalanobis-pp",
        f"{_DETECTORS}:MahalanobisPP",
        "Mahalanobis distance of features scaled to unit length",
        ("mahalanobis++", "mds++"),
    )
    yield Entry(
        "rmd-pp",
        f"{_DETECTORS}:RMDPP",
        "Relative Mahalanobis distance of features scaled to unit length",
        ("rmd++", "rmds++"),
    )


@hookimpl
def dpn_losses() -> Iterator[Entry]:
    """The objectives of the paper's tables."""
    yield Entry(
        "ce",
        "pytorch_ood.loss:CrossEntropyLoss",
        "Cross-entropy; OOD samples are ignored",
        ("cross-entropy", "crossentropyloss"),
    )
    yield Entry("oe", f"{_LOSSES}:outlier_exposure", "Outlier exposure: both lambdas are 0")
    yield Entry("mixoe", f"{_LOSSES}:MixtureExposureLoss", "Outlier exposure with mixtures")
    yield Entry("edl", f"{_LOSSES}:EvidentialLoss", "Evidential deep learning")
    yield Entry("r-edl", f"{_LOSSES}:RelaxedEvidentialLoss", "Evidential, relaxed prior")
    yield Entry(
        "re-edl", f"{_LOSSES}:RevisitedEvidentialLoss", "Evidential, square error of the mean alone"
    )
    yield Entry("i-edl", f"{_LOSSES}:FisherEvidentialLoss", "Evidential, Fisher information")
    yield Entry("f-edl", f"{_LOSSES}:FlexibleEvidentialLoss", "Evidential, flexible Dirichlet")
    yield Entry("daedl", f"{_LOSSES}:DensityAwareLoss", "Evidential, exp without a prior count")
    yield Entry(
        "belief-matching", f"{_LOSSES}:BeliefMatchingLoss", "Evidence lower bound of a Dirichlet"
    )
    yield Entry(
        "ensemble-distillation",
        f"{_LOSSES}:DistributionDistillationLoss",
        "Dirichlet likelihood of an ensemble's predictions",
    )
    yield Entry("dpn-fwd", f"{_LOSSES}:ForwardKLLoss", "Prior network, forward KL")
    yield Entry("dpn-rev", f"{_LOSSES}:ReverseKLLoss", "Prior network, reverse KL")
    yield Entry("dpn-plus", f"{_LOSSES}:dpn_plus", "Representation gap, lambda_out = 1/K + 0.5")
    yield Entry("dpn-minus", f"{_LOSSES}:dpn_minus", "Representation gap, lambda_out = 1/K - 0.5")
    yield Entry("dpn-plus-anchored", f"{_LOSSES}:dpn_plus_anchored", "DPN+ with anchored precision")
    yield Entry(
        "dpn-minus-anchored", f"{_LOSSES}:dpn_minus_anchored", "DPN- with anchored precision"
    )


@hookimpl
def dpn_methods() -> Iterator[Entry]:
    """The rows of the paper's tables, and methods that mix samples or fine-tune a network."""
    yield Entry(
        "baseline",
        f"{_METHODS}:BASELINE",
        "Cross-entropy on in-domain data",
        ("ce", "cross-entropy"),
    )
    yield Entry("oe", f"{_METHODS}:OE", "Outlier exposure")
    yield Entry("edl", f"{_METHODS}:EDL", "Evidential deep learning")
    yield Entry("r-edl", f"{_METHODS}:R_EDL", "Evidential deep learning, relaxed")
    yield Entry("re-edl", f"{_METHODS}:RE_EDL", "Evidential deep learning, revisited")
    yield Entry("i-edl", f"{_METHODS}:I_EDL", "Evidential deep learning, Fisher information")
    yield Entry("f-edl", f"{_METHODS}:F_EDL", "Evidential deep learning, flexible Dirichlet")
    yield Entry("daedl", f"{_METHODS}:DAEDL", "Evidential deep learning, density-aware")
    yield Entry("belief-matching", f"{_METHODS}:BELIEF_MATCHING", "Bayesian class probabilities")
    yield Entry(
        "ensemble-distillation",
        f"{_METHODS}:ENSEMBLE_DISTILLATION",
        "One Dirichlet network from the networks of a deep ensemble",
    )
    yield Entry("dpn-fwd", f"{_METHODS}:DPN_FWD", "Prior network with forward KL")
    yield Entry("dpn-rev", f"{_METHODS}:DPN_REV", "Prior network with reverse KL")
    yield Entry("dpn-plus", f"{_METHODS}:DPN_PLUS", "Representation gap, OOD with alpha > 1")
    yield Entry("dpn-minus", f"{_METHODS}:DPN_MINUS", "Representation gap, OOD with alpha < 1")
    yield Entry(
        "dpn-plus-anchored", f"{_METHODS}:DPN_PLUS_ANCHORED", "DPN+ with anchored precision"
    )
    yield Entry(
        "dpn-minus-anchored", f"{_METHODS}:DPN_MINUS_ANCHORED", "DPN- with anchored precision"
    )
    yield Entry("binary", f"{_METHODS}:BINARY", "In-domain against OOD, two classes")
    yield Entry("mcdp", f"{_METHODS}:MCDP", "Monte Carlo dropout")
    yield Entry("deep-ensemble", f"{_METHODS}:DEEP_ENSEMBLE", "Ensemble of baselines")
    yield Entry("energy-ft", f"{_METHODS}:ENERGY_FT", "Baseline fine-tuned with energy margins")
    yield Entry("mixoe", f"{_METHODS}:MIXOE", "Outlier exposure with mixtures of both kinds")
    yield Entry("pixmix", f"{_METHODS}:PIXMIX", "Baseline on images mixed with fractals")
    yield Entry("as-is", f"{_METHODS}:AS_IS", "The given weights and classifier, without training")


@hookimpl
def dpn_backbones() -> Iterator[Entry]:
    """The networks of the paper that timm does not have."""
    yield Entry("vgg16_cifar", "dpn_plugin.backbones.vgg:vgg16_cifar", "VGG-16 for small images")
    yield Entry("vgg16_tim", "dpn_plugin.backbones.vgg:vgg16_tim", "VGG-16 for 64 pixels")
    yield Entry("mlp_synthetic", "dpn_plugin.backbones.mlp:mlp_synthetic", "MLP for 2-D points")


@hookimpl
def dpn_datasets() -> Iterator[Entry]:
    """The schemes of ``source = "scheme:..."`` in a suite file."""
    yield Entry("torchvision", f"{_SOURCES}.from_torchvision:load", "Data sets of torchvision")
    yield Entry("pytorch_ood", f"{_SOURCES}.from_pytorch_ood:load", "Data sets of pytorch-ood")
    yield Entry("openood", f"{_SOURCES}.from_openood:load", "The splits of OpenOOD v1.5")
    yield Entry("sklearn", f"{_SOURCES}.from_sklearn:load", "Data sets of scikit-learn")
    yield Entry("npz", f"{_SOURCES}.from_npz:load", "Images and labels in a NumPy archive")
    yield Entry("folder", f"{_SOURCES}.from_folder:load", "A folder of images for every class")
    yield Entry("hf", f"{_SOURCES}.from_hf:load", "A Hugging Face data set in a local folder")
    yield Entry("synthetic", f"{_SOURCES}.from_synthetic:load", "Points in the plane")
    yield Entry(
        "corrupted", f"{_SOURCES}.from_corrupted:load", "Any other source with noise, blur, ..."
    )
