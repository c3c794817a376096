"""One way from a file's name to a client's name, and back.

A file system keeps names as bytes, which need not be text; a client's name is text, the same on every machine. So what
is not UTF-8 is written as `%E9`, as in an address of the web, and so is `%` itself; all else stands as it is.
"""

import os
import re
from pathlib import PurePath
from urllib.parse import unquote_to_bytes

_NOT_TEXT = re.compile("[%\udc80-\udcff]")  # as "surrogateescape" reads bytes that are not UTF-8


def name_of_file(path: PurePath | str) -> str:
    """A path as text: its parts with `/` between, undecodable bytes and `%` as `%XX`. Never fails, no two are alike."""
    shown = path.as_posix() if isinstance(path, PurePath) else path
    text = os.fsencode(shown).decode("utf-8", "surrogateescape")
    return _NOT_TEXT.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", text)


def file_of_name(name: str) -> str:
    """The path that `name_of_file` called so, as this machine's file functions take it."""
    return os.fsdecode(unquote_to_bytes(name))
