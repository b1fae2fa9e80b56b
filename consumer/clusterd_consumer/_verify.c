/* Stored sketches, compiled: made from values, judged against each other, posted and found. NumPy gives the same.
 *
 * pack(values, bits, flags, prefix, modulus, profile, shingles) -> (stored, keys): postings/stored.py has the byte layout,
 * postings/posted.py the keys. judge(query, candidates, bits) -> [(a, b, common, whole_a, whole_b, |A|, |B|)]: the counts of
 * postings/verdict.py. plan, find, split, pick: postings/buckets.py. Cost: O(n), a word of bits at a time.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UNBOUNDED = 1, EXACT = 2, OCTAVE = 4, HEADER = 8, SIZE_BITS = 11 };

static const uint32_t GOLDEN = 0x9E3779B1u;

static uint32_t fmix32(uint32_t h) {
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}

static int bit_length(uint64_t v) { return v ? 64 - __builtin_clzll(v) : 0; }

static uint32_t code_of(uint64_t value, int bits) {
    int shift = bit_length(value) - 1 - bits;
    if (shift < 0) shift = 0;
    return (uint32_t)(((uint64_t)shift << bits) + (value >> shift));
}

/* Rice parameter of the difference at a rank (1 = between the first two codes). */
static int parameter(uint64_t rank, int bits) {
    int k = bits - bit_length(rank);
    return k > 0 ? k : 0;
}

/* ---- bits, from the lowest of each byte ---- */

typedef struct { uint8_t *at; uint64_t word; int held; } Writer;

/* Up to 56 bits. Writes a whole word, of which the full bytes count: `room` leaves space behind. */
static inline void put_bits(Writer *w, uint64_t value, int count) {
    w->word |= value << w->held;
    w->held += count;
    memcpy(w->at, &w->word, sizeof w->word);
    w->at += w->held >> 3;
    w->word >>= w->held & ~7;
    w->held &= 7;
}

static void end_bits(Writer *w) {
    if (w->held) *w->at++ = (uint8_t)w->word;
    w->word = 0;
    w->held = 0;
}

static uint32_t read_u4(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void write_u4(uint8_t *at, uint32_t v) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(v >> 8 * i);
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sort keys, drop repeats; returns how many are left. */
static size_t distinct(uint32_t *keys, size_t count) {
    size_t kept = 0;
    qsort(keys, count, sizeof *keys, ascending);
    for (size_t i = 0; i < count; i++)
        if (!i || keys[i] != keys[i - 1]) keys[kept++] = keys[i];
    return kept;
}

/* ---- pack ---- */

/* `code_of` each value: as they ascend, a run of them shares its shift. */
static void cut(const uint64_t *values, size_t n, int bits, uint32_t *codes) {
    for (size_t i = 0; i < n;) {
        int shift = bit_length(values[i]) - 1 - bits;
        if (shift <= 0) {
            codes[i] = code_of(values[i], bits);
            i++;
            continue;
        }
        uint32_t octave = (uint32_t)((uint64_t)shift << bits);
        for (; i < n && values[i] >> shift >> bits == 1; i++) codes[i] = octave + (uint32_t)(values[i] >> shift);
    }
}

/* Ranks from..to-1 share a parameter: a run of them for each power of two. */
static size_t run_end(size_t from, size_t n) { return 2 * from < n ? 2 * from : n; }

static uint8_t *write_codes(uint8_t *at, const uint32_t *codes, size_t n, int bits) {
    Writer w = {at, 0, 0};
    for (size_t from = 1; from < n; from *= 2) {
        int k = parameter(from, bits);
        uint32_t mask = (1u << k) - 1;
        for (size_t i = from, to = run_end(from, n); i < to; i++) put_bits(&w, (codes[i] - codes[i - 1]) & mask, k);
    }
    end_bits(&w);
    for (size_t from = 1; from < n; from *= 2) {
        int k = parameter(from, bits);
        for (size_t i = from, to = run_end(from, n); i < to; i++) {
            uint32_t zeros = (codes[i] - codes[i - 1]) >> k;
            for (; zeros > 32; zeros -= 32) put_bits(&w, 0, 32);
            put_bits(&w, 1ull << zeros, (int)zeros + 1);
        }
    }
    end_bits(&w);
    return w.at;
}

/* Whether the values of a code are sampled. */
static int sampled(uint32_t code, uint32_t modulus) {
    if (!modulus) return 0;
    uint32_t mixed = fmix32(code * GOLDEN);
    return !(modulus & (modulus - 1) ? mixed % modulus : mixed & (modulus - 1)); /* a power of two needs no division */
}

static uint32_t key_of(uint32_t code, uint32_t salt, uint32_t extra) {
    return fmix32(fmix32(code + salt) ^ extra * 0x85EBCA6Bu);
}

/* Post the chosen values: their low 16 or 24 bits after the codes, their keys in `keys`. Returns the end of the bytes. */
static uint8_t *write_posted(uint8_t *at, const uint64_t *values, const uint32_t *codes, size_t n, const uint32_t *scheme,
                             uint32_t *keys, size_t *count) {
    uint32_t salt = scheme[2] * GOLDEN, modulus = scheme[1];
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        int wide = sampled(codes[i], modulus);
        if (i >= scheme[0] && !modulus) break;
        if (i >= scheme[0] && !wide) continue;
        uint32_t extra = (uint32_t)(values[i] & (wide ? 0xFFFFFF : 0xFFFF));
        for (int octet = 0; octet < 2 + wide; octet++) *at++ = (uint8_t)(extra >> 8 * octet);
        keys[(*count)++] = key_of(codes[i], salt, extra);
    }
    return at;
}

