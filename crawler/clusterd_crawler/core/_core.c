/* The compiled core: text → hashes → sketches, markup → marked text. Same results as the Python beside it, bit for bit.
 *
 * sketch(text: str | bytes, marked: bool, folded: bool, w, kind, size, entire, most, parity: bool)
 *         -> (whole, main | None, bag, unnumbered) | None
 *     bytes are UTF-8. whole, main: (values: bytes, shingles, tokens, text identity, parity: bytes); main is None where it
 *     equals whole.
 *     None: the text must be folded first (tokens.composed), because it is not made of simple code points only.
 * walk(markup: bytes, well_nested: bool, unescape) -> (marked text: bytes, flags, [(kind, value: bytes)])
 * at_hand(text: bytes) -> bool             whether every table that UTF-8 text is folded by has been made (core/fold.h)
 * pack(values: bytes) -> bytes              the values of a sketch as they travel (message.py)
 * set_modern(wanted: bool) -> bool          whether newer processors' instructions are used (core/modern.h), and were before
 * set_classes(table: bytes)                once, before anything else (token_classes.class_table)
 * set_fold(fold_block: int -> bytes)       likewise (tokens.fold_block)
 * set_markup(tags: dict[bytes, int], embedding: Iterable[bytes], roles, said: dict[bytes, int],
 *            references: dict[bytes, bytes])    likewise (chrome)
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "marks.h"
#include "modern.h"
#include "scratch.h"
#include "shingles.h"
#include "tokenize.h"

static MODERN enum outcome tokenize_modern(tokens_t *t, const uint8_t *p, size_t size, int marked, int is_folded,
                                           PyThreadState **thread) {
    return tokenize(t, p, size, marked, is_folded, thread);
}

static MODERN sampled_t sampled_modern(const uint64_t *hashes, size_t count, const profile_t *profile, uint64_t *scratch) {
    return sampled(hashes, count, profile, scratch);
}

static PyObject *set_modern(PyObject *self, PyObject *wanted) {
    (void)self;
    int before = modern, is = PyObject_IsTrue(wanted);
    if (is < 0) return NULL;
    modern = is && IS_MODERN;
    return PyBool_FromLong(before);
}

static PyObject *class_bytes;

static PyObject *set_classes(PyObject *self, PyObject *table) {
    (void)self;
    if (!PyBytes_Check(table) || PyBytes_GET_SIZE(table) != TABLED) {
        PyErr_SetString(PyExc_ValueError, "set_classes takes a byte for each code point of the table");
        return NULL;
    }
    Py_XSETREF(class_bytes, Py_NewRef(table));
    class_table = (const uint8_t *)PyBytes_AS_STRING(table);
    set_ascii_words();
    Py_RETURN_NONE;
}

static PyObject *set_fold(PyObject *self, PyObject *function) {
    (void)self;
    Py_XSETREF(fold_block, Py_NewRef(function));
    Py_RETURN_NONE;
}

/* The UTF-8 of a str or of bytes; `*owned` is to be released afterwards where the text holds lone surrogates. */
static const uint8_t *utf8_of(PyObject *text, Py_ssize_t *length, PyObject **owned) {
    *owned = NULL;
    if (PyBytes_Check(text)) {
        *length = PyBytes_GET_SIZE(text);
        return (const uint8_t *)PyBytes_AS_STRING(text);
    }
    const char *data = PyUnicode_AsUTF8AndSize(text, length);
    if (data) return (const uint8_t *)data;
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return NULL;
    PyErr_Clear();
    *owned = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    if (!*owned) return NULL;
    *length = PyBytes_GET_SIZE(*owned);
    return (const uint8_t *)PyBytes_AS_STRING(*owned);
}

