"""Section 5 of Koppula et al. 2010: half of the clusters to learn from, half to test on, and its metrics."""

from __future__ import annotations


def reduction_ratio(original: float, normal: float) -> float:
    """ReductionRatio: the share of URLs that normalization saves."""
    return (original - normal) / original if original else 0.0


def average_reduction(saved: float, rules: int) -> float:
    """AvgReductionPerRule: URLs saved by each rule."""
    return saved / rules if rules else 0.0