static size_t room(const uint32_t *codes, size_t n, int bits) {
    uint64_t total = 0;
    for (size_t from = 1; from < n; from *= 2) {
        int k = parameter(from, bits);
        size_t to = run_end(from, n);
        total += (uint64_t)(k + 1) * (to - from);
        for (size_t i = from; i < to; i++) total += (codes[i] - codes[i - 1]) >> k;
    }
    return HEADER + 2 + total / 8 + 4 + 3 * n + sizeof(uint64_t);
}

static PyObject *pack_values(const uint64_t *values, size_t n, int bits, uint32_t flags, const uint32_t *scheme,
                             uint64_t shingles) {
    uint32_t *codes = PyMem_Malloc(2 * n * sizeof *codes);
    if (!codes) return PyErr_NoMemory();
    uint32_t *keys = codes + n;
    cut(values, n, bits, codes);
    uint8_t *stored = PyMem_Malloc(room(codes, n, bits));
    if (!stored) {
        PyMem_Free(codes);
        return PyErr_NoMemory();
    }
    size_t count;
    write_u4(stored, (uint32_t)n * 8 + flags);
    write_u4(stored + 4, codes[0]);
    uint8_t *end = stored + HEADER;
    if (!(flags & EXACT)) {
        uint32_t size = code_of(shingles, SIZE_BITS);
        *end++ = (uint8_t)size;
        *end++ = (uint8_t)(size >> 8);
    }
    end = write_codes(end, codes, n, bits);
    end = write_posted(end, values, codes, n, scheme, keys, &count);
    count = distinct(keys, count);
    PyObject *made = Py_BuildValue("(y#y#)", stored, (Py_ssize_t)(end - stored), keys, (Py_ssize_t)(4 * count));
    PyMem_Free(stored);
    PyMem_Free(codes);
    return made;
}

/* What `room` and `write_codes` rely on. */
static int are_ascending(const uint64_t *values, size_t size) {
    for (size_t i = 1; i < size / 8; i++)
        if (values[i] < values[i - 1]) return 0;
    return size % 8 == 0;
}

