/* Replies of Redis received and passed, compiled: `redis_replies.py` and `redis_lines.py` do the same.
 *
 * ends(buffer, at, end, left) -> (at, left, refused). receive(line, buffer, at, end, left) -> (at, end, left, refused):
 * the same, receiving until nothing is left, the buffer is full, or a signal has come. push(line, data) -> how much of it
 * was sent. `line` is the number of a socket (its file descriptor).
 * Cost: 5 ns a string, however long. A reply that comes in many pieces takes Python's lock once.
 */
#include "replies.h"

#include <errno.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* Python has the signal ignored */
#endif

/* Behind a reply, or behind the head of one that is a list; NULL where not all of it is there. `good`: it is a reply. */
static const uint8_t *behind(const uint8_t *at, const uint8_t *end, int64_t *within, int *good) {
    const uint8_t *line = memchr(at, '\n', (size_t)(end - at));
    int64_t number = 0;
    int counts = *at == '$' || *at == '*';
    *within = 0;
    *good = memchr("+-:$*", *at, 5) && (!line || !counts || read_line(at, end, &number));
    if (!*good || !line) return NULL;
    line++;
    if (number < 0) return line;
    if (*at == '*') *within = number;
    if (*at != '$') return line;
    return number <= end - line - 2 ? line + number + 2 : NULL;
}

/* Replies on their way: what was received, how far it was passed, how many are still to come. */
typedef struct { const uint8_t *at, *end; int64_t left; int refused; } Passing;

/* Pass what is there. Returns 0 where it is no reply (nor is what says that more follows than can be counted). */
static int pass(Passing *p) {
    int good = 1;
    while (p->left > 0 && p->at < p->end) {
        int64_t within;
        const uint8_t *next = behind(p->at, p->end, &within, &good);
        if (!next) break;
        if (within - 1 > INT64_MAX - p->left) return 0;
        p->refused |= *p->at == '-';
        p->left += within - 1;
        p->at = next;
    }
    return good;
}

/* What `ends` and `receive` are given; the lock on the buffer is kept. */
static int begin(PyObject *buffer, Py_ssize_t at, Py_ssize_t end, long long left, int flags, Py_buffer *view, Passing *p) {
    if (PyObject_GetBuffer(buffer, view, flags) < 0) return 0;
    const uint8_t *start = view->buf;
    *p = (Passing){start + at, start + end, left, 0};
    if (at >= 0 && at <= end && end <= view->len) return 1;
    PyErr_SetString(PyExc_ValueError, "not a part of the buffer");
    PyBuffer_Release(view);
    return 0;
}

static PyObject *ends(PyObject *self, PyObject *args) {
    PyObject *buffer;
    Py_buffer view;
    Py_ssize_t at, end;
    long long left;
    Passing p;
    (void)self;
    if (!PyArg_ParseTuple(args, "OnnL", &buffer, &at, &end, &left) || !begin(buffer, at, end, left, PyBUF_SIMPLE, &view, &p))
        return NULL;
    int good = pass(&p);
    at = p.at - (const uint8_t *)view.buf;
    PyBuffer_Release(&view);
    if (good) return Py_BuildValue("(nLO)", at, (long long)p.left, p.refused ? Py_True : Py_False);
    PyErr_SetString(PyExc_ValueError, "not a reply of Redis");
    return NULL;
}

/* Receive until all is there, the buffer is full, or a signal has come: it is handled once the caller is back in Python,
 * which asks for the rest. Returns 0 where the bytes are no reply (`good` is 0 then) or the system says no (`errno`). */
static int receive_all(int line, const Py_buffer *view, Passing *p, int *good) {
    const uint8_t *full = (const uint8_t *)view->buf + view->len;
    ssize_t size = 1;
    for (;;) {
        if (size > 0 && (!(*good = pass(p)) || p->left <= 0 || p->end == full)) return *good;
        size = recv(line, (uint8_t *)p->end, (size_t)(full - p->end), 0);
        if (size > 0) p->end += size;
        else if (size < 0 && errno == EINTR) return 1;
        else break;
    }
    if (size == 0) errno = ECONNRESET;
    return 0;
}

static PyObject *receive(PyObject *self, PyObject *args) {
    PyObject *buffer;
    Py_buffer view;
    Py_ssize_t at, end;
    long long left;
    int line, received, good;
    Passing p;
    (void)self;
    if (!PyArg_ParseTuple(args, "iOnnL", &line, &buffer, &at, &end, &left) ||
        !begin(buffer, at, end, left, PyBUF_WRITABLE, &view, &p))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    received = receive_all(line, &view, &p, &good);
    Py_END_ALLOW_THREADS
    const uint8_t *start = view.buf;
    PyBuffer_Release(&view);
    if (received)
        return Py_BuildValue("(nnLO)", p.at - start, p.end - start, (long long)p.left, p.refused ? Py_True : Py_False);
    if (good) return PyErr_SetFromErrno(PyExc_OSError);
    PyErr_SetString(PyExc_ValueError, "not a reply of Redis");
    return NULL;
}

/* What the system takes at once is sent without letting other threads in: they would take longer than it does. */
static PyObject *push(PyObject *self, PyObject *args) {
    Py_buffer data;
    int line;
    (void)self;
    if (!PyArg_ParseTuple(args, "iy*", &line, &data)) return NULL;
    ssize_t sent = send(line, data.buf, (size_t)data.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    PyBuffer_Release(&data);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromSsize_t(sent < 0 ? 0 : sent);
}

static PyMethodDef methods[] = {
    {"push", push, METH_VARARGS, "push(line, data) -> how much was sent"},
    {"receive", receive, METH_VARARGS, "receive(line, buffer, at, end, left) -> (at, end, left, refused)"},
    {"ends", ends, METH_VARARGS, "ends(buffer, at, end, left) -> (at, left, refused)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_replies", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__replies(void) { return PyModule_Create(&module); }