/* Tokenize a text without the interpreter's lock. FAILED: an error is set. Only TOKENIZED leaves `*scratch` to give back. */
static enum outcome tokenize_text(PyObject *text, int marked, int is_folded, tokens_t *t, scratch_t *scratch) {
    Py_ssize_t length;
    PyObject *owned;
    enum outcome outcome = FAILED;
    if (!class_table || !fold_block) {
        PyErr_SetString(PyExc_RuntimeError, "set_classes and set_fold first");
        return FAILED;
    }
    const uint8_t *data = utf8_of(text, &length, &owned);
    if (!data) return FAILED;
    size_t room = (size_t)length + 2; /* hashes; folding makes at most one token of a byte */
    *scratch = take_scratch(room * 16 + (size_t)length * FOLDED_BYTES / 2 + PADDING);
    *t = (tokens_t){.hashes = (uint64_t *)scratch->memory};
    if (scratch->memory) {
        t->main = t->hashes + room;
        t->token = (uint8_t *)(t->main + room);
        PyThreadState *thread = let_go((size_t)length);
        outcome = (modern ? tokenize_modern : tokenize)(t, data, (size_t)length, marked, is_folded, &thread);
        take_back(thread);
    } else {
        PyErr_NoMemory();
    }
    if (outcome != TOKENIZED) give_scratch(*scratch);
    Py_XDECREF(owned);
    return outcome;
}

static PyObject *at_hand(PyObject *self, PyObject *text) {
    (void)self;
    if (!PyBytes_Check(text)) {
        PyErr_SetString(PyExc_ValueError, "at_hand takes bytes");
        return NULL;
    }
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(text), *end = p + PyBytes_GET_SIZE(text);
    while (p < end) {
        if (*p < 0x80) {
            while (end - p >= 8 && !(load64(p) & 0x8080808080808080ULL)) p += 8;
            while (p < end && *p < 0x80) p++;
            continue;
        }
        uint32_t code;
        size_t bytes = decode(p, end, &code);
        if (!bytes || (code < TABLED && !blocks[code / BLOCK])) Py_RETURN_FALSE;
        p += bytes;
    }
    Py_RETURN_TRUE;
}

/* (values, shingles, tokens, text identity, parity) of one stream. `scratch` has room for twice `count` values. */
static PyObject *stream_sketch(const uint64_t *hashes, size_t count, const profile_t *profile, uint64_t *scratch) {
    sampled_t made = {scratch, 0, 0, 0, 0, {0}};
    if (count) {
        PyThreadState *thread = let_go(count * sizeof *hashes);
        made = (modern ? sampled_modern : sampled)(hashes, count, profile, scratch);
        take_back(thread);
    }
    return Py_BuildValue("(y#nnKy#)", (const char *)made.values, (Py_ssize_t)(made.kept * 8), (Py_ssize_t)made.distinct,
                         (Py_ssize_t)count, (unsigned long long)made.identity, (const char *)made.parity,
                         (Py_ssize_t)(made.has_parity ? sizeof made.parity : 0));
}

static PyObject *sketches(const tokens_t *t, const profile_t *profile) {
    const int no_chrome = t->main_count == t->count || t->main_count == 0;
    uint64_t *scratch = malloc((2 * t->count + 2) * 8);
    if (!scratch) return PyErr_NoMemory();
    const size_t main_count = no_chrome ? t->count : t->main_count;
    const numbers_t numbers = no_chrome ? t->numbers : t->main_numbers;
    uint64_t sum = bag_sum(no_chrome ? t->hashes : t->main, main_count);
    uint64_t bag = bag_identity(sum, main_count);
    uint64_t unnumbered = bag_identity(sum - numbers.sum, main_count - numbers.count);
    PyObject *main = NULL, *whole = stream_sketch(t->hashes, t->count, profile, scratch);
    if (whole) main = no_chrome ? Py_NewRef(Py_None) : stream_sketch(t->main, t->main_count, profile, scratch);
    free(scratch);
    if (!main) {
        Py_XDECREF(whole);
        return NULL;
    }
    return Py_BuildValue("(NNKK)", whole, main, (unsigned long long)bag, (unsigned long long)unnumbered);
}