static PyObject *pack(PyObject *self, PyObject *args) {
    Py_buffer values;
    int bits;
    unsigned flags, scheme[3];
    unsigned long long shingles;
    PyObject *made;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*iIIIIK", &values, &bits, &flags, scheme, scheme + 1, scheme + 2, &shingles)) return NULL;
    size_t n = (size_t)values.len / 8;
    if (!are_ascending(values.buf, (size_t)values.len)) {
        PyErr_SetString(PyExc_ValueError, "the values of a sketch ascend, 8 bytes each");
        made = NULL;
    } else if (n) made = pack_values(values.buf, n, bits, flags, scheme, shingles);
    else made = Py_BuildValue("(y#y#)", "\0\0\0\0", (Py_ssize_t)4, "", (Py_ssize_t)0);
    PyBuffer_Release(&values);
    return made;
}

/* ---- judge ---- */

typedef struct { uint32_t *codes; size_t n; int exact; uint64_t limit, shingles; } Decoded;

/* The middle of the numbers that have this code. */
static uint64_t size_of(uint32_t code) {
    uint32_t shift = code >> SIZE_BITS;
    if (shift) shift--;
    return ((uint64_t)(code - (shift << SIZE_BITS)) << shift) + ((1ull << shift) >> 1);
}

static uint64_t load8(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Read a bit stream's zeros up to the next one. Returns 0 at the end of the bytes (behind which 8 more can be read). */
static inline int read_high(const uint8_t *bytes, uint64_t *at, uint64_t end, uint64_t *zeros) {
    uint64_t from = *at;
    while (*at < end) {
        uint64_t rest = load8(bytes + (*at >> 3)) >> (*at & 7);
        if (rest) {
            *at += (unsigned)__builtin_ctzll(rest);
            *zeros = *at - from;
            return (*at)++ < end;
        }
        *at += 64 - (*at & 7);
    }
    return 0;
}

static inline uint64_t read_low(const uint8_t *bytes, uint64_t at, int count) {
    return (load8(bytes + (at >> 3)) >> (at & 7)) & ((1ull << count) - 1);
}

/* Decode into `into`, which has room for `most` codes. Returns 0 where the bytes are not a stored sketch. */
static int decode(const uint8_t *bytes, size_t size, int bits, uint32_t *into, size_t most, Decoded *out) {
    if (size < 4) return 0;
    uint32_t head = read_u4(bytes);
    out->n = head >> 3;
    out->exact = (head & EXACT) != 0;
    out->codes = into;
    out->limit = UINT64_MAX;
    out->shingles = out->n;
    if (!out->n) return 1;
    size_t header = HEADER + (out->exact ? 0 : 2);
    if (size < header || out->n > most) return 0;
    if (!out->exact) {
        uint64_t shingles = size_of(bytes[HEADER] | (uint32_t)bytes[HEADER + 1] << 8);
        if (shingles > out->n) out->shingles = shingles;
    }
    uint64_t lows = 0;
    for (size_t from = 1; from < out->n; from *= 2)
        lows += (uint64_t)parameter(from, bits) * (run_end(from, out->n) - from);
    uint64_t low = 8 * header, high = 8 * (header + (lows + 7) / 8), end = 8 * (uint64_t)size, zeros;
    into[0] = read_u4(bytes + 4);
    for (size_t from = 1; from < out->n; from *= 2) {
        int k = parameter(from, bits);
        for (size_t i = from, to = run_end(from, out->n); i < to; i++) {
            if (!read_high(bytes, &high, end, &zeros)) return 0;
            into[i] = into[i - 1] + (uint32_t)((zeros << k) + read_low(bytes, low, k));
            low += (uint64_t)k;
        }
    }
    if (!(head & UNBOUNDED)) out->limit = into[out->n - 1] | (head & OCTAVE ? (1u << bits) - 1 : 0);
    return 1;
}

static size_t up_to(const Decoded *d, uint64_t limit) {
    size_t n = d->n;
    while (n && d->codes[n - 1] > limit) n--;
    return n;
}

static PyObject *compare(const Decoded *a, const Decoded *b) {
    uint64_t limit = a->limit < b->limit ? a->limit : b->limit;
    size_t na = up_to(a, limit), nb = up_to(b, limit), i = 0, j = 0, common = 0;
    while (i < na && j < nb) {
        uint32_t x = a->codes[i], y = b->codes[j];
        common += x == y;
        i += x <= y;
        j += y <= x;
    }
    return Py_BuildValue("(nnniiKK)", (Py_ssize_t)na, (Py_ssize_t)nb, (Py_ssize_t)common, a->exact && na == a->n,
                         b->exact && nb == b->n, (unsigned long long)a->shingles, (unsigned long long)b->shingles);
}

/* A copy of a stored sketch with spare bytes behind it, so that bits are read a word at a time. */
static uint8_t *padded(PyObject *stored, size_t *size, size_t *n) {
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(stored, &bytes, &length) < 0) return NULL;
    uint8_t *copy = PyMem_Calloc((size_t)length + 16, 1);
    if (!copy) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(copy, bytes, (size_t)length);
    *size = (size_t)length;
    *n = length >= 4 ? read_u4(copy) >> 3 : 0;
    if (*n > 8 * *size + 1) *n = 0; /* more codes than bits: decode will refuse it */
    return copy;
}

