/* Token hashes → fingerprints of shingles → the distinct ones in order → what a sketch keeps (see sketch.py).
 *
 * Fingerprints are uniform, so they are sorted by scattering them over about as many buckets as there are values, by
 * their highest bits, and sorting each bucket, which holds one or two: linear, about 6 ns a shingle.
 */
#ifndef CLUSTERD_SHINGLES_H
#define CLUSTERD_SHINGLES_H

#include <stdlib.h>

#include "murmur.h"

#define FINGERPRINT_BITS 40
#define MULTIPLIER 0x9E3779B97F4A7C15ULL
#define MAX_BUCKET_BITS 20
#define SMALL_BUCKET 32

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

/* Sort values that are out of order by a few places only. */
static void sort_nearly_sorted(uint64_t *values, size_t count) {
    for (size_t i = 1; i < count; i++) {
        uint64_t value = values[i];
        size_t j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
}

/* Sort `values` into `sorted` and drop repetitions; returns how many are left, or (size_t)-1 without memory. */
static size_t sort_distinct(const uint64_t *values, size_t count, uint64_t *sorted) {
    int bits = 4;
    while (bits < MAX_BUCKET_BITS && ((size_t)1 << bits) < count) bits++;
    int shift = FINGERPRINT_BITS - bits;
    size_t buckets = (size_t)1 << bits;
    uint32_t *ends = calloc(buckets + 1, sizeof *ends), largest = 0;
    if (!ends) return (size_t)-1;
    for (size_t i = 0; i < count; i++) ends[(values[i] >> shift) + 1]++;
    for (size_t b = 0; b < buckets; b++) {
        if (ends[b + 1] > largest) largest = ends[b + 1];
        ends[b + 1] += ends[b];
    }
    for (size_t i = 0; i < count; i++) sorted[ends[values[i] >> shift]++] = values[i];
    if (largest > SMALL_BUCKET) { /* text that repeats itself, or many values by chance or malice; ends[b] ends bucket b */
        for (size_t b = 0, start = 0; b < buckets; start = ends[b++])
            if (ends[b] - start > SMALL_BUCKET) qsort(sorted + start, ends[b] - start, sizeof *sorted, by_value);
    }
    free(ends);
    sort_nearly_sorted(sorted, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) { /* no branch: one value more is written than is kept */
        uint64_t value = sorted[i];
        kept += i > 0 && value != sorted[kept];
        sorted[kept] = value;
    }
    return count ? kept + 1 : 0;
}

/* Keep in place what the profile's kind keeps of distinct ascending values; returns how many. */
static size_t sample(uint64_t *values, size_t count, enum kind kind, uint64_t size) {
    if (kind == KIND_MIN) return count < size ? count : (size_t)size;
    uint64_t modulus = size;
    if (kind == KIND_V)
        for (modulus = 1; count / size >= 2 * modulus;) modulus *= 2;
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

static uint64_t bag_identity(const uint64_t *hashes, size_t count) {
    if (!count) return 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += fmix64(hashes[i]);
    sum = fmix64(sum);
    return sum ? sum : 1;
}

#endif
