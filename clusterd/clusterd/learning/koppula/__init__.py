"""Koppula et al. 2010 whole: URL → keys, deep tokens, pairwise rules, targets, generalization, selection, protocol."""