static int load(PyObject *stored, int bits, Decoded *out) {
    size_t size, n;
    uint8_t *bytes = padded(stored, &size, &n);
    if (!bytes) return 0;
    uint32_t *codes = PyMem_Malloc((n + 1) * sizeof *codes);
    int good = codes && decode(bytes, size, bits, codes, n + 1, out);
    PyMem_Free(bytes);
    if (good) return 1;
    PyMem_Free(codes);
    PyErr_SetString(PyExc_ValueError, "not a stored sketch");
    return 0;
}

static PyObject *judge(PyObject *self, PyObject *args) {
    PyObject *query, *candidates;
    int bits;
    Decoded a, b;
    (void)self;
    if (!PyArg_ParseTuple(args, "SO!i", &query, &PyList_Type, &candidates, &bits)) return NULL;
    if (!load(query, bits, &a)) return NULL;
    PyObject *counts = PyList_New(PyList_GET_SIZE(candidates));
    for (Py_ssize_t i = 0; counts && i < PyList_GET_SIZE(candidates); i++) {
        PyObject *one = NULL;
        if (load(PyList_GET_ITEM(candidates, i), bits, &b)) {
            one = compare(&a, &b);
            PyMem_Free(b.codes);
        }
        if (!one) Py_CLEAR(counts);
        else PyList_SET_ITEM(counts, i, one);
    }
    PyMem_Free(a.codes);
    return counts;
}

/* The keys under which a stored sketch is posted: the low bits of the posted values are its last bytes. */
static PyObject *keys(PyObject *self, PyObject *args) {
    PyObject *stored, *made = NULL;
    int bits;
    unsigned prefix, modulus, profile;
    Decoded d;
    (void)self;
    if (!PyArg_ParseTuple(args, "SiIII", &stored, &bits, &prefix, &modulus, &profile)) return NULL;
    if (!load(stored, bits, &d)) return NULL;
    size_t count = 0, length = 0, size = (size_t)PyBytes_GET_SIZE(stored);
    for (size_t i = 0; i < d.n; i++) {
        int wide = sampled(d.codes[i], modulus);
        if (i >= prefix && !wide) continue;
        d.codes[count++] = d.codes[i];
        length += 2 + wide;
    }
    if (length <= size) {
        const uint8_t *extra = (const uint8_t *)PyBytes_AS_STRING(stored) + size - length;
        for (size_t i = 0; i < count; i++) {
            uint32_t code = d.codes[i], low = extra[0] | (uint32_t)extra[1] << 8;
            int wide = sampled(code, modulus);
            if (wide) low |= (uint32_t)extra[2] << 16;
            extra += 2 + wide;
            d.codes[i] = key_of(code, profile * GOLDEN, low);
        }
        count = distinct(d.codes, count);
        made = PyBytes_FromStringAndSize((const char *)d.codes, (Py_ssize_t)(4 * count));
    } else PyErr_SetString(PyExc_ValueError, "not a stored sketch");
    PyMem_Free(d.codes);
    return made;
}

