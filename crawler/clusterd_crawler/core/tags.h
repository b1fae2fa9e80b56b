/* Reading one tag: its name and the attributes that the walk looks at, as the HTML standard's tokenizer reads them. */
#ifndef CLUSTERD_TAGS_H
#define CLUSTERD_TAGS_H

#include "words.h"

/* What an element is to the walk; the same bits as in chrome.py, and one for its set of those that embed. */
enum {
    INLINE = 1, VOID = 2, CONTAINER = 4, IMPLIED = 8, RAW = 16, ESCAPABLE = 32, HIDDEN = 64, CHROME = 128,
    SECTIONAL = 256, SCOPE = 512, NAMED = 1024, TABLE = 2048, CELL = 4096, ROW = 8192, MAIN = 16384, LINK = 32768,
    PARAGRAPH = 65536, DECLARES = 131072, TITLE = 262144, DENSE = 524288, DIALOG = 1048576, TERM = 2097152,
    FOREIGN = 4194304, CHOICE = 8388608, HEADING = 16777216, MARKER = 33554432, ITEM = 67108864, LOOSE = 134217728,
    MERGED = 268435456, OPTION = 536870912, EMBEDS = 1073741824,
};
#define DROPPED 2147483648u

static words_t tag_words, role_words, chrome_words, attribute_words;

/* Values of `chrome_words` and `role_words`: what a word of a class or an id says, or a role (chrome.SAID, ROLES). */
enum { SURELY = 1, DOUBTFULLY = 2, BOXED = 4, TITLING = 8, SEARCHING = 16, PART = 32, TITLED = 64 };

/* The attributes that are kept; values of `attribute_words`. */
enum attribute {
    A_ID, A_CLASS, A_ROLE, A_STYLE, A_HIDDEN, A_OPEN, A_HREF, A_NAME, A_REL, A_PROPERTY, A_CONTENT, A_WIDTH, A_HEIGHT,
    A_SHADOWROOTMODE, A_SRC, A_DATA, A_POSTER, A_SRCSET, A_DATA_SRC, A_DATA_ORIGINAL, A_DATA_LAZY_SRC, ATTRIBUTES,
};

static const char *const attribute_names[ATTRIBUTES] = {
    "id", "class", "role", "style", "hidden", "open", "href", "name", "rel", "property", "content", "width", "height",
    "shadowrootmode", "src", "data", "poster", "srcset", "data-src", "data-original", "data-lazy-src",
};
#define LONGEST_ATTRIBUTE 14

typedef struct {
    const uint8_t *at; /* NULL: not there */
    size_t length;
} slice_t;

typedef struct {
    slice_t name;
    uint32_t bits;
    int embeds;
    uint32_t seen; /* one bit for each kept attribute that the tag has */
    size_t attributes; /* how many, the others and repeated ones too */
    slice_t values[ATTRIBUTES];
} tag_t;

/* What ends a tag's name and, with "=", an attribute's: blanks, "/", ">". */
enum { BLANK = 1, NAME_END = 2, ATTRIBUTE_END = 4 };
static const uint8_t byte_kinds[256] = {
    ['\t'] = 7, ['\n'] = 7, ['\f'] = 7, ['\r'] = 7, [' '] = 7, ['/'] = 6, ['>'] = 6, ['='] = 4,
};

static inline int is_blank(uint8_t c) { return byte_kinds[c] & BLANK; }
static inline int is_letter(uint8_t c) { return (uint8_t)((c | 32) - 'a') < 26; }
static inline int is_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }

static void set_attribute_words(void) {
    memset(&attribute_words, 0, sizeof attribute_words);
    for (uint32_t i = 0; i < ATTRIBUTES; i++)
        add_word(&attribute_words, (const uint8_t *)attribute_names[i], strlen(attribute_names[i]), i);
}

static inline void keep_attribute(tag_t *tag, const uint8_t *name, size_t name_length, slice_t value) {
    if (name_length < 2 || name_length > LONGEST_ATTRIBUTE) return;
    const word_t *word = find_word(&attribute_words, name, name_length);
    if (!word || tag->seen >> word->value & 1) return;
    tag->seen |= 1u << word->value;
    tag->values[word->value] = value;
}

