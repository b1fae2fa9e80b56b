"""The four-phase batch of the paper over a whole collection, in bounded memory: what the stream is measured against.

`clusters`  sketches → the clusters of every policy
`pairs`     sketches → all pairs above a threshold; counted, not estimated, where the documents can be read again
`ranked`    pairs → the same, the most alike first
"""

from clusterd.batch.clustering import clusters
from clusterd.batch.pairing import Pair, pairs, ranked, whole_profile

__all__ = ["Pair", "clusters", "pairs", "ranked", "whole_profile"]
