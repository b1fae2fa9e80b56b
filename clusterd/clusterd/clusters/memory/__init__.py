"""The index in this process's memory: the reference implementation."""
