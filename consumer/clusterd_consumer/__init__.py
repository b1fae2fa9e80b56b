"""The consumer's room: sketches arrive, candidates are proposed and verified, matches are handed on."""
