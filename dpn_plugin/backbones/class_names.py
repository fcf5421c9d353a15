"""The names of the classes that a network was trained for, where timm knows them."""

from collections.abc import Sequence
from typing import Any

from timm.data import ImageNetInfo, infer_imagenet_subset


def class_vocabularies(model: Any) -> list[list[str]]:
    """
    Return the lists of names that the classes of a timm model may have, each in order.

    timm's configuration may name them. Networks for a known part of ImageNet have WordNet's ids
    (``n01440764``), descriptions (``tench, Tinca tinca``) and short names (``tench``).

    :param model: a timm model with its own classifier
    """
    named = (getattr(model, "pretrained_cfg", None) or {}).get("label_names")
    if named:
        return [[str(each) for each in named]]
    subset = infer_imagenet_subset(model)
    if subset is None:
        return []
    known = ImageNetInfo(subset)
    descriptions = known.label_descriptions()
    return [known.label_names(), descriptions, [each.split(",")[0] for each in descriptions]]


def find_class_mismatch(model: Any, classes: Sequence[str]) -> str | None:
    """
    Return where the classes of a data set differ from those of a model, ``None`` if nowhere known.

    Lists are compared only if most of the names are the model's: names in another language or
    spelling say nothing about the order.

    :param model: a timm model with as many classes
    :param classes: the names of the data's classes, in order
    """
    wanted = [_simple(each) for each in classes]

    def shared(vocabulary: list[str]) -> int:
        return len({_simple(each) for each in vocabulary} & set(wanted))

    vocabulary = max(class_vocabularies(model), key=shared, default=[])
    if 2 * shared(vocabulary) < len(set(wanted)):
        return None
    for index, (ours, theirs) in enumerate(zip(classes, vocabulary, strict=False)):
        if _simple(ours) != _simple(theirs):
            return f"class {index} of the data is {ours!r} and that of the network {theirs!r}"
    return None


def _simple(name: str) -> str:
    return name.strip().lower().replace("_", " ")
