"""A file that grows under a temporary name beside its final one, with its hash and length kept as it grows."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_BLOCK = 1 << 20


class PartFile:
    """Bytes under a temporary name. Every attempt writes a name of its own, so no two ever write the same file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()
        self._file: BinaryIO = path.open("wb")

    def write(self, data: bytes) -> None:
        """Append."""
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    @property
    def sha256(self) -> str:
        """Of what was written so far, in hex."""
        return self._hash.copy().hexdigest()

    def sync(self) -> None:
        """Return once the bytes are on the disk: only then may a commit speak of them."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close it; the file stays."""
        self._file.close()

    def state(self) -> dict[str, Any]:
        """What `adopt` needs to go on from here. JSON-able."""
        return {"part": self.path.name, "bytes": self.size, "sha256": self.sha256}

    def adopt(self, state: dict[str, Any]) -> bool:
        """Begin with the bytes that an earlier attempt left, if they are here and are the ones it vouched for.

        They are copied: the earlier attempt may be a zombie that still writes to its own file. False leaves this
        part unfit for use (the caller starts over).
        """
        source = self.path.with_name(state["part"])
        left = state["bytes"]
        try:
            with source.open("rb") as earlier:
                while left and (block := earlier.read(min(_BLOCK, left))):
                    self.write(block)
                    left -= len(block)
        except FileNotFoundError:
            return False
        whole: bool = left == 0 and self.sha256 == state["sha256"]
        return whole


@dataclass(frozen=True, slots=True)
class Finished:
    """A complete part and the name it is to have. Its hash was committed, so whoever finds it may publish it."""

    part: str
    final: str
    sha256: str

    def publish(self, folder: Path) -> bool:
        """Put the file in place; harmless when it is. False when it is neither in place nor here as a part.

        A zombie cannot put back what its successor replaced: its part was moved away or removed by then.
        """
        part, final = folder / self.part, folder / self.final
        if _holds(part, self.sha256):
            try:
                os.replace(part, final)
            except FileNotFoundError:  # another attempt moved it between the two looks
                return _holds(final, self.sha256)
            sync_folder(folder)
            return True
        return _holds(final, self.sha256)


def sync_folder(folder: Path) -> None:
    """Make renames in it survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _holds(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            digest: str = hashlib.file_digest(file, "sha256").hexdigest()
            return digest == sha256
    except FileNotFoundError:
        return False
