"""Rules about the scores of a detector."""

import torch
from torch import Tensor

from dpn_plugin.testing.detector_case import DetectorCase
from dpn_plugin.testing.rules import require

__all__ = ["SCORE_RULES", "STORED_RULES", "scores_every_pixel"]

#: how far scores may move, as a share of their deviation and of their size
TOLERANCE, ROUNDING = 1e-2, 2e-6


def gives_one_finite_score_per_sample(case: DetectorCase) -> None:
    """predict(x) returns a tensor of B finite numbers for B samples."""
    for x in (case.toy.inside, case.toy.outside, case.toy.inside[:1]):
        found = case.scores(case.fitted, x)
        require(
            isinstance(found, Tensor) and found.shape == (len(x),),
            f"predict gave {_described(found)} for {len(x)} samples",
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
    together = case.scores(case.fitted, x)
    for size in (1, 3):
        apart = torch.cat([case.scores(case.fitted, part) for part in x.split(size)])
        _same(
            apart,
            together,
            f"scores in batches of {size} differ from those of one batch",
            "Take statistics of the data in fit, never of the batch in predict",
        )


def gives_the_same_scores_again(case: DetectorCase) -> None:
    """Made, fitted and asked a second time it says the same."""
    found = case.scores(case.fitted, case.toy.inside)
    mend = "Draw random numbers from torch's generator, and keep no state between calls of predict"
    _same(case.scores(case.fitted, case.toy.inside), found, "a second predict differs", mend)
    _same(case.scores(case.new(), case.toy.inside), found, "a second fit differs", mend)


def gives_noise_larger_scores_than_data(case: DetectorCase) -> None:
    """A larger score means more OOD."""
    inside = case.scores(case.fitted, case.toy.inside)
    outside = case.scores(case.fitted, case.toy.outside)
    above, equal = outside[:, None] > inside, outside[:, None] == inside
    share = float((above + equal / 2).mean())
    require(
        share > 0.5,
        f"noise has the larger score in {share:.0%} of pairs with a sample of the data",
        "Return minus the score if a small one means OOD; if the method really ranks these two"
        " so, name this check in expected_failures with the reason",
    )


def scores_stored_features_like_inputs(case: DetectorCase) -> None:
    """predict(x) is predict_features(encoder(x)), so that features can be stored."""
    with torch.no_grad():
        stored = case.fitted.predict_features(case.backbone.encoder(case.toy.inside))
    _same(
        stored,
        case.scores(case.fitted, case.toy.inside),
        "predict_features(encoder(x)) differs from predict(x)",
        "Let predict do nothing but `return self.predict_features(self.encoder(x))`",
    )


def scores_stored_logits_like_inputs(case: DetectorCase) -> None:
    """predict(x) is predict_logits(model(x)), so that logits can be stored."""
    with torch.no_grad():
        stored = case.fitted.predict_logits(case.backbone(case.toy.inside))
    _same(
        stored,
        case.scores(case.fitted, case.toy.inside),
        "predict_logits(model(x)) differs from predict(x)",
        "Leave predict to pytorch_ood.api.LogitsDetector, and set self.model",
    )


def scores_every_pixel(case: DetectorCase) -> None:
    """As info.tasks says: logits B x K x H x W give scores B x H x W, each pixel on its own."""
    with torch.no_grad():
        logits = case.backbone(case.toy.inside)
        flat = case.fitted.predict_logits(logits)
        grid = logits.reshape(3, 2, 2, -1).permute(0, 3, 1, 2)
        found = case.fitted.predict_logits(grid)
    mend = "Work on dim=1 and keep the others, or take Task.SEGMENTATION out of info.tasks"
    require(found.shape == (3, 2, 2), f"pixels gave {_described(found)}, not (3, 2, 2)", mend)
    _same(found.flatten(), flat, "a pixel's score differs from that of a sample", mend)


def _same(found: Tensor, expected: Tensor, seen: str, mend: str) -> None:
    allowed = TOLERANCE * expected.std() + ROUNDING * expected.abs().max()
    off = (found.to(expected) - expected).abs().max()
    require(bool(off <= allowed), f"{seen}, by up to {float(off):.2g}", mend)


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

#: for a detector that scores from what can be stored
STORED_RULES = {
    "logits": scores_stored_logits_like_inputs,
    "features": scores_stored_features_like_inputs,
}
