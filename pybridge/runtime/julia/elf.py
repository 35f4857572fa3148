"""What a shared library of 64-bit ELF exports and imports, read from its file.

The dynamic loader has these tables too, but gives no access to a whole one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DYNSYM, _RELA, _VERDEF = 11, 4, 0x6FFFFFFD  # types of sections
_SECTION, _SYMBOL, _RELOCATION = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
_FUNCTIONS_AND_DATA = (1, 2, 10)  # types of symbols: object, function, indirect function


@dataclass(frozen=True)
class _Section:
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class Library:
    """One file. Raises ValueError where it is no little-endian 64-bit ELF with a table of sections."""

    def __init__(self, path: Path):
        self._data = data = path.read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no little-endian 64-bit ELF file")
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        self._sections = [_Section(*_SECTION.unpack_from(data, table + size * i)) for i in range(count)]
        self._symbols = next((s for s in self._sections if s.type == _DYNSYM), None)
        if self._symbols is None:
            raise ValueError(f"{path} has no dynamic symbols")

    @property
    def has_versions(self) -> bool:
        """Whether what it exports has versions, by which references find this library and no other."""
        return any(section.type == _VERDEF for section in self._sections)

    def exported(self) -> Iterator[str]:
        """The names of its functions and data that other libraries can refer to."""
        symbols = self._symbols
        assert symbols is not None
        for entry in range(symbols.offset, symbols.offset + symbols.size, _SYMBOL.size):
            name, info, _, section, _, _ = _SYMBOL.unpack_from(self._data, entry)
            if section != 0 and info & 0xF in _FUNCTIONS_AND_DATA:
                yield self._text(name)

    def slots(self, imported: str) -> Iterator[int]:
        """Where, from the library's base address on, the addresses of an imported function are stored."""
        assert self._symbols is not None
        for section in self._sections:
            if section.type != _RELA or self._sections[section.link] is not self._symbols:
                continue
            for entry in range(section.offset, section.offset + section.size, _RELOCATION.size):
                slot, info, addend = _RELOCATION.unpack_from(self._data, entry)
                if addend == 0 and self._symbol(info >> 32) == imported:
                    yield slot

    def _symbol(self, index: int) -> str:
        assert self._symbols is not None
        name = _SYMBOL.unpack_from(self._data, self._symbols.offset + index * _SYMBOL.size)[0]
        return self._text(name)

    def _text(self, name: int) -> str:
        assert self._symbols is not None
        begin = self._sections[self._symbols.link].offset + name
        return self._data[begin : self._data.index(b"\0", begin)].decode()
