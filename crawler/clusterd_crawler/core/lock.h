/* The interpreter's lock: let go of for a page that takes long, kept for a small one.
 *
 * To let go and to ask again costs a switch of threads, some 20 µs where the crawl's loop is busy, several times a page;
 * while a small page is worked on the loop waits less than a millisecond.
 */
#ifndef CLUSTERD_LOCK_H
#define CLUSTERD_LOCK_H

#include <Python.h>

/* Bytes of a page up to which the lock is kept. */
enum { SMALL = 128 * 1024 };

/* Let go of the lock where there is so much work; NULL where it is kept. */
static inline PyThreadState *let_go(size_t bytes) { return bytes > SMALL ? PyEval_SaveThread() : NULL; }

static inline void take_back(PyThreadState *thread) {
    if (thread) PyEval_RestoreThread(thread);
}

/* The same between the two, for a moment in which the interpreter is needed. */
static inline PyThreadState *let_go_again(const PyThreadState *before) { return before ? PyEval_SaveThread() : NULL; }

#endif
