"""The index on Redis or on a Redis Cluster: `index` is its face, `home` and `lua` what changes together.

A batch is `registered`, posted (`posting`) and linked (`linking`); `spans` joins clusters of several homes, `settling`
does what waits, `asking` answers, `numbers` and `marks` see to it that a node may forget its latest writes.
"""
