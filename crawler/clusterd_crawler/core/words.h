/* A set of short byte strings, each with a number: open addressing over FNV-1a. Built once, when the module is loaded. */
#ifndef CLUSTERD_WORDS_H
#define CLUSTERD_WORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORD_SLOTS 1024 /* at least twice the words of the largest set */
#define WORD_BYTES 28

typedef struct {
    uint8_t text[WORD_BYTES];
    uint8_t length; /* 0: free */
    uint32_t value;
} word_t;

typedef struct {
    word_t slots[WORD_SLOTS];
    size_t count;
} words_t;

/* Looked up in lower case: `text` may be in either. */
static inline uint8_t lower(uint8_t c) { return (uint8_t)(c - 'A' < 26u ? c + 32 : c); }

static inline size_t word_slot(const words_t *words, const uint8_t *text, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ lower(text[i])) * 16777619u;
    for (size_t slot = (hash ^ hash >> 15) % WORD_SLOTS;; slot = (slot + 1) % WORD_SLOTS) {
        const word_t *word = &words->slots[slot];
        if (!word->length) return slot;
        if (word->length != length) continue;
        size_t i = 0;
        while (i < length && word->text[i] == lower(text[i])) i++;
        if (i == length) return slot;
    }
}

/* The word's entry, or NULL. */
static inline const word_t *find_word(const words_t *words, const uint8_t *text, size_t length) {
    if (!length || length > WORD_BYTES) return NULL;
    const word_t *word = &words->slots[word_slot(words, text, length)];
    return word->length ? word : NULL;
}

/* 0 where the word is too long or the set is full. */
static int add_word(words_t *words, const uint8_t *text, size_t length, uint32_t value) {
    if (!length || length > WORD_BYTES || words->count >= WORD_SLOTS / 2) return 0;
    word_t *word = &words->slots[word_slot(words, text, length)];
    words->count += !word->length;
    memcpy(word->text, text, length);
    word->length = (uint8_t)length;
    word->value = value;
    return 1;
}

#endif
