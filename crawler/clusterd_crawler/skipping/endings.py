"""Endings of URLs that name files. What rules say of pages need not hold of the files that lie beside them: a rule that
``/p/12/any-title`` is ``/p/12`` is learned from pages alone, and ``/p/12/manual.pdf`` is no title.

They are listed, and not asked of Python's `mimetypes`: that grows, since 3.14 by ``.php``. Programs that make pages
(``.php``, ``.pl``, ``.dll``) are none, nor are texts that sites show as pages (``.md``, ``.rst``, ``.yaml``).
"""

from __future__ import annotations

from typing import Final

#: Sounds, films, pictures, texts, documents, archives, and what programs read.
_LISTED: Final = """
    .3g2 .3gp .3gpp .3gpp2 .aac .adts .aif .aifc .aiff .ass .au .flac .loas .m4a .mid .midi .mka .mp2 .mp3 .oga .ogg
      .opus .ra .snd .wav .weba
    .avi .m1v .m4v .mk3d .mkv .mov .movie .mp4 .mpa .mpe .mpeg .mpg .ogv .ogx .qt .webm .wmv
    .avif .bmp .emf .fits .gif .glb .gltf .heic .heif .ico .ief .jp2 .jpe .jpeg .jpg .jpm .jpx .pbm .pgm .png .pnm
      .ppm .psd .ras .rgb .stl .svg .svgz .tif .tiff .webp .wmf .xbm .xpm .xwd
    .atom .bat .c .css .csv .eml .etx .h .ksh .mht .mhtml .n3 .nws .rss .rtf .rtx .sgm .sgml .srt .tsv .txt .vcf
      .vtt .xml
    .ai .doc .docx .dot .dvi .eps .epub .latex .man .me .mif .mobi .ms .oda .odg .odp .ods .odt .pdf .pot .ppa .pps
      .ppt .pptx .ps .pwz .roff .t .tex .texi .texinfo .tr .wiz .xlb .xls .xlsx
    .7z .apk .br .bcpio .bz2 .cpio .deb .dmg .gtar .gz .iso .jar .msi .rar .rpm .shar .sv4cpio .sv4crc .tar .taz
      .tbz2 .tgz .txz .tz .ustar .xz .z .zip .zst
    .a .bin .cdf .csh .eot .h5 .hdf .js .json .m3u .m3u8 .mjs .nc .nq .nt .o .obj .otf .p12 .p7c .pfx .pyc .pyo .ram
      .rdf .sh .so .src .swf .tcl .torrent .trig .ttf .wasm .webmanifest .woff .woff2 .wsdl .xpdl .xsl
"""
_FILES: Final = frozenset(_LISTED.split())


def ending(url: str) -> str:
    """Return the ending of a URL's path, in lower case, where it is that of a file; else "".

    >>> ending("http://h.com/p/12/manual.PDF?page=3"), ending("http://h.com/a.html"), ending("http://h.com/v1.2")
    ('.pdf', '', '')
    """
    path = url.partition("?")[0]
    found = path[path.rfind(".") :].lower()
    return found if found in _FILES else ""


def may_show_file(url: str, known: str) -> bool:
    """Whether a known page may show what a URL names: where that is a file, the page's URL names one of its kind."""
    found = ending(url)
    return not found or found in known.lower()
