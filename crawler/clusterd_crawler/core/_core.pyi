from collections.abc import Callable, Iterable

Stream = tuple[bytes, int, int, int, bytes]

def set_classes(table: bytes, /) -> None: ...
def set_fold(fold_block: Callable[[int], bytes], /) -> None: ...
def set_markup(
    tags: dict[bytes, int],
    embedding: Iterable[bytes],
    roles: dict[bytes, int],
    said: dict[bytes, int],
    references: dict[bytes, bytes],
    /,
) -> None: ...
def sketch(
    text: str | bytes,
    marked: bool,
    folded: bool,
    w: int,
    kind: int,
    size: int,
    entire: int,
    most: int,
    parity: bool,
    /,
) -> tuple[Stream, Stream | None, int, int] | None: ...
def walk(
    markup: bytes, well_nested: bool, unescape: Callable[[bytes], bytes], /
) -> tuple[bytes, int, list[tuple[str, bytes]]]: ...
def at_hand(text: bytes, /) -> bool: ...
def pack(values: bytes, /) -> bytes: ...
