"""Weights that timm publishes: from the cache, or downloaded if the hub can be reached."""

import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError
from torch import hub

from dpn_plugin.backbones.inputs import config_of
from dpn_plugin.errors import UserError

#: how long a hub may take to answer; the host itself would try again for minutes
SECONDS = 5.0

_FILES = ("model.safetensors", "pytorch_model.bin")


def published_weights(name: str) -> Path:
    """
    Return the file with the weights that timm publishes for a model.

    A file in the cache is used without asking the hub. ``HF_HUB_OFFLINE`` is honoured.

    :param name: a timm id, e.g. ``"resnet18"`` or ``"resnet18.a1_in1k"``
    :raises UserError: if there are none, or they are not in the cache and cannot be downloaded
    """
    config = config_of(name)
    if config.hf_hub_id:
        names = (config.hf_hub_filename,) if config.hf_hub_filename else _FILES
        return _from_hub(name, config.hf_hub_id, names)
    if config.url:
        return _from_url(name, config.url)
    raise UserError(f"timm publishes no weights of {name!r}; give a file with --weights.")


def _from_hub(name: str, repository: str, files: tuple[str, ...]) -> Path:
    for file in files:
        cached = try_to_load_from_cache(repository, file)
        if isinstance(cached, str):
            return Path(cached)
    where = f"{repository} at {constants.ENDPOINT}"
    if constants.HF_HUB_OFFLINE:
        raise _unavailable(name, where, "HF_HUB_OFFLINE is set")
    _check_reachable(name, where, constants.ENDPOINT)
    for file in files:
        try:
            return Path(_download(name, where, partial(hf_hub_download, repository, file)))
        except EntryNotFoundError:
            continue
    raise _unavailable(name, where, f"it has no {' and no '.join(files)}")


def _from_url(name: str, url: str) -> Path:
    path = Path(hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
    if not path.is_file():
        _check_reachable(name, url, f"{urlsplit(url).scheme}://{urlsplit(url).netloc}")
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(name, url, lambda: hub.download_url_to_file(url, str(path)))
    return path


def _download(name: str, where: str, download: Callable[[], Any]) -> Any:
    try:
        return download()
    except EntryNotFoundError:
        raise
    except Exception as error:  # of the several HTTP libraries that the hosts use
        first = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise _unavailable(name, where, first) from error


def _check_reachable(name: str, where: str, address: str) -> None:
    """Ask for any answer from a server, through the proxies of the environment."""
    problems: list[str] = ["no answer"]

    def ask() -> None:
        request = urllib.request.Request(address, method="HEAD")
        try:
            urllib.request.build_opener().open(request, timeout=SECONDS).close()
        except urllib.error.HTTPError:
            problems.clear()  # it answered
        except OSError as error:
            problems[0] = str(getattr(error, "reason", error))
        else:
            problems.clear()

    # looking up a name has no timeout of its own
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SECONDS + 1)
    if problems:
        raise _unavailable(name, where, f"the server cannot be reached ({problems[0]})")


def _unavailable(name: str, where: str, reason: str) -> UserError:
    return UserError(
        f"The weights of {name!r} are not in the cache and cannot be downloaded from {where}: "
        f"{reason}. Give a file with --weights instead."
    )
