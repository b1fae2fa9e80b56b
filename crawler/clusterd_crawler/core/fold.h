/* NFKC and case folding of single code points, so that most text needs no pass of Python's over it.
 *
 * A code point is *simple* where what it folds to does not depend on its neighbours (tokens.fold_block decides that):
 * a text of simple code points is folded one by one. Any other text is folded whole by Python first. Blocks of 256 code
 * points are asked for when they are first met, and kept.
 */
#ifndef CLUSTERD_FOLD_H
#define CLUSTERD_FOLD_H

#include <Python.h>

#include "lock.h"
#include "murmur.h"

#define TABLED 0x40000
#define BLOCK 256
#define FOLDED_BYTES 6

typedef struct {
    uint8_t length; /* 0: not simple */
    uint8_t unused;
    uint8_t bytes[FOLDED_BYTES];
} folded_t;

static folded_t *blocks[TABLED / BLOCK];
static PyObject *fold_block; /* tokens.fold_block: int → bytes of BLOCK entries */

/* Keep the block that Python answered with, unless another thread, which asked meanwhile, has. */
static void keep_block(uint32_t number, PyObject *answer) {
    if (blocks[number]) return;
    if (!PyBytes_Check(answer) || PyBytes_GET_SIZE(answer) != BLOCK * (Py_ssize_t)sizeof(folded_t)) {
        PyErr_SetString(PyExc_ValueError, "fold_block answers with 8 bytes for each of 256 code points");
        return;
    }
    folded_t *block = malloc(BLOCK * sizeof *block);
    if (block) memcpy(block, PyBytes_AS_STRING(answer), BLOCK * sizeof *block);
    else PyErr_NoMemory();
    __atomic_store_n(&blocks[number], block, __ATOMIC_RELEASE);
}

/* Ask Python for a block; `thread` is the state saved when the lock was released. NULL, with an error set, on failure. */
static folded_t *ask_block(uint32_t number, PyThreadState **thread) {
    take_back(*thread);
    PyObject *answer = blocks[number] ? NULL : PyObject_CallFunction(fold_block, "I", (unsigned)(number * BLOCK));
    if (answer) keep_block(number, answer);
    Py_XDECREF(answer);
    folded_t *block = blocks[number];
    *thread = let_go_again(*thread);
    return block;
}

/* What a code point folds to; NULL where there is none to be had (an error is set then). */
static inline const folded_t *folded(uint32_t code, PyThreadState **thread) {
    static const folded_t not_simple = {0, 0, {0}};
    if (code >= TABLED) return &not_simple;
    folded_t *block = __atomic_load_n(&blocks[code / BLOCK], __ATOMIC_ACQUIRE);
    if (!block) block = ask_block(code / BLOCK, thread);
    return block ? &block[code % BLOCK] : NULL;
}

#endif
