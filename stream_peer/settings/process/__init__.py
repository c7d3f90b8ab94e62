"""Process settings: one YAML file, the environment and flags become one frozen ``Settings``, once, at start.

flag > environment > file > default. ``security.password`` is ``STREAM_PEER_SECURITY__PASSWORD`` in the environment;
a secret can always be given as a file that holds it, by its name with ``_file`` behind: ``password_file`` in the
settings file, ``STREAM_PEER_SECURITY__PASSWORD_FILE``, ``--security-password-file``. Durations are text (``45s``,
``500ms``) or seconds, sizes text (``64MB``) or bytes.
"""

from stream_peer.settings.process.keys import read_producers, read_secret, read_signing_keys, required_signing_keys
from stream_peer.settings.process.loading import Loaded, load
from stream_peer.settings.process.model import (
    ENVIRONMENT_PREFIX,
    Gateway,
    Http,
    Leaf,
    Log,
    Partitions,
    Registry,
    Secret,
    Security,
    Settings,
    SnapshotEvery,
    flag_of,
    leaves,
)

__all__ = [
    "ENVIRONMENT_PREFIX",
    "Gateway",
    "Http",
    "Leaf",
    "Loaded",
    "Log",
    "Partitions",
    "Registry",
    "Secret",
    "Security",
    "Settings",
    "SnapshotEvery",
    "flag_of",
    "leaves",
    "load",
    "read_producers",
    "read_secret",
    "read_signing_keys",
    "required_signing_keys",
]
