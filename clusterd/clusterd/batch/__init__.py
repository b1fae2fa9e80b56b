"""The four-phase batch of the paper over a whole collection, in bounded memory: what the stream is measured against.

`cluster`  sketches → the clusters of every policy
`pairs`    sketches → all pairs above a threshold
"""

from clusterd.batch.clustering import cluster
from clusterd.batch.pairing import Pair, pairs

__all__ = ["Pair", "cluster", "pairs"]
