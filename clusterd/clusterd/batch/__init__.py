"""The four-phase batch of the paper over a whole collection, in bounded memory: what the stream is measured against.

`clusters`  sketches → the clusters of every policy
`pairs`     sketches → all pairs above a threshold; counted, not estimated, where the documents can be read again
"""

from clusterd.batch.clustering import clusters
from clusterd.batch.pairing import Pair, pairs, whole_profile

__all__ = ["Pair", "clusters", "pairs", "whole_profile"]
