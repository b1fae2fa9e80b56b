"""What the posted values of pages propose, as when these were first applied: three or four round trips for many pages.

`ranking` looks up all values of a document, 200 to 400; posted are 8 to 16 of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from clusterd_consumer.postings.keys import super_keys
from clusterd_consumer.postings.redis_lists import RedisLists
from clusterd_consumer.postings.scheme import Scheme
from clusterd_consumer.resemblance import Estimate
from clusterd_crawler.sketch import Sketch

from clusterd.clusters.redis.asking.ranking import ranked
from clusterd.clusters.redis.posting import judged, prepared


def matching(lists: RedisLists, sketches: Sequence[Sketch], scheme: Scheme) -> list[dict[int, Estimate]]:
    """Return for each page the numbers of what resembles it, its own too, each with the verdict, best first."""
    made = prepared(sketches, range(len(sketches)), scheme)
    proposed, common = lists.look_up([made[place][1] for place in range(len(sketches))])
    further = {
        place: super_keys(stored, sketches[place].profile, scheme).tobytes()
        for place, (stored, keys) in sorted(made.items())
        if scheme.is_crowded(len(keys) // 4, common[place])
    }
    for place, numbers in zip(further, lists.look_up(list(further.values()))[0], strict=True):
        proposed[place] = sorted({*proposed[place], *numbers})
    stored_of = lists.sketches({number for numbers in proposed for number in numbers})
    found = []
    for place, (sketch, numbers) in enumerate(zip(sketches, proposed, strict=True)):
        candidates = {number: stored_of[number] for number in numbers if stored_of[number]}
        found.append(ranked(judged(made[place][0], sketch.profile, candidates)))
    return found
