"""Which values of a sketch are posted, how long a list may grow, and with how many bits a value is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from clusterd_crawler.sketch import Profile

#: By the smallest values of sketches and some sampled ones, or by super-shingles.
Candidates = Literal["prefix", "super"]
#: Mantissa bits of a stored value of MIN_s up to this size. Measured in `benchmarks/store.py`.
FINE: Final = 11
#: Mantissa bits where a sketch has no bound on its number of values (MOD_m, V_i).
FINEST: Final = 20
#: Sketches of at most this many values are told apart well enough by `FINE` bits.
SMALL: Final = 512
#: Lists that are not common, of which a document stands in fewer: too few to tell it from all that share a notice.
RARE: Final = 2


@dataclass(frozen=True, slots=True)
class Scheme:
    """How candidates are found. Two indexes agree on their partition only under equal schemes."""

    candidates: Candidates = "prefix"
    #: The smallest values that are posted: of a sketch of fewer than ``small`` values ``small_prefix`` (two such with
    #: r = .5 miss each other in .4 % of the cases), of a larger one ``prefix``: its sampled values do the rest (.1 %).
    prefix: int = 6
    small_prefix: int = 8
    small: int = 192
    #: One value in so many is posted besides, so that a small document finds the large one that holds it; 0: none.
    modulus: int = 64
    #: Values in a super-shingle, and how many super-shingles are posted (the smallest).
    run: int = 4
    supers: int = 8
    #: A list that grew beyond ``bound`` documents proposes only its ``latest`` (`lists`).
    bound: int = 128
    latest: int = 4

    def smallest(self, values: int) -> int:
        """Return how many of the smallest values are posted of a sketch of so many."""
        return self.prefix if values >= self.small else self.small_prefix

    def is_crowded(self, keys: int, common: int) -> bool:
        """Whether a document, so many of whose keys are of common lists, is proposed hardly anything of its own."""
        return self.candidates == "prefix" and common > 0 and keys - common < RARE


DEFAULT: Final = Scheme()


def mantissa(profile: Profile) -> int:
    """Return the number of mantissa bits with which values of a profile are stored."""
    return FINE if profile.kind == "min" and profile.size <= SMALL else FINEST
