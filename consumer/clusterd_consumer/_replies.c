/* Where replies of Redis end, compiled; `redis_replies.ends` gives the same.
 *
 * ends(buffer, at, end, left) -> (at, left, refused): `redis_replies.py`. Cost: 5 ns a string, however long.
 */
#include "core/replies.h"

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

static PyObject *ends(PyObject *self, PyObject *args) {
    Py_buffer buffer;
    Py_ssize_t from, to;
    long long left;
    int refused = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*nnL", &buffer, &from, &to, &left)) return NULL;
    const uint8_t *start = buffer.buf, *at = start + from, *end = start + to, *next;
    int good = from >= 0 && from <= to && to <= buffer.len;
    while (good && left > 0 && at < end) {
        int64_t within;
        if (!(next = behind(at, end, &within, &good))) break;
        refused |= *at == '-';
        left += within - 1;
        at = next;
    }
    PyBuffer_Release(&buffer);
    if (good) return Py_BuildValue("(nLO)", (Py_ssize_t)(at - start), left, refused ? Py_True : Py_False);
    PyErr_SetString(PyExc_ValueError, "not a reply of Redis");
    return NULL;
}

static PyMethodDef methods[] = {
    {"ends", ends, METH_VARARGS, "ends(buffer, at, end, left) -> (at, left, refused)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_replies", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__replies(void) { return PyModule_Create(&module); }
