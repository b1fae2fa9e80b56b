/* Working memory that is kept between calls: without it every page costs the kernel some thirty page faults.
 *
 * Taken and given back with the interpreter's lock held; used without it. A few pieces are kept, and no huge ones.
 */
#ifndef CLUSTERD_SCRATCH_H
#define CLUSTERD_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define KEPT_PIECES 4
#define KEPT_BYTES (4u << 20)

typedef struct {
    uint8_t *memory;
    size_t size;
} scratch_t;

static scratch_t kept_pieces[KEPT_PIECES];

/* A piece of at least `size` bytes; its memory is NULL where there is none. */
static scratch_t take_scratch(size_t size) {
    for (int i = 0; i < KEPT_PIECES; i++) {
        scratch_t piece = kept_pieces[i];
        if (piece.size >= size) {
            kept_pieces[i] = (scratch_t){NULL, 0};
            return piece;
        }
    }
    size_t rounded = size < 65536 ? 65536 : size + size / 2;
    uint8_t *memory = malloc(rounded);
    return (scratch_t){memory, memory ? rounded : 0};
}

static void give_scratch(scratch_t piece) {
    if (piece.size && piece.size <= KEPT_BYTES) {
        for (int i = 0; i < KEPT_PIECES; i++) {
            if (kept_pieces[i].size >= piece.size) continue;
            scratch_t smaller = kept_pieces[i];
            kept_pieces[i] = piece;
            piece = smaller;
        }
    }
    free(piece.memory);
}

#endif
