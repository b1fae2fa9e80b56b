"""Why a Redis does not serve us, in words that say what would be right; the same to crawls and to daemons."""

from __future__ import annotations

import re
from typing import Final

import redis

from clusterd_crawler.errors import Forbidden, Unreachable
from clusterd_crawler.servers.certificates import not_accepted
from clusterd_crawler.servers.redis_greeting import one_sided

#: What Redis answers to a user who may not do what we ask; from within a script without an error code (Redis 7.0; later
#: ones and Valkey). A matter of the server's users, not of the page that met it.
FORBIDDEN: Final = ("NOPERM", "The user executing the script can't", "ACL failure in script")
#: What a server says that is of another kind, or older, than the address has it: no page is to blame.
UNKNOWN: Final = "unknown command "
#: Commands that Redis has had since 7.0.
_FUNCTIONS: Final = ("FCALL", "FUNCTION")
#: What Redis answers where a key holds another type than is asked for: another program has written it. No page is to
#: blame; each that comes would meet it.
FOREIGN: Final = "WRONGTYPE "
#: What a replica answers to what would write.
REPLICA: Final = "READONLY"
#: What our own functions answer of a store that takes no more pages (`clusters/redis/lua/register.lua`). No page is to
#: blame.
USED_UP: Final = "USEDUP "
#: What the client says of a single server that is given as a cluster.
_NO_CLUSTER: Final = "Cluster mode is not enabled"
#: How OpenSSL says why a certificate is not accepted.
_CERTIFICATE: Final = re.compile(r"certificate verify failed: (.+?) \(_ssl")
#: What the client puts before the error of a command in a pipeline.
_IN_PIPELINE: Final = re.compile(r"^Command # \d+ \(\w+ ([^ )]*).* of pipeline caused error: ", re.DOTALL)
#: How the client names a sentinel that did not answer: by all options of its connections, the password of a key too.
_SENTINEL: Final = re.compile(r"<redis\..*?\bhost=([^,]*),port=(\d+).*?>(?= - )", re.DOTALL)


def unreachable(error: Exception, what: str = "Redis", url: str = "", key: str = "") -> Unreachable:
    """Return what is raised where ``what`` does not serve us.

    Its ``url``, where given, is looked at for TLS; ``key`` is what was asked for, or what those keys begin with.
    """
    return (Forbidden if _is_forbidden(error) else Unreachable)(why_not(error, what, url, key))


def why_not(error: Exception, what: str, url: str, key: str) -> str:
    """Return a line that says why ``what`` does not serve us; arguments as of `unreachable`."""
    if isinstance(error, redis.AuthenticationError):
        return f"{what} refuses us: {reason(error)}; it takes redis://USER:PASSWORD@HOST:PORT/DB"
    if _NO_CLUSTER in str(error):
        return f"{what} is no Redis Cluster; a single Redis is given as redis://HOST:PORT/DB"
    if isinstance(error, redis.InvalidResponse):
        return f"{what} is no Redis: something else answers there ({reason(error)})"
    if UNKNOWN in (said := reason(error)):
        return f"{what} {_of_another_kind(said)}"
    if said.startswith(FOREIGN):
        return f"{what} holds what another program has written under {_written(error, key)} ({said})"
    if said.startswith(USED_UP):
        return f"{what} takes no more pages: {said.removeprefix(USED_UP)}"
    if wrong := _CERTIFICATE.search(said):
        return f"{what} {not_accepted(wrong[1], 'ssl_ca_certs')}"
    if _is_forbidden(error):
        return f"{what} refuses us: {said}; docs/operations.md has what its user needs (ACLs)"
    if isinstance(error, redis.ReadOnlyError) or said.startswith(REPLICA):
        return (
            f"{what} is a replica, which takes no writes: it takes the primary, or redis+sentinel://HOST:PORT/SERVICE"
        )
    if _is_full(error):
        return f"{what} is full: raise its maxmemory, or let CLUSTERD_RETENTION make room ({said})"
    if _is_moved(error):
        return f"{what} does not answer: {said} (a node of a Redis Cluster? it takes redis+cluster://HOST:PORT)"
    if url and _may_be_one_sided(error, url) and (end := one_sided(url)):
        return f"{what} {end}"
    return f"{what} does not answer: {said}"


def reason(error: Exception) -> str:
    """Return what went wrong, of sentinels only where they are.

    Without the command that a pipeline's error repeats, which may hold a page's sketch.
    """
    return _SENTINEL.sub(r"\1:\2", _IN_PIPELINE.sub("", str(error)))


def _written(error: Exception, key: str) -> str:
    """Return which of our keys another program has written, and what is to be done."""
    piped = _IN_PIPELINE.match(str(error))
    where = key or (piped[1] if piped else "") or "a key of ours"
    return f"{where}: free that name for clusterd, or give clusterd another prefix (CLUSTERD_REDIS_PREFIX)"


def _of_another_kind(said: str) -> str:
    """Return what is wrong with a server that does not know a command of ours."""
    if "SENTINEL" in said:
        return "is no sentinel; a single Redis is given as redis://HOST:PORT/DB"
    unknown = said.partition(",")[0]
    if any(name in unknown for name in _FUNCTIONS):  # a sentinel knows none of what is asked for before
        return f"is older than 7.0, the first Redis that has functions ({unknown}); clusterd needs 7.0 or later"
    return (
        f"answers as a sentinel does, or a Redis before 7.0 ({unknown}); "
        "sentinels are given as redis+sentinel://HOST:PORT/SERVICE"
    )


def _may_be_one_sided(error: Exception, url: str) -> bool:
    """Whether it may be that one end alone speaks TLS: without it we are cut off, by TLS we may also wait in vain."""
    waits = (redis.TimeoutError,) if url.startswith("rediss") else ()
    return isinstance(error, (redis.ConnectionError, redis.exceptions.RedisClusterException, *waits))


def _is_moved(error: Exception) -> bool:
    """Whether a single server says that another one has it."""
    return isinstance(error, redis.exceptions.MovedError) or reason(error).startswith("MOVED ")


def _is_full(error: Exception) -> bool:
    """Whether a server that may not evict has reached its limit of memory."""
    return isinstance(error, redis.exceptions.OutOfMemoryError) or reason(error).startswith("OOM ")


def _is_forbidden(error: Exception) -> bool:
    """Whether the server's user may not do what was asked."""
    return isinstance(error, redis.exceptions.NoPermissionError) or any(word in reason(error) for word in FORBIDDEN)
