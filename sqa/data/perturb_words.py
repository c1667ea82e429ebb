"""The tables of the perturbations: names, gender words, keyboard, sounds, fillers; Spanish and Polish.

Names are in three groups per gender, so that an exchange also crosses where names come from.  Polish names are given
in the nominative, and for the regular endings in the cases that keep the stem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STROKES = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D"})

KEYBOARD: Mapping[str, str] = dict(  # neighbours on a QWERTY keyboard
    pair.split(":")
    for pair in (
        "q:wa w:qes e:wrd r:etf t:ryg y:tuh u:yij i:uok o:ipl p:ol a:qsz s:awdx d:sefc f:drgv g:fthb h:gyjn j:hukm "
        "k:jil l:kop z:asx x:zsdc c:xdfv v:cfgb b:vghn n:bhjm m:njk"
    ).split()
)

_SPANISH = (
    "Juan José Carlos Luis Pedro Manuel Antonio Francisco Miguel Diego Fernando Jorge Pablo Alejandro Javier "
    "John William James Charles Robert Thomas Henry George Richard Edward Albert Ernest "
    "Mohamed Ahmed Omar Hassan Ibrahim Kwame Kofi Ravi Arjun Wei Hiroshi Kenji Dmitri Iván",
    "María Isabel Ana Carmen Juana Teresa Lucía Elena Marta Rosa Sofía Laura Cristina Beatriz Pilar "
    "Mary Elizabeth Anne Jane Emily Charlotte Margaret Alice Sarah Virginia "
    "Fatima Aisha Leila Amina Priya Lakshmi Mei Yuki Svetlana Olga",
)
_POLISH_MEN = (
    "Jan Adam Stefan Roman Edward Ryszard Tomasz Robert Henryk Józef Albert Ernest Karol William Richard Thomas "
    "Mohamed Ahmed Omar Hassan Ibrahim Iwan"
)
_POLISH_WOMEN = (
    "Maria Anna Ewa Barbara Katarzyna Zofia Elżbieta Helena Joanna Teresa Julia Wanda Emilia Charlotta Virginia "
    "Fatima Aisza Leila Amina Lakszmi Olga Swietłana"
)


def _exchange(*groups: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """name -> all names of its group."""
    return {name: tuple(group) for group in groups for name in group}


def _polish_cases() -> dict[str, tuple[str, ...]]:
    men, women = _POLISH_MEN.split(), [name.removesuffix("a") for name in _POLISH_WOMEN.split()]
    cases = [[stem + ending for stem in men] for ending in ("", "a", "owi", "em")]
    return _exchange(*cases, *([stem + ending for stem in women] for ending in ("a", "ę", "ą")))


NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "es": _exchange(*(group.split() for group in _SPANISH)),
    "pl": _polish_cases(),
}


def _both_ways(pairs: str) -> dict[str, str]:
    """ "a/b c/d_e" -> {a: b, b: a, c: "d e", "d e": c}; the first of several pairs with a word counts."""
    found: dict[str, str] = {}
    for pair in pairs.split():
        left, right = pair.replace("_", " ").split("/")
        found.setdefault(left, right)
        found.setdefault(right, left)
    return found


# language -> (gender words, words that agree with them when they stand just before)
GENDER: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "es": (
        _both_ways(
            "él/ella hombre/mujer hombres/mujeres niño/niña niños/niñas padre/madre padres/madres hijo/hija "
            "hijos/hijas hermano/hermana hermanos/hermanas rey/reina reyes/reinas príncipe/princesa "
            "emperador/emperatriz actor/actriz actores/actrices escritor/escritora autor/autora "
            "pintor/pintora doctor/doctora director/directora profesor/profesora abuelo/abuela tío/tía "
            "primo/prima señor/señora dios/diosa dioses/diosas esposo/esposa marido/esposa héroe/heroína "
            "científico/científica matemático/matemática filósofo/filósofa político/política "
            "ingeniero/ingeniera amigo/amiga viudo/viuda"
        ),
        _both_ways(
            "el/la los/las un/una este/esta estos/estas ese/esa aquel/aquella del/de_la al/a_la otro/otra "
            "primer/primera"
        ),
    ),
    "pl": (
        _both_ways(
            "on/ona jego/jej mężczyzna/kobieta mężczyźni/kobiety chłopiec/dziewczynka ojciec/matka ojca/matki "
            "syn/córka syna/córki synem/córką brat/siostra brata/siostry bratem/siostrą król/królowa króla/królowej "
            "książę/księżniczka cesarz/cesarzowa aktor/aktorka pisarz/pisarka autor/autorka autorem/autorką "
            "malarz/malarka poeta/poetka dziadek/babcia wujek/ciotka bóg/bogini boga/bogini mąż/żona męża/żony "
            "mężem/żoną bohater/bohaterka bohaterem/bohaterką nauczyciel/nauczycielka filozof/filozofka"
        ),
        _both_ways("ten/ta tego/tej tym/tą pewien/pewna inny/inna pierwszy/pierwsza jego/jej który/która"),
    ),
}

CONTRACTIONS: Mapping[tuple[str, str], str] = {("de", "el"): "del", ("a", "el"): "al"}

# language -> (as written, as misheard): spellings that sound alike or nearly so
SOUNDS: Mapping[str, Sequence[tuple[str, str]]] = {
    "es": (
        ("b", "v"), ("v", "b"), ("h", ""), ("ll", "y"), ("y", "ll"), ("c", "s"), ("z", "s"), ("s", "z"), ("g", "j"),
        ("d", ""), ("qu", "k"), ("r", "l"), ("n", "m"), ("os", "o"), ("as", "a"), ("ón", "o"), ("á", "a"), ("é", "e"),
    ),
    "pl": (
        ("rz", "ż"), ("ż", "rz"), ("ó", "u"), ("u", "ó"), ("ch", "h"), ("h", "ch"), ("ą", "om"), ("ę", "e"),
        ("ść", "źć"), ("dz", "c"), ("w", "f"), ("d", "t"), ("b", "p"), ("ów", "uf"), ("ji", "i"), ("ł", "u"),
        ("em", "ym"), ("ć", "ci"),
    ),
}  # fmt: skip

FILLERS: Mapping[str, Sequence[str]] = {
    "es": ("eh", "este", "pues", "o sea", "bueno", "mmm"),
    "pl": ("yyy", "no", "znaczy", "jakby", "właśnie", "eee"),
}
