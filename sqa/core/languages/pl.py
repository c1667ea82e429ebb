"""Polish, and the vocabulary of rough Polish translations (smt/training/lexical.py)."""

from sqa.core.languages import Halves, Language, both_ways, choices, pairs, words

MEN = (
    "Jan Adam Stefan Roman Edward Ryszard Tomasz Robert Henryk Józef Albert Ernest Karol William Richard "
    "Thomas Mohamed Ahmed Omar Hassan Ibrahim Iwan"
)
WOMEN = (
    "Maria Anna Ewa Barbara Katarzyna Zofia Elżbieta Helena Joanna Teresa Julia Wanda Emilia Charlotta "
    "Virginia Fatima Aisza Leila Amina Lakszmi Olga Swietłana"
)

LANGUAGE = Language(
    code="pl",
    name="Polish",
    stemmer="polish",
    letters="ąćęłńóśźż",
    function_words=words(
        "a aby ale albo ani aż bardzo bez bo bowiem by być była było były był będzie będą ci co coś czy czyli dla "
        "dlatego do dwa gdy gdyby gdzie go i ich im inna inne innego innej innych inny ja jak jaka jaki jakie "
        "jako jakby je jeden jedna jednak jedno jednym jednej jednego jego jej jemu jest jestem jeszcze jeśli "
        "jeżeli już każda każdy każdego kiedy kiedyś kto który która które którego której któremu którą którym "
        "których którymi którzy ku lecz lub ma mają mi miał miała mnie mu musi może można my na nad nam nas nasz "
        "nawet nią nich nie niej niego nim nimi niż no o ob obok od on ona one oni ono oraz oto po pod podczas "
        "ponad ponieważ poza przed przede przez przy są się siebie sobie sobą swego swej swoich swoim swoja swoje "
        "swojego swojej swoją swój swą ta tak taka taki takie takich także tam te tego tej temu ten tą tę to "
        "toteż tych tylko tym tymi u w we wam was wiele wszystko wszystkie wszystkich wśród z za zaś ze zawsze że "
        "żeby"
    ),
    abbreviations=words("m.in tzw np ok ww Mt St"),
    dotted_ordinals=True,
    numbers=(
        "2:dwa,dwie,dwoch,dwom,dwoma,dwu,drugi* 3:trzy,trzech,trzem,trzema,troje,trzeci* 4:czter*,czwart* "
        "5:piec,pieciu,pieci*,piat* 6:szesc,szesciu,szost* 7:siedem,siedmiu,siodm* 8:osiem,osmiu,osm* "
        "9:dziewiec,dziewieciu,dziewiat* 10:dziesiec,dziesieciu,dziesiat* 11:jedenast*,jedenascie "
        "12:dwanascie,dwunast*,tuzin* 13:trzynast*,trzynascie 14:czternast*,czternascie 15:pietnast*,pietnascie "
        "16:szesnast*,szesnascie 17:siedemnast*,siedemnascie 18:osiemnast*,osiemnascie "
        "19:dziewietnast*,dziewietnascie 20:dwadziescia,dwudziest* 30:trzydziesci,trzydziest* "
        "40:czterdziesci,czterdziest* 50:piecdziesiat* 60:szescdziesiat* 70:siedemdziesiat* 80:osiemdziesiat* "
        "90:dziewiecdziesiat* 100:sto,stu,setn* 200:dwiescie,dwustu 300:trzysta,trzystu 400:czterysta,czterystu "
        "500:piecset,pieciuset 600:szescset 700:siedemset 800:osiemset 900:dziewiecset 1000:tysiac*,tysiec*,tys "
        "1000000:milion*,mln 1000000000:miliard*,mld"
    ),
    ones="jeden pierwszy",
    halves=Halves(words("pol"), words("poltora poltorej"), (("i", "pol"),)),
    dates=(
        "stycz* lutego,lutym,luty marca,marzec,marcu kwietnia,kwiecien,kwietniu maja,maj,maju "
        "czerwca,czerwiec,czerwcu lipca,lipiec,lipcu sierp* wrzes* pazdziernik* listopad* "
        "grudnia,grudzien,grudniu poniedzial* wtor* srod* czwartek,czwartku piatek,piatku sobot* niedziel*"
    ),
    endings=words("a o i u y ow owi em ie om ami ach ego emu ej ym im iego k ka ki ii iem iom iami iach iu"),
    nominatives=pairs("a> u> em> iem> owi> ego> y>a i>a ę>a ą>a"),
    given_names=(  # in the nominative, and for regular endings in the cases that keep the stem
        *(" ".join(name + ending for name in MEN.split()) for ending in ("", "a", "owi", "em")),
        *(" ".join(name.removesuffix("a") + ending for name in WOMEN.split()) for ending in ("a", "ę", "ą")),
    ),
    genders=both_ways(
        "on/ona jego/jej mężczyzna/kobieta mężczyźni/kobiety chłopiec/dziewczynka ojciec/matka ojca/matki "
        "syn/córka syna/córki synem/córką brat/siostra brata/siostry bratem/siostrą król/królowa króla/królowej "
        "książę/księżniczka cesarz/cesarzowa aktor/aktorka pisarz/pisarka autor/autorka autorem/autorką "
        "malarz/malarka poeta/poetka dziadek/babcia wujek/ciotka bóg/bogini boga/bogini mąż/żona męża/żony "
        "mężem/żoną bohater/bohaterka bohaterem/bohaterką nauczyciel/nauczycielka filozof/filozofka"
    ),
    agreeing=both_ways("ten/ta tego/tej tym/tą pewien/pewna inny/inna pierwszy/pierwsza jego/jej który/która"),
    sounds=pairs("rz>ż ż>rz ó>u u>ó ch>h h>ch ą>om ę>e ść>źć dz>c w>f d>t b>p ów>uf ji>i ł>u em>ym ć>ci"),
    fillers=("yyy", "no", "znaczy", "jakby", "właśnie", "eee"),
)

