/* MurmurHash3_x64_128 with seed 0 (Austin Appleby, public domain), of which the first 64 bits are used.
 *
 * Reads up to 16 bytes beyond the data: callers pad their buffers with PADDING bytes. Little-endian machines only; on
 * others the extension does not compile and NumPy takes its place.
 */
#ifndef CLUSTERD_MURMUR_H
#define CLUSTERD_MURMUR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the compiled core is for little-endian machines"
#endif

#define PADDING 16

static inline uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint64_t rotl64(uint64_t v, int bits) { return (v << bits) | (v >> (64 - bits)); }

/* MurmurHash3's finalizer: a permutation of 64-bit numbers. */
static inline uint64_t fmix64(uint64_t v) {
    v ^= v >> 33;
    v *= 0xFF51AFD7ED558CCDULL;
    v ^= v >> 33;
    v *= 0xC4CEB9FE1A85EC53ULL;
    v ^= v >> 33;
    return v;
}

#define C1 0x87C37B91114253D5ULL
#define C2 0x4CF5AD432745937FULL

/* Masks of the first n bytes of 16, as two numbers. */
#define MASK(n) {(n) == 0 ? 0 : ~0ULL >> (64 - 8 * ((n) < 8 ? (n) : 8)), (n) <= 8 ? 0 : ~0ULL >> (128 - 8 * (n))}
static const uint64_t tail_masks[16][2] = {
    MASK(0), MASK(1), MASK(2),  MASK(3),  MASK(4),  MASK(5),  MASK(6),  MASK(7),
    MASK(8), MASK(9), MASK(10), MASK(11), MASK(12), MASK(13), MASK(14), MASK(15),
};

static inline uint64_t murmur64(const uint8_t *data, size_t length) {
    uint64_t h1 = 0, h2 = 0;
    const uint8_t *tail = data + (length & ~(size_t)15);
    for (const uint8_t *p = data; p < tail; p += 16) {
        h1 ^= rotl64(load64(p) * C1, 31) * C2;
        h1 = (rotl64(h1, 27) + h2) * 5 + 0x52DCE729;
        h2 ^= rotl64(load64(p + 8) * C2, 33) * C1;
        h2 = (rotl64(h2, 31) + h1) * 5 + 0x38495AB5;
    }
    const uint64_t *mask = tail_masks[length & 15]; /* no branch: lengths of words cannot be predicted */
    h2 ^= rotl64((load64(tail + 8) & mask[1]) * C2, 33) * C1;
    h1 ^= rotl64((load64(tail) & mask[0]) * C1, 31) * C2;
    h1 ^= length;
    h2 ^= length;
    h1 += h2;
    h2 += h1;
    return fmix64(h1) + fmix64(h2);
}

#endif
