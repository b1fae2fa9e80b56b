"""Pages that say no charset: those of another script than Latin are read as what they look like."""

from __future__ import annotations

import pytest
from clusterd_crawler.text import decode

from tests.crawler.pages import sketched

#: The first article of the Universal Declaration of Human Rights.
ARTICLE = {
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
    "должны поступать в отношении друг друга в духе братства.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με "
    "λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש "
    "ברעהו ברוח של אחווה.",
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح "
    "الإخاء.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
    "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. "
    "인간은 천부적으로 이성과 양심을 부여받았으며 "
    "서로 형제애의 정신으로 행동하여야 한다.",
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "zh-tw": "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神互相對待。",
    "cs": "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají "
    "spolu jednat v duchu bratrství.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i "
    "sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і "
    "повинні діяти у відношенні один до одного в дусі братерства.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
    "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
    "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete och "
    "bör handla gentemot varandra i en anda av broderskap.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e di "
    "coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
}
GUESSED = [
    ("ru", "koi8-r"), ("ru", "windows-1251"), ("el", "windows-1253"), ("el", "iso-8859-7"), ("he", "windows-1255"),
    ("ar", "windows-1256"), ("th", "tis-620"), ("ja", "shift_jis"), ("ja", "euc-jp"), ("ko", "euc-kr"),
    ("zh", "gbk"), ("zh-tw", "big5"), ("uk", "koi8-u"), ("uk", "windows-1251"),
]  # fmt: skip
LATIN = [
    ("it", "windows-1252"), ("fr", "windows-1252"), ("sv", "windows-1252"), ("cs", "windows-1250"),
    ("pl", "iso-8859-2"), ("tr", "windows-1254"),
]  # fmt: skip
#: A page as sites of that age are: scripts and navigation in English, line ends in the text.
PAGE = (
    "<html><head><title>{text:.10}</title><script>if (a > b && c < d) document.write('<b>menu</b>')</script></head>"
    "<body><ul><li><a href=/>Home</a><li><a href=/c>Contact us</a></ul>\n<p>{text}\n<p>{text}</p></body></html>"
)


@pytest.mark.parametrize(("language", "charset"), GUESSED)
@pytest.mark.parametrize("content_type", [None, "text/html", "text/html; charset=utf-8"])
def test_a_page_that_says_no_charset_has_the_words_of_one_that_does(
    language: str, charset: str, content_type: str | None
) -> None:
    page = PAGE.format(text=ARTICLE[language]).encode(charset)
    unsaid = sketched(page, content_type)
    assert unsaid == sketched(page, f"text/html; charset={charset}")
    assert unsaid.main == sketched(PAGE.format(text=ARTICLE[language])).main


@pytest.mark.parametrize(("language", "charset"), GUESSED)
def test_a_text_or_a_page_that_is_cut_anywhere_is_guessed_as_well(language: str, charset: str) -> None:
    text = ARTICLE[language].encode(charset) + b"\r\n"
    assert ARTICLE[language] in decode(text * 2, "text/plain")
    for cut in range(1, 4):
        assert ARTICLE[language] in decode(text * 2000 + text[:-cut], "text/html")
        assert ARTICLE[language] in decode(b"x" * cut + text * 2000, "text/html")


@pytest.mark.parametrize(("language", "charset"), LATIN)
def test_a_page_of_latin_letters_is_read_as_windows_1252(language: str, charset: str) -> None:
    page = PAGE.format(text=ARTICLE[language]).encode(charset)
    assert decode(page, None) == page.decode("cp1252")


@pytest.mark.parametrize("measures", ["3 m³ 5 km/h 3 m³ 3 m³ ÷2 ", "±5% 3 m³ ±5% ±5% 3 m³ ", "50°N ±d 30°E 30°E "])
def test_a_table_of_measures_is_read_as_windows_1252(measures: str) -> None:
    table = f"<p>{measures * 30}"
    assert decode(table.encode("cp1252"), None) == table


def test_a_title_in_kana_is_no_chinese() -> None:
    title = "<title>ファイルマネージャーの設定</title>"
    assert decode(title.encode("euc-jp"), None) == title


def test_blanks_of_four_bytes_leave_gb18030_what_it_is() -> None:
    numbered = "".join(f"<h2>{n}.\xa0{ARTICLE['zh'][:8]}</h2><p>{ARTICLE['zh']}" for n in range(9))
    assert decode(numbered.encode("gb18030"), None) == numbered


@pytest.mark.parametrize(("language", "charset"), GUESSED)
def test_what_a_page_says_counts_before_what_it_looks_like(language: str, charset: str) -> None:
    page = PAGE.format(text=ARTICLE[language]).encode(charset)
    assert decode(page, "text/html; charset=iso-8859-1") == page.decode("latin-1").encode("latin-1").decode(
        "cp1252", "replace"
    )
    assert ARTICLE[language] in decode(PAGE.format(text=ARTICLE[language]).encode(), None)


def test_a_few_foreign_words_do_not_make_a_page_of_another_script() -> None:
    english = "<p>The word caf\xe9 stands here, and \xabquotes\xbb \x97 as r\xe9sum\xe9s have them.".encode("latin-1")
    assert "café" in decode(english, None)
    assert "café" in decode(b"<p>An address in the head of a long page, and its words. " * 300 + english, None)
