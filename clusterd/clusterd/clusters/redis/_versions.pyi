from collections.abc import Callable

from clusterd_crawler.sketch import Sketch

def pack(
    sketches: list[Sketch], labels: Callable[[str, str], bytes], /
) -> tuple[bytes, bytes, bytes, bytes, bytes]: ...
