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
} lanes_t;

#ifdef __SSE2__
#include <emmintrin.h>

/* Lanes in which the unsigned byte lies in [first, first + span). */
static inline __m128i within(__m128i v, char first, int span) {
    __m128i shifted = _mm_add_epi8(v, _mm_set1_epi8((char)(-128 - first)));
    return _mm_cmplt_epi8(shifted, _mm_set1_epi8((char)(-128 + span)));
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
    };
}

static const uint8_t lane_masks[2 * LANES] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

/* Copy text, of which bytes up to `limit` may be read; `to` has room for LANES more. Returns how many ASCII letters and
 * digits and bytes beyond ASCII there are; `*has_marks`: whether there are NULs or marks. */
static inline size_t copy_lanes(const uint8_t *from, size_t length, const uint8_t *limit, uint8_t *to, int *has_marks) {
    __m128i counts = _mm_setzero_si128(), marks = counts;
    for (size_t at = 0; at < length; at += LANES) {
        size_t left = length - at;
        __m128i v;
        if ((size_t)(limit - from) - at >= LANES) {
            v = _mm_loadu_si128((const __m128i *)(from + at));
        } else {
            uint8_t padded[LANES] = {0};
            memcpy(padded, from + at, left < LANES ? left : LANES);
            v = _mm_loadu_si128((const __m128i *)padded);
        }
        _mm_storeu_si128((__m128i *)(to + at), v);
        __m128i low = _mm_or_si128(v, _mm_and_si128(within(v, 'A', 26), _mm_set1_epi8(32)));
        __m128i letters = _mm_or_si128(within(low, 'a', 26), within(v, '0', 10));
        __m128i mask = _mm_loadu_si128((const __m128i *)(lane_masks + (left < LANES ? LANES - left : 0)));
        letters = _mm_and_si128(_mm_or_si128(letters, _mm_cmplt_epi8(v, _mm_setzero_si128())), mask);
        marks = _mm_or_si128(marks, _mm_and_si128(within(v, 0, 3), mask));
        counts = _mm_add_epi64(counts, _mm_sad_epu8(_mm_and_si128(letters, _mm_set1_epi8(1)), _mm_setzero_si128()));
    }
    *has_marks = _mm_movemask_epi8(marks) != 0;
    return (size_t)_mm_cvtsi128_si32(counts) + (size_t)_mm_cvtsi128_si32(_mm_srli_si128(counts, 8));
}
#else
static inline size_t copy_lanes(const uint8_t *from, size_t length, const uint8_t *limit, uint8_t *to, int *has_marks) {
    (void)limit;
    size_t letters = 0;
    *has_marks = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t c = from[i];
        to[i] = c;
        *has_marks |= c < 3;
        letters += (uint8_t)((c | 32) - 'a') < 26 || (uint8_t)(c - '0') < 10 || c >= 0x80;
    }
    return letters;
}

static inline lanes_t read_lanes(const uint8_t *from, uint8_t *to) {
    lanes_t lanes = {0, 0};
    for (int i = 0; i < LANES; i++) {
        uint8_t c = from[i], low = (uint8_t)((uint8_t)(c - 'A') < 26 ? c + 32 : c);
        to[i] = low;
        lanes.words |= (uint32_t)((uint8_t)(low - 'a') < 26 || (uint8_t)(c - '0') < 10 || c == '_') << i;
        lanes.special |= (uint32_t)(c >= 0x80 || c < 3) << i;
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
