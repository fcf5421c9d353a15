"""How the data set classes of torchvision and pytorch-ood are constructed from a source."""

import inspect
import pickle  # nosec B403 # for the name of its error; nothing is unpickled here
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from typing import Any

from dpn_plugin.data.sources import refuse_split
from dpn_plugin.data.spec import SOURCE_KEYS
from dpn_plugin.errors import MissingData, UserError, choices
from dpn_plugin.plugins import check_options

# In this order: EMNIST has "train" for the split and "split" for the part of the alphabet
_SPLIT_KEYWORDS = ("train", "background", "split", "subset", "image_set", "version", "classes")
_RESERVED = ("root", "transform", "target_transform", "transforms", "loader")


@dataclass(frozen=True)
class HostDataset:
    """
    A data set class of a host library, constructed from the parts of a source.

    ``NAME/VARIANT`` gives ``VARIANT`` to the first argument that the class requires besides its
    folder: ``torchvision:EMNIST/letters`` is ``EMNIST(root, split="letters")``. The split goes to
    the first of the hosts' keywords that the class has; ``train`` and ``background`` (Omniglot) are
    true for ``"train"`` and false for ``"test"``.

    :param cls: the class
    :param source: the source that the user wrote, for messages
    :param link: a page that describes where the data is found
    """

    cls: type
    source: str
    link: str

    def construct(
        self, variant: str, split: str | None, root: Path, options: Mapping[str, Any]
    ) -> Any:
        """
        Return an object of the class.

        :param variant: the part of the source after the slash, or nothing
        :param split: the split that the user asked for
        :param root: the folder that the class reads
        :param options: further keywords for the class
        :raises MissingData: if the data is missing or damaged
        :raises UserError: if a value is not allowed
        """
        keywords = self._keywords(variant, split, options)
        if "root" in self._parameters:
            keywords = {"root": str(root), **keywords}
        try:
            return self.cls(**keywords)
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.source}: {error}") from error
        except ImportError as error:
            raise MissingData(f"{self.source} needs a package that is missing: {error}") from error
        except (RuntimeError, OSError, EOFError, AssertionError, pickle.UnpicklingError) as error:
            raise self._not_found(root, keywords) from error

    def _keywords(
        self, variant: str, split: str | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        parameters = self._parameters
        required = [
            name
            for name, each in parameters.items()
            if each.default is each.empty and name not in _RESERVED
        ]
        keywords: dict[str, Any] = {"download": False} if "download" in parameters else {}
        keywords |= self._variant(variant, required)
        keywords |= self._split(split, set(parameters) - set(required[:1]))
        keywords |= options
        # missing arguments have a message of their own below, which names the place to write them
        given = {**dict.fromkeys(required), **keywords}
        check_options(
            self.source, _with_signature(parameters), given, reserved=_RESERVED, also=SOURCE_KEYS
        )
        if missing := [name for name in required if name not in keywords]:
            raise self._requires(missing[0], by_slash=missing[0] == required[0])
        return keywords

    def _requires(self, name: str, *, by_slash: bool) -> UserError:
        place = "as split" if name in _SPLIT_KEYWORDS else "in options"
        remedy = f"write {self.source}/{name.upper()}" if by_slash else f"give it {place}"
        return UserError(f"{self.source} needs a value for {name!r}: {remedy}.")

    def _variant(self, variant: str, required: list[str]) -> dict[str, Any]:
        if not variant:
            return {}
        if not required:
            raise UserError(f"{self.source}: {self.cls.__name__} has no variants, so no slash.")
        if self._parameters[required[0]].annotation is not int:
            return {required[0]: variant}
        if not variant.isdecimal() or len(variant) > 9:
            raise UserError(
                f"{self.source}: {required[0]} must be a number below 10^9, not {variant!r}."
            )
        return {required[0]: int(variant)}

    def _split(self, split: str | None, allowed: Iterable[str]) -> dict[str, Any]:
        keyword = next((name for name in _SPLIT_KEYWORDS if name in allowed), None)
        if keyword is None:
            refuse_split(self.source, split)
        if keyword is None or split is None:
            return {}
        if keyword not in ("train", "background"):
            return {keyword: split}
        if split not in ("train", "test"):
            allowed_splits = choices(["train", "test"])
            raise UserError(f"split of {self.source} must be {allowed_splits}, not {split!r}.")
        return {keyword: split == "train"}

    @cached_property
    def _parameters(self) -> dict[str, Parameter]:
        """The arguments of the class; one that takes ``**kwargs`` passes them to its parent."""
        found: dict[str, Parameter] = {}
        for ancestor in self.cls.__mro__:
            if "__init__" not in vars(ancestor):
                continue
            own = [*inspect.signature(ancestor.__init__).parameters.values()][1:]  # type: ignore[misc]
            for each in own:
                if each.kind is Parameter.POSITIONAL_OR_KEYWORD:
                    found.setdefault(each.name, each)
            if not any(each.kind is Parameter.VAR_KEYWORD for each in own):
                break
        return found

    def _not_found(self, root: Path, keywords: dict[str, Any]) -> MissingData:
        problem = f"{self.source} was not found in {root.absolute()}, or is damaged there."
        if "download" not in keywords:
            return MissingData(f"{problem} It must be fetched by hand: see {self.link}")
        package = self.cls.__module__.split(".")[0]
        module = {"torchvision": "torchvision.datasets"}.get(package, "pytorch_ood.dataset.img")
        keywords = keywords | {"root": str(root.absolute()), "download": True}
        call = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
        name = self.cls.__name__
        command = f'python -c "from {module} import {name}; {name}({call})"'
        return MissingData(f"{problem} Get it with: {command} (see {self.link})")


def _with_signature(parameters: Mapping[str, Parameter]) -> Callable[..., Any]:
    """Return a function with these parameters, to check options against."""

    def function(**_: Any) -> None: ...

    keywords = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters.values()]
    function.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return function
