/* Token hashes → fingerprints of shingles → the distinct ones in order → what a sketch keeps (see sketch.py).
 *
 * Fingerprints are uniform, so a radix sort of a few bits more than their number needs leaves hardly any out of order, and
 * has no branch to be predicted wrongly: linear, about 3 ns a shingle.
 */
#ifndef CLUSTERD_SHINGLES_H
#define CLUSTERD_SHINGLES_H

#include <stdlib.h>

#include "murmur.h"

#define FINGERPRINT_BITS 40
#define MULTIPLIER 0x9E3779B97F4A7C15ULL
#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
#define SPARE_BITS 4
#define SHINGLES_PER_VALUE 64
#define PAGE_SHINGLES_PER_VALUE 10
/* Cells of the parity of a document's shingles, the bits of a value that say which, and words of 64 that hold them. */
#define PARITY_BITS 1024
#define CELL_BITS 10
#define PARITY_WORDS (PARITY_BITS / 64)
/* Most places that values are moved by, a value, before they are sorted otherwise. */
#define MAX_MOVES 4

enum kind { KIND_MIN = 0, KIND_V = 1, KIND_MOD = 2 };

/* Fingerprints of a non-empty token sequence into `out` (room for `count`); returns how many. The sum over the window
 * rolls: the oldest token leaves with its power of the multiplier. */
static size_t fingerprints(const uint64_t *hashes, size_t count, size_t w, uint64_t *out) {
    if (w > count) w = count;
    uint64_t sum = 0, power = 1;
    for (size_t i = 0; i < w; i++) {
        sum = sum * MULTIPLIER + hashes[i];
        power *= MULTIPLIER;
    }
    size_t made = count - w + 1;
    for (size_t i = 0;; i++) {
        out[i] = fmix64(sum) >> (64 - FINGERPRINT_BITS);
        if (i + 1 == made) return made;
        sum = sum * MULTIPLIER + hashes[i + w] - hashes[i] * power;
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sort values that are out of order by a few places only. Others, which do not come about by chance, go to `qsort`, so
 * that the time is bounded. */
static void sort_nearly_sorted(uint64_t *values, size_t count) {
    size_t moves = 0;
    for (size_t i = 1; i < count; i++) {
        uint64_t value = values[i];
        size_t j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
        moves += i - j;
        if (moves > MAX_MOVES * count) {
            qsort(values, count, sizeof *values, by_value);
            return;
        }
    }
}

/* Order by the digit at `shift`, values of one digit as they stood. */
static void sort_by_digit(const uint64_t *from, size_t count, int shift, uint64_t *to) {
    size_t places[DIGITS] = {0}, place = 0;
    for (size_t i = 0; i < count; i++) places[from[i] >> shift & (DIGITS - 1)]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        size_t held = places[digit];
        places[digit] = place;
        place += held;
    }
    for (size_t i = 0; i < count; i++) to[places[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Sort `values`, whose order is lost, into `sorted`, and drop repetitions; returns how many are left. */
static size_t sort_distinct(uint64_t *values, size_t count, uint64_t *sorted) {
    int bits = 2 * DIGIT_BITS;
    while (bits < FINGERPRINT_BITS && count >> (bits - SPARE_BITS)) bits += DIGIT_BITS;
    uint64_t *from = values, *to = sorted;
    for (int shift = FINGERPRINT_BITS - bits; shift < FINGERPRINT_BITS; shift += DIGIT_BITS) {
        sort_by_digit(from, count, shift, to);
        uint64_t *taken = from;
        from = to;
        to = taken;
    }
    sort_nearly_sorted(from, count);
    size_t kept = 0;
    for (size_t i = 0; i + 1 < count; i++) { /* no branch: the last of equal values stays */
        sorted[kept] = from[i];
        kept += from[i] != from[i + 1];
    }
    if (count) sorted[kept++] = from[count - 1];
    return kept;
}

typedef struct {
    size_t w;
    enum kind kind;
    uint64_t size, entire, most;
    int parity;
} profile_t;

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* How many values of so many MIN_s keeps. */
static uint64_t smallest(uint64_t count, const profile_t *p) {
    if (count <= p->entire) return count;
    uint64_t of_page = lesser(count / PAGE_SHINGLES_PER_VALUE, p->entire), of_book = lesser(count / SHINGLES_PER_VALUE, p->most);
    return lesser(count, greater(p->size, greater(of_page, of_book)));
}

/* Keep in place what the profile's kind keeps of distinct ascending values; returns how many. */
static size_t sample(uint64_t *values, size_t count, const profile_t *profile) {
    if (profile->kind == KIND_MIN) return (size_t)smallest(count, profile);
    uint64_t modulus = profile->size;
    if (profile->kind == KIND_V)
        for (modulus = 1; count / profile->size >= 2 * modulus;) modulus *= 2;
    if (modulus == 1) return count;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (values[i] % modulus == 0) values[kept++] = values[i];
    return kept;
}

static uint64_t text_identity(const uint64_t *hashes, size_t count) {
    if (!count) return 0;
    uint64_t identity = murmur64((const uint8_t *)hashes, count * 8);
    return identity ? identity : 1;
}

/* Of each cell whether an odd number of distinct values lie in it. */
static void note_parity(const uint64_t *values, size_t count, uint64_t *parity) {
    for (size_t i = 0; i < count; i++) {
        int below = 63 - __builtin_clzll(values[i] | 1) - CELL_BITS; /* (at least 1: sketch.py) */
        uint64_t cell = values[i] >> (below > 1 ? below : 1) & (PARITY_BITS - 1);
        parity[cell / 64] ^= 1ULL << cell % 64;
    }
}

/* What a sketch holds of a token sequence. */
typedef struct {
    const uint64_t *values;
    size_t kept, distinct;
    uint64_t identity;
    int has_parity;
    uint64_t parity[PARITY_WORDS];
} sampled_t;

/* Sketch a non-empty token sequence; `scratch` has room for twice `count` values. */
static sampled_t sampled(const uint64_t *hashes, size_t count, const profile_t *profile, uint64_t *scratch) {
    uint64_t *sorted = scratch + count;
    size_t distinct = sort_distinct(scratch, fingerprints(hashes, count, profile->w, scratch), sorted);
    size_t kept = sample(sorted, distinct, profile);
    sampled_t made = {sorted, kept, distinct, text_identity(hashes, count), profile->parity && kept < distinct, {0}};
    if (made.has_parity) note_parity(sorted, distinct, made.parity); /* (of MIN_s all values are still there) */
    return made;
}

static uint64_t bag_sum(const uint64_t *hashes, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += fmix64(hashes[i]);
    return sum;
}

/* The identity of so many tokens by the sum over them. */
static uint64_t bag_identity(uint64_t sum, size_t count) {
    if (!count) return 0;
    sum = fmix64(sum);
    return sum ? sum : 1;
}

#endif
