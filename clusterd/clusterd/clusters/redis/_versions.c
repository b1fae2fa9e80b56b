/* A batch of fetches as lua/register.lua reads it, compiled; `registered.packed_versions` gives the same bytes.
 *
 * pack(sketches, labels) -> (heads of URL hashes, heads of sketch identities, versions, places of URLs and hosts, URLs).
 * `labels(crawl, sweep)` gives the six bytes that stand for two labels. Cost: 1 µs a sketch, most of it its identity.
 */
#define _GNU_SOURCE /* memmem */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the compiled core is for little-endian machines"
#endif

enum { VERSION = 61, PLACES = 16, LABELS = 6 };
#define LATEST ((1LL << 48) - 1)
#define MOST ((1LL << 24) - 1)

/* ---- MurmurHash3_x64_128 (Austin Appleby, public domain), its first 64 bits ---- */

static uint64_t rotl(uint64_t v, int by) { return v << by | v >> (64 - by); }

static uint64_t load(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t fmix(uint64_t v) {
    v = (v ^ v >> 33) * 0xFF51AFD7ED558CCDull;
    v = (v ^ v >> 33) * 0xC4CEB9FE1A85EC53ull;
    return v ^ v >> 33;
}

static uint64_t murmur(const uint8_t *data, size_t size, uint32_t seed) {
    const uint64_t c1 = 0x87C37B91114253D5ull, c2 = 0x4CF5AD432745937Full;
    uint64_t h1 = seed, h2 = seed;
    const uint8_t *end = data + (size & ~(size_t)15);
    for (; data < end; data += 16) {
        h1 = (rotl(h1 ^ rotl(load(data) * c1, 31) * c2, 27) + h2) * 5 + 0x52DCE729;
        h2 = (rotl(h2 ^ rotl(load(data + 8) * c2, 33) * c1, 31) + h1) * 5 + 0x38495AB5;
    }
    uint8_t tail[16] = {0};
    memcpy(tail, data, size & 15);
    h2 ^= rotl(load(tail + 8) * c2, 33) * c1;
    h1 ^= rotl(load(tail) * c1, 31) * c2;
    h1 ^= size;
    h2 ^= size;
    h1 += h2;
    h2 += h1;
    h1 = fmix(h1);
    return h1 + fmix(h2);
}

/* ---- what a sketch says ---- */

static PyObject *names[12];
enum { URL, FETCHED_AT, PROFILE, CONTENT, BAG, STATUS, MAIN, VALUES, SHINGLES, TOKENS, TEXT, PARITY };
static const char *const spelled[] = {"url",  "fetched_at", "profile",  "content", "bag", "status",
                                      "main", "values",     "shingles", "tokens",  "text",    "parity"};
static PyObject *crawl_name, *sweep_name;

/* A number brought into 0..most. Returns -1 where it is none. */
static long long bounded(PyObject *of, int name, long long most) {
    int overflow;
    PyObject *number = PyObject_GetAttr(of, names[name]);
    if (!number) return -1;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow) return overflow < 0 ? 0 : most;
    if (value == -1 && PyErr_Occurred()) return -1;
    return value < 0 ? 0 : value > most ? most : value;
}

