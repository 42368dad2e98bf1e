"""Strict JSON with the place of a mistake: the same answer on every interpreter.

MicroPython's own reader takes much that is no JSON (missing commas, `{"a" 1}`) and never says
where it stopped. A person who edits a file by hand needs the line, so this one reads the bytes
from left to right, once, and stops at the first that cannot stand where it is.

Beyond the grammar it refuses what nobody means: a key given twice in one object, nesting deeper
than 8 levels, numbers of over 30 characters, and halves of surrogate pairs. MicroPython decodes
some bytes that are UTF-8 to nobody else; they would leave the board again as they came.
"""

_DEEPEST = 8
_LONGEST_NUMBER = 30
_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_ESCAPES = b'"\\/bfnrt'
_ESCAPED = b'"\\/\b\f\n\r\t'
# What may not follow these first bytes of a character: longer than need be, half of a surrogate
# pair, beyond the last character.
_NEVER_BEHIND = {0xE0: (0x80, 0x9F), 0xED: (0xA0, 0xBF), 0xF0: (0x80, 0x8F), 0xF4: (0x90, 0xBF)}
_WORDS = ((b"true", True), (b"false", False), (b"null", None))
_END = 0  # what `peek` gives at the end; no byte 0 is right anywhere in JSON

_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_COMMA = ord(",")
_COLON = ord(":")
_MINUS = ord("-")
_POINT = ord(".")
_ZERO = ord("0")
_BLANK = ord(" ")
_U = ord("u")
_OBJECT = ord("{")
_OBJECT_END = ord("}")
_ARRAY = ord("[")
_ARRAY_END = ord("]")

_HINTS = (
    (b"'", "; texts stand in double quotes"),
    (b"/#", "; there are no comments in JSON"),
    (b"TFN", "; true, false and null are written small"),
)


def parse(text):
    """The value that `text` (bytes, UTF-8) holds; ValueError "line 3, column 5: ..." if none."""
    if text[:3] == b"\xef\xbb\xbf":
        text = text[3:]
    reader = _Reader(text)
    reader.check_encoding()
    value = reader.value(0)
    reader.next()
    if reader.at < len(text):
        raise reader.error("nothing more expected")
    return value


