"""One spider's crawl: what it decides about requests, what becomes of its pages, whom it listens to.

`crawl` is the whole; the middleware is a thin shell around it. A request meets `purposes`, `decisions`, `under_way`,
`rewriting` and `kept`; a page meets `pages`, `reporter` and `verdicts`, and its items `item_files`; new rules meet
`rule_changes`. `connections` says where messages go, `embedded_daemon` starts a daemon beside the crawl.
"""
