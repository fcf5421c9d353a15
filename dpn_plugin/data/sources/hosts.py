"""How the data set classes of torchvision and pytorch-ood are constructed from a source."""

import inspect
import pickle  # nosec B403 # for the name of its error; nothing is unpickled here
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpn_plugin.data.sources.paths import refuse_split
from dpn_plugin.errors import UserError, choices, unknown_name

__all__ = ["HostSet"]

# In this order: EMNIST has "train" for the split and "split" for the part of the alphabet
_SPLIT_KEYWORDS = ("train", "background", "split", "subset", "image_set", "version", "classes")
_OURS = {"root", "transform", "target_transform", "transforms", "loader"}


@dataclass(frozen=True)
class HostSet:
    """
    A data set class of a host library, and what the user said about it.

    ``NAME/VARIANT`` gives ``VARIANT`` to the first argument that the class demands besides its
    folder: ``torchvision:EMNIST/letters`` is ``EMNIST(root, split="letters")``. The split goes to
    whichever of the hosts' keywords the class has; ``train`` and ``background`` (Omniglot) are true
    for ``"train"`` and false for ``"test"``.

    :param cls: the class
    :param source: what the user wrote, for messages
    :param link: a page that tells where the data is found
    """

    cls: type
    source: str
    link: str

    def dataset(
        self, variant: str, split: str | None, root: Path, options: Mapping[str, Any]
    ) -> Any:
        """
        :param variant: what stands after the slash, or nothing
        :param split: the split that the user asked for
        :param root: the folder that the class looks into
        :param options: further keywords for the class
        :raises UserError: if the data is missing or damaged, or a value is not allowed
        """
        keywords = self._keywords(variant, split, options)
        if "root" in self._parameters():
            keywords = {"root": str(root), **keywords}
        try:
            return self.cls(**keywords)
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.source}: {error}") from error
        except ImportError as error:
            raise UserError(f"{self.source} needs a package that is missing: {error}") from error
        except (RuntimeError, OSError, EOFError, AssertionError, pickle.UnpicklingError) as error:
            raise self._missing(root, keywords) from error

    def _keywords(
        self, variant: str, split: str | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        parameters = self._parameters()
        demanded = [n for n, p in parameters.items() if p.default is p.empty and n not in _OURS]
        keywords: dict[str, Any] = {"download": False} if "download" in parameters else {}
        keywords |= self._variant(variant, demanded, parameters)
        keywords |= self._split(split, set(parameters) - set(demanded[:1]))
        for option in options:
            if option not in parameters or option in _OURS:
                raise unknown_name(f"option of {self.source}:", option, set(parameters) - _OURS)
        keywords |= options
        if missing := [name for name in demanded if name not in keywords]:
            raise self._demands(missing[0], by_slash=missing[0] == demanded[0])
        return keywords

    def _demands(self, name: str, *, by_slash: bool) -> UserError:
        place = "as split" if name in _SPLIT_KEYWORDS else "in options"
        remedy = f"write {self.source}/{name.upper()}" if by_slash else f"give it {place}"
        return UserError(f"{self.source} needs a value for {name!r}: {remedy}.")

    def _variant(
        self, variant: str, demanded: list[str], parameters: Mapping[str, inspect.Parameter]
    ) -> dict[str, Any]:
        if not variant:
            return {}
        if not demanded:
            raise UserError(f"{self.source}: {self.cls.__name__} has no variants, so no slash.")
        if parameters[demanded[0]].annotation is not int:
            return {demanded[0]: variant}
        if not variant.isdecimal() or len(variant) > 9:
            raise UserError(
                f"{self.source}: {demanded[0]} must be a number below 10^9, not {variant!r}."
            )
        return {demanded[0]: int(variant)}

    def _split(self, split: str | None, allowed: Iterable[str]) -> dict[str, Any]:
        keyword = next((name for name in _SPLIT_KEYWORDS if name in allowed), None)
        if keyword is None:
            refuse_split(self.source, split)
        if keyword is None or split is None:
            return {}
        if keyword not in ("train", "background"):
            return {keyword: split}
        if split not in ("train", "test"):
            allowed_words = choices(["train", "test"])
            raise UserError(f"split of {self.source} must be {allowed_words}, not {split!r}.")
        return {keyword: split == "train"}

    def _parameters(self) -> dict[str, inspect.Parameter]:
        # a class that takes **kwargs hands them to its parent
        found: dict[str, inspect.Parameter] = {}
        for ancestor in self.cls.__mro__:
            if "__init__" not in vars(ancestor):
                continue
            own = [*inspect.signature(ancestor.__init__).parameters.values()][1:]  # type: ignore[misc]
            for parameter in own:
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    found.setdefault(parameter.name, parameter)
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in own):
                break
        return found

    def _missing(self, root: Path, keywords: dict[str, Any]) -> UserError:
        said = f"{self.source} was not found in {root.absolute()}, or is damaged there."
        if "download" not in keywords:
            return UserError(f"{said} It must be fetched by hand: see {self.link}")
        package = self.cls.__module__.split(".")[0]
        module = {"torchvision": "torchvision.datasets"}.get(package, "pytorch_ood.dataset.img")
        keywords = keywords | {"root": str(root.absolute()), "download": True}
        call = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
        name = self.cls.__name__
        command = f'python -c "from {module} import {name}; {name}({call})"'
        return UserError(f"{said} Get it with: {command} (see {self.link})")