class _Reader:
    """`at` is the first byte not read yet."""

    def __init__(self, text):
        self.text = text
        self.at = 0

    def check_encoding(self):
        for line in self.text.split(b"\n"):
            try:
                line.decode()
                right = _is_utf8(line)
            except UnicodeError:
                right = False
            if not right:
                raise self.error("UTF-8 expected", self.at, 1)
            self.at += len(line) + 1
        self.at = 0

    def error(self, what, at=None, column=0):
        """The ValueError for the byte at `at`; the column counts characters from 1."""
        if at is None:
            at = self.at
        for characters, hint in _HINTS:
            if at < len(self.text) and self.text[at] in characters:
                what += hint
        line = self.text[:at].count(b"\n") + 1
        start = self.text.rfind(b"\n", 0, at) + 1
        column = column or len(self.text[start:at].decode()) + 1
        return ValueError("line {}, column {}: {}".format(line, column, what))

    def peek(self):
        return self.text[self.at] if self.at < len(self.text) else _END

    def next(self):
        """The first byte after white space, left unread."""
        while self.peek() in _SPACE:
            self.at += 1
        return self.peek()

    def value(self, depth):
        first = self.next()
        if depth > _DEEPEST:
            raise self.error("at most {} levels expected".format(_DEEPEST))
        if first == _OBJECT:
            return self.object(depth + 1)
        if first == _ARRAY:
            return self.array(depth + 1)
        if first == _QUOTE:
            return self.string()
        if first == _MINUS or first in _DIGITS:
            return self.number()
        for word, value in _WORDS:
            if self.text[self.at : self.at + len(word)] == word:
                self.at += len(word)
                return value
        raise self.error("a value expected")

    def object(self, depth):
        found = {}
        self.at += 1
        if self.next() == _OBJECT_END:
            self.at += 1
            return found
        while True:
            if self.next() != _QUOTE:
                raise self.error("a key in double quotes expected")
            start = self.at
            key = self.string()
            if key in found:
                raise self.error("this key is here a second time", start)
            if self.next() != _COLON:
                raise self.error("':' expected")
            self.at += 1
            found[key] = self.value(depth)
            if not self.more(_OBJECT_END):
                return found

    def array(self, depth):
        found = []
        self.at += 1
        if self.next() == _ARRAY_END:
            self.at += 1
            return found
        while True:
            found.append(self.value(depth))
            if not self.more(_ARRAY_END):
                return found

    def more(self, closing):
        """Pass ',' (True) or the closing bracket (False)."""
        byte = self.next()
        if byte not in (_COMMA, closing):
            raise self.error("',' or '{}' expected".format(chr(closing)))
        comma = self.at
        self.at += 1
        if byte == _COMMA and self.next() == closing:
            raise self.error("',' before '{}' is one too many".format(chr(closing)), comma)
        return byte == _COMMA

    def string(self):
        start = self.at
        found = bytearray()
        self.at += 1
        while self.peek() != _QUOTE:
            byte = self.peek()
            if byte in b"\0\r\n":
                raise self.error("this text has no closing quote on its line", start)
            if byte < _BLANK:
                raise self.error("a control character must be written as an escape")
            self.at += 1
            if byte == _BACKSLASH:
                found.extend(self.escape())
            else:
                found.append(byte)
        self.at += 1
        return bytes(found).decode()

    def escape(self):
        """The UTF-8 bytes that what follows a backslash stands for."""
        letter = self.peek()
        if letter in _ESCAPES:
            self.at += 1
            i = _ESCAPES.find(bytes([letter]))
            return _ESCAPED[i : i + 1]
        digits = self.text[self.at + 1 : self.at + 5]
        if letter != _U or len(digits) < 4 or not all([digit in _HEX for digit in digits]):
            raise self.error("unknown escape in a text", self.at - 1)
        code = int(digits.decode(), 16)
        if 0xD800 <= code <= 0xDFFF:
            raise self.error("half of a surrogate pair: write the character itself", self.at - 1)
        self.at += 5
        return _utf8(code)

    def number(self):
        start = self.at
        whole = True
        if self.peek() == _MINUS:
            self.at += 1
        if self.peek() == _ZERO:
            self.at += 1
        else:
            self.digits()
        if self.peek() == _POINT:
            whole = False
            self.at += 1
            self.digits()
        if self.peek() in b"eE":
            whole = False
            self.at += 1
            if self.peek() in b"+-":
                self.at += 1
            self.digits()
        if self.at - start > _LONGEST_NUMBER:
            raise self.error(
                "a number of at most {} characters expected".format(_LONGEST_NUMBER), start
            )
        number = self.text[start : self.at].decode()
        return int(number) if whole else float(number)

    def digits(self):
        if self.peek() not in _DIGITS:
            raise self.error("a digit expected")
        while self.peek() in _DIGITS:
            self.at += 1


def _utf8(code):
    """The bytes of a character below 0x10000; `chr` would keep each for ever (see settings)."""
    if code < 0x80:
        return bytes((code,))
    if code < 0x800:
        return bytes((0xC0 | code >> 6, 0x80 | code & 63))
    return bytes((0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63))


def _is_utf8(line):
    """Whether bytes that MicroPython decodes are UTF-8 in the strict sense (RFC 3629)."""
    for i in range(len(line) - 1):
        byte = line[i]
        if byte < 0xC0:
            continue
        lowest, highest = _NEVER_BEHIND.get(byte, (0, -1))
        if byte < 0xC2 or byte > 0xF4 or lowest <= line[i + 1] <= highest:
            return False
    return True
