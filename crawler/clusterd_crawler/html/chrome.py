"""What is chrome and what is hidden: element names, roles, ids and classes, as tables for the walk of `markup`.

Chosen from the HTML standard's landmarks and from what generators and content systems write, never from one site.
Ids and classes count only as whole words of the attribute (``sidebar``, never ``has-sidebar``), and only on block
elements. In doubt a name is left out: cutting content is worse than keeping chrome.
"""

from __future__ import annotations

from typing import Final

# What an element is to the walk: a set of bits.
INLINE: Final = 1  #: does not end a word
VOID: Final = 2  #: has no content and no end tag
CONTAINER: Final = 4  #: kept on the stack of open elements
IMPLIED: Final = 8  #: its end tag may be left out
RAW: Final = 16  #: its content is not markup and not shown
ESCAPABLE: Final = 32  #: its content is text with entities; with RAW: text as it stands
HIDDEN: Final = 64  #: not shown
CHROME: Final = 128  #: never main text
SECTIONAL: Final = 256  #: chrome where it is the page's, content where it is an article's (header, footer, aside)
SCOPE: Final = 512  #: what makes a header inside it its own
NAMED: Final = 1024  #: its id and class may say that it is chrome
TABLE: Final = 2048
CELL: Final = 4096
ROW: Final = 8192  #: parts of a table that hold cells
MAIN: Final = 16384
LINK: Final = 32768
PARAGRAPH: Final = 65536
DECLARES: Final = 131072  #: its attributes may name the page (link, meta, base)
TITLE: Final = 262144
DENSE: Final = 524288  #: may be judged by its share of links
DIALOG: Final = 1048576
TERM: Final = 2097152
FOREIGN: Final = 4194304  #: its content is not HTML, or ends where what is around it does
CHOICE: Final = 8388608  #: holds options only
HEADING: Final = 16777216  #: says what the page is about
MARKER: Final = 33554432  #: what was opened outside it is not closed inside it
ITEM: Final = 67108864
LOOSE: Final = 134217728  #: nests in itself, save in a ``ruby``, or groups in a ``select``
MERGED: Final = 268435456  #: one element, which gets the attributes of all its tags
OPTION: Final = 536870912
DROPPED: Final = 2147483648  #: its start tag may make no element where it stands

_WORDS_OF: Final = {
    INLINE: "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rb s samp small "
    "span strike strong sub sup time tt u var wbr",
    VOID: "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
    CONTAINER: "address article aside blockquote center details dialog div dl fieldset figure footer header hgroup "
    "main menu nav ol pre search section select datalist table ul template svg canvas annotation "
    "annotation-xml",
    IMPLIED: "p li dt dd td th tr thead tbody tfoot caption colgroup option optgroup rp rt rtc rb html head body",
    RAW: "script style iframe noembed noframes noscript xmp plaintext",
    ESCAPABLE: "title textarea xmp plaintext",
    HIDDEN: "template datalist canvas annotation annotation-xml",
    CHROME: "nav select",
    SECTIONAL: "header footer aside",
    SCOPE: "article main section",
    NAMED: "aside center details div dl fieldset footer form header menu nav ol p section table td tr ul",
    TABLE: "table",
    CELL: "td th caption",
    ROW: "tr thead tbody tfoot colgroup",
    MAIN: "main",
    LINK: "a",
    PARAGRAPH: "p",
    DECLARES: "link meta base",
    TITLE: "title",
    DENSE: "center div dl ol section table ul",
    DIALOG: "dialog",
    TERM: "dt dd",
    FOREIGN: "svg canvas annotation annotation-xml",
    CHOICE: "select",
    HEADING: "h1",
    MARKER: "applet marquee object template",
    ITEM: "li",
    LOOSE: "optgroup rb rp rt rtc",
    MERGED: "html body",
    OPTION: "option",
    DROPPED: "html head body frame frameset col form input template link meta base script style title noframes",
}


def _tags() -> dict[bytes, int]:
    bits: dict[bytes, int] = {}
    for bit, words in _WORDS_OF.items():
        for word in words.split():
            bits[word.encode()] = bits.get(word.encode(), 0) | bit
    return bits


#: Element name → its bits; an unknown element has none.
TAGS: Final = _tags()

#: Elements whose attributes may name a file that is shown (`embedded_content`).
EMBEDDING: Final = frozenset(
    b"audio embed frame iframe img input object source video amp-img amp-anim amp-audio amp-iframe amp-video".split()
)

#: Elements of a drawing (``svg``) whose content is shown: its labels, and HTML in it.
LETTERING: Final = frozenset((b"text", b"foreignobject"))

