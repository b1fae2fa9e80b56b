"""What a crawl asks for: which of its requests rules may keep out, what each is for, and where those are that wait.

`kinds` tells requests for pages from others, `purposes` (with `carried`) what one is for. `admission` says which are
sent: `decisions` asks the rules, `explored` holds what they would skip and the crawl fetches, `under_way` lets a
request wait for another of its key, `rewriting` asks for the key. `kept` has what a rule kept out, `paused` the same of
a crawl that is to go on.
"""
