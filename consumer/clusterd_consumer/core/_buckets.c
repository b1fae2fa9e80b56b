/* Buckets of posting lists, compiled: postings/buckets.py has their layout and gives the same bytes without this.
 *
 * plan, find, split, strikes, fill, pick: as there. Cost: a key .1 µs.
 */
#include "replies.h"

enum { ENTRY = 7, FIRST = 256 };
static const uint32_t COMMON = 0xFFFFFFFFu;

/* A key of a document on its way to its bucket: the plan of postings/buckets.py. */
typedef struct { uint32_t bucket, key, id, document; } Step;

static void add_number(Text *t, uint32_t number) {
    char digits[12];
    int at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    add(t, digits + at, sizeof digits - (size_t)at);
}

static size_t width(uint32_t number) {
    size_t digits = 1;
    while (number /= 10) digits++;
    return digits;
}

static void add_size(Text *t, char kind, size_t size) {
    add(t, &kind, 1);
    add_number(t, (uint32_t)size);
    add(t, "\r\n", 2);
}

/* A word of a command: its size, then prefix and bucket. */
static void add_key(Text *t, const Py_buffer *prefix, uint32_t bucket) {
    add_size(t, '$', (size_t)prefix->len + width(bucket));
    add(t, prefix->buf, (size_t)prefix->len);
    add_number(t, bucket);
    add(t, "\r\n", 2);
}

/* The lowest `count` bits, turned round. */
static uint32_t reversed(uint32_t bits, int count) {
    bits = (bits & 0x55555555u) << 1 | (bits >> 1 & 0x55555555u);
    bits = (bits & 0x33333333u) << 2 | (bits >> 2 & 0x33333333u);
    bits = (bits & 0x0F0F0F0Fu) << 4 | (bits >> 4 & 0x0F0F0F0Fu);
    return __builtin_bswap32(bits) >> (32 - count);
}

/* Linear hashing: the bucket of a key among so many (at least 2). */
static uint32_t bucket_of(uint32_t key, uint32_t buckets) {
    int depth = bit_length(buckets) - 1;
    uint32_t level = 1u << depth, bucket = key & (level - 1);
    return reversed(bucket, depth) < buckets - level ? key & (2 * level - 1) : bucket;
}

/* Order by bucket, a byte of it at a time from the lowest; steps of one bucket stay in their order. `spare` is as large. */
static void by_bucket(Step *steps, Step *spare, size_t count, uint32_t buckets) {
    Step *from = steps, *to = spare;
    for (int shift = 0; shift < 32 && 2ull * buckets > 1ull << shift; shift += 8) {
        size_t places[257] = {0};
        for (size_t i = 0; i < count; i++) places[(from[i].bucket >> shift & 255) + 1]++;
        for (int octet = 0; octet < 256; octet++) places[octet + 1] += places[octet];
        for (size_t i = 0; i < count; i++) to[places[from[i].bucket >> shift & 255]++] = from[i];
        Step *other = from;
        from = to;
        to = other;
    }
    if (from != steps) memcpy(steps, from, count * sizeof *steps);
}

/* How many keys documents, (id, keys)*, have in all; -1 after an error. */
static Py_ssize_t count_keys(PyObject *documents) {
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(documents); i++) {
        PyObject *one = PyList_GET_ITEM(documents, i);
        if (!PyTuple_Check(one) || PyTuple_GET_SIZE(one) != 2 || !PyBytes_Check(PyTuple_GET_ITEM(one, 1))) {
            PyErr_SetString(PyExc_TypeError, "documents are (number, keys)");
            return -1;
        }
        total += PyBytes_GET_SIZE(PyTuple_GET_ITEM(one, 1)) / 4;
    }
    return total;
}

/* The steps of documents whose keys belong to a shard, by bucket. Returns how many, -1 after an error. */
static Py_ssize_t steps_of(PyObject *documents, uint32_t buckets, uint32_t shard, uint32_t shards, Step **steps) {
    Py_ssize_t total = count_keys(documents);
    size_t count = 0;
    if (total < 0) return -1;
    *steps = PyMem_Malloc(2 * ((size_t)total + 1) * sizeof **steps);
    if (!*steps) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(documents); i++) {
        PyObject *one = PyList_GET_ITEM(documents, i), *keys = PyTuple_GET_ITEM(one, 1);
        uint32_t id = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(one, 0));
        if (PyErr_Occurred()) return -1;
        for (Py_ssize_t at = 0; at + 4 <= PyBytes_GET_SIZE(keys); at += 4) {
            uint32_t key = read_u4((const uint8_t *)PyBytes_AS_STRING(keys) + at);
            if (shards > 1 && (key >> 16) % shards != shard) continue;
            (*steps)[count++] = (Step){bucket_of(key, buckets), key, id, (uint32_t)i};
        }
    }
    by_bucket(*steps, *steps + count, count, buckets);
    return (Py_ssize_t)count;
}