static PyObject *sketch(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *text;
    int marked, is_folded, kind, parity;
    Py_ssize_t w;
    unsigned long long size, entire, most;
    if (!PyArg_ParseTuple(args, "OppniKKKp", &text, &marked, &is_folded, &w, &kind, &size, &entire, &most, &parity))
        return NULL;
    if (w < 1 || size < 1 || kind < KIND_MIN || kind > KIND_MOD) {
        PyErr_SetString(PyExc_ValueError, "w and size are at least 1, kind is 0, 1 or 2");
        return NULL;
    }
    profile_t profile = {(size_t)w, (enum kind)kind, size, entire, most, parity && kind == KIND_MIN};
    tokens_t t;
    scratch_t scratch;
    enum outcome outcome = tokenize_text(text, marked, is_folded, &t, &scratch);
    if (outcome == FAILED) return NULL;
    if (outcome == NOT_SIMPLE) Py_RETURN_NONE;
    PyObject *made = sketches(&t, &profile);
    give_scratch(scratch);
    return made;
}

/* 8 bytes a value → 5; OverflowError where they are not 40 bits, ascending and distinct. */
static PyObject *pack(PyObject *self, PyObject *values) {
    (void)self;
    if (!PyBytes_Check(values) || PyBytes_GET_SIZE(values) % 8) {
        PyErr_SetString(PyExc_ValueError, "pack takes bytes, 8 a value");
        return NULL;
    }
    Py_ssize_t count = PyBytes_GET_SIZE(values) / 8;
    PyObject *made = PyBytes_FromStringAndSize(NULL, count * FINGERPRINT_BITS / 8);
    if (!made) return NULL;
    const uint8_t *from = (const uint8_t *)PyBytes_AS_STRING(values);
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(made);
    uint64_t least = 0, wrong = 0;
    for (Py_ssize_t i = 0; i < count; i++, from += 8, to += FINGERPRINT_BITS / 8) {
        uint64_t value = load64(from);
        wrong |= (value < least) | value >> FINGERPRINT_BITS;
        least = value + 1;
        memcpy(to, from, FINGERPRINT_BITS / 8);
    }
    if (!wrong) return made;
    Py_DECREF(made);
    PyErr_SetString(PyExc_OverflowError, "the values of a sketch are 40 bits, ascending and distinct");
    return NULL;
}

/* Add a word with these bits, beside those that it has. */
static int add_bytes(words_t *words, PyObject *word, uint32_t bits) {
    if (PyBytes_Check(word)) {
        const uint8_t *text = (const uint8_t *)PyBytes_AS_STRING(word);
        size_t length = (size_t)PyBytes_GET_SIZE(word);
        const word_t *known = find_word(words, text, length);
        if (add_word(words, text, length, known ? known->value | bits : bits)) return 1;
    }
    PyErr_SetString(PyExc_ValueError, "a word of the tables is no bytes, is too long, or is one too many");
    return 0;
}

static int add_all(words_t *words, PyObject *iterable, uint32_t bits) {
    PyObject *iterator = PyObject_GetIter(iterable), *word;
    if (!iterator) return 0;
    int added = 1;
    while (added && (word = PyIter_Next(iterator))) {
        added = add_bytes(words, word, bits);
        Py_DECREF(word);
    }
    Py_DECREF(iterator);
    return added && !PyErr_Occurred();
}

static PyObject *set_markup(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *tags, *embedding, *roles, *said, *texts, *tag, *bits;
    if (!PyArg_ParseTuple(args, "O!OO!O!O!", &PyDict_Type, &tags, &embedding, &PyDict_Type, &roles, &PyDict_Type, &said, &PyDict_Type, &texts))
        return NULL;
    Py_ssize_t at = 0;
    memset(&tag_words, 0, sizeof tag_words);
    memset(&role_words, 0, sizeof role_words);
    memset(&chrome_words, 0, sizeof chrome_words);
    while (PyDict_Next(tags, &at, &tag, &bits))
        if (!add_bytes(&tag_words, tag, (uint32_t)PyLong_AsUnsignedLongMask(bits))) return NULL;
    for (at = 0; PyDict_Next(said, &at, &tag, &bits);)
        if (!add_bytes(&chrome_words, tag, (uint32_t)PyLong_AsUnsignedLongMask(bits))) return NULL;
    for (at = 0; PyDict_Next(roles, &at, &tag, &bits);)
        if (!add_bytes(&role_words, tag, (uint32_t)PyLong_AsUnsignedLongMask(bits))) return NULL;
    if (!add_all(&tag_words, embedding, EMBEDS)) return NULL;
    set_attribute_words();
    for (at = 0; PyDict_Next(texts, &at, &tag, &bits);) {
        if (!PyBytes_Check(tag) || !PyBytes_Check(bits)) continue;
        add_reference((const uint8_t *)PyBytes_AS_STRING(tag), (size_t)PyBytes_GET_SIZE(tag),
                      (const uint8_t *)PyBytes_AS_STRING(bits), (size_t)PyBytes_GET_SIZE(bits));
    }
    Py_RETURN_NONE;
}

