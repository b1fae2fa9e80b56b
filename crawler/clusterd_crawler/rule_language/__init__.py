"""The rule language at work. What can be said is in `rules`, one level up, as data that says nothing of how it is run.

`conditions` asks a URL what a rule wants of it, `edits` writes what the rule puts there, `keys` makes of a host's rules
the key of a URL; `json_form` is how rules are published, stored and exported.
"""