static size_t group_end(const Step *steps, size_t from, size_t count) {
    size_t to = from + 1;
    while (to < count && steps[to].bucket == steps[from].bucket) to++;
    return to;
}

static void write_entry(uint8_t *entry, uint32_t key, uint32_t id) {
    write_u4(entry, key >> 8);
    write_u4(entry + 3, id);
}

static int write_appends(Text *text, const Py_buffer *prefix, const Step *steps, size_t count) {
    for (size_t from = 0, to; from < count; from = to) {
        to = group_end(steps, from, count);
        if (!reserve(text, 96 + (size_t)prefix->len + ENTRY * (to - from))) return 0;
        add(text, "*3\r\n$6\r\nAPPEND\r\n", 16);
        add_key(text, prefix, steps[from].bucket);
        add_size(text, '$', ENTRY * (to - from));
        for (size_t i = from; i < to; i++) {
            uint8_t entry[ENTRY];
            write_entry(entry, steps[i].key, steps[i].id);
            add(text, entry, ENTRY);
        }
        add(text, "\r\n", 2);
    }
    return 1;
}

static int write_reads(Text *text, const Py_buffer *prefix, const Py_buffer *last, const Step *steps, size_t count,
                       size_t groups) {
    if (!reserve(text, 96 + (size_t)last->len + groups * (48 + (size_t)prefix->len))) return 0;
    add_size(text, '*', groups + 2);
    add(text, "$4\r\nMGET\r\n", 10);
    for (size_t from = 0; from < count; from = group_end(steps, from, count)) add_key(text, prefix, steps[from].bucket);
    add_size(text, '$', (size_t)last->len);
    add(text, last->buf, (size_t)last->len);
    add(text, "\r\n", 2);
    return 1;
}

static PyObject *plan(PyObject *self, PyObject *args) {
    Py_buffer prefix, last;
    PyObject *documents, *made = NULL;
    unsigned buckets, shard, shards;
    Step *steps = NULL;
    Text appends = {0}, reads = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*O!III", &prefix, &last, &PyList_Type, &documents, &buckets, &shard, &shards))
        return NULL;
    Py_ssize_t count = buckets > 1 ? steps_of(documents, buckets, shard, shards, &steps) : 0;
    if (count >= 0) {
        size_t groups = 0;
        for (size_t from = 0; from < (size_t)count; from = group_end(steps, from, (size_t)count)) groups++;
        if (write_appends(&appends, &prefix, steps, (size_t)count) &&
            write_reads(&reads, &prefix, &last, steps, (size_t)count, groups))
            made = Py_BuildValue("(y#ny#y#)", appends.bytes ? appends.bytes : "", (Py_ssize_t)appends.size,
                                 (Py_ssize_t)groups, reads.bytes, (Py_ssize_t)reads.size, steps ? (char *)steps : "",
                                 count * (Py_ssize_t)sizeof *steps);
        else PyErr_NoMemory();
    }
    PyMem_Free(appends.bytes);
    PyMem_Free(reads.bytes);
    PyMem_Free(steps);
    PyBuffer_Release(&prefix);
    PyBuffer_Release(&last);
    return made;
}

static int has_tag(const uint8_t *entry, uint32_t tag) { return (read_u4(entry) & 0xFFFFFFu) == tag; }

/* The next entry from a place on whose key has these upper bytes, `size` where there is none. Their last byte is looked
 * for: in the first ones the keys of a bucket are alike. (Zeros are everywhere, in the numbers of documents.) */
static size_t tagged(const uint8_t *bytes, size_t size, size_t from, uint32_t tag) {
    if (!(tag >> 16)) {
        while (from < size && !has_tag(bytes + from, tag)) from += ENTRY;
        return from;
    }
    const uint8_t *end = bytes + size, *at = bytes + from + 2;
    for (; at < end && (at = memchr(at, (int)(tag >> 16), (size_t)(end - at))); at++) {
        size_t entry = (size_t)(at - bytes) - 2;
        if (entry % ENTRY == 0 && has_tag(bytes + entry, tag)) return entry;
    }
    return size;
}

