"""One spider's crawl: what it decides about requests, what becomes of its pages, whom it listens to.

`crawl` is the whole; the middleware is a thin shell around it. `requests` is what it asks for, `pages` what it has
fetched; a skipped request ends in `skipped`. A host that it meets is asked about in `meeting`, new rules meet
`rule_changes`. `crawl_id` says which crawl this is, `connections` where messages go, and `embedded_daemon` starts a
daemon beside it. `event_loop`, `older_scrapy` and `collector` are what it runs in.
"""
