"""Open the rule book of a store."""

from __future__ import annotations

from collections.abc import Callable

from clusterd_consumer.redis_connection import Client
from clusterd_crawler.rules import Identity

from clusterd.learning.rulebook.identity import Shown, texts
from clusterd.learning.rulebook.redis import RedisRuleBook
from clusterd.learning.rulebook.service import RuleService
from clusterd.learning.rulebook.sharing import Publish


def open_rulebook(
    client: Client,
    prefix: str,
    publish: Publish | None,
    flush: Callable[[], None] = lambda: None,
    identity: Identity = "identical",
    shown: Shown = texts,
) -> RuleService:
    """Return the rule service over the book on this Redis or Redis Cluster."""
    return RuleService(RedisRuleBook(client, prefix), publish, flush=flush, identity=identity, shown=shown)