/* What a bucket says of one step: 0 where it is as it should be; its candidates are added to `found`. */
static int read_bucket(const uint8_t *bytes, size_t size, const Step *step, size_t bound, int looking, Text *found) {
    size_t entries = 0, own = 0, before = found->size;
    uint32_t tag = step->key >> 8;
    size -= size % ENTRY;
    for (size_t at = tagged(bytes, size, 0, tag); at < size; at = tagged(bytes, size, at + ENTRY, tag)) {
        uint32_t id = read_u4(bytes + at + 3);
        if (!id) continue; /* withdrawn */
        entries++;
        if (id == COMMON) {
            found->size = before;
            return 1;
        }
        if (id == step->id) {
            own++;
            continue;
        }
        uint64_t pair = (uint64_t)step->document << 32 | id;
        if (!reserve(found, sizeof pair)) return -1;
        add(found, &pair, sizeof pair);
    }
    if (looking || (own == 1 && entries <= bound)) return 0;
    found->size = before;
    return 1;
}

static int by_pair(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Pairs (document, id) → a list of ids for each document, each once, ascending. */
static PyObject *lists_of(Text *found, Py_ssize_t documents) {
    uint64_t *pairs = (uint64_t *)found->bytes;
    size_t count = found->size / sizeof *pairs;
    if (count) qsort(pairs, count, sizeof *pairs, by_pair);
    PyObject *lists = PyList_New(documents);
    for (Py_ssize_t i = 0; lists && i < documents; i++) {
        PyObject *one = PyList_New(0);
        if (!one) Py_CLEAR(lists);
        else PyList_SET_ITEM(lists, i, one);
    }
    for (size_t i = 0; lists && i < count; i++) {
        if (i && pairs[i] == pairs[i - 1]) continue;
        PyObject *id = PyLong_FromUnsignedLong((unsigned long)(pairs[i] & 0xFFFFFFFFu));
        if (!id || PyList_Append(PyList_GET_ITEM(lists, (Py_ssize_t)(pairs[i] >> 32)), id) < 0) Py_CLEAR(lists);
        Py_XDECREF(id);
    }
    return lists;
}

/* A number in digits; where there is none, the fewest buckets. */
static uint32_t number_of(const Bulk *digits) {
    uint64_t number = 0;
    for (size_t i = 0; i < digits->size && i < 10; i++) number = number * 10 + (uint64_t)(digits->bytes[i] - '0');
    return digits->size ? (uint32_t)number : FIRST;
}

/* Buckets as they were read with their number behind them, and the steps that look at them. */
typedef struct { Py_buffer packed, reply; const Step *steps; size_t count, groups; Bulk *buckets; uint32_t number; } Looked;

static void close_looked(Looked *l) {
    PyMem_Free(l->buckets);
    PyBuffer_Release(&l->packed);
    PyBuffer_Release(&l->reply);
}

/* `packed` and `reply` are given. Returns 0, with an error and all freed, where they do not fit together. */
static int open_looked(Looked *l) {
    size_t strings, groups = 0;
    l->steps = l->packed.buf;
    l->count = (size_t)l->packed.len / sizeof *l->steps;
    for (size_t from = 0; from < l->count; from = group_end(l->steps, from, l->count)) groups++;
    if ((l->buckets = bulks_of(&l->reply, &strings))) {
        l->groups = groups;
        l->number = strings ? number_of(l->buckets + strings - 1) : 0;
        if (strings == groups + 1 && l->number > 1) return 1;
        PyErr_SetString(PyExc_ValueError, "not the buckets of these steps, or fewer than two buckets");
    }
    close_looked(l);
    return 0;
}

static PyObject *find(PyObject *self, PyObject *args) {
    Looked looked = {0};
    PyObject *made = NULL;
    Py_ssize_t documents, bound;
    int looking, state = 0;
    Text found = {0}, odd = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*nnp", &looked.packed, &looked.reply, &documents, &bound, &looking)) return NULL;
    if (!open_looked(&looked)) return NULL;
    const Step *steps = looked.steps;
    const Bulk *bucket = looked.buckets;
    for (size_t i = 0; state >= 0 && i < looked.count; i++) {
        if (i && steps[i].bucket != steps[i - 1].bucket) bucket++;
        if ((Py_ssize_t)steps[i].document >= documents) state = -2;
        else if (bucket_of(steps[i].key, looked.number) != steps[i].bucket) state = 1;
        else state = read_bucket(bucket->bytes, bucket->size, steps + i, (size_t)bound, looking, &found);
        if (state > 0 && !reserve(&odd, sizeof *steps)) state = -1;
        else if (state > 0) add(&odd, steps + i, sizeof *steps);
    }
    if (state == -2) PyErr_SetString(PyExc_ValueError, "a step of no document");
    else if (state < 0) PyErr_NoMemory();
    else {
        PyObject *lists = lists_of(&found, documents);
        if (lists)
            made = Py_BuildValue("(Ny#I)", lists, odd.bytes ? odd.bytes : "", (Py_ssize_t)odd.size, (unsigned)looked.number);
    }
    PyMem_Free(found.bytes);
    PyMem_Free(odd.bytes);
    close_looked(&looked);
    return made;
}

/* Where an entry that begins with these bytes lies in a bucket from a place on, `size` where it does not. */
static size_t entry_at(const uint8_t *bytes, size_t size, size_t from, const uint8_t *entry) {
    for (size_t at = from; at + ENTRY <= size; at += ENTRY)
        if (!memcmp(bytes + at, entry, ENTRY)) return at;
    return size;
}

/* Strike the documents of the steps from..to-1 in their bucket's entries, wherever they stand; what cannot be goes to the
 * rest. */
static int strike(uint8_t *entries, size_t size, const Step *from, const Step *to, Text *struck, Text *rest) {
    for (const Step *step = from; step < to; step++) {
        uint8_t own[ENTRY], common[ENTRY];
        uint32_t pair[2] = {step->id, step->key};
        write_entry(own, step->key, step->id);
        write_entry(common, step->key, COMMON);
        size_t at = entry_at(entries, size, 0, own);
        if (at == size || entry_at(entries, size, 0, common) < size) {
            if (!reserve(rest, sizeof pair)) return 0;
            add(rest, pair, sizeof pair);
            continue;
        }
        pair[0] = step->bucket;
        for (; at < size; at = entry_at(entries, size, at + ENTRY, own)) {
            if (!reserve(struck, sizeof pair)) return 0;
            memset(entries + at + 3, 0, 4);
            pair[1] = (uint32_t)at + 3;
            add(struck, pair, sizeof pair);
        }
    }
    return 1;
}

static PyObject *strikes(PyObject *self, PyObject *args) {
    Looked looked = {0};
    PyObject *made = NULL;
    Text entries = {0}, struck = {0}, spent = {0}, rest = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*", &looked.packed, &looked.reply)) return NULL;
    if (!open_looked(&looked)) return NULL;
    const Step *steps = looked.steps;
    const Bulk *bucket = looked.buckets;
    int good = 1;
    for (size_t from = 0, to; good && from < looked.count; from = to, bucket++) {
        size_t before = struck.size, quarter = bucket->size / ENTRY / 4 * ENTRY;
        to = group_end(steps, from, looked.count);
        entries.size = 0;
        if (!(good = reserve(&entries, bucket->size + ENTRY) && reserve(&spent, 4))) break;
        add(&entries, bucket->bytes, bucket->size);
        good = strike((uint8_t *)entries.bytes, bucket->size, steps + from, steps + to, &struck, &rest);
        if (struck.size > before && !read_u4((uint8_t *)entries.bytes + quarter + 3)) add(&spent, &steps[from].bucket, 4);
    }
    if (good)
        made = Py_BuildValue("(y#y#y#I)", struck.bytes ? struck.bytes : "", (Py_ssize_t)struck.size,
                             spent.bytes ? spent.bytes : "", (Py_ssize_t)spent.size, rest.bytes ? rest.bytes : "",
                             (Py_ssize_t)rest.size, (unsigned)looked.number);
    else PyErr_NoMemory();
    PyMem_Free(entries.bytes);
    PyMem_Free(struck.bytes);
    PyMem_Free(spent.bytes);
    PyMem_Free(rest.bytes);
    close_looked(&looked);
    return made;
}

/* The halves of a bucket by the bit of the keys that 2^depth is; an entry of another bucket is dropped and counted. */
static PyObject *split(PyObject *self, PyObject *args) {
    const char *value;
    Py_ssize_t size, low = 0, high = 0, dropped = 0;
    unsigned bucket;
    int depth;
    (void)self;
    if (!PyArg_ParseTuple(args, "z#Ii", &value, &size, &bucket, &depth)) return NULL;
    if (!value) size = 0;
    char *halves = PyMem_Malloc(2 * (size_t)size + 1);
    if (!halves) return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at + ENTRY <= size; at += ENTRY) {
        const uint8_t *entry = (const uint8_t *)value + at;
        uint32_t key = (bucket & 255) | (uint32_t)entry[0] << 8 | (uint32_t)entry[1] << 16 | (uint32_t)entry[2] << 24;
        if (!read_u4(entry + 3)) continue; /* withdrawn */
        if ((key & ((1u << depth) - 1)) != bucket) dropped++;
        else if (key >> depth & 1) memcpy(halves + size + ENTRY * high++, entry, ENTRY);
        else memcpy(halves + ENTRY * low++, entry, ENTRY);
    }
    PyObject *made = Py_BuildValue("(y#y#n)", halves, ENTRY * low, halves + size, ENTRY * high, dropped);
    PyMem_Free(halves);
    return made;
}

