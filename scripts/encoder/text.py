"""What the encoder reads: tools and queries as text, and text as word pieces, exactly as `crates/encoder` and
`crates/routing/src/semantic/model` do."""

import functools
import unicodedata

from words import words

CLS, SEP, UNKNOWN = 101, 102, 100
# `[unused0]`, an entry of the vocabulary that no text has, before the pieces of a query.
MARK = 1
LONGEST_WORD = 100
_IDEOGRAPHS = (
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0x2F800, 0x2FA1F),
)


def tool_text(name, description):
    """The words of the name, and the description, as a sentence each."""
    plain = " ".join(words(name))
    return f"{plain}. {description}" if plain else description


def marked(pieces):
    """The pieces of a query, from those of its text: with a mark in front, which no tool has."""
    return [pieces[0], MARK, *pieces[1:]]


@functools.cache
def _alone(char):
    """Whether a character is a word of its own: punctuation, or an ideograph."""
    code = ord(char)
    if char in "$+<=>^`|~" or unicodedata.category(char).startswith("P"):
        return True
    return any(first <= code <= last for first, last in _IDEOGRAPHS)


@functools.cache
def _dropped(char):
    return char not in "\t\n\r" and (char == "\ufffd" or unicodedata.category(char).startswith("C"))


class Tokenizer:
    """The tokenizer of uncased BERT."""

    def __init__(self, vocabulary):
        self.number = {piece: number for number, piece in enumerate(vocabulary)}
        self._cache = {}

    @classmethod
    def of(cls, model):
        """That of the folder of a model."""
        vocabulary = (model / "vocab.txt").read_text(encoding="utf-8").split("\n")
        return cls(vocabulary[:-1] if vocabulary[-1] == "" else vocabulary)

    def _word(self, word):
        known = self._cache.get(word)
        if known is None:
            known, at = [], 0
            while at < len(word):
                mark = "##" if at else ""
                for end in range(len(word), at, -1):
                    number = self.number.get(mark + word[at:end])
                    if number is not None:
                        break
                else:
                    known = [UNKNOWN]
                    break
                known.append(number)
                at = end
            if len(word) > LONGEST_WORD:
                known = [UNKNOWN]
            self._cache[word] = known
        return known

    def encode(self, text, at_most):
        text = "".join(c for c in text[: at_most * 40] if not _dropped(c))
        if not text.isascii():
            text = unicodedata.normalize("NFD", text)
            text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        text = "".join(f" {c} " if _alone(c) else c for c in text.lower())
        found = []
        for word in text.split():
            found.extend(self._word(word))
            if len(found) >= at_most:
                break
        return [CLS, *found[: at_most - 2], SEP]
