"""Verified pairs as they travel to the home shard: 6 bytes each, content and bits of the policies that join the two."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

from clusterd_consumer.resemblance import Estimate

from clusterd.clusters.acceptance import mask
from clusterd.clusters.contract import Policy

EDGE: Final = struct.Struct("<IH")


def packed_edges(policies: Sequence[Policy], verdicts: Mapping[int, Estimate]) -> bytes:
    """Return the packed edges of the pairs that some policy joins."""
    edges = [EDGE.pack(number, mask(policies, verdict)) for number, verdict in verdicts.items()]
    return b"".join([edge for edge in edges if edge[4:] != b"\0\0"])
