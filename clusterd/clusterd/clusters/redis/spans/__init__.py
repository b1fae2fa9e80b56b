"""Clusters that span several homes: a union-find over the homes' own clusters, by compare-and-set on one key.

A pair of contents of two homes is an edge that both keep. Each of the two clusters becomes part of a **span**
(`lua/spans.lua`), and the larger span is put under the smaller: one record is changed, if it is still a root. Then the
homes let their parts of the one be parts of the other. What is asked of a span is asked of its parts: it has no size of
its own that could go wrong.

Between two steps others may do what they like:

- What is to be united stands in `BASE:due` of a home, written with the edge; it is taken out when both ends are found
  under one root. Whoever settles does what others left.
- Whether an edge still holds is looked up with its span. When edges are cut, or a part of a cluster moves out of it,
  the **era** of every home counts up afterwards; what was looked up in an era before is refused, and looked up again.
"""