/* ---- postings ---- */

enum { ENTRY = 7 };
static const uint32_t COMMON = 0xFFFFFFFFu;

/* A key of a document on its way to its bucket: the plan of postings/buckets.py. */
typedef struct { uint32_t bucket, key, id, document; } Step;

/* Bytes that grow. */
typedef struct { char *bytes; size_t size, room; } Text;

static int reserve(Text *t, size_t more) {
    if (t->size + more <= t->room) return 1;
    size_t room = 2 * (t->size + more) + 256;
    char *bytes = PyMem_Realloc(t->bytes, room);
    if (!bytes) return 0;
    t->bytes = bytes;
    t->room = room;
    return 1;
}

/* `reserve` went before. */
static void add(Text *t, const void *bytes, size_t size) {
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

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

static int by_bucket(const void *a, const void *b) {
    const Step *x = a, *y = b;
    if (x->bucket != y->bucket) return x->bucket < y->bucket ? -1 : 1;
    if (x->document != y->document) return x->document < y->document ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* The steps of (id, keys)* whose keys belong to a shard, by bucket. Returns how many, -1 after an error. */
static Py_ssize_t steps_of(PyObject *documents, uint32_t buckets, uint32_t shard, uint32_t shards, Step **steps) {
    size_t count = 0, room = 256;
    *steps = PyMem_Malloc(room * sizeof **steps);
    for (Py_ssize_t i = 0; *steps && i < PyList_GET_SIZE(documents); i++) {
        unsigned id;
        const char *keys;
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(documents, i), "Iy#", &id, &keys, &size)) return -1;
        if (count + (size_t)size / 4 > room) {
            room = 2 * (count + (size_t)size / 4);
            Step *more = PyMem_Realloc(*steps, room * sizeof **steps);
            if (!more) {
                PyErr_NoMemory();
                return -1;
            }
            *steps = more;
        }
        for (Py_ssize_t at = 0; at + 4 <= size; at += 4) {
            uint32_t key = read_u4((const uint8_t *)keys + at);
            if (shards > 1 && (key >> 16) % shards != shard) continue;
            (*steps)[count++] = (Step){bucket_of(key, buckets), key, id, (uint32_t)i};
        }
    }
    if (!*steps) {
        PyErr_NoMemory();
        return -1;
    }
    qsort(*steps, count, sizeof **steps, by_bucket);
    return (Py_ssize_t)count;
}

static size_t group_end(const Step *steps, size_t from, size_t count) {
    size_t to = from + 1;
    while (to < count && steps[to].bucket == steps[from].bucket) to++;
    return to;
}

