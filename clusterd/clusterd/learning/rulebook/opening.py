"""Open the rule book of a store."""

from __future__ import annotations

from collections.abc import Callable

from clusterd_consumer.redis_connection import Client

from clusterd.learning.rulebook.near import Near
from clusterd.learning.rulebook.redis import RedisRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.learning.rulebook.sharing import Publish


def open_rulebook(
    client: Client,
    prefix: str,
    publish: Publish | None,
    flush: Callable[[], None] = lambda: None,
    near: Near | None = None,
) -> RuleService:
    """Return the rule service over the book on this Redis or Redis Cluster."""
    return RuleService(RedisRuleBook(client, prefix), publish, flush=flush, near=near)
