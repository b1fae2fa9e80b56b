/* Numbers as bytes, little-endian, and bytes that grow: for the compiled cores of this room. */
#ifndef CLUSTERD_NUMBERS_H
#define CLUSTERD_NUMBERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int bit_length(uint64_t v) { return v ? 64 - __builtin_clzll(v) : 0; }

static inline uint32_t read_u4(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline void write_u4(uint8_t *at, uint32_t v) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(v >> 8 * i);
}

typedef struct { char *bytes; size_t size, room; } Text;

static inline int reserve(Text *t, size_t more) {
    if (t->size + more <= t->room) return 1;
    size_t room = 2 * (t->size + more) + 256;
    char *bytes = PyMem_Realloc(t->bytes, room);
    if (!bytes) return 0;
    t->bytes = bytes;
    t->room = room;
    return 1;
}

/* `reserve` went before. */
static inline void add(Text *t, const void *bytes, size_t size) {
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

#endif
