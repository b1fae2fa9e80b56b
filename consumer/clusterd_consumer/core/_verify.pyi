from clusterd_crawler.sketch import StreamSketch

def pack(
    streams: list[StreamSketch],
    bits: int,
    sampled: bool,
    profile: int,
    prefix: int,
    small_prefix: int,
    small: int,
    modulus: int,
    /,
) -> list[tuple[bytes, bytes]]: ...
def judge(query: bytes, candidates: list[bytes], bits: int, /) -> list[tuple[float, float, float]]: ...
def counts(query: bytes, candidates: list[bytes], bits: int, /) -> list[tuple[int, int, int, int]]: ...
def supers(stored: bytes, bits: int, run: int, most: int, profile: int, /) -> bytes: ...
def keys(stored: bytes, bits: int, prefix: int, modulus: int, profile: int, /) -> bytes: ...
