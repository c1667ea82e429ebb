"""Words without content of their own, by language: articles, pronouns, prepositions, conjunctions, auxiliaries.

Closed classes, written by hand from the grammars of the languages that questions come in here.  Word aligners link such
words by chance, so neither an unaligned "the" nor an untranslated "que" is an error worth a reader's time.
"""

from __future__ import annotations

import re
from functools import lru_cache

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": frozenset(
        """a about above across after again against all almost along already also although am among an and another
        any are around as at be became because become been before being below beneath beside between
        beyond both but by can could did do does doing done down during each either else even ever every
        few for from further had has have having he her here hers herself him himself his how however if
        in into is it its itself just least less may me might more most much must my myself neither no
        nor not now of off often on once one only onto or other others our ours out over own per rather
        same shall she should since so some such than that the their theirs them themselves then there
        these they this those though through throughout thus to too toward towards under until unto up
        upon us very via was we were what when where whereas which while who whom whose why will with
        within without would yet you your yours don't doesn't didn't isn't wasn't can't""".split()
    ),
    "es": frozenset(
        """a al algo algún alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aquí
        así aun aún aunque bajo bien cada como cómo con contra cual cuál cuales cualquier cuando cuándo
        cuya cuyas cuyo cuyos de del desde donde dónde dos durante e el él ella ellas ello ellos en
        entre era eran eres es esa esas ese eso esos esta está están estaba estaban estar estas este
        esto estos fue fueron ha había habían haber hacia han has hasta hay he incluso la las le les lo
        los más me menos mi mientras mis misma mismas mismo mismos mucha muchas mucho muchos muy nada ni
        no nos nosotros o os otra otras otro otros para pero poco por porque pues que qué quien quién
        quienes se sea según ser será si sí sido siendo sin sino sobre solo sólo somos son soy su sus
        tal también tampoco tan tanto te ti tiene tienen toda todas todavía todo todos tras tu tus u un
        una unas uno unos ya yo""".split()
    ),
    "pl": frozenset(
        """a aby ale albo ani aż bardzo bez bo bowiem by być była było były był będzie będą ci co coś czy czyli dla
        dlatego do dwa gdy gdyby gdzie go i ich im inna inne innego innej innych inny ja jak jaka jaki
        jakie jako jakby je jeden jedna jednak jedno jednym jednej jednego jego jej jemu jest jestem
        jeszcze jeśli jeżeli już każda każdy każdego kiedy kiedyś kto który która które którego której
        któremu którą którym których którymi którzy ku lecz lub ma mają mi miał miała mnie mu musi może
        można my na nad nam nas nasz nawet nią nich nie niej niego nim nimi niż no o ob obok od on ona
        one oni ono oraz oto po pod podczas ponad ponieważ poza przed przede przez przy są się siebie
        sobie sobą swego swej swoich swoim swoja swoje swojego swojej swoją swój swą ta tak taka taki
        takie takich także tam te tego tej temu ten tą tę to toteż tych tylko tym tymi u w we wam was
        wiele wszystko wszystkie wszystkich wśród z za zaś ze zawsze że żeby""".split()
    ),
}


@lru_cache(maxsize=1 << 17)
def is_content(word: str, language: str) -> bool:
    """Whether a word (punctuation at its edges ignored) has a letter or digit and is no function word.

    In a language without a list every word is content, so stretches of lost source words are counted longer.
    """
    bare = strip_edges(word).replace("’", "'").lower()
    return bool(bare) and bare not in FUNCTION_WORDS.get(language, ())


def strip_edges(word: str) -> str:
    """The word without punctuation at its beginning and end: "(Paris)," -> "Paris"."""
    return _EDGES.sub("", word)