static int append_block(PyObject *blocks, unsigned block, unsigned count, int full, Text *text) {
    PyObject *one = Py_BuildValue("(IIOy#)", block, count, full ? Py_True : Py_False, text->bytes, (Py_ssize_t)text->size);
    int good = one && PyList_Append(blocks, one) == 0;
    Py_XDECREF(one);
    text->size = 0;
    return good;
}

/* Put sketches, (number, bytes)* in order, into their blocks: (block, how many, whether the last place, bytes) of each. */
static PyObject *fill(PyObject *self, PyObject *args) {
    PyObject *list, *blocks = PyList_New(0);
    unsigned size, block = 0, count = 0, number = 0;
    Text text = {0};
    (void)self;
    int good = blocks && PyArg_ParseTuple(args, "O!I", &PyList_Type, &list, &size) && size;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(list); i++) {
        const char *bytes;
        Py_ssize_t length;
        unsigned before = number;
        if (!(good = PyArg_ParseTuple(PyList_GET_ITEM(list, i), "Iy#", &number, &bytes, &length))) break;
        if (count && number / size != block) {
            good = append_block(blocks, block, count, before % size == size - 1, &text);
            count = 0;
        }
        block = number / size;
        count++;
        if (!(good = good && reserve(&text, 4 + (size_t)length))) break;
        uint8_t head[4];
        write_u4(head, number % size | (uint32_t)length << 5);
        add(&text, head, sizeof head);
        add(&text, bytes, (size_t)length);
    }
    if (good && count) good = append_block(blocks, block, count, number % size == size - 1, &text);
    PyMem_Free(text.bytes);
    if (good) return blocks;
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_XDECREF(blocks);
    return NULL;
}

