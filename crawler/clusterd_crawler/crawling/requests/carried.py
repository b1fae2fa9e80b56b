"""What a request carries along (``cb_kwargs``, items in ``meta``, what a callback closes over) → a text, in which two
values are the same only where they say the same.

Plain values, containers and items are written out in whole. What Python prints of anything else need not tell it from
another: a selector shows its first 40 characters, a dataclass may leave fields out, and most objects show where they
lie in memory, where another may lie later. So each of those is itself alone, and has a name that no other gets, in no
other process either. All else is written alike in every process, so that crawlers of one crawl mean the same by it.

Cost: 1 µs for a number or a string, 5 to 20 µs for an item.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from types import CellType, CodeType
from typing import Any, Final
from uuid import uuid4

from itemadapter import ItemAdapter, is_item
from scrapy import Spider

#: Written as they are.
PLAIN: Final = frozenset({bool, bytes, complex, float, int, str, type(None)})
#: Containers within each other that are looked into. One that contains itself has no end.
DEEPEST: Final = 20
#: Code of lambdas and inner functions whose text is remembered.
CODES: Final = 1024


class Carried:
    """For one thread."""

    def __init__(self) -> None:
        self._process = uuid4().hex
        #: How many values were found so far that are themselves alone.
        self.alone = 0
        #: Address → who lies there now, and its number.
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}

    def text(self, value: Any, depth: int = 0) -> str:
        """Return what a value says."""
        if type(value) in PLAIN:
            return repr(value)
        try:
            return self._itself(value) if depth == DEEPEST else self._written_out(value, depth + 1)
        except Exception:  # whatever the classes of the project raise when they are asked
            return self._itself(value)

    def _written_out(self, value: Any, depth: int) -> str:
        kind = _name(type(value))
        if isinstance(value, Spider):
            return f"{kind} {value.name}"
        if is_item(value):
            return f"{kind}{{{self._pairs(ItemAdapter(value).items(), depth)}}}"
        if isinstance(value, Mapping):
            return f"{kind}{{{self._pairs(value.items(), depth)}}}"
        if isinstance(value, (list, tuple)):
            return f"{kind}[{','.join(self.text(one, depth) for one in value)}]"
        if isinstance(value, (set, frozenset)):
            return f"{kind}[{','.join(sorted(self.text(one, depth) for one in value))}]"
        if isinstance(value, type):
            return kind + _name(value)
        if callable(value):
            return self.function(value, depth)
        own_hash: Any = type(value).__hash__
        own_text: Any = type(value).__repr__
        if own_hash not in {None, object.__hash__} and own_text is not object.__repr__ and " at 0x" not in repr(value):
            return f"{kind}({value!r}, {value!s})"  # a date, a decimal, an enumeration
        return self._itself(value)

    def _pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> str:
        return ",".join(f"{self.text(key, depth)}:{self.text(value, depth)}" for key, value in pairs)

    def function(self, function: Any, depth: int = 0) -> str:
        """Return what a function is, however often it is made: a method is bound again each time, a lambda made."""
        if isinstance(function, partial):
            given = self.text(function.args, depth), self.text(function.keywords, depth)
            return f"partial {self.function(function.func, depth)} {given}"
        bound = getattr(function, "__self__", None)
        inner = getattr(function, "__func__", function)
        code = getattr(inner, "__code__", None)
        if not isinstance(code, CodeType):
            return self._itself(function)
        said = _name(inner)
        if bound is not None and not isinstance(bound, Spider):
            said += f" of {self.text(bound, depth + 1)}"
        if "<" not in inner.__qualname__ or _is_method(bound, inner):  # there is one of this name
            return said
        held = [_content(cell) for cell in inner.__closure__ or ()]
        values = self.text((inner.__defaults__, inner.__kwdefaults__, held), depth)
        return f"{said} {_written(code)} {_annotated(inner)} {values}"

    def _itself(self, value: Any) -> str:
        known = self._known.get(id(value))
        if known is not None and known[0]() is value:
            number = known[1]
        else:
            number = self.alone
            self.alone += 1
            self._remember(value, number)
        return f"<{self._process} {number}>"

    def _remember(self, value: Any, number: int) -> None:
        place, numbers = id(value), self._known

        def gone(reference: weakref.ref[Any]) -> None:
            known = numbers.get(place)
            if known is not None and known[0] is reference:
                del numbers[place]

        try:
            numbers[place] = weakref.ref(value, gone), number
        except TypeError:  # it cannot be watched, and is another at the next look
            return


def _name(named: Any) -> str:
    return f"{named.__module__}.{named.__qualname__}"


def _is_method(bound: Any, function: Any) -> bool:
    """Whether a function is a method of a spider's class, which may have been made in a function."""
    return isinstance(bound, Spider) and getattr(type(bound), function.__name__, None) is function


@lru_cache(CODES)
def _written(code: CodeType) -> str:
    """Return what code does: of two lambdas in a line each its own."""
    return f"{code.co_code!r} {code.co_names} [{','.join(map(_constant, code.co_consts))}]"


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _written(value)
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _annotated(function: Any) -> str:
    """Return what a function says of its arguments: scrapy-poet gives a callback the page object that is named there.

    As Python prints it: an alias such as ``list[str]`` is made anew with each inner function.
    """
    try:
        return repr(function.__annotations__)
    except Exception:  # a name that is there for type checkers only, where Python 3.14 looks for it
        return ""


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None
