"""Words that are numbers, months and weekdays, in English, Spanish and Polish, and words that are never names alone.

    values(("four", "thousand"), "en")      [({"4000"}, 0, 1)]: what the number is, its first and its last word

A stem with a star takes up to ENDING more letters, as Polish inflection wants.  Words are compared as
`sqa.metrics.quality.names.spelled` leaves them: lower case, no accents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

ENDING = 5  # letters
DIGITS = re.compile(r"(\d{1,3}(?:[.,]\d{3})+|\d+)(?:[.,](\d+))?(?:st|nd|rd|th|['’]?s|er|o|a|ª|º|°|)")
Value = tuple[frozenset[str], int, int]
ROMAN = re.compile(r"(?=[ivxlc])(c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")

_UNITS = {
    "en": "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty",
    "es": "cero dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis diecisiete "
    "dieciocho diecinueve veinte",
}
_STEMS: Mapping[str, str] = {  # value:stems; two and more, as "one" is an article or a pronoun as often as a number
    "en": "2:second 3:third 4:fourth 5:fifth 6:sixth 7:seventh 8:eighth 9:ninth 10:tenth 11:eleventh "
    "12:twelfth,dozen 13:thirteenth 14:fourteenth 15:fifteenth 16:sixteenth 17:seventeenth 18:eighteenth "
    "19:nineteenth 20:twentieth 30:thirty,thirtieth 40:forty,fortieth 50:fifty,fiftieth 60:sixty,sixtieth "
    "70:seventy,seventieth 80:eighty,eightieth 90:ninety,ninetieth 100:hundred,hundredth 1000:thousand,thousandth "
    "1000000:million,millionth 1000000000:billion 1000000000000:trillion",
    "es": "2:segundo,segunda 3:tercer,tercero,tercera 4:cuarto,cuarta 5:quinto,quinta 6:sexto,sexta "
    "7:septimo,septima 8:octavo,octava 9:noveno,novena 10:decimo,decima 12:docena 21:veintiun* 22:veintidos "
    "23:veintitres 24:veinticuatro 25:veinticinco 26:veintiseis 27:veintisiete 28:veintiocho 29:veintinueve "
    "30:treinta 40:cuarenta 50:cincuenta 60:sesenta 70:setenta 80:ochenta 90:noventa 100:cien,ciento 200:doscient* "
    "300:trescient* 400:cuatrocient* 500:quinient* 600:seiscient* 700:setecient* 800:ochocient* 900:novecient* "
    "1000:mil,miles 1000000:millon,millones 1000000000000:billon,billones",
    "pl": "2:dwa,dwie,dwoch,dwom,dwoma,dwu,drugi* 3:trzy,trzech,trzem,trzema,troje,trzeci* 4:czter*,czwart* "
    "5:piec,pieciu,pieci*,piat* 6:szesc,szesciu,szost* 7:siedem,siedmiu,siodm* 8:osiem,osmiu,osm* "
    "9:dziewiec,dziewieciu,dziewiat* 10:dziesiec,dziesieciu,dziesiat* 11:jedenast*,jedenascie 12:dwanascie,dwunast* "
    "13:trzynast*,trzynascie 14:czternast*,czternascie 15:pietnast*,pietnascie 16:szesnast*,szesnascie "
    "17:siedemnast*,siedemnascie 18:osiemnast*,osiemnascie 19:dziewietnast*,dziewietnascie 20:dwadziescia,dwudziest* "
    "30:trzydziesci,trzydziest* 40:czterdziesci,czterdziest* 50:piecdziesiat* 60:szescdziesiat* 70:siedemdziesiat* "
    "80:osiemdziesiat* 90:dziewiecdziesiat* 100:sto,stu,setn* 200:dwiescie,dwustu 300:trzysta,trzystu "
    "400:czterysta,czterystu 500:piecset,pieciuset 600:szescset 700:siedemset 800:osiemset 900:dziewiecset "
    "1000:tysiac*,tysiec*,tys 1000000:milion*,mln 1000000000:miliard*,mld",
}
_ONES = {"en": "one first", "es": "un uno una", "pl": "jeden pierwszy"}  # only at the end of another number
_DATES: Mapping[str, str] = {
    "en": "january,jan february,feb march april,apr may june july august,aug september,sept,sep october,oct "
    "november,nov december,dec monday tuesday wednesday thursday friday saturday sunday",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre,setiembre octubre noviembre diciembre lunes "
    "martes miercoles jueves viernes sabado domingo",
    "pl": "stycz* lutego,lutym,luty marca,marzec,marcu kwietnia,kwiecien,kwietniu maja,maj,maju "
    "czerwca,czerwiec,czerwcu lipca,lipiec,lipcu sierp* wrzes* pazdziernik* listopad* grudnia,grudzien,grudniu "
    "poniedzial* wtor* srod* czwartek,czwartku piatek,piatku sobot* niedziel*",
}
MODALS = frozenset({"may", "march"})  # a month only with a capital, and not where a sentence begins
# before a name, or in its place; what is left of the name says who or where
TITLES = frozenset(
    "president presidents king kings queen mr mrs ms dr sir lord lady prince princess duke emperor empress pope "
    "general senator minister ministers prime professor prof captain governor judge chancellor secretary senor senora "
    "sr sra don dona".split()
)
ABBREVIATIONS = frozenset("tv id dna rna cd dvd pc ok am pm ad bc bce ce i'm i'll i've i'd i".split())
PARTICLES = frozenset("de del la las los da dos di van von der den el al bin ibn".split())
# other names of the same place or people, as `spelled`; each line is one place
OTHER_NAMES = (
    "united states/usa/us/america/united states of america",
    "united kingdom/uk/britain/great britain",
    "netherlands/holland",
    "soviet union/ussr/soviets",
    "united nations/un",
    "european union/eu",
    "american/us/usa",
    "british/uk",
    "new york/nyc",
    "world war i/first world war/great war",
    "world war ii/second world war",
    "czech republic/czechia",
    "beijing/peking",
    "myanmar/burma",
    "persia/iran",
)


@lru_cache(maxsize=8)
def _table(language: str) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Whole words, and stems longest first, with their values."""
    pairs = [
        (stem, int(value))
        for entry in _STEMS[language].split()
        for value, _, stems in [entry.partition(":")]
        for stem in stems.split(",")
    ]
    units = dict.fromkeys(_ONES[language].split(), 1)
    units |= dict(zip(_UNITS.get(language, "").split(), (0, *range(2, 21)), strict=False))
    whole = units | {stem: value for stem, value in pairs if not stem.endswith("*")}
    stems = sorted(((stem[:-1], value) for stem, value in pairs if stem.endswith("*")), key=lambda p: -len(p[0]))
    return whole, stems