/* A number of 64 bits. Returns 0 where it is none. */
static int whole(PyObject *of, int name, uint64_t *value) {
    PyObject *number = PyObject_GetAttr(of, names[name]);
    if (!number) return 0;
    *value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

static void put(uint8_t *at, uint64_t value, int bytes) { memcpy(at, &value, (size_t)bytes); }

static void put_turned(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* Bytes that an object holds; new reference, NULL after an error. */
static PyObject *octets(PyObject *of, int name, const uint8_t **bytes, size_t *size) {
    char *at;
    Py_ssize_t length;
    PyObject *held = PyObject_GetAttr(of, names[name]);
    if (held && PyBytes_AsStringAndSize(held, &at, &length) < 0) Py_CLEAR(held);
    if (!held) return NULL;
    *bytes = (const uint8_t *)at;
    *size = (size_t)length;
    return held;
}

/* `identity.stream_key`. Returns 0 after an error. */
static int stream_key(PyObject *stream, unsigned profile, uint64_t shingles, uint64_t *identity) {
    const uint8_t *values_at, *parity_at;
    size_t size, length;
    PyObject *values = octets(stream, VALUES, &values_at, &size), *parity = octets(stream, PARITY, &parity_at, &length);
    int good = values && parity;
    if (good) {
        uint32_t seed = profile * 2 + (size == 8 * shingles ? 1 : (uint32_t)(shingles << 9));
        if (length) seed = (uint32_t)murmur(parity_at, length, seed);
        *identity = murmur(values_at, size, seed);
    }
    Py_XDECREF(values);
    Py_XDECREF(parity);
    return good;
}

/* Identity of the sketch and of the text of a stream; a page without a shingle is equal to nothing but its URL. */
static int put_identities(uint8_t *at, PyObject *stream, unsigned profile, uint64_t of_url) {
    uint64_t shingles, text, identity = of_url;
    long long kept_shingles, kept_tokens;
    if ((kept_shingles = bounded(stream, SHINGLES, MOST)) < 0 || (kept_tokens = bounded(stream, TOKENS, MOST)) < 0) return 0;
    if (!whole(stream, SHINGLES, &shingles) || !whole(stream, TEXT, &text)) return 0;
    if (shingles && !stream_key(stream, profile, shingles, &identity)) return 0;
    put(at, identity, 8);
    if (shingles) put_turned(at + 8, text, 8);
    else put(at + 8, of_url, 8);
    put(at + 16, (uint64_t)kept_shingles, 3);
    put(at + 19, (uint64_t)kept_tokens, 3);
    at[22] = (uint8_t)profile;
    return 1;
}

/* A version as VERSION in registered.py. */
static int put_version(uint8_t *at, PyObject *sketch, const char *url, size_t size, const char *labels) {
    uint64_t content, bag, hash = murmur((const uint8_t *)url, size, 0);
    long long fetched, status, profile;
    if ((fetched = bounded(sketch, FETCHED_AT, LATEST)) < 0 || (status = bounded(sketch, STATUS, 0xFFFF)) < 0) return 0;
    if ((profile = bounded(sketch, PROFILE, 0xFF)) < 0 || !whole(sketch, CONTENT, &content) || !whole(sketch, BAG, &bag)) return 0;
    PyObject *stream = PyObject_GetAttr(sketch, names[MAIN]);
    if (!stream) return 0;
    put(at, hash, 4);
    put_turned(at + 4, (uint64_t)fetched, 6);
    put(at + 10, hash >> 32, 4);
    put(at + 14, content, 8);
    put(at + 22, bag, 8);
    memcpy(at + 30, labels, LABELS);
    put(at + 36, (uint64_t)status, 2);
    int good = put_identities(at + 38, stream, (unsigned)profile, murmur((const uint8_t *)url, size, (uint32_t)profile));
    Py_DECREF(stream);
    return good;
}

/* Where the host of a URL begins and ends: `clusterd_crawler.urls.host_of`, in bytes of UTF-8. */
static void find_host(const char *url, size_t size, size_t *from, size_t *to) {
    const char *mark = size >= 3 ? memmem(url, size, "://", 3) : NULL;
    if (mark) *from = (size_t)(mark - url) + 3;
    else {
        *from = 0;
        for (int letters = 0; letters < 2 && *from < size; letters++)
            do ++*from;
            while (*from < size && ((uint8_t)url[*from] & 0xC0) == 0x80);
    }
    for (*to = *from; *to < size && !memchr("/?#\\", url[*to], 4); ++*to) {}
}

/* A batch on its way: the labels of the sketch before, and what was packed. */
typedef struct {
    PyObject *ask, *crawl, *sweep, *labels;
    uint8_t *versions, *url_heads, *sketch_heads;
    uint32_t *places;
    char *urls;
    size_t size, room;
} Batch;

/* The labels of a sketch, asked for where they are not those of the one before; NULL after an error. */
static const char *labels_of(Batch *batch, PyObject *sketch) {
    PyObject *crawl = PyObject_GetAttr(sketch, crawl_name), *sweep = crawl ? PyObject_GetAttr(sketch, sweep_name) : NULL;
    if (crawl && sweep && (crawl != batch->crawl || sweep != batch->sweep)) {
        Py_XSETREF(batch->crawl, Py_NewRef(crawl));
        Py_XSETREF(batch->sweep, Py_NewRef(sweep));
        Py_XSETREF(batch->labels, PyObject_CallFunctionObjArgs(batch->ask, crawl, sweep, NULL));
        if (batch->labels && (!PyBytes_Check(batch->labels) || PyBytes_GET_SIZE(batch->labels) != LABELS)) {
            PyErr_SetString(PyExc_ValueError, "labels are six bytes");
            Py_CLEAR(batch->labels);
        }
    }
    int good = sweep && batch->labels;
    Py_XDECREF(crawl);
    Py_XDECREF(sweep);
    return good ? PyBytes_AS_STRING(batch->labels) : NULL;
}

/* Add a URL to the text of all. Returns 0 after an error. */
static int add_url(Batch *batch, size_t i, const char *url, size_t size) {
    size_t from, to, total = batch->size + size;
    if (total > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the URLs of a batch take 4 GB");
        return 0;
    }
    if (total > batch->room) {
        char *more = PyMem_Realloc(batch->urls, 2 * total);
        if (!more) {
            PyErr_NoMemory();
            return 0;
        }
        batch->urls = more;
        batch->room = 2 * total;
    }
    find_host(url, size, &from, &to);
    const size_t places[4] = {batch->size + 1, total, batch->size + from + 1, batch->size + to};
    for (int at = 0; at < 4; at++) batch->places[4 * i + (size_t)at] = (uint32_t)places[at];
    memcpy(batch->urls + batch->size, url, size);
    batch->size = total;
    return 1;
}

static int add_sketch(Batch *batch, size_t i, PyObject *sketch) {
    Py_ssize_t size;
    const char *labels = labels_of(batch, sketch);
    PyObject *text = labels ? PyObject_GetAttr(sketch, names[URL]) : NULL;
    const char *url = text ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    uint8_t *version = batch->versions + i * VERSION;
    int good = url && put_version(version, sketch, url, (size_t)size, labels) && add_url(batch, i, url, (size_t)size);
    Py_XDECREF(text);
    if (good) {
        memcpy(batch->url_heads + 4 * i, version, 4);
        memcpy(batch->sketch_heads + 4 * i, version + 38, 4);
    }
    return good;
}

static PyObject *pack(PyObject *self, PyObject *args) {
    PyObject *list, *made = NULL;
    Batch batch = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &batch.ask)) return NULL;
    size_t i = 0, count = (size_t)PyList_GET_SIZE(list);
    uint8_t *bytes = PyMem_Malloc(count * (PLACES + 8 + VERSION) + 1);
    if (!bytes) return PyErr_NoMemory();
    batch.places = (uint32_t *)bytes;
    batch.url_heads = bytes + PLACES * count;
    batch.sketch_heads = batch.url_heads + 4 * count;
    batch.versions = batch.sketch_heads + 4 * count;
    while (i < count && add_sketch(&batch, i, PyList_GET_ITEM(list, (Py_ssize_t)i))) i++;
    if (i == count)
        made = Py_BuildValue("(y#y#y#y#y#)", batch.url_heads, (Py_ssize_t)(4 * count), batch.sketch_heads,
                             (Py_ssize_t)(4 * count), batch.versions, (Py_ssize_t)(VERSION * count), bytes,
                             (Py_ssize_t)(PLACES * count), batch.urls ? batch.urls : "", (Py_ssize_t)batch.size);
    PyMem_Free(bytes);
    PyMem_Free(batch.urls);
    Py_XDECREF(batch.crawl);
    Py_XDECREF(batch.sweep);
    Py_XDECREF(batch.labels);
    return made;
}

static PyMethodDef methods[] = {
    {"pack", pack, METH_VARARGS, "pack(sketches, labels) -> (URL heads, sketch heads, versions, places, URLs)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_versions", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__versions(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(names[i] = PyUnicode_InternFromString(spelled[i]))) return NULL;
    if (!(crawl_name = PyUnicode_InternFromString("crawl")) || !(sweep_name = PyUnicode_InternFromString("sweep"))) return NULL;
    return PyModule_Create(&module);
}
