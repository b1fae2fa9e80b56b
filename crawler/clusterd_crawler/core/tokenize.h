/* UTF-8 → hashes of tokens (see tokens.py; classes of code points: token_classes.py).
 *
 * Text is folded on the way, code point by code point (fold.h), or has been folded already. Marks \1 and \2 enclose what
 * is not main text (see markup.py) where `marked`, and are separators like any other control character where not.
 */
#ifndef CLUSTERD_TOKENIZE_H
#define CLUSTERD_TOKENIZE_H

#include "ascii.h"
#include "fold.h"

#define CHROME_BEGINS 1
#define CHROME_ENDS 2

enum token_class { SEPARATOR, WORD, SINGLE, MARK, IGNORABLE };
/* What a byte of the table says: a class, and whether it is a decimal digit. */
#define CLASS 7
#define DIGIT 8
enum outcome { TOKENIZED, NOT_SIMPLE, FAILED };

/* The class of each code point below TABLED; set once, when the module is loaded. */
static const uint8_t *class_table;
/* ASCII: the folded character where it belongs to a word, else 0. */
static uint8_t ascii_word[128];

static void set_ascii_words(void) {
    for (int c = 0; c < 128; c++) {
        int upper = c >= 'A' && c <= 'Z';
        ascii_word[c] = (uint8_t)((class_table[c] & CLASS) == WORD ? (upper ? c + 32 : c) : 0);
    }
}

/* Tokens that begin with a digit: how many, and the sum that the bag of all takes of them. */
typedef struct {
    size_t count;
    uint64_t sum;
} numbers_t;

typedef struct {
    uint64_t *hashes; /* of the whole stream */
    size_t count;
    uint64_t *main; /* of the main stream */
    size_t main_count;
    uint8_t *token; /* the token under way, folded */
    size_t length;
    int in_chrome;
    int single; /* the token under way is a SINGLE with its marks */
    int number; /* the token under way begins with a digit */
    numbers_t numbers, main_numbers; /* of the whole stream, and of the main one */
} tokens_t;

static inline int is_ascii_digit(uint8_t c) { return (uint8_t)(c - '0') < 10; }

static inline void add_number(numbers_t *numbers, uint64_t mixed) {
    numbers->count++;
    numbers->sum += mixed;
}

static inline void add_hash(tokens_t *t, uint64_t hash, int number) {
    if (number) {
        add_number(&t->numbers, fmix64(hash));
        if (!t->in_chrome) add_number(&t->main_numbers, fmix64(hash));
    }
    t->hashes[t->count++] = hash;
    t->main[t->main_count] = hash;
    t->main_count += !t->in_chrome;
}

static inline void end_token(tokens_t *t) {
    t->single = 0;
    if (!t->length) return;
    add_hash(t, murmur64(t->token, t->length), t->number);
    t->length = 0;
}

