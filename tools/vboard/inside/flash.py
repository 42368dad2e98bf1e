"""The board's filesystem: a directory of the host's that looks as large as a flash.

Space counts in blocks of 4096 bytes, as on a board's littlefs. A file opened for writing when no
block is free raises ENOSPC; a write into an open file is not stopped half way.
"""

import errno

_BLOCK = 4096
_FOLDER = 0x4000


class Flash:
    """`disk` (a VfsPosix) with room for `size` bytes."""

    def __init__(self, disk, size):
        self._disk = disk
        self._blocks = size // _BLOCK

    def __getattr__(self, name):
        return getattr(self._disk, name)

    def __repr__(self):
        return "<VfsFlash>"

    def ilistdir(self, path):
        base = path.rstrip("/") + "/" if path else ""
        for entry in self._disk.ilistdir(path):
            mode = entry[1] & 0xF000
            size = 0 if mode == _FOLDER else self._disk.stat(base + entry[0])[6]
            yield entry[0], mode, 0, size

    def _used(self, path="/"):
        blocks = 0
        for name, mode, _, size in self.ilistdir(path):
            if mode == _FOLDER:
                blocks += 1 + self._used(path.rstrip("/") + "/" + name)
            else:
                blocks += -(-size // _BLOCK)
        return blocks

    def open(self, path, mode):
        if ("w" in mode or "a" in mode or "+" in mode) and self._used() >= self._blocks:
            raise OSError(errno.ENOSPC)
        return self._disk.open(path, mode)

    def statvfs(self, path):
        free = max(0, self._blocks - self._used())
        return (_BLOCK, _BLOCK, self._blocks, free, free, 0, 0, 0, 0, 255)
