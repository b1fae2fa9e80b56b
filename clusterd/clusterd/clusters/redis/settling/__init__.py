"""What waits on Redis: ghosts to dismiss, clusters to part, a new policy to build, sketches to discard.

One settler works at a time, under a lease; the pages of other workers go on meanwhile. A step is one of:

1. continue a move (a part of a cluster on its way to a fresh element, `lua/move.lua`),
2. unite clusters of several homes that others left (`spans`),
3. search whether the former neighbours of dismissed ghosts still hold together (`splitting`), and start the moves,
4. withdraw a few ghosts from their lists and dismiss them together (`lua/dismiss.lua`),
5. look contents up again for a policy that was added after them.

Of several homes one settler has the leases of all. A search goes over their borders; a part that has contents in
several moves in all of them before any looks at its edges once more. Each step leaves its mark in the store before the
next begins, so a settler that dies is followed by another.
"""
