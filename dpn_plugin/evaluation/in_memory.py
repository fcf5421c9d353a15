"""The evaluation of a model and loaders that exist in memory."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from dpn_plugin.backbones import Part, as_backbone, logits_of, model_name, tensors_hash
from dpn_plugin.detectors import (
    GaussianKL,
    NotApplicable,
    Together,
    checked_scores,
    create_detector,
    find_detectors,
    fit,
    fits_on,
    parse_combination,
    preserved_state,
    reads,
    scores,
)
from dpn_plugin.errors import UserError, UserTypeError
from dpn_plugin.evaluation.loaded_sets import LoadedSet
from dpn_plugin.evaluation.reasons import why_not_run
from dpn_plugin.evaluation.record import ResultRow
from dpn_plugin.evaluation.rows import (
    calibration_rows,
    classification_rows,
    detector_rows,
    gap_rows,
)
from dpn_plugin.metrics import RESULT_COLUMNS

_GROUPS = ("near", "far")
_NO_FEATURES = (
    "it needs more than logits, and the last layer of the model was not found: pass encoder= "
    "(features B x D) and head= (logits from features)"
)


def evaluate(
    model: nn.Module,
    in_domain: Iterable[Any],
    ood: Mapping[str, Iterable[Any]],
    fit: Iterable[Any] | None = None,
    detectors: str | Sequence[str] = "all",
    *,
    held_out: Iterable[Any] | None = None,
    encoder: Part | None = None,
    head: Part | None = None,
    name: str | None = None,
) -> pd.DataFrame:
    """
    Return all figures of a model with several detectors, with the columns of ``results.csv``.

    Every loader gives pairs (inputs, labels), ready for the model, and is passed through it once;
    detectors that read inputs iterate over it again. Detectors that could not be run are in
    ``table.attrs["not_run"]`` with the reason, and a warning names them. ``table.attrs["weights"]``
    is the hash of the model's weights.

    :param model: gives logits B x K; a timm model, or any other
    :param in_domain: test samples of the K classes; samples with labels below 0 are left out
    :param ood: OOD test samples by name; a name such as ``"near.cifar100"`` also adds the mean over
        the group ``near`` or ``far``. If a loader has labels below 0, only these samples are OOD
        and the others are left out
    :param fit: training samples, for detectors that are fitted
    :param detectors: names, wildcards or ``"all"``
    :param held_out: samples that neither train nor test the model: with them there are calibration
        errors, and ``dpn-gaussian-kl`` is fitted to them (labels below 0 are OOD)
    :param encoder: what gives the features, where it cannot be found: a module, a function, or the
        name of a module in the model
    :param head: what turns features into logits: likewise
    :param name: of the model, in the column ``backbone``; its timm id or class, and the start of
        the hash of its weights, if left out
    :raises UserError: if loaders or model do not fit
    """
    if not isinstance(model, nn.Module):
        raise UserTypeError(f"model must be a torch module, not a {type(model).__name__}.")
    patterns = [detectors] if isinstance(detectors, str) else list(detectors)
    names = find_detectors(patterns)
    evaluation = _InMemory(model, {"in_domain": in_domain, "fit": fit, "held_out": held_out}, ood)
    with preserved_state([model]):
        evaluation.find_parts(encoder, head)
        evaluation.compute()
        rows, not_run = evaluation.general_rows(), {}
        evaluation.score_together(names)
        for each in names:
            try:
                rows += evaluation.detector_rows(each)
            except Exception as error:  # of a plugin's detector; the others go on
                not_run[each], _ = why_not_run(error)
    weights = tensors_hash(model.state_dict())
    table = _table(rows, name or f"{model_name(model)}@{weights[:8]}")
    table.attrs |= {"weights": weights, "not_run": not_run}
    if not_run:
        warnings.warn(
            f"{len(not_run)} of {len(names)} detectors were not run ({', '.join(not_run)}); "
            'table.attrs["not_run"] says why.',
            stacklevel=2,
        )
    return table


class _InMemory:
    """
    A model with its loaders.

    :param model: in evaluation mode while a method runs
    :param loaders: ``in_domain``, ``fit`` and ``held_out``; the last two may be ``None``
    :param ood: OOD loaders by name
    """

    def __init__(
        self,
        model: nn.Module,
        loaders: Mapping[str, Iterable[Any] | None],
        ood: Mapping[str, Iterable[Any]],
    ) -> None:
        self.model = model
        #: scores by detector and set, the in-domain set without a name
        self.prepared: dict[str, dict[str, Tensor]] = {}
        self.device = getattr(next(model.parameters(), None), "device", torch.device("cpu"))
        self.sets = {
            name: LoadedSet(
                name, each, self.device, kind="in_domain" if name == "in_domain" else "mixed"
            )
            for name, each in loaders.items()
            if each is not None
        }
        self.ood = {
            name: LoadedSet(f"ood[{name!r}]", each, self.device, kind="ood")
            for name, each in _checked(ood).items()
        }

    def find_parts(self, encoder: Part | None, head: Part | None) -> None:
        """Find features and head of the model, with the first samples."""
        x = self.sets["in_domain"].first_batch()
        self.backbone = as_backbone(self.model, x[:2], encoder=encoder, head=head)
        for each in (*self.sets.values(), *self.ood.values()):
            each.shape = tuple(x.shape[1:])

    def compute(self) -> None:
        """Pass all samples through the model."""
        for each in (*self.sets.values(), *self.ood.values()):
            each.compute(self._outputs)
        classes = self.sets["in_domain"].arrays["logits"].shape[1]
        for name, each in self.sets.items():
            largest = int(each.arrays["labels"].max())
            if largest >= classes:
                raise UserError(f"{name} has the label {largest}, and the model {classes} classes.")

    def _outputs(self, x: Tensor) -> dict[str, Tensor]:
        if self.backbone is None:
            return {"logits": logits_of(self.model(x))}
        found = self.backbone.outputs(x)
        return {"logits": found.logits, "features": found.features}

    def general_rows(self) -> list[ResultRow]:
        """Return the figures that need no detector."""
        test = self.sets["in_domain"].arrays
        ood = {name: each.arrays for name, each in self.ood.items()}
        rows = classification_rows(test)
        if "held_out" in self.sets:
            rows += calibration_rows(self.sets["held_out"].arrays, test, ood)
        return rows + gap_rows(test, ood)

    def score_together(self, names: Sequence[str]) -> None:
        """
        Score the detectors that read inputs, with one pass over every loader.

        :param names: of all detectors; those that cannot be scored so are scored alone, or fail
            alone
        """
        found: dict[str, Any] = {}
        for name in names:
            with suppress(Exception):
                detector = self._create(name)
                if reads(detector) == "inputs":
                    found[name] = detector
        together, source = Together(found), self.sets.get("fit")
        with suppress(Exception):
            for name in [each for each in found if found[each].requires_fit]:
                if fits_on(found[name]) != "inputs" or source is None:
                    together.attempt(name, partial(self._fit, found[name]))
            fitted = [n for n in found if found[n].requires_fit and fits_on(found[n]) == "inputs"]
            if source is not None:
                together.fit(fitted, source.batches(same_order=False))
            tests = {"": self.sets["in_domain"], **self.ood}
            by_set = {key: together.score(each.batches()) for key, each in tests.items()}
            for name in found.keys() - together.failures:
                self.prepared[name] = {key: by_set[key][name] for key in by_set}

    def detector_rows(self, name: str) -> list[ResultRow]:
        """Return the figures of a detector."""
        if parse_combination(name) is not None:
            raise NotApplicable("combinations need calibration samples; use a suite (dpn bench).")
        detector, tests = self._create(name), {"": self.sets["in_domain"], **self.ood}
        if name in self.prepared:
            known = self.prepared.pop(name)
            found = {key: checked_scores(detector, known[key]) for key in tests}
        else:
            if detector.requires_fit:
                self._fit(detector)
            found = {
                key: scores(detector, each.arrays, each.batches()) for key, each in tests.items()
            }
        inside = found.pop("")
        return detector_rows(name, inside, found, tests[""].arrays)

    def _create(self, name: str) -> Any:
        if self.backbone is not None:
            return create_detector(name, self.backbone)
        try:
            return create_detector(name, self.model)
        except UserTypeError as error:
            raise NotApplicable(f"{_NO_FEATURES}.") from error

    def _fit(self, detector: Any) -> None:
        is_gaussian_kl = isinstance(detector, GaussianKL)
        source = self.sets.get("fit")
        if is_gaussian_kl:  # it needs samples that are misclassified, and OOD ones
            source = self.sets.get("held_out", source)
        if source is None:
            raise NotApplicable("it is fitted, and there is no data for that: pass fit=.")
        fit(detector, source.arrays, source.batches(same_order=False))


def _checked(ood: Mapping[str, Iterable[Any]]) -> Mapping[str, Iterable[Any]]:
    if not isinstance(ood, Mapping) or not ood:
        raise UserTypeError("ood must be a table of loaders by name, e.g. {'svhn': loader}.")
    for name in ood:
        group, dot, rest = str(name).partition(".")
        if (dot and (group not in _GROUPS or not rest or "." in rest)) or name in ("", *_GROUPS):
            raise UserError(f"ood: {name!r} must be a name, near.NAME or far.NAME.")
    return ood


def _table(rows: Sequence[ResultRow], name: str) -> pd.DataFrame:
    same = {"suite": "", "backbone": name, "method": "as-is", "seed": 0}
    return pd.DataFrame(
        [{**same, **row.model_dump()} for row in rows], columns=list(RESULT_COLUMNS)
    )
