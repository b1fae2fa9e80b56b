/* Sixteen bytes of text at a time: which are letters, which end the plain run, and what they fold to. SSE2 where there is
 * SSE2 (every x86-64), else byte by byte. */
#ifndef CLUSTERD_ASCII_H
#define CLUSTERD_ASCII_H

#include <stdint.h>
#include <string.h>

#define LANES 16

typedef struct {
    uint32_t words;   /* ASCII letters, digits and "_" */
    uint32_t special; /* beyond ASCII, and the controls up to 2 (NUL and the marks) */
    uint32_t letters; /* how many: ASCII letters and digits, and all bytes beyond ASCII */
} lanes_t;

#ifdef __SSE2__
#include <emmintrin.h>

/* Lanes in which the unsigned byte lies in [first, first + span). */
static inline __m128i within(__m128i v, char first, int span) {
    __m128i shifted = _mm_add_epi8(v, _mm_set1_epi8((char)(-128 - first)));
    return _mm_cmplt_epi8(shifted, _mm_set1_epi8((char)(-128 + span)));
}

static inline uint32_t count_lanes(__m128i mask) {
    __m128i sums = _mm_sad_epu8(_mm_and_si128(mask, _mm_set1_epi8(1)), _mm_setzero_si128());
    return (uint32_t)(_mm_cvtsi128_si32(sums) + _mm_cvtsi128_si32(_mm_srli_si128(sums, 8)));
}

/* Classify 16 bytes; their folded form goes to `to`. */
static inline lanes_t read_lanes(const uint8_t *from, uint8_t *to) {
    __m128i v = _mm_loadu_si128((const __m128i *)from);
    __m128i upper = within(v, 'A', 26);
    __m128i low = _mm_or_si128(v, _mm_and_si128(upper, _mm_set1_epi8(32)));
    __m128i underscore = _mm_cmpeq_epi8(v, _mm_set1_epi8('_'));
    __m128i letters = _mm_or_si128(within(low, 'a', 26), within(v, '0', 10));
    _mm_storeu_si128((__m128i *)to, low);
    return (lanes_t){
        .words = (uint32_t)_mm_movemask_epi8(_mm_or_si128(letters, underscore)),
        .special = (uint32_t)(_mm_movemask_epi8(v) | _mm_movemask_epi8(within(v, 0, 3))),
        .letters = count_lanes(_mm_or_si128(letters, _mm_cmplt_epi8(v, _mm_setzero_si128()))),
    };
}
#else
static inline lanes_t read_lanes(const uint8_t *from, uint8_t *to) {
    lanes_t lanes = {0, 0, 0};
    for (int i = 0; i < LANES; i++) {
        uint8_t c = from[i], low = (uint8_t)((uint8_t)(c - 'A') < 26 ? c + 32 : c);
        to[i] = low;
        lanes.words |= (uint32_t)((uint8_t)(low - 'a') < 26 || (uint8_t)(c - '0') < 10 || c == '_') << i;
        lanes.special |= (uint32_t)(c >= 0x80 || c < 3) << i;
        lanes.letters += (uint8_t)(low - 'a') < 26 || (uint8_t)(c - '0') < 10 || c >= 0x80;
    }
    return lanes;
}
#endif

/* The same for the last `count` (under 16) bytes of a text, beyond which nothing may be read. */
static inline lanes_t read_last_lanes(const uint8_t *from, size_t count, uint8_t *to) {
    uint8_t padded[LANES];
    memset(padded, ' ', LANES);
    memcpy(padded, from, count);
    return read_lanes(padded, to);
}

#endif
