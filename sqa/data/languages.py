"""Language codes: one code per language, whatever names models, tokenizers and programs use."""

# ISO 639-1 and ISO 639-3; a macrolanguage is followed by the 639-3 codes of its usual members.
_CODES = """
aa aar, ab abk, ae ave, af afr, ak aka twi, am amh, an arg, ar ara arb ary arz ars apc ajp acm acq aeb, as asm, av ava,
ay aym ayr, az aze azj azb, ba bak, be bel, bg bul, bi bis, bm bam, bn ben, bo bod tib, br bre, bs bos, ca cat, ce che,
ch cha, co cos, cr cre, cs ces cze, cv chv, cy cym wel, da dan, de deu ger, dv div, dz dzo, ee ewe, el ell gre, en eng,
eo epo, es spa, et est ekk, eu eus baq, fa fas per pes prs, ff ful fuv, fi fin, fj fij, fo fao, fr fra fre, fy fry,
ga gle, gd gla, gl glg, gn grn gug, gu guj, gv glv, ha hau, he heb, hi hin, hr hrv, ht hat, hu hun, hy hye arm, ia ina,
id ind, ie ile, ig ibo, ii iii, ik ipk, io ido, is isl ice, it ita, iu iku, ja jpn, jv jav, ka kat geo, kg kon, ki kik,
kj kua, kk kaz, kl kal, km khm, kn kan, ko kor, kr kau knc, ks kas, ku kur kmr ckb, kv kom, kw cor, ky kir, la lat,
lb ltz, lg lug, li lim, ln lin, lo lao, lt lit, lu lub, lv lav lvs, mg mlg plt, mh mah, mi mri mao, mk mkd mac, ml mal,
mn mon khk, mr mar, ms msa may zsm, mt mlt, my mya bur, na nau, nb nob, nd nde, ne nep npi, ng ndo, nl nld dut, nn nno,
no nor, nr nbl, nv nav, ny nya, oc oci, oj oji, om orm gaz, or ori ory, os oss, pa pan, pi pli, pl pol, ps pus pbt,
pt por, qu que quy, rm roh, rn run, ro ron rum, ru rus, rw kin, sa san, sc srd, sd snd, se sme, sg sag, si sin,
sk slk slo, sl slv, sm smo, sn sna, so som, sq sqi alb als, sr srp, ss ssw, st sot, su sun, sv swe, sw swa swh, ta tam,
te tel, tg tgk, th tha, ti tir, tk tuk, tl tgl fil, tn tsn, to ton, tr tur, ts tso, tt tat, ty tah, ug uig, uk ukr,
ur urd, uz uzb uzn, ve ven, vi vie, vo vol, wa wln, wo wol, xh xho, yi yid ydd, yo yor, za zha, zh zho chi cmn,
zu zul
"""
_OF = {code: codes.split()[0] for codes in _CODES.split(",") for code in codes.split()}
_NAMES = dict(
    pair.split(":")
    for pair in (
        "arabic:ar chinese:zh czech:cs dutch:nl english:en finnish:fi french:fr german:de italian:it japanese:ja "
        "korean:ko polish:pl portuguese:pt russian:ru spanish:es swedish:sv turkish:tr ukrainian:uk"
    ).split()
)
Pair = tuple[str | None, str | None]  # source and target code of a translator; None if unknown


def code_of(language: str) -> str:
    """Return the ISO 639-1 code of a language, given as spa, spa_Latn, es_XX, es-ES or Spanish.

    For an unknown language, return the first part of the given name in lower case.
    """
    first = language.strip().lower().replace("-", "_").partition("_")[0]
    return _OF.get(first) or _NAMES.get(first, first)


def certain(language: object) -> str | None:
    """Return the code of an unambiguous language name; None for others, such as opus-mt's language families."""
    code = code_of(language) if isinstance(language, str) else None
    return code if code in _OF else None


def certain_pair(source: object, target: object) -> Pair | None:
    """Return the codes of a pair as far as they are certain; None if neither is."""
    pair = certain(source), certain(target)
    return None if pair == (None, None) else pair


def pair_of(about: object) -> Pair | None:
    """Return the pair, such as es-en, in the `about` of a trained model's config.json; None if there is none.

    `about` is free text from converters and other people and has no other effect, so other content is not an error.
    """
    for keys in (("training", "corpus", "pair"), ("corpus", "pair"), ("training", "pair"), ("pair",)):
        value = about
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value.count("-") == 1:
            return certain_pair(*value.split("-"))
    return None
