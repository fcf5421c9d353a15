"""The answer where a detector and a backbone do not go together."""

from dpn_plugin.errors import UserError

__all__ = ["NotApplicable"]


class NotApplicable(UserError):
    """A combination that is impossible. The message is one sentence that says why."""
