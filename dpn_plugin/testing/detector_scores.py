"""The rules about the scores of a detector."""

import torch
from torch import Tensor

from dpn_plugin.testing.checks import require
from dpn_plugin.testing.detector_case import DetectorCase

#: the largest allowed difference, relative to the standard deviation and the size of the scores
TOLERANCE, ROUNDING = 1e-2, 2e-6


def gives_one_finite_score_per_sample(case: DetectorCase) -> None:
    """predict(x) returns a tensor of B finite numbers for B samples."""
    for x in (case.toy.inside, case.toy.outside, case.toy.inside[:1]):
        found = case.scores(case.fitted(), x)
        require(
            isinstance(found, Tensor) and found.shape == (len(x),),
            f"predict returned {_described(found)} for {len(x)} samples",
            "Return a tensor of shape (B,): reduce over classes and features, not over the batch,"
            " and do not squeeze a batch of one",
        )
        require(
            bool(torch.isfinite(found).all()),
            f"{int((~torch.isfinite(found)).sum())} of {len(found)} scores are not finite",
            "Compute in logarithms, or add a small number before dividing",
        )


def gives_the_same_scores_for_any_batching(case: DetectorCase) -> None:
    """The score of a sample does not depend on the samples beside it."""
    x = torch.cat([case.toy.inside[:4], case.toy.outside[:4]])
    together = case.scores(case.fitted(), x)
    for size in (1, 3):
        split = torch.cat([case.scores(case.fitted(), part) for part in x.split(size)])
        _require_same(
            split,
            together,
            f"scores in batches of {size} differ from those of one batch",
            "Take statistics of the data in fit, never of the batch in predict",
        )


def gives_the_same_scores_again(case: DetectorCase) -> None:
    """A second predict, and a second detector fitted to the same data, give the same scores."""
    found = case.scores(case.fitted(), case.toy.inside)
    fix = "Draw random numbers from torch's generator, and keep no state between calls of predict"
    _require_same(
        case.scores(case.fitted(), case.toy.inside), found, "a second predict differs", fix
    )
    _require_same(
        case.scores(case.create_fitted(), case.toy.inside), found, "a second fit differs", fix
    )


def gives_noise_larger_scores_than_data(case: DetectorCase) -> None:
    """A larger score means more OOD."""
    inside = case.scores(case.fitted(), case.toy.inside)
    outside = case.scores(case.fitted(), case.toy.outside)
    above, equal = outside[:, None] > inside, outside[:, None] == inside
    share = float((above + equal / 2).mean())
    require(
        share > 0.5,
        f"noise has the larger score in {share:.0%} of pairs with a sample of the data",
        "Return minus the score if a small one means OOD; if the method really ranks these two"
        " so, list this check in expected_failures with the reason",
    )


def scores_stored_features_like_inputs(case: DetectorCase) -> None:
    """predict(x) is predict_features(encoder(x)), so that features can be stored."""
    with torch.no_grad():
        stored = case.fitted().predict_features(case.backbone.encoder(case.toy.inside))
    _require_same(
        stored,
        case.scores(case.fitted(), case.toy.inside),
        "predict_features(encoder(x)) differs from predict(x)",
        "Let predict do nothing but `return self.predict_features(self.encoder(x))`",
    )


def scores_stored_logits_like_inputs(case: DetectorCase) -> None:
    """predict(x) is predict_logits(model(x)), so that logits can be stored."""
    with torch.no_grad():
        stored = case.fitted().predict_logits(case.backbone(case.toy.inside))
    _require_same(
        stored,
        case.scores(case.fitted(), case.toy.inside),
        "predict_logits(model(x)) differs from predict(x)",
        "Leave predict to pytorch_ood.api.LogitsDetector, and set self.model",
    )


def scores_every_pixel(case: DetectorCase) -> None:
    """With SEGMENTATION in info.tasks, logits B x K x H x W give scores B x H x W."""
    with torch.no_grad():
        logits = case.backbone(case.toy.inside)
        flat = case.fitted().predict_logits(logits)
        grid = logits.reshape(3, 2, 2, -1).permute(0, 3, 1, 2)
        found = case.fitted().predict_logits(grid)
    fix = "Work on dim=1 and keep the others, or take Task.SEGMENTATION out of info.tasks"
    require(found.shape == (3, 2, 2), f"pixels gave {_described(found)}, not (3, 2, 2)", fix)
    _require_same(
        found.flatten(),
        flat,
        "a pixel and a sample with the same logits differ",
        fix,
    )


def _require_same(found: Tensor, expected: Tensor, observed: str, fix: str) -> None:
    allowed = TOLERANCE * expected.std() + ROUNDING * expected.abs().max()
    difference = (found.to(expected) - expected).abs().max()
    require(bool(difference <= allowed), f"{observed}, by up to {float(difference):.2g}", fix)


def _described(found: object) -> str:
    if isinstance(found, Tensor):
        return f"a tensor of shape {tuple(found.shape)}"
    return f"a {type(found).__name__}"


#: for every detector
SCORE_RULES = (
    gives_one_finite_score_per_sample,
    gives_the_same_scores_for_any_batching,
    gives_the_same_scores_again,
    gives_noise_larger_scores_than_data,
)

#: for a detector that scores stored outputs
STORED_RULES = {
    "logits": scores_stored_logits_like_inputs,
    "features": scores_stored_features_like_inputs,
}
