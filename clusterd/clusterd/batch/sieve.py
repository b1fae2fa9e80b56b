"""Whether what a sample shows lets the truth reach a threshold."""

from __future__ import annotations

from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]

#: How far below the threshold a sketch may lie for its pair to be counted: beyond, one pair in three million is lost.
DEVIATIONS: Final = 5.0


@overload
def reaches(common: int, seen: int, threshold: float) -> np.bool_: ...
@overload
def reaches(common: Counts, seen: Counts, threshold: float) -> npt.NDArray[np.bool_]: ...
def reaches(common: Any, seen: Any, threshold: float) -> Any:
    """Return whether so many common values of those that were seen let the truth reach the threshold.

    What is wanted of them grows with their number, once it is more than none.
    """
    return common + DEVIATIONS * np.sqrt(seen * threshold * (1 - threshold)) + 1 >= threshold * seen