# ------------------------------------------------------------------------------- English words in rough Polish

PREPOSITIONS = choices(  # English preposition -> Polish preposition ("" = none) and the case that it governs
    "of>,gen in>w,loc on>na,loc at>w,loc with>z,inst from>z,gen to>do,gen into>do,gen by>przez,acc for>dla,gen "
    "about>o,loc after>po,loc before>przed,inst under>pod,inst between>między,inst during>podczas,gen "
    "through>przez,acc without>bez,gen over>nad,inst near>koło,gen against>przeciw,dat as>jako,nom since>od,gen "
    "until>do,gen among>wśród,gen"
)
FIXED = choices(  # English word -> Polish words of any case
    "and>i,oraz or>lub,albo but>ale,lecz not>nie is>jest,to are>są was>był,była,było were>byli,były his>jego,swój "
    "her>jej its>jego,jej their>ich he>,on she>,ona it>,to,ono they>,oni him>go,jemu them>ich,je a> an> the> has>ma, "
    "have>mają, had>miał, been> be>być also>także,też,również when>gdy,kiedy where>gdzie because>ponieważ "
    "if>jeśli,jeżeli than>niż while>podczas_gdy did> does> do> would>by will>będzie can>może,można could>mógł,mogła "
    "whose>którego,której,których there>tam so>tak then>potem,następnie 's> more>więcej,bardziej most>najbardziej "
    "only>tylko points>punktów name>nazwij,podaj,wymień identify>podaj,wskaż what>co,jaki how>jak "
    "one>jeden,jedna,jednym two>dwa,dwie,dwóch three>trzy,trzech all>wszystkie,wszystkich both>oba"
)
ADJECTIVAL = dict(  # English word -> Polish adjective
    pairs(
        "this>ten these>ten that>który which>który who>który those>tamten another>inny other>inny many>wielu "
        "some>pewien first>pierwszy second>drugi same>sam"
    )
)
NAME_ENDINGS = {"gen": "a", "dat": "owi", "acc": "a", "inst": "em", "loc": "ie"}
FEMININE_ENDINGS = {"gen": "y", "dat": "ie", "acc": "ę", "inst": "ą", "loc": "ie"}
