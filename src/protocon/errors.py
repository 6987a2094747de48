"""Errors that a user can act on: what came, what was expected, what to do."""


class ProtoConError(Exception):
    """Base of every error we raise on purpose; the command line shows its message without a traceback."""


class ConfigError(ProtoConError):
    """A setting that is unknown, malformed, or contradicts another."""


class DataError(ProtoConError):
    """Input data that is missing, unreadable or inconsistent."""


class RunError(ProtoConError):
    """A run folder or checkpoint that cannot be used as asked."""


class TrainingError(ProtoConError):
    """Training that cannot go on, such as a loss that is no longer finite."""
