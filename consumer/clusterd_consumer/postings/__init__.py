"""Shingle → documents: how a sketch is stored, which of its values are posted, and how a candidate is verified.

`stored`    values ⇄ the bytes that an index keeps of a sketch
`keys`      the keys under which a sketch is posted and looked up: prefix and modulus, or super-shingles
`judging`   two stored sketches → resemblance, containment
`scheme`    the settings of the three
`buckets`   keys → the bytes of posting lists, written and read by native commands of Redis; `redis_lists` sends them
`lists`     posting lists in memory
"""
