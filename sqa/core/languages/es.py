"""Spanish."""

from sqa.core.languages import Halves, Language, both_ways, pairs, words

LANGUAGE = Language(
    code="es",
    name="Spanish",
    stemmer="spanish",
    letters="áéíóúüñ",
    function_words=words(
        "a al algo algún alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aquí "
        "así aun aún aunque bajo bien cada como cómo con contra cual cuál cuales cualquier cuando cuándo cuya "
        "cuyas cuyo cuyos de del desde donde dónde dos durante e el él ella ellas ello ellos en entre era eran "
        "eres es esa esas ese eso esos esta está están estaba estaban estar estas este esto estos fue fueron ha "
        "había habían haber hacia han has hasta hay he incluso la las le les lo los más me menos mi mientras mis "
        "misma mismas mismo mismos mucha muchas mucho muchos muy nada ni no nos nosotros o os otra otras otro "
        "otros para pero poco por porque pues que qué quien quién quienes se sea según ser será si sí sido siendo "
        "sin sino sobre solo sólo somos son soy su sus tal también tampoco tan tanto te ti tiene tienen toda "
        "todas todavía todo todos tras tu tus u un una unas uno unos ya yo"
    ),
    abbreviations=words("EE Mt St Sto Sta Dr Dra Sr Sra Srta Prof Ud Uds Gral p a d"),
    numbers=(
        "2:segundo,segunda 3:tercer,tercero,tercera 4:cuarto,cuarta 5:quinto,quinta 6:sexto,sexta "
        "7:septimo,septima 8:octavo,octava 9:noveno,novena 10:decimo,decima 12:docena,docenas 21:veintiun* "
        "22:veintidos 23:veintitres 24:veinticuatro 25:veinticinco 26:veintiseis 27:veintisiete 28:veintiocho "
        "29:veintinueve 30:treinta 40:cuarenta 50:cincuenta 60:sesenta 70:setenta 80:ochenta 90:noventa "
        "100:cien,ciento 200:doscient* 300:trescient* 400:cuatrocient* 500:quinient* 600:seiscient* 700:setecient* "
        "800:ochocient* 900:novecient* 1000:mil,miles 1000000:millon,millones 1000000000000:billon,billones"
    ),
    small_numbers=(
        "cero dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis "
        "diecisiete dieciocho diecinueve veinte"
    ),
    ones="un uno una",
    halves=Halves(words("medio media"), and_a_half=(("y", "medio"), ("y", "media"))),
    dates=(
        "enero febrero marzo abril mayo junio julio agosto septiembre,setiembre octubre noviembre diciembre lunes "
        "martes miercoles jueves viernes sabado domingo"
    ),
    endings=words("a o os as es e ano ana anos anas"),
    given_names=(
        "Juan José Carlos Luis Pedro Manuel Antonio Francisco Miguel Diego Fernando Jorge Pablo Alejandro Javier "
        "John William James Charles Robert Thomas Henry George Richard Edward Albert Ernest "
        "Mohamed Ahmed Omar Hassan Ibrahim Kwame Kofi Ravi Arjun Wei Hiroshi Kenji Dmitri Iván",
        "María Isabel Ana Carmen Juana Teresa Lucía Elena Marta Rosa Sofía Laura Cristina Beatriz Pilar "
        "Mary Elizabeth Anne Jane Emily Charlotte Margaret Alice Sarah Virginia "
        "Fatima Aisha Leila Amina Priya Lakshmi Mei Yuki Svetlana Olga",
    ),
    genders=both_ways(
        "él/ella hombre/mujer hombres/mujeres niño/niña niños/niñas padre/madre padres/madres hijo/hija "
        "hijos/hijas hermano/hermana hermanos/hermanas rey/reina reyes/reinas príncipe/princesa "
        "emperador/emperatriz actor/actriz actores/actrices escritor/escritora autor/autora pintor/pintora "
        "doctor/doctora director/directora profesor/profesora abuelo/abuela tío/tía primo/prima señor/señora "
        "dios/diosa dioses/diosas esposo/esposa marido/esposa héroe/heroína científico/científica "
        "matemático/matemática filósofo/filósofa político/política ingeniero/ingeniera amigo/amiga viudo/viuda"
    ),
    agreeing=both_ways(
        "el/la los/las un/una este/esta estos/estas ese/esa aquel/aquella del/de_la al/a_la otro/otra primer/primera"
    ),
    contractions={("de", "el"): "del", ("a", "el"): "al"},
    sounds=pairs("b>v v>b h> ll>y y>ll c>s z>s s>z g>j d> qu>k r>l n>m os>o as>a ón>o á>a é>e"),
    fillers=("eh", "este", "pues", "o sea", "bueno", "mmm"),
)