#: Ids and classes of chrome, in lower case.
NAMES: Final = frozenset(
    b"""
    nav navbar navigation navlinks nav-links nav-menu nav-bar nav-panel navheader navfooter navpath navrow navtabs
    sitenav site-nav site-navigation main-nav main-navigation mainnav mainnavigation global-nav globalnav primary-nav
    primary-navigation secondary-nav top-nav topnav sidenav side-nav leftnav left-nav rightnav right-nav subnav sub-nav
    bottom-nav post-navigation posts-navigation pagination pager page-links page-nav prevnext prev-next spirit-nav
    mainmenu main-menu topmenu top-menu sidemenu side-menu leftmenu rightmenu submenu dropdown-menu menubar
    docnav nav-wrapper mega-menu off-canvas offcanvas
    side-bar sidebar-left sidebar-right left-sidebar right-sidebar leftsidebar rightsidebar sidebar1 sidebar2
    sidebar-wrapper tocframe sphinxsidebar sphinxsidebarwrapper bd-sidebar wy-nav-side md-sidebar widget-area widgets
    breadcrumb breadcrumbs bread-crumb crumb crumbs crumbtrail youarehere pageid
    footer site-footer page-footer pagefooter footer-wrapper footer-container footer-links globalfooter global-footer
    footerbar copyright colophon
    site-header siteheader globalheader global-header masthead topbar top-bar headerbar header-nav
    related related-links relbar relbar-top relbar-bottom tablist search-results-nav skip skip-link skiplink skip-links
    toplang bottomlang lang-switcher language-selector languages langs language-switcher cookie-banner cookie-notice
    cookie-bar cookieconsent cookie-consent gdpr share sharing share-buttons social social-links social-media sharedaddy
    adsense
    mw-navigation mw-head mw-panel mw-sidebar p-personal p-tb p-logo printfooter editsection mw-editsection
    mw-jump-link dokuwiki__header dokuwiki__aside dokuwiki__footer dokuwiki__sitetools dokuwiki__usertools
    dokuwiki__pagetools pagetools page-tools usertools user-tools sitetools site-tools docinfo
    projectalign msearchresultswindow
    action-menu action-bar jumpbox quick-links toolbar userbar user-menu usermenu login-form loginform loginbox
    """.split()
)

#: Those that content bears too, where it is not mostly links: dishes, walks, small ads, all that a page shows in tabs.
DOUBTFUL_NAMES: Final = frozenset(b"menu tabs tabs2 tabs3 banner trail ads advert advertisement".split())
#: A site's column of links, and in books of DocBook and docutils a box of prose within the text, which has a title.
BOX_NAMES: Final = frozenset((b"sidebar",))
#: Classes of the titles of such boxes (DocBook, docutils): what begins with one is content unless it is mostly links.
BOX_TITLES: Final = frozenset((b"titlepage", b"sidebar-title"))
#: What is searched with; some systems put what was found into the same element, as Plone does.
SEARCH_NAMES: Final = frozenset(b"searchbox search-box searchform search-form p-search".split())
#: Classes of the parts of a book (Texinfo), whose ids are names that its author gave: GDB's chapter ``Languages``.
PART_NAMES: Final = frozenset(
    b"""
    top-level-extent chapter-level-extent section-level-extent subsection-level-extent subsubsection-level-extent
    unnumbered-level-extent unnumberedsec-level-extent
    appendix-level-extent appendixsec-level-extent appendixsubsec-level-extent
    """.split()
)
#: Letters that are not links' from which on an element of a doubtful name may be content.
PROSE_LETTERS: Final = 200
#: Letters, those of links too, from which on what is searched with holds what was found.
SEARCH_LETTERS: Final = 100

# What a class, an id or a role says of its element: a set of bits.
SURELY: Final = 1  #: it is chrome
DOUBTFULLY: Final = 2  #: it is chrome unless it holds prose
BOXED: Final = 4  #: it is chrome unless it begins with a title, and is not mostly links
TITLING: Final = 8  #: it is the title of a box
SEARCHING: Final = 16  #: it is chrome unless it holds what was found
PART: Final = 32  #: it is content, whatever its id
TITLED: Final = 64  #: its id is its title, and says nothing else: it is chrome where it is mostly links

#: Word of a class or an id → its bit.
SAID: Final = {
    word: bit
    for bit, names in (
        (SURELY, NAMES),
        (DOUBTFULLY, DOUBTFUL_NAMES),
        (BOXED, BOX_NAMES),
        (TITLING, BOX_TITLES),
        (SEARCHING, SEARCH_NAMES),
        (PART, PART_NAMES),
    )
    for word in names
}
#: Role (WAI-ARIA) → its bit.
ROLES: Final = dict.fromkeys(
    b"navigation banner contentinfo complementary menu menubar toolbar tablist dialog alertdialog".split(), SURELY
) | {b"search": SEARCHING}

#: What separates words in an attribute.
BLANKS: Final = b"\t\n\f\r "
#: Values of ``style`` (blanks removed, lower case) that hide an element.
HIDING_STYLES: Final = (b"display:none", b"visibility:hidden")


def is_hidden(bits: int, attributes: dict[bytes, bytes]) -> bool:
    """Whether an element is not shown; a template that says that it is a shadow root is."""
    if bits & HIDDEN and not (bits & MARKER and b"shadowrootmode" in attributes):
        return True
    if b"hidden" in attributes or (bits & DIALOG and b"open" not in attributes):
        return True
    style = attributes.get(b"style")
    if not style:
        return False
    style = style.translate(None, BLANKS).lower()
    return any(hiding in style for hiding in HIDING_STYLES)


def named(words: bytes) -> int:
    """Return what the class or the id of an element says: the bits `SURELY` to `PART`."""
    said = 0
    for word in words.lower().split():
        said |= SAID.get(word, 0)
    return said
