"""A translator program that translates each input line word by word with a dictionary."""

import sys

WORDS = {
    "alhambra": "Alhambra", "amigo": "friend", "capital": "capital", "compositor": "composer", "cuya": "whose",
    "de": "of", "en": "in", "es": "is", "escribió": "wrote", "está": "is", "este": "this", "la": "the",
    "llega": "reaches", "madrid": "Madrid", "mar": "sea", "mazurcas": "mazurkas", "nace": "rises", "negra": "black",
    "negro": "black", "nocturnos": "nocturnes", "nombre": "name", "país": "country", "para": "for", "pasa": "passes",
    "polaco": "Pole", "por": "through", "que": "that", "río": "river", "selva": "forest", "viena": "Vienna",
    "y": "and",
}  # fmt: skip


def english(word: str) -> str:
    """Translate a word; a word outside the dictionary stays unchanged."""
    return WORDS.get(word.strip(".,").lower(), word)


if __name__ == "__main__":
    for line in sys.stdin:
        print(*map(english, line.split()))
