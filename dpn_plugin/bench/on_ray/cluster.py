"""A Ray cluster, and what every worker of it is told."""

import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from dpn_plugin.errors import UserError
from dpn_plugin.files import write_text

__all__ = ["cluster", "load_ray", "token"]

#: variables of these names reach the workers: which plugins to load, where weights are cached
_PASSED_ON = ("DPN_", "HF_", "TORCH_", "PYTHON")


def load_ray() -> Any:
    """:raises UserError: if Ray is not installed"""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        return import_module("ray")
    except ImportError as error:
        raise UserError(
            "--executor ray needs Ray, which is not installed: pip install 'dpn-plugin[ray]'."
        ) from error


@contextmanager
def cluster(ray: Any, address: str | None) -> Iterator[None]:
    """
    Within the block, tasks can be sent.

    :param address: of a running cluster; without it, one on this machine is started and ended
    :raises UserError: if there is none
    """
    if address is not None and re.fullmatch(r"[^/]+:\d+", address):
        _check_listening(address)
    variables = {name: text for name, text in os.environ.items() if name.startswith(_PASSED_ON)}
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(
            address=address,
            runtime_env={"env_vars": variables},
            log_to_driver=False,
            logging_level="ERROR",
            **own,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(address, error) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_listening(address: str) -> None:
    """Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str | None, error: Exception) -> UserError:
    where = f"at {address!r}" if address else "on this machine"
    return UserError(
        f"There is no Ray cluster to use {where}: {error}. If it asks for a token, set "
        "RAY_AUTH_MODE=token."
    )


@contextmanager
def token(out: Path) -> Iterator[str]:
    """A file in the output folder: a worker that finds it under the same path shares the folder."""
    name = f".session-{secrets.token_hex(8)}"
    write_text(out / name, "")
    try:
        yield name
    finally:
        (out / name).unlink(missing_ok=True)
