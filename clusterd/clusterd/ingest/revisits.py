"""Revisit records of WARC files: an archiver's word that a URL was answered at a date with what it had archived before.

It had that from the same URL at another date: passed over, a page that did not change would seem to have vanished from
the later sweep. Or from another URL: the two are duplicates. The record has no payload. It names the answer that has it
by the digest of the payload (profile ``identical-payload-digest``), by the answer's record, or by its URL and date (so
does profile ``server-not-modified``); and that answer may itself be a revisit. Of one that names nothing, "not
modified" alone, it cannot be known whether what it means is among the files.

So revisits are put aside while files are read, and the files of the run are read once more for the answers that they
name (`warc.originals`): no matter which came first, how the files are compressed, and how many pages lie between. Each
answer is sketched anew under the revisit's URL, since names, pictures and frames of a page are relative to its address.
Memory grows with the revisits, not the pages: some 900 bytes each, of at most `HELD` at a time. Files without any are
read once.

What an earlier run brought in is not looked for in the store. It keeps fewer bits of a fingerprint than a message
carries and than the identity of a content is made of, and nothing of the whole page: no sketch can be made of it that
would be equal to the first. Such revisits are counted (`Revisits.unresolved`). To bring in the earlier files once more,
along with the later ones, changes nothing of the versions that are known, and resolves them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import mmh3

#: Revisits that wait at a time; at so many the files are read for them at once.
HELD: Final = 100_000
#: Of a date what counts where a record is named by it: archivers that write fractions of seconds refer without them.
_SECONDS: Final = len("2026-01-31T12:00:00")

#: Returns the value of a record's header.
Header = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Names:
    """What a record may be referred to by, each hashed to 64 bits; 0: nothing."""

    digest: int = 0
    record: int = 0
    answer: int = 0

    def agree(self, other: Names) -> bool:
        """Whether both may have one payload."""
        return not (self.digest and other.digest) or self.digest == other.digest

    def __iter__(self) -> Iterator[int]:
        return filter(None, (self.digest, self.record, self.answer))


@dataclass(slots=True, eq=False)
class Revisit:
    """A record that waits for the answer that it refers to."""

    url: str
    fetched_at: int | None
    where: str
    #: Status and media type where the record has the headers of the answer; else 0 and "", and those of the other hold.
    status: int
    media: str
    refers: Names
    names: Names
    found: bool = False


def names_of(header: Header) -> Names:
    """Return the names of a record."""
    return Names(_digest(header), _hashed(header("WARC-Record-ID")), _answer(header, "WARC-Target-URI", "WARC-Date"))


def referred_to(header: Header) -> Names:
    """Return the names of the answer that a revisit refers to."""
    answer = _answer(header, "WARC-Refers-To-Target-URI", "WARC-Refers-To-Date")
    return Names(_digest(header), _hashed(header("WARC-Refers-To")), answer)


def _digest(header: Header) -> int:
    """Return the digest of the payload, hashed. Of "not modified", if any, it is that of an answer without payload."""
    not_modified = (header("WARC-Profile") or "").strip().endswith("/server-not-modified")
    return 0 if not_modified else _hashed(header("WARC-Payload-Digest"))


def _answer(header: Header, uri: str, date: str) -> int:
    url, at = (header(uri) or "").strip("<> "), (header(date) or "").strip()
    return _hashed(f"{at.rstrip('Z')[:_SECONDS]} {url}") if url and at else 0


def _hashed(name: str | None) -> int:
    return mmh3.hash64(name.strip("<> ").encode("utf-8", "surrogatepass"), signed=False)[0] or 1 if name else 0


@dataclass(slots=True)
class Revisits:
    """The revisits of a run that wait, and how many were given up."""

    #: WARC files of the run.
    files: Sequence[str] = ()
    held: int = 0
    unresolved: int = 0
    _waiting: dict[int, list[Revisit]] = field(default_factory=lambda: defaultdict(list))

    @property
    def full(self) -> bool:
        """Whether those that wait are to be looked for now."""
        return self.held >= HELD

    def add(self, revisit: Revisit) -> None:
        """Let a revisit wait; one that names nothing is not looked for."""
        if not any(revisit.refers):
            self.unresolved += 1
            return
        self.held += 1
        for name in revisit.refers:
            self._waiting[name].append(revisit)

    def wait_for(self, names: Names) -> bool:
        """Whether an answer of these names may be waited for."""
        return any(name in self._waiting for name in names)

    def of(self, names: Names) -> Iterator[Revisit]:
        """Take out the revisits of an answer, and the revisits of these, one by one."""
        asked = [names]
        while asked:
            known = asked.pop()
            for name in known:
                here = [one for one in self._waiting.pop(name, ()) if not one.found]
                left = [one for one in here if not one.refers.agree(known)]
                if left:
                    self._waiting[name] = left
                for one in here:
                    if one.refers.agree(known):
                        one.found = True
                        asked.append(replace(one.names, digest=known.digest or one.names.digest))
                        self.held -= 1
                        yield one

    def give_up(self) -> None:
        """Count those that still wait as unresolved."""
        self.unresolved += self.held
        self.held = 0
        self._waiting.clear()