/* Decode one code point beyond ASCII (surrogates included); returns its length, or 0 where it is cut off. */
static inline size_t decode(const uint8_t *p, const uint8_t *end, uint32_t *code) {
    size_t left = (size_t)(end - p);
    if (p[0] < 0xE0 && left >= 2) {
        *code = (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (p[0] < 0xF0 && left >= 3) {
        *code = (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return 3;
    }
    if (left < 4) return 0;
    *code = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    return 4;
}

/* The table's byte of a code point. */
static inline uint8_t kind_of(uint32_t code) {
    if (code < TABLED) return class_table[code];
    return code >= 0xE0000 && code <= 0xE0FFF ? IGNORABLE : SEPARATOR;
}

static inline void take(tokens_t *t, uint8_t kind, const uint8_t *bytes, size_t length) {
    enum token_class class = (enum token_class)(kind & CLASS);
    if (class == SEPARATOR || class == SINGLE || (class == WORD && t->single)) end_token(t);
    if (class == SEPARATOR || class == IGNORABLE) return;
    if (class == SINGLE) t->single = 1;
    if (!t->length) t->number = kind & DIGIT;
    for (size_t i = 0; i < length; i++) t->token[t->length + i] = bytes[i];
    t->length += length;
}

/* Take a run of ASCII letters and digits, if there is one; returns where it ends. Local variables, because the compiler
 * must assume that a byte written may be a field of `t`. */
static inline const uint8_t *take_ascii(tokens_t *t, const uint8_t *p, const uint8_t *end) {
    uint8_t word;
    if (t->single) end_token(t);
    if (!t->length) t->number = is_ascii_digit(*p);
    uint8_t *to = t->token + t->length;
    while (p < end && *p < 0x80 && (word = ascii_word[*p])) *to++ = word, p++;
    t->length = (size_t)(to - t->token);
    return p;
}

/* Take folded text. */
static void take_folded(tokens_t *t, const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        if (*p < 0x80) {
            if (ascii_word[*p]) p = take_ascii(t, p, end);
            else end_token(t), p++;
            continue;
        }
        uint32_t code;
        size_t bytes = decode(p, end, &code);
        if (!bytes) return;
        take(t, kind_of(code), p, bytes);
        p += bytes;
    }
}

/* Bytes that are looked at together: one bit each in a word of the machine. */
#define WINDOW 64

/* Take `count` bytes of plain ASCII, folded already in `run`, whose letters are the bits of `words`. Tokens are hashed
 * where they lie; one that touches the end is only begun, because what follows may belong to it. */
static inline void take_window(tokens_t *t, const uint8_t *run, uint64_t words, int count) {
    if (t->length) { /* goes on with the token under way */
        int more = t->single ? 0 : ~words ? __builtin_ctzll(~words) : WINDOW;
        if (more > count) more = count;
        memcpy(t->token + t->length, run, (size_t)more);
        t->length += (size_t)more;
        if (more == count) return;
        end_token(t);
        words = words >> more << more;
    }
    while (words) {
        int start = __builtin_ctzll(words);
        uint64_t beyond = ~(words | ((1ULL << start) - 1));
        int end = beyond ? __builtin_ctzll(beyond) : WINDOW;
        if (end >= count) {
            t->length = (size_t)(count - start);
            t->number = is_ascii_digit(run[start]);
            memcpy(t->token, run + start, t->length);
            return;
        }
        add_hash(t, murmur64(run + start, (size_t)(end - start)), is_ascii_digit(run[start]));
        words = words >> end << end;
    }
}

/* Take plain ASCII up to the first special byte, or the end; returns where that is. */
static const uint8_t *take_plain(tokens_t *t, const uint8_t *p, const uint8_t *end) {
    uint8_t run[WINDOW + PADDING];
    memset(run + WINDOW, 0, PADDING);
    for (;;) {
        uint64_t words = 0, special = 0;
        int count = 0;
        for (; count < WINDOW && p + count < end && !special; count += LANES) {
            size_t left = (size_t)(end - p) - (size_t)count;
            lanes_t lanes = left < LANES ? read_last_lanes(p + count, left, run + count) : read_lanes(p + count, run + count);
            words |= (uint64_t)lanes.words << count;
            special |= (uint64_t)lanes.special << count;
        }
        if (count > end - p) count = (int)(end - p);
        if (special) count = __builtin_ctzll(special);
        if (count < WINDOW) words &= (1ULL << count) - 1;
        take_window(t, run, words, count);
        p += count;
        if (special || p == end) return p;
    }
}

/* `t->token` has room for the longest token, `t->hashes` and `t->main` for all tokens and one more. */
static enum outcome tokenize(tokens_t *t, const uint8_t *p, size_t size, int marked, int is_folded, PyThreadState **thread) {
    const uint8_t *end = p + size;
    while (p < end) {
        if (*p < 0x80) {
            if (*p > CHROME_ENDS) {
                p = take_plain(t, p, end);
                continue;
            }
            end_token(t);
            if (marked && *p) t->in_chrome = *p == CHROME_BEGINS;
            p++;
            continue;
        }
        uint32_t code;
        size_t bytes = decode(p, end, &code);
        if (!bytes) break;
        if (is_folded) {
            take(t, kind_of(code), p, bytes);
        } else {
            const folded_t *f = folded(code, thread);
            if (!f) return FAILED;
            if (!f->length) return NOT_SIMPLE;
            take_folded(t, f->bytes, f->bytes + f->length);
        }
        p += bytes;
    }
    end_token(t);
    return TOKENIZED;
}

#endif
