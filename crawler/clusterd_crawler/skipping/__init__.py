"""When a request is skipped: what the crawl knows, what the rules make of it, and what is fetched all the same.

`known_pages` decides, from `host_pages` (with `redirects`, `leading`, `walls` and the names of `bearers`) and
`rule_sets`; `answering` says which rule answers for a skip. `exploring` holds back what watches the rules: `renaming`
and `resting` say how much may rest on how few trials (`trial_budget`), `spreading` on which values. `traps` never end.
None of it waits for a server.
"""