static int write_appends(Text *text, const Py_buffer *prefix, const Step *steps, size_t count) {
    for (size_t from = 0, to; from < count; from = to) {
        to = group_end(steps, from, count);
        if (!reserve(text, 96 + (size_t)prefix->len + ENTRY * (to - from))) return 0;
        add(text, "*3\r\n$6\r\nAPPEND\r\n", 16);
        add_key(text, prefix, steps[from].bucket);
        add_size(text, '$', ENTRY * (to - from));
        for (size_t i = from; i < to; i++) {
            uint8_t entry[8];
            write_u4(entry, steps[i].key >> 8);
            write_u4(entry + 3, steps[i].id);
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

/* What a bucket says of one step: 0 where it is as it should be; its candidates are added to `found`. */
static int read_bucket(const uint8_t *bytes, size_t size, const Step *step, size_t bound, int looking, Text *found) {
    size_t entries = 0, own = 0, before = found->size;
    uint32_t head = step->key & 0xFFFFFF00u; /* the bytes 1 to 3 of the key, where a word read one byte early has them */
    for (size_t at = 0; at + ENTRY <= size; at += ENTRY) {
        uint32_t tag = (uint32_t)bytes[at] << 8 | (uint32_t)bytes[at + 1] << 16 | (uint32_t)bytes[at + 2] << 24;
        if (tag != head) continue;
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

static PyObject *find(PyObject *self, PyObject *args) {
    Py_buffer packed;
    PyObject *values, *made = NULL;
    Py_ssize_t documents, bound;
    unsigned buckets;
    int looking;
    Text found = {0}, odd = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "y*O!nInp", &packed, &PyList_Type, &values, &documents, &buckets, &bound, &looking))
        return NULL;
    const Step *steps = packed.buf;
    size_t count = (size_t)packed.len / sizeof *steps;
    int good = buckets > 1;
    for (size_t i = 0; good && i < count; i++) good = (Py_ssize_t)steps[i].document < documents;
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "fewer than two buckets, or a step of no document");
        PyBuffer_Release(&packed);
        return NULL;
    }
    Py_ssize_t group = 0;
    int state = 0;
    for (size_t from = 0, to; state >= 0 && from < count && group < PyList_GET_SIZE(values); from = to, group++) {
        PyObject *value = PyList_GET_ITEM(values, group);
        char *bytes = "";
        Py_ssize_t size = 0;
        to = group_end(steps, from, count);
        if (value != Py_None && PyBytes_AsStringAndSize(value, &bytes, &size) < 0) break;
        for (size_t i = from; state >= 0 && i < to; i++) {
            state = 1;
            if (bucket_of(steps[i].key, buckets) == steps[i].bucket)
                state = read_bucket((uint8_t *)bytes, (size_t)size, steps + i, (size_t)bound, looking, &found);
            if (!reserve(&odd, sizeof *steps)) state = -1;
            else if (state > 0) add(&odd, steps + i, sizeof *steps);
        }
    }
    if (state < 0) PyErr_NoMemory();
    if (!PyErr_Occurred()) {
        PyObject *lists = lists_of(&found, documents);
        if (lists) made = Py_BuildValue("(Ny#)", lists, odd.bytes ? odd.bytes : "", (Py_ssize_t)odd.size);
    }
    PyMem_Free(found.bytes);
    PyMem_Free(odd.bytes);
    PyBuffer_Release(&packed);
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

/* The sketch at a place of a block: place (5 bits), length (27), bytes; empty where there is none. */
static PyObject *pick(PyObject *self, PyObject *args) {
    const char *block;
    Py_ssize_t size;
    int wanted;
    Py_ssize_t found = 0, found_length = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "z#i", &block, &size, &wanted)) return NULL;
    for (Py_ssize_t at = 0; block && at + 4 <= size;) {
        uint32_t head = read_u4((const uint8_t *)block + at);
        Py_ssize_t length = (Py_ssize_t)(head >> 5);
        if (length > size - at - 4) break;
        if ((int)(head & 31) == wanted) found = at + 4, found_length = length;
        at += 4 + length;
    }
    return PyBytes_FromStringAndSize(found ? block + found : "", found_length);
}

static PyMethodDef methods[] = {
    {"pack", pack, METH_VARARGS, "pack(values, bits, flags, prefix, modulus, profile, shingles) -> (stored, keys)"},
    {"judge", judge, METH_VARARGS, "judge(query, candidates, bits) -> [(a, b, common, whole_a, whole_b)]"},
    {"keys", keys, METH_VARARGS, "keys(stored, bits, prefix, modulus, profile) -> keys"},
    {"plan", plan, METH_VARARGS, "plan(prefix, last, documents, buckets, shard, shards) -> (appends, groups, reads, steps)"},
    {"pick", pick, METH_VARARGS, "pick(block, place) -> sketch"},
    {"split", split, METH_VARARGS, "split(value, bucket, depth) -> (low, high, dropped)"},
    {"find", find, METH_VARARGS, "find(steps, values, documents, buckets, bound, looking) -> (lists, odd)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_verify", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__verify(void) { return PyModule_Create(&module); }
