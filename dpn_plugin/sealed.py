"""JSON that carries its own hash, so that damage shows."""

import hashlib
import json
from typing import Any

__all__ = ["digest", "sealed", "unsealed"]

_SEAL = "sha256"


def sealed(content: dict[str, Any], indent: int | None = None) -> str:
    """
    :param content: JSON; what is of another type, as a plugin's hyper-parameters may be, becomes
        text
    :return: the content and its hash, as text
    """
    plain = json.loads(json.dumps(content, default=str))  # as whoever reads it will see it
    return json.dumps({_SEAL: digest(plain), **plain}, indent=indent) + "\n"


def unsealed(text: str, *, required: bool = True) -> dict[str, Any]:
    """
    :param text: what :func:`sealed` gave
    :param required: whether content without a hash is refused, too
    :return: the content, without the hash
    :raises ValueError: if it is damaged
    """
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(content, dict):
        raise ValueError("this is no JSON object")
    seal = content.pop(_SEAL, None)
    if seal != digest(content) and (required or seal is not None):
        raise ValueError("the content does not match its hash")
    return content


def digest(content: Any) -> str:
    """:return: a hash of JSON that does not depend on the order of its keys"""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