@lru_cache(maxsize=1 << 16)
def word_value(word: str, language: str) -> int | None:
    """The number that a word is; None for another word."""
    if language not in _STEMS:
        return None
    whole, stems = _table(language)
    if word in whole:
        return whole[word]
    return next((value for stem, value in stems if word.startswith(stem) and len(word) <= len(stem) + ENDING), None)


@lru_cache(maxsize=1 << 16)
def date_key(word: str, language: str) -> str | None:
    """ "month-11" or "day-1" of a month's or weekday's name; None for another word."""
    for place, names in enumerate(_DATES.get(language, "").split()):
        for name in names.split(","):
            if word == name or (name.endswith("*") and word.startswith(name[:-1]) and len(word) < len(name) + ENDING):
                return f"month-{place + 1}" if place < 12 else f"day-{place - 11}"
    return None


@lru_cache(maxsize=1 << 16)
def readings(word: str) -> frozenset[float]:
    """What digits can mean: 4.700 is 4700 and 4.7, 4.5 is 4.5; nothing for what is no number."""
    match = DIGITS.fullmatch(word)
    if not match:
        return frozenset()
    whole, fraction = match.groups()
    plain = float(re.sub("[.,]", "", whole))
    if fraction:
        return frozenset({float(f"{int(plain)}.{fraction}")})
    parts = re.split("[.,]", whole)
    return frozenset({plain, float(".".join(parts))} if len(parts) == 2 else {plain})


def roman(word: str) -> int | None:
    """The value of a Roman numeral up to 399; None for another word."""
    match = ROMAN.fullmatch(word)
    if not match:
        return None
    digits = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
    values = [digits[letter] for letter in word]
    return sum(-v if any(v < later for later in values[at + 1 : at + 2]) else v for at, v in enumerate(values))


def values(words: Sequence[str], language: str, capital: Sequence[bool] = ()) -> list[Value]:
    """The numbers and dates of some words: (what each can be, its first, its last place).

    `capital`, where given, says which words may be dates: "may" is none, "May" is one.
    """
    found: list[Value] = []
    at = 0
    while at < len(words):
        date = date_key(words[at], language) if not capital or capital[at] else None
        if date:
            found.append((frozenset({date}), at, at))
            at += 1
            continue
        numbers, last = _number(words, at, language)
        if numbers:
            found.append((frozenset(f"{number:.12g}" for number in numbers), at, last))
        at = last + 1
    return found


def _number(words: Sequence[str], at: int, language: str) -> tuple[frozenset[float], int]:
    """The readings of the number that begins at a word, and its last place; none where no number does."""
    digits = readings(words[at])
    sums = [[value] for value in sorted(digits)]
    if not sums:
        first = word_value(words[at], language)
        if first is None or first == 1:
            return frozenset(), at
        sums = [[first]]
    last = at
    for place in range(at + 1, len(words)):
        value = word_value(words[place], language)
        if value is None and words[place] in ("and", "y", "i") and not digits and place + 1 < len(words):
            after = word_value(words[place + 1], language)
            if after is None or after >= 100 or sums[0][-1] % 10:
                break
            continue
        if value is None or not all(_add(parts, value, bool(digits)) for parts in sums):
            break
        last = place
    return frozenset(float(sum(parts)) for parts in sums), last


def _add(parts: list[float], value: int, digits: bool) -> bool:
    """Continue a number by one more word: by a scale, or by what fills its zeros.  False: the word is another one's."""
    if value >= 100 and value in (100, 1000, 10**6, 10**9, 10**12):
        smaller = 0.0
        while parts and parts[-1] < value:
            smaller += parts.pop()
        parts.append((smaller or 1) * value)
        return True
    if digits or parts[-1] % 10 ** len(str(value)) or parts[-1] == 0:
        return False
    parts.append(value)
    return True