/* Read attributes from behind the tag's name; returns what follows ">", or NULL where the markup ends first. */
static const uint8_t *read_attributes(const uint8_t *p, const uint8_t *end, tag_t *tag) {
    for (;;) {
        while (p < end && (is_blank(*p) || *p == '/')) p++;
        if (p == end) return NULL;
        if (*p == '>') return p + 1;
        const uint8_t *name = p++;
        while (p < end && !(byte_kinds[*p] & ATTRIBUTE_END)) p++;
        size_t name_length = (size_t)(p - name);
        slice_t value = {p, 0};
        const uint8_t *after = p;
        while (after < end && is_blank(*after)) after++;
        if (after < end && *after == '=') {
            p = after + 1;
            while (p < end && is_blank(*p)) p++;
            uint8_t quote = p < end ? *p : 0;
            const uint8_t *stop;
            if (quote == '"' || quote == '\'') {
                p++;
                stop = memchr(p, quote, (size_t)(end - p));
                if (!stop) return NULL;
                value = (slice_t){p, (size_t)(stop - p)};
                p = stop + 1;
            } else {
                for (stop = p; stop < end && !is_blank(*stop) && *stop != '>';) stop++;
                value = (slice_t){p, (size_t)(stop - p)};
                p = stop;
            }
        }
        tag->attributes++;
        keep_attribute(tag, name, name_length, value);
    }
}

/* Read the tag whose name begins at p; returns what follows it, or NULL where the markup ends first. */
static const uint8_t *read_tag(const uint8_t *p, const uint8_t *end, tag_t *tag) {
    const uint8_t *name = p;
    while (p < end && !(byte_kinds[*p] & NAME_END)) p++;
    tag->name = (slice_t){name, (size_t)(p - name)};
    const word_t *word = find_word(&tag_words, name, tag->name.length);
    tag->bits = word ? word->value & ~(uint32_t)EMBEDS : 0;
    tag->embeds = word && word->value & EMBEDS;
    tag->seen = 0;
    tag->attributes = 0;
    return read_attributes(p, end, tag);
}

static inline int has(const tag_t *tag, enum attribute attribute) { return tag->seen >> attribute & 1; }

static int slice_is(slice_t slice, const char *word) {
    size_t length = strlen(word);
    if (slice.length != length) return 0;
    for (size_t i = 0; i < length; i++)
        if (lower(slice.at[i]) != (uint8_t)word[i]) return 0;
    return 1;
}

/* What the blank-separated words of a value are in the set, together; or (with `only`) whether one is that word. */
static uint32_t has_word(slice_t value, const words_t *words, const char *only) {
    const uint8_t *p = value.at, *end = p + value.length;
    uint32_t found = 0;
    while (p < end) {
        while (p < end && (is_blank(*p) || *p == 11)) p++;
        const uint8_t *start = p;
        while (p < end && !is_blank(*p) && *p != 11) p++;
        slice_t word = {start, (size_t)(p - start)};
        const word_t *known = only ? NULL : find_word(words, start, word.length);
        found |= only ? (uint32_t)slice_is(word, only) : known ? known->value : 0;
    }
    return found;
}

static slice_t stripped(slice_t value) {
    while (value.length && is_blank(*value.at)) value.at++, value.length--;
    while (value.length && is_blank(value.at[value.length - 1])) value.length--;
    return value;
}

/* Whether `needle` (lower case, no blanks) is in a style without its blanks. */
static int style_has(slice_t style, const char *needle) {
    for (size_t from = 0; from < style.length; from++) {
        size_t matched = 0;
        if (is_blank(style.at[from])) continue;
        for (size_t i = from; i < style.length && needle[matched]; i++) {
            if (is_blank(style.at[i])) continue;
            if (lower(style.at[i]) != (uint8_t)needle[matched]) break;
            matched++;
        }
        if (!needle[matched]) return 1;
    }
    return 0;
}

#endif