/* The sketch at a place of a block: place (5 bits), length (27), bytes; of several the last, empty where there is none. */
static Bulk sketch_at(const Bulk *block, uint32_t place) {
    Bulk found = {0};
    for (size_t at = 0; at + 4 <= block->size;) {
        uint32_t head = read_u4(block->bytes + at);
        size_t length = head >> 5;
        at += 4;
        if (length > block->size - at) break;
        if ((head & 31) == place) found = (Bulk){block->bytes + at, length};
        at += length;
    }
    return found;
}

static PyObject *pick(PyObject *self, PyObject *args) {
    Py_buffer numbers, reply;
    PyObject *picked = NULL;
    unsigned size;
    size_t blocks, at = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*Iy*", &numbers, &size, &reply)) return NULL;
    const uint8_t *wanted = numbers.buf;
    Py_ssize_t count = numbers.len / 4;
    Bulk *block = size ? bulks_of(&reply, &blocks) : NULL;
    if (block) picked = PyList_New(count);
    for (Py_ssize_t i = 0; picked && i < count; i++) {
        uint32_t number = read_u4(wanted + 4 * i);
        at += i && number / size != read_u4(wanted + 4 * i - 4) / size;
        Bulk one = at < blocks ? sketch_at(block + at, number % size) : (Bulk){0};
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)one.bytes, (Py_ssize_t)one.size);
        if (!bytes) Py_CLEAR(picked);
        else PyList_SET_ITEM(picked, i, bytes);
    }
    PyMem_Free(block);
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&reply);
    return picked;
}

static PyMethodDef methods[] = {
    {"plan", plan, METH_VARARGS, "plan(prefix, last, documents, buckets, shard, shards) -> (appends, groups, reads, steps)"},
    {"find", find, METH_VARARGS, "find(steps, reply, documents, bound, looking) -> (lists, odd, buckets)"},
    {"split", split, METH_VARARGS, "split(value, bucket, depth) -> (low, high, dropped)"},
    {"strikes", strikes, METH_VARARGS, "strikes(steps, reply) -> (struck, spent, rest, buckets)"},
    {"fill", fill, METH_VARARGS, "fill(sketches, size) -> [(block, sketches, full, bytes)]"},
    {"pick", pick, METH_VARARGS, "pick(numbers, size, reply) -> [sketch]"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_buckets", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__buckets(void) { return PyModule_Create(&module); }
