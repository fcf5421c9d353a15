"""Why a detector has no figures."""

from dpn_plugin.detectors import NotApplicable
from dpn_plugin.errors import CannotWrite, UserError


def why_not_run(error: Exception) -> tuple[str, bool]:
    """
    Return the reason in a sentence, and whether it was unexpected, so that it is tried again.

    :param error: what was raised when a detector was created, fitted or scored
    :raises CannotWrite: if that is the error, which is not a property of the detector
    """
    match error:
        case CannotWrite():
            raise error
        case NotApplicable():
            return f"not applicable: {error}", False
        case UserError():
            return str(error), False
    return f"failed: {type(error).__name__}: {error}", True
