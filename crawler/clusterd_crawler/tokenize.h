/* Folded UTF-8 → hashes of tokens (see tokens.py; classes of code points: token_classes.py).
 *
 * ASCII is folded here; anything else must have been through NFKC and case folding. Marks \1 and \2 enclose what is not
 * main text (see text.py) where `marked`, and are separators like any other control character where not.
 */
#ifndef CLUSTERD_TOKENIZE_H
#define CLUSTERD_TOKENIZE_H

#include "murmur.h"

#define TABLED 0x40000
#define CHROME_BEGINS 1
#define CHROME_ENDS 2

enum token_class { SEPARATOR, WORD, SINGLE, MARK, IGNORABLE };

/* The class of each code point below TABLED; set once, when the module is loaded. */
static const uint8_t *class_table;
/* ASCII: the folded character where it belongs to a word, else 0. */
static uint8_t ascii_word[128];

static void set_ascii_words(void) {
    for (int c = 0; c < 128; c++) {
        int upper = c >= 'A' && c <= 'Z';
        ascii_word[c] = (uint8_t)(class_table[c] == WORD ? (upper ? c + 32 : c) : 0);
    }
}

typedef struct {
    uint64_t *hashes; /* of the whole stream */
    size_t count;
    uint64_t *main; /* of the main stream */
    size_t main_count;
    uint8_t *folded; /* the token under way */
    size_t length;
    int in_chrome;
} tokens_t;

static inline void end_token(tokens_t *t) {
    if (!t->length) return;
    uint64_t hash = murmur64(t->folded, t->length);
    t->hashes[t->count++] = hash;
    t->main[t->main_count] = hash;
    t->main_count += !t->in_chrome;
    t->length = 0;
}

/* Decode one code point of valid UTF-8 (surrogates included); returns its length. */
static inline size_t decode(const uint8_t *p, uint32_t *code) {
    if (p[0] < 0xE0) {
        *code = (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (p[0] < 0xF0) {
        *code = (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return 3;
    }
    *code = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return 4;
}

static inline enum token_class class_of(uint32_t code) {
    if (code < TABLED) return (enum token_class)class_table[code];
    return code >= 0xE0000 && code <= 0xE0FFF ? IGNORABLE : SEPARATOR;
}

/* `t->folded` has room for the longest token, `t->hashes` and `t->main` for one more hash than there are bytes. */
static void tokenize(const uint8_t *text, size_t length, int marked, tokens_t *t) {
    const uint8_t *p = text, *end = text + length;
    int single = 0; /* the token under way is a SINGLE with its marks */
    while (p < end) {
        if (*p < 0x80) {
            uint8_t c = *p++, folded = ascii_word[c];
            if (folded) {
                if (single) end_token(t), single = 0;
                t->folded[t->length++] = folded;
                continue;
            }
            end_token(t);
            single = 0;
            if (marked && (c == CHROME_BEGINS || c == CHROME_ENDS)) t->in_chrome = c == CHROME_BEGINS;
            continue;
        }
        uint32_t code;
        size_t bytes = decode(p, &code);
        enum token_class class = class_of(code);
        if (class == SEPARATOR || class == SINGLE || (class == WORD && single)) end_token(t), single = 0;
        if (class == SINGLE) single = 1;
        if (class != SEPARATOR && class != IGNORABLE) {
            memcpy(t->folded + t->length, p, bytes);
            t->length += bytes;
        }
        p += bytes;
    }
    end_token(t);
}

#endif
