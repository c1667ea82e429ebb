"""English, the language of the translations: the fields of every language, and data for reading translations."""

from sqa.core.languages import Halves, Language, words

LANGUAGE = Language(
    code="en",
    name="English",
    stemmer="english",
    function_words=words(
        "a about above across after again against all almost along already also although am among an and another "
        "any are around as at be became because become been before being below beneath beside between beyond both "
        "but by can could did do does doing done down during each either else even ever every few for from "
        "further had has have having he her here hers herself him himself his how however if in into is it its "
        "itself just least less may me might more most much must my myself neither no nor not now of off often on "
        "once one only onto or other others our ours out over own per rather same shall she should since so some "
        "such than that the their theirs them themselves then there these they this those though through "
        "throughout thus to too toward towards under until unto up upon us very via was we were what when where "
        "whereas which while who whom whose why will with within without would yet you your yours don't doesn't "
        "didn't isn't wasn't can't"
    ),
    abbreviations=words("Mt Ft Lt Col Capt Sgt Rev Hon"),
    numbers=(
        "2:second 3:third 4:fourth 5:fifth 6:sixth 7:seventh 8:eighth 9:ninth 10:tenth 11:eleventh "
        "12:twelfth,dozen,dozens 13:thirteenth 14:fourteenth 15:fifteenth 16:sixteenth 17:seventeenth 18:eighteenth "
        "19:nineteenth 20:twentieth 30:thirty,thirtieth 40:forty,fortieth 50:fifty,fiftieth 60:sixty,sixtieth "
        "70:seventy,seventieth 80:eighty,eightieth 90:ninety,ninetieth 100:hundred,hundredth "
        "1000:thousand,thousandth 1000000:million,millions,millionth 1000000000:billion 1000000000000:trillion"
    ),
    small_numbers=(
        "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty"
    ),
    ones="one first",
    halves=Halves(words("half"), and_a_half=(("and", "a", "half"),)),
    dates=(
        "january,jan february,feb march april,apr may june july august,aug september,sept,sep october,oct "
        "november,nov december,dec monday tuesday wednesday thursday friday saturday sunday"
    ),
    possessive="'s",
    endings=words("s es e n an ian ean ese ish i c"),
)

MODALS = words("may march")  # these words name a month only if they are capitalised inside a sentence
# titles before a name or in its place; the rest of the name identifies the person or place
TITLES = words(
    "president presidents king kings queen mr mrs ms dr sir lord lady prince princess duke emperor empress pope "
    "general senator minister ministers prime professor prof captain governor judge chancellor secretary senor senora "
    "sr sra don dona"
)
PRONOUNS = words("i i'm i'll i've i'd")  # words with a capital that are not names
NO_NAMES = PRONOUNS | words("tv id dna rna cd dvd pc ok am pm ad bc bce ce")
DOTTED = words("St Dr Mr Mrs Ms No Sr Jr")  # their full stop does not end a sentence in a text searched for names
PARTICLES = words("de del la las los da dos di van von der den el al bin ibn")
# alternative names of places and people in the form of `spelled`; one place per line
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
