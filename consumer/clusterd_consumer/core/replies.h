/* Replies of Redis as they arrive (RESP2): a line that ends with \r\n, after `$` so many bytes, after `*` so many replies. */
#ifndef CLUSTERD_REPLIES_H
#define CLUSTERD_REPLIES_H

#include "numbers.h"

/* Read the number behind a line's first byte. Returns what follows the line, NULL where it has no end or is no number. */
static inline const uint8_t *read_line(const uint8_t *at, const uint8_t *end, int64_t *number) {
    int negative = ++at < end && *at == '-';
    uint64_t value = 0;
    at += negative;
    const uint8_t *digits = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++) value = value * 10 + (uint64_t)(*at - '0');
    if (at == digits || end - at < 2 || at[0] != '\r' || at[1] != '\n') return NULL;
    *number = (int64_t)(negative ? 0 - value : value);
    return at + 2;
}

/* A string of a reply; where there is none, an empty one. */
typedef struct { const uint8_t *bytes; size_t size; } Bulk;

/* The strings of a reply that is their list. Returns NULL, with an error, where the bytes are anything else or memory is
 * not to be had. */
static inline Bulk *bulks_of(const Py_buffer *reply, size_t *count) {
    const uint8_t *at = reply->buf, *end = at + reply->len;
    int64_t number = -1, size;
    if (at < end && *at == '*') at = read_line(at, end, &number);
    /* A string takes five bytes at least. */
    int is_list = at && number >= 0 && number <= reply->len / 5;
    Bulk *bulks = is_list ? PyMem_Calloc((size_t)number + 1, sizeof *bulks) : NULL;
    if (is_list && !bulks) PyErr_NoMemory();
    for (int64_t i = 0; bulks && i < number; i++) {
        at = at < end && *at == '$' ? read_line(at, end, &size) : NULL;
        if (at && size >= 0 && size <= end - at - 2) {
            bulks[i] = (Bulk){at, (size_t)size};
            at += size + 2;
        } else if (at && size == -1) {
            bulks[i] = (Bulk){(const uint8_t *)"", 0};
        } else {
            PyMem_Free(bulks);
            bulks = NULL;
        }
    }
    if (!bulks && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "not a list of strings");
    *count = (size_t)(number < 0 ? 0 : number);
    return bulks;
}

#endif
