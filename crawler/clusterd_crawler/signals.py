"""Signals of the add-on. Connect to them as to Scrapy's own: ``crawler.signals.connect(handler, near_duplicate)``.

They are sent with ``send_catch_log_async``, so handlers may be coroutines. A handler takes the arguments it names.
"""

from __future__ import annotations

from typing import Final

#: A page was found to be nearly the same as one known before; possibly after its callback has run.
#: Arguments: ``response_url, cluster, match, resemblance, spider``.
near_duplicate: Final = object()
#: A rule went live in this crawl. Arguments: ``rule`` (`rules.Rule`), ``host, spider``.
rule_learned: Final = object()
#: A rule was withdrawn; what it kept out is queued again. Arguments: ``rule`` (its id), ``reason, host, spider``.
rule_retired: Final = object()
#: A request was not sent. Arguments: ``request, rule, key, known_url, spider``.
request_skipped: Final = object()
