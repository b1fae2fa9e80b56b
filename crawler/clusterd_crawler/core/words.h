/* A set of short byte strings, each with a number: open addressing. Built once, when the module is loaded. */
#ifndef CLUSTERD_WORDS_H
#define CLUSTERD_WORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORD_SLOTS 1024 /* 2^10: at least twice the words of the largest set */
#define WORD_BYTES 28

/* Eight and more bytes of a word are compared at once: its first eight, its last eight, then what lies between. */
typedef struct {
    uint64_t first, last;
    uint32_t value;
    uint8_t length; /* 0: free */
    uint8_t text[WORD_BYTES];
} word_t;

typedef struct {
    word_t slots[WORD_SLOTS];
    size_t count;
    uint32_t lengths; /* one bit for each length that a word of the set has */
} words_t;

/* Looked up in lower case: `text` may be in either. */
static inline uint8_t lower(uint8_t c) { return (uint8_t)((uint8_t)(c - 'A') < 26 ? c + 32 : c); }

/* Eight bytes in lower case. */
static inline uint64_t lower8(uint64_t v) {
    const uint64_t ones = 0x0101010101010101ULL, high = 0x80 * ones, low = v & ~high;
    uint64_t upper = (low + (0x80 - 'A') * ones) & ~(low + (0x7F - 'Z') * ones) & ~v & high;
    return v | upper >> 2;
}

/* All bytes of a short text (1 to 8) in lower case, as one number: texts of one length differ where these do. */
static inline uint64_t lower_short(const uint8_t *text, size_t length) {
    uint32_t head, tail;
    if (length < 4) return lower8((uint64_t)text[0] | (uint64_t)text[length / 2] << 8 | (uint64_t)text[length - 1] << 16);
    memcpy(&head, text, 4);
    memcpy(&tail, text + length - 4, 4);
    return lower8((uint64_t)tail << 32 | head);
}

static inline uint64_t lower_long(const uint8_t *text) {
    uint64_t v;
    memcpy(&v, text, 8);
    return lower8(v);
}

static inline size_t word_slot(const words_t *words, const uint8_t *text, size_t length) {
    uint64_t first = length <= 8 ? lower_short(text, length) : lower_long(text);
    uint64_t last = length <= 8 ? 0 : lower_long(text + length - 8);
    uint64_t hash = ((first ^ length) * 0x9E3779B97F4A7C15ULL ^ last) * 0xC2B2AE3D27D4EB4FULL;
    for (size_t slot = hash >> 54;; slot = (slot + 1) % WORD_SLOTS) {
        const word_t *word = &words->slots[slot];
        if (!word->length) return slot;
        if (word->first != first || word->last != last || word->length != length) continue;
        size_t i = 8;
        while (i + 8 < length && word->text[i] == lower(text[i])) i++;
        if (i + 8 >= length) return slot;
    }
}

/* The word's entry, or NULL. */
static inline const word_t *find_word(const words_t *words, const uint8_t *text, size_t length) {
    if (!length || length > WORD_BYTES || !(words->lengths >> length & 1)) return NULL;
    const word_t *word = &words->slots[word_slot(words, text, length)];
    return word->length ? word : NULL;
}

/* 0 where the word is too long or the set is full. */
static int add_word(words_t *words, const uint8_t *text, size_t length, uint32_t value) {
    if (!length || length > WORD_BYTES || words->count >= WORD_SLOTS / 2) return 0;
    word_t *word = &words->slots[word_slot(words, text, length)];
    words->count += !word->length;
    words->lengths |= 1u << length;
    word->first = length <= 8 ? lower_short(text, length) : lower_long(text);
    word->last = length <= 8 ? 0 : lower_long(text + length - 8);
    for (size_t i = 0; i < length; i++) word->text[i] = lower(text[i]);
    word->length = (uint8_t)length;
    word->value = value;
    return 1;
}

#endif
