"""Clusters become rules: what a host's URLs may lose without losing content.

The paper's part (Koppula et al. 2010), for a finished crawl: `tokenize` and `deep_tokens` (algorithms 1, 2), `pairwise`
(3), `targets` (4), `generalize` (5), `selection` of what is proposed, `protocol` (section 5's split and its figures).

The live part, while a crawl runs: `learner` takes pages as they come; `evidence` holds them, and says which of several
crawls' pages may be compared; `candidates` proposes `edits`, a file for each kind; `trials` count the pages that agree
and that differ, and find where an edit holds; `families` are the URLs that bring nothing new; `mirrors` the sites that
show the same; `names` believes what pages call themselves; `watch` looks after live rules. `replay` runs a recorded
crawl through all of it. Of its packages each imports those before it only: evidence, edits, trials, families.

`rulebook` keeps evidence, rules and skips; `interchange` speaks other formats. Nothing here imports Scrapy or Kafka;
Redis is met in the rule book's adapter alone.
"""
