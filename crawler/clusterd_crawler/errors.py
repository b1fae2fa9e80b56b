"""One shallow tree of errors. Each says what was wrong and what would be right."""

from __future__ import annotations


class ClusterdError(Exception):
    """Anything that clusterd refuses or cannot do."""


class WrongInput(ClusterdError):
    """The caller's input is wrong (the command line ends with 2)."""


class SettingError(WrongInput):
    """A setting has a name or a value that is not accepted."""


class MessageError(WrongInput):
    """Bytes that are not a message of ours, or are of a newer version. Keeps the raw bytes."""

    def __init__(self, reason: str, raw: bytes) -> None:
        super().__init__(reason)
        self.reason = reason
        self.raw = raw


class RuleError(WrongInput):
    """A rule, or an entry of a rule file, cannot be read."""


class Unreachable(ClusterdError):
    """Kafka or Redis does not answer (the command line ends with 1)."""


class Forbidden(Unreachable):
    """Kafka or Redis answers, and does not let our user do what we ask, or we cannot read it: waiting does not help."""


class NotFound(ClusterdError):
    """What was asked for is not in the store (the command line ends with 1)."""