static PyObject *kind_names[KINDS]; /* by CANONICAL … SCRIPT */

/* Put an item at the next place of a list; 0 where there is none for want of memory. */
static int put_kind(PyObject *list, Py_ssize_t *next, int kind, slice_t value) {
    PyObject *item = Py_BuildValue("(Oy#)", kind_names[kind], (const char *)value.at, (Py_ssize_t)value.length);
    if (item) PyList_SET_ITEM(list, (*next)++, item);
    return item != NULL;
}

/* What the page declares, and shows besides its text. */
static PyObject *declared_list(const walk_t *w) {
    Py_ssize_t total = w->declared_count + w->script_count, next = 0;
    for (int i = 0; i < w->embedded_count; i++) total += w->embedded[i].count;
    PyObject *list = PyList_New(total);
    int made = list != NULL;
    for (int i = 0; made && i < w->declared_count; i++)
        made = put_kind(list, &next, w->declared[i].kind, w->declared[i].value);
    for (int i = 0; made && i < w->embedded_count; i++)
        for (int name = 0; made && name < w->embedded[i].count; name++)
            made = put_kind(list, &next, EMBEDDED, w->embedded[i].named[name]);
    for (int i = 0; made && i < w->script_count; i++) made = put_kind(list, &next, SCRIPT, w->scripts[i]);
    if (!made) Py_CLEAR(list);
    return list;
}

static PyObject *walk(PyObject *self, PyObject *args) {
    (void)self;
    Py_buffer data;
    int well_nested;
    PyObject *unescape;
    if (!PyArg_ParseTuple(args, "y*pO", &data, &well_nested, &unescape)) return NULL;
    walk_t *w = calloc(1, sizeof *w);
    PyObject *made = NULL;
    if (w && make_room(w, (size_t)data.len + 64)) {
        w->end = (const uint8_t *)data.buf + data.len;
        w->well_nested = well_nested;
        w->unescape = unescape;
        w->thread = let_go((size_t)data.len);
        walk_markup(w, data.buf);
        take_back(w->thread);
        PyObject *marked = marked_text(w), *declared = marked ? declared_list(w) : NULL;
        if (declared) made = Py_BuildValue("(NiN)", marked, w->flags, declared);
        else Py_XDECREF(marked);
    } else {
        PyErr_NoMemory();
    }
    if (w) {
        free(w->out);
        free(w->cut.items);
        free(w->dense.items);
        free(w->formatted);
        free(w);
    }
    PyBuffer_Release(&data);
    return made;
}

static PyMethodDef methods[] = {
    {"set_classes", set_classes, METH_O, "Take the table of token classes."},
    {"set_markup", set_markup, METH_VARARGS, "Take the tables of the walk."},
    {"walk", walk, METH_VARARGS, "Walk markup: its marked text, flags, and what it declares."},
    {"sketch", sketch, METH_VARARGS, "Sketch a text."},
    {"at_hand", at_hand, METH_O, "Whether every table that a text is folded by has been made."},
    {"pack", pack, METH_O, "Pack the values of a sketch for the wire."},
    {"set_modern", set_modern, METH_O, "Use what is compiled for newer processors, where this is one; return whether it was."},
    {"set_fold", set_fold, METH_O, "Take the function that folds a block of code points."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_core", "The compiled core of clusterd_crawler.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__core(void) {
    static const char *const kinds[KINDS] = {"canonical", "shortlink", "og", "base", "anchor", "embedded", "script"};
    for (int kind = 0; kind < KINDS; kind++)
        if (!(kind_names[kind] = PyUnicode_InternFromString(kinds[kind]))) return NULL;
    modern = IS_MODERN;
    return PyModule_Create(&module);
}
