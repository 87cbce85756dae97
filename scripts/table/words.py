"""Text to words to pieces, exactly as `crates/core/src/text/tokenize.rs` and
`crates/routing/src/semantic/pieces.rs` do for ASCII.

Words with a character outside ASCII (after decomposition and removal of accents) have no pieces: the table is
English, and a query in another script is the business of the lexical side.
"""

import re
import unicodedata

MAX_WORD = 64
WHOLE_MIXED_RUN = 4
_RUN = re.compile(r"([A-Za-z0-9]+)('(?:s|t|re|ve|ll|d|m)(?![A-Za-z0-9]))?", re.IGNORECASE)


def _ascii_run(run):
    if run.islower() and run.isalpha():
        return [run[:MAX_WORD]]
    split_digits = len(run) > WHOLE_MIXED_RUN
    words, start = [], 0
    for at in range(1, len(run)):
        before, here = run[at - 1], run[at]
        after = run[at + 1] if at + 1 < len(run) else ""
        if before.isdigit() or here.isdigit():
            cut = split_digits and before.isdigit() != here.isdigit()
        elif here.isupper():
            cut = before.islower() or (after != "" and after.islower())
        else:
            cut = False
        if cut:
            words.append(run[start:at])
            start = at
    words.append(run[start:])
    return [word[:MAX_WORD].lower() for word in words]


def words(text):
    """The normalised words of `text`, in order, stop words included."""
    found = []
    for chunk in [text] if text.isascii() else text.split():
        if not chunk.isascii():
            plain = (c for c in unicodedata.normalize("NFKD", chunk) if not "\u0300" <= c <= "\u036f")
            chunk = unicodedata.normalize("NFC", "".join(plain)).replace("\u2019", "'")
            # A run with a foreign letter is dropped whole.
            chunk = re.sub(r"\w*[^\W\x00-\x7f]\w*", " ", chunk)
        for match in _RUN.finditer(chunk):
            found.extend(_ascii_run(match.group(1)))
    return found


class Pieces:
    """Greedy longest match over a fixed set of pieces; those inside a word are written with `##` in front."""

    def __init__(self, pieces):
        self.pieces = list(pieces)
        self.number = {piece: number for number, piece in enumerate(self.pieces)}
        self.longest = max(len(piece.removeprefix("##")) for piece in self.pieces)
        self._cache = {}

    def of_word(self, word):
        known = self._cache.get(word)
        if known is None:
            known, at = [], 0
            while at < len(word):
                mark = "##" if at else ""
                for end in range(min(len(word), at + self.longest), at, -1):
                    number = self.number.get(mark + word[at:end])
                    if number is not None:
                        known.append(number)
                        at = end
                        break
                else:
                    at += 1
            self._cache[word] = known
        return known

    def of_text(self, text, at_most=None):
        found = []
        for word in words(text):
            found.extend(self.of_word(word))
            if at_most is not None and len(found) >= at_most:
                return found[:at_most]
        return found
