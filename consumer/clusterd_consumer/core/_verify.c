/* Stored sketches, compiled: made from values, and judged against each other. NumPy gives the same, bit for bit.
 *
 * pack(streams, bits, sampled, profile, prefix, small_prefix, small, modulus) -> [(stored, keys)]: postings/stored.py has
 * the byte layout, postings/keys.py the keys. keys(stored, ...): the same keys again.
 * values(stored, bits): the smallest values of the codes.
 * judge(query, candidates, bits) -> [(resemblance, a in b, b in a)]: postings/judging.py. Cost: O(n), a word at a time.
 */
#include "numbers.h"

#include <math.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the compiled core is for little-endian machines"
#endif

enum { UNBOUNDED = 1, EXACT = 2, OCTAVE = 4, HEADER = 8, SIZE_BITS = 11, EVIDENCE = 8, PARITY_BYTES = 128, CELL_BITS = 10 };

#define WITH_PARITY 0x80000000u
#define FULL 1.4
#define SURE 0.5
#define PASSES 3

static const uint32_t GOLDEN = 0x9E3779B1u;

static uint32_t fmix32(uint32_t h) {
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}

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

enum { WORD = 56 };

/* Up to `WORD` bits. Writes a whole word, of which the full bytes count: `room` leaves space behind. */
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

static void write_lows(Writer *w, const uint32_t *codes, size_t n, int bits) {
    for (size_t from = 1; from < n; from *= 2) {
        int k = parameter(from, bits);
        uint32_t mask = (1u << k) - 1;
        for (size_t i = from, to = run_end(from, n); i < to;) {
            uint64_t word = 0;
            int held = 0;
            for (; i < to && held + k <= WORD; i++, held += k) word |= (uint64_t)((codes[i] - codes[i - 1]) & mask) << held;
            put_bits(w, word, held);
        }
    }
    end_bits(w);
}

static void write_highs(Writer *w, const uint32_t *codes, size_t n, int bits) {
    uint64_t word = 0;
    int held = 0;
    for (size_t from = 1; from < n; from *= 2) {
        int k = parameter(from, bits);
        for (size_t i = from, to = run_end(from, n); i < to; i++) {
            uint32_t zeros = (codes[i] - codes[i - 1]) >> k;
            if (zeros >= (uint32_t)(WORD - held)) {
                put_bits(w, word, held);
                for (; zeros > 32; zeros -= 32) put_bits(w, 0, 32);
                word = 0;
                held = 0;
            }
            word |= 1ull << (held + (int)zeros);
            held += (int)zeros + 1;
        }
    }
    put_bits(w, word, held);
    end_bits(w);
}

static uint8_t *write_codes(uint8_t *at, const uint32_t *codes, size_t n, int bits) {
    Writer w = {at, 0, 0};
    write_lows(&w, codes, n, bits);
    write_highs(&w, codes, n, bits);
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

/* What is posted of a sketch (scheme.py), and its profile. */
typedef struct { unsigned prefix, small_prefix, small, modulus, profile; } Scheme;

/* Post the chosen values: their low 16 or 24 bits after the codes, their keys in `keys`. Returns the end of the bytes. */
static uint8_t *write_posted(uint8_t *at, const uint64_t *values, const uint32_t *codes, size_t n, const Scheme *scheme,
                             uint32_t *keys, size_t *count) {
    uint32_t salt = scheme->profile * GOLDEN, modulus = scheme->modulus;
    size_t smallest = n >= scheme->small ? scheme->prefix : scheme->small_prefix;
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        int wide = sampled(codes[i], modulus);
        if (i >= smallest && !modulus) break;
        if (i >= smallest && !wide) continue;
        uint32_t extra = (uint32_t)(values[i] & (wide ? 0xFFFFFF : 0xFFFF));
        for (int octet = 0; octet < 2 + wide; octet++) *at++ = (uint8_t)(extra >> 8 * octet);
        keys[(*count)++] = key_of(codes[i], salt, extra);
    }
    return at;
}

/* Bytes that are enough for a stored sketch: in a run of one parameter the high parts add up to its whole at most. */
static size_t room(const uint32_t *codes, size_t n, int bits) {
    uint64_t total = 0;
    for (size_t from = 1; from < n; from *= 2) {
        int k = parameter(from, bits);
        size_t to = run_end(from, n);
        total += (uint64_t)(k + 1) * (to - from) + ((codes[to - 1] - codes[from - 1]) >> k);
    }
    return HEADER + 2 + PARITY_BYTES + total / 8 + 4 + 3 * n + sizeof(uint64_t);
}

/* ``parity``: NULL where there is none. */
static PyObject *pack_values(const uint64_t *values, size_t n, int bits, uint32_t flags, const Scheme *scheme,
                             uint64_t shingles, const char *parity) {
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
    write_u4(stored, ((uint32_t)n * 8 + flags) | (parity ? WITH_PARITY : 0));
    write_u4(stored + 4, codes[0]);
    uint8_t *end = stored + HEADER;
    if (!(flags & EXACT)) {
        uint32_t size = code_of(shingles, SIZE_BITS);
        *end++ = (uint8_t)size;
        *end++ = (uint8_t)(size >> 8);
    }
    if (parity) {
        memcpy(end, parity, PARITY_BYTES);
        end += PARITY_BYTES;
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
    int good = size % 8 == 0;
    for (size_t i = 1; i < size / 8; i++) good &= values[i] >= values[i - 1];
    return good;
}

static PyObject *values_name, *shingles_name, *parity_name;

/* Of one StreamSketch: (stored, keys). */
static PyObject *pack_stream(PyObject *stream, int bits, int sampled, const Scheme *scheme) {
    char *bytes, *parity;
    Py_ssize_t size = 0, length = 0;
    PyObject *made = NULL, *values = PyObject_GetAttr(stream, values_name), *number = PyObject_GetAttr(stream, shingles_name);
    PyObject *cells = PyObject_GetAttr(stream, parity_name);
    if (values && number && cells && PyBytes_AsStringAndSize(values, &bytes, &size) == 0 &&
        PyBytes_AsStringAndSize(cells, &parity, &length) == 0) {
        const uint64_t *at = (const uint64_t *)bytes;
        uint64_t shingles = PyLong_AsUnsignedLongLong(number);
        uint32_t exact = (uint64_t)size == 8 * shingles;
        if (PyErr_Occurred()) made = NULL;
        else if (!are_ascending(at, (size_t)size))
            PyErr_SetString(PyExc_ValueError, "the values of a sketch ascend, 8 bytes each");
        else if (length && (length != PARITY_BYTES || exact))
            PyErr_SetString(PyExc_ValueError, "a parity has 128 bytes, and a sketch that holds every shingle none");
        else if (size)
            made = pack_values(at, (size_t)size / 8, bits, exact * EXACT + (exact || sampled) * UNBOUNDED, scheme, shingles,
                               length ? parity : NULL);
        else made = Py_BuildValue("(y#y#)", "\0\0\0\0", (Py_ssize_t)4, "", (Py_ssize_t)0);
    }
    Py_XDECREF(values);
    Py_XDECREF(number);
    Py_XDECREF(cells);
    return made;
}

static PyObject *pack(PyObject *self, PyObject *args) {
    PyObject *streams;
    int bits, sampled;
    Scheme scheme;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!ipIIIII", &PyList_Type, &streams, &bits, &sampled, &scheme.profile, &scheme.prefix,
                          &scheme.small_prefix, &scheme.small, &scheme.modulus))
        return NULL;
    PyObject *packed = PyList_New(PyList_GET_SIZE(streams));
    for (Py_ssize_t i = 0; packed && i < PyList_GET_SIZE(streams); i++) {
        PyObject *one = pack_stream(PyList_GET_ITEM(streams, i), bits, sampled, &scheme);
        if (one) PyList_SET_ITEM(packed, i, one);
        else Py_CLEAR(packed);
    }
    return packed;
}

/* ---- judge ---- */

typedef struct {
    uint32_t *codes;
    size_t n;
    int exact, has_parity;
    uint64_t limit, shingles;
    uint64_t parity[PARITY_BYTES / 8];
} Decoded;

/* How many codes a stored sketch says that it has. */
static size_t count_of(const uint8_t *bytes) { return (read_u4(bytes) & ~WITH_PARITY) >> 3; }

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

/* The ones of a bit stream, which begins at a byte, behind which 8 more can be read. */
typedef struct { const uint8_t *bytes; uint64_t at, word; } Ones;

/* Where the next one is; `end` or more where there is none before it. */
static inline uint64_t next_one(Ones *ones, uint64_t end) {
    while (!ones->word) {
        if ((ones->at += 64) >= end) return end;
        ones->word = load8(ones->bytes + (ones->at >> 3));
    }
    uint64_t found = ones->at + (unsigned)__builtin_ctzll(ones->word);
    ones->word &= ones->word - 1;
    return found;
}

static inline uint64_t read_low(const uint8_t *bytes, uint64_t at, int count) {
    return (load8(bytes + (at >> 3)) >> (at & 7)) & ((1ull << count) - 1);
}

/* Decode into `into`, which has room for `most` codes. Returns 0 where the bytes are not a stored sketch. */
static int decode(const uint8_t *bytes, size_t size, int bits, uint32_t *into, size_t most, Decoded *out) {
    if (size < 4) return 0;
    uint32_t head = read_u4(bytes);
    out->n = count_of(bytes);
    out->has_parity = (head & WITH_PARITY) != 0;
    out->exact = (head & EXACT) != 0;
    out->codes = into;
    out->limit = UINT64_MAX;
    out->shingles = out->n;
    if (!out->n) return 1;
    size_t sizes = HEADER + (out->exact ? 0 : 2), header = sizes + (out->has_parity ? PARITY_BYTES : 0);
    if (size < header || out->n > most) return 0;
    if (out->has_parity) memcpy(out->parity, bytes + sizes, PARITY_BYTES);
    if (!out->exact) {
        uint64_t shingles = size_of(bytes[HEADER] | (uint32_t)bytes[HEADER + 1] << 8);
        if (shingles > out->n) out->shingles = shingles;
    }
    uint64_t lows = 0;
    for (size_t from = 1; from < out->n; from *= 2)
        lows += (uint64_t)parameter(from, bits) * (run_end(from, out->n) - from);
    uint64_t low = 8 * header, high = 8 * (header + (lows + 7) / 8), end = 8 * (uint64_t)size, next;
    if (high >= end && out->n > 1) return 0;
    Ones ones = {bytes, high, out->n > 1 ? load8(bytes + (high >> 3)) : 0};
    into[0] = read_u4(bytes + 4);
    for (size_t from = 1; from < out->n; from *= 2) {
        int k = parameter(from, bits);
        for (size_t i = from, to = run_end(from, out->n); i < to; i++) {
            if ((next = next_one(&ones, end)) >= end) return 0;
            into[i] = into[i - 1] + (uint32_t)(((next - high) << k) + read_low(bytes, low, k));
            high = next + 1;
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

/* Resemblance, and containments of A in B and of B in A. */
typedef struct { double r, a_in_b, b_in_a; } Ratios;

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0.0; }

static double at_most_one(double v) { return v < 1.0 ? v : 1.0; }

/* As `ratios` and `likeliest` of resemblance.py. */
static Ratios ratios(int64_t x, int64_t p, int64_t q) {
    return (Ratios){share(x, x + p + q), share(x, x + p), share(x, x + q)};
}

static Ratios likeliest(double x, double p, double q, int64_t shingles_a, int64_t shingles_b) {
    if (x <= 0) return (Ratios){0, 0, 0};
    double both = (double)(shingles_a + shingles_b), a = (double)shingles_a / both, b = (double)shingles_b / both;
    double square = (x + (p + q)) * (a * b), constant = x + (p * b + q * a);
    double linear = constant + (p + q) * (a * b), under = linear * linear - 4 * square * constant;
    double v = 2 * constant / (linear + sqrt(under > 0.0 ? under : 0.0));
    double r = at_most_one(v - 1 > 0.0 ? v - 1 : 0.0);
    return (Ratios){r, at_most_one(r / (a * v)), at_most_one(r / (b * v))};
}

/* Turn the cell of a code so often, 0 times or once. */
static inline void turn(uint64_t *cells, uint32_t code, int bits, int often) {
    uint32_t cell = code >> (bits - CELL_BITS) & (8 * PARITY_BYTES - 1);
    cells[cell / 64] ^= (uint64_t)often << cell % 64;
}

/* The parity of a document, of one that holds every shingle made of its codes; NULL where it has none. */
static const uint64_t *parity_of(const Decoded *d, int bits, uint64_t *made) {
    if (d->has_parity || !d->exact) return d->has_parity ? d->parity : NULL;
    memset(made, 0, PARITY_BYTES);
    for (size_t i = 0; i < d->n; i++) turn(made, d->codes[i], bits, 1);
    return made;
}

/* As `_information` of parity.py. */
static double information(double differ, double read, double a, double b) {
    const double both = a + b, at = fmin(fmax(differ, fabs(a - b) + 1), both - 1);
    const double common = (both - at) / 2, all = (both + at) / 2;
    double parts = both * both / common + (b * b / (a - common) + a * a / (b - common));
    return read * parts / (4 * all * all * fmax(all - read, 1));
}

/* As `difference` of parity.py. */
static double difference(double by_values, double read, double apart, int cells, double a, double b) {
    const double n = 8 * PARITY_BYTES, least_u = 2 / sqrt(n);
    if (by_values - apart > FULL * n) return by_values;
    double u = fmax(1 - 2 * (double)cells / n, least_u), by_parity = apart - n / 2 * log(u), differ = by_parity;
    double certainty = 1 / fmax(n / 4 * (1 / (u * u) - 1 + 2 * log(u)), SURE);
    for (int i = 0; i < PASSES; i++) {
        double told = information(differ, read, a, b);
        differ = (by_parity * certainty + by_values * told) / (certainty + told);
    }
    return fmin(fmax(differ, fabs(a - b)), a + b);
}

/* As `refined` of resemblance.py. */
static Ratios refined(Ratios found, double read, double apart, int cells, int64_t shingles_a, int64_t shingles_b) {
    const double a = (double)shingles_a, b = (double)shingles_b, both = a + b;
    double differ = difference(both * (1 - found.r) / (1 + found.r), read, apart, cells, a, b), common = (both - differ) / 2;
    return (Ratios){(both - differ) / (both + differ), at_most_one(common / a), at_most_one(common / b)};
}

/* Codes up to the lower threshold: of A, of B, in both; cells of the last octave up to there; the parity of the codes that
   are in one alone. */
typedef struct { size_t a, b; int64_t common, last; uint64_t apart[PARITY_BYTES / 8]; } Counts;

static Counts count(const Decoded *a, const Decoded *b, int bits) {
    uint64_t limit = a->limit < b->limit ? a->limit : b->limit;
    int64_t last = limit == UINT64_MAX ? 0 : (int64_t)(limit & ((1ULL << bits) - 1));
    Counts found = {up_to(a, limit), up_to(b, limit), 0, last, {0}};
    size_t i = 0, j = 0;
    while (i < found.a && j < found.b) { /* without a branch: which code comes next is not foreseen */
        uint32_t x = a->codes[i], y = b->codes[j];
        found.common += x == y;
        turn(found.apart, x < y ? x : y, bits, x != y);
        i += x <= y;
        j += y <= x;
    }
    for (; i < found.a; i++) turn(found.apart, a->codes[i], bits, 1);
    for (; j < found.b; j++) turn(found.apart, b->codes[j], bits, 1);
    return found;
}

/* In how many cells the parities of two differ for more than the codes that were counted; -1 where one has none, or none
   was kept of either. */
static int differing(const Decoded *a, const Decoded *b, const Counts *seen, int bits) {
    uint64_t made[PARITY_BYTES / 8];
    if (!a->has_parity && !b->has_parity) return -1;
    const uint64_t *x = parity_of(a, bits, made), *y = parity_of(b, bits, made);
    int cells = 0;
    if (!x || !y) return -1;
    for (int i = 0; i < PARITY_BYTES / 8; i++) cells += __builtin_popcountll(x[i] ^ y[i] ^ seen->apart[i]);
    return cells;
}

/* What of (a, b) codes agrees by chance, as a fraction (verdict.py has κ). Of two documents of which each has millions
   of codes its numerator is beyond 64 bits. */
typedef struct { __int128 cells; int64_t per; } Chance;

static Chance by_chance(int64_t a, int64_t b, int64_t last, int bits) {
    int64_t cells = 1LL << bits;
    return (Chance){(__int128)a * b * (cells + 3 * last), 3 * (cells + last) * (cells + last)};
}

static PyObject *counted(const Decoded *a, const Decoded *b, int bits) {
    Counts seen = count(a, b, bits);
    long long common = seen.common, last = seen.last;
    return Py_BuildValue("(nnLL)", (Py_ssize_t)seen.a, (Py_ssize_t)seen.b, common, last);
}

static PyObject *verdict(const Decoded *a, const Decoded *b, int bits) {
    Counts seen = count(a, b, bits);
    int64_t na = (int64_t)seen.a, nb = (int64_t)seen.b, common = seen.common;
    Ratios found = {0, 0, 0};
    if (common) {
        Chance chance = by_chance(na - common, nb - common, seen.last, bits);
        int64_t in_a = (int64_t)a->shingles, in_b = (int64_t)b->shingles;
        int whole_a = a->exact && seen.a == a->n, whole_b = b->exact && seen.b == b->n;
        if (whole_a || whole_b) { /* rounded to the nearest whole number, in whole numbers */
            int64_t x = common - (int64_t)((2 * chance.cells + chance.per) / (2 * chance.per));
            if (x < 0) x = 0;
            found = ratios(x, in_a - x, in_b - x);
        } else {
            double x = (double)common - (double)chance.cells / (double)chance.per;
            found = likeliest(x, (double)na - x, (double)nb - x, in_a, in_b);
            int cells = found.r > 0 ? differing(a, b, &seen, bits) : -1;
            double both = (double)(na + nb);
            if (cells >= 0) found = refined(found, both - x, both - 2 * x, cells, in_a, in_b);
        }
        if (!whole_a && na < EVIDENCE) found.a_in_b = 0;
        if (!whole_b && nb < EVIDENCE) found.b_in_a = 0;
    }
    return Py_BuildValue("(ddd)", found.r, found.a_in_b, found.b_in_a);
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
    *n = length >= 4 ? count_of(copy) : 0;
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
    if (codes) PyErr_SetString(PyExc_ValueError, "not a stored sketch");
    else PyErr_NoMemory();
    PyMem_Free(codes);
    return 0;
}

/* What is to be said of a query and each candidate. */
static PyObject *compare(PyObject *args, PyObject *(*say)(const Decoded *, const Decoded *, int)) {
    PyObject *query, *candidates;
    int bits;
    Decoded a, b;
    if (!PyArg_ParseTuple(args, "SO!i", &query, &PyList_Type, &candidates, &bits)) return NULL;
    if (!load(query, bits, &a)) return NULL;
    PyObject *said = PyList_New(PyList_GET_SIZE(candidates));
    for (Py_ssize_t i = 0; said && i < PyList_GET_SIZE(candidates); i++) {
        PyObject *one = NULL;
        if (load(PyList_GET_ITEM(candidates, i), bits, &b)) {
            one = say(&a, &b, bits);
            PyMem_Free(b.codes);
        }
        if (!one) Py_CLEAR(said);
        else PyList_SET_ITEM(said, i, one);
    }
    PyMem_Free(a.codes);
    return said;
}

static PyObject *judge(PyObject *self, PyObject *args) {
    (void)self;
    return compare(args, verdict);
}

static PyObject *counts(PyObject *self, PyObject *args) {
    (void)self;
    return compare(args, counted);
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

/* The smallest values of the codes, 8 bytes each; repeats are told apart by counting up. */
static PyObject *values(PyObject *self, PyObject *args) {
    PyObject *stored;
    int bits;
    Decoded d;
    (void)self;
    if (!PyArg_ParseTuple(args, "Si", &stored, &bits)) return NULL;
    if (!load(stored, bits, &d)) return NULL;
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * d.n));
    char *at = made ? PyBytes_AS_STRING(made) : NULL;
    for (size_t i = 0, first = 0; made && i < d.n; i++, at += 8) {
        uint32_t code = d.codes[i], shift = code >> bits;
        if (shift) shift--;
        if (code != d.codes[first]) first = i;
        uint64_t above = shift < 64 ? (uint64_t)(code - (shift << bits)) << shift : 0; /* damaged bytes may say more */
        uint64_t value = above + (i - first);
        memcpy(at, &value, sizeof value);
    }
    PyMem_Free(d.codes);
    return made;
}

/* Keep a number among the smallest distinct ones, ascending, `most` at most: of many few get as far as the loop. */
static size_t keep_smallest(uint32_t *kept, size_t count, size_t most, uint32_t number) {
    size_t at = count;
    if (!most || (count == most && number >= kept[count - 1])) return count;
    while (at && kept[at - 1] > number) at--;
    if (at && kept[at - 1] == number) return count;
    if (count < most) count++;
    memmove(kept + at + 1, kept + at, (count - 1 - at) * sizeof *kept);
    kept[at] = number;
    return count;
}

/* The smallest fingerprints of super-shingles: of runs of consecutive codes; a sketch shorter than a run has one. */
static PyObject *supers(PyObject *self, PyObject *args) {
    PyObject *stored, *made = NULL;
    int bits;
    unsigned run, most, profile;
    Decoded d;
    (void)self;
    if (!PyArg_ParseTuple(args, "SiIII", &stored, &bits, &run, &most, &profile)) return NULL;
    if (!load(stored, bits, &d)) return NULL;
    if (run > d.n) run = (unsigned)d.n;
    if (most > d.n) most = (unsigned)d.n;
    uint32_t *kept = PyMem_Malloc((most + 1) * sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; kept && i + run <= d.n && d.n; i++) {
        uint32_t mixed = profile * GOLDEN;
        for (uint32_t at = 0; at < run; at++) mixed = fmix32(mixed ^ fmix32(d.codes[i + at] + at * GOLDEN));
        count = keep_smallest(kept, count, most, mixed);
    }
    if (kept) made = PyBytes_FromStringAndSize((const char *)kept, (Py_ssize_t)(4 * count));
    else PyErr_NoMemory();
    PyMem_Free(kept);
    PyMem_Free(d.codes);
    return made;
}

static PyMethodDef methods[] = {
    {"pack", pack, METH_VARARGS,
     "pack(streams, bits, sampled, profile, prefix, small_prefix, small, modulus) -> [(stored, keys)]"},
    {"judge", judge, METH_VARARGS, "judge(query, candidates, bits) -> [(resemblance, a_in_b, b_in_a)]"},
    {"counts", counts, METH_VARARGS,
     "counts(query, candidates, bits) -> [(codes of a, of b, in common, cells of the last octave)]"},
    {"keys", keys, METH_VARARGS, "keys(stored, bits, prefix, modulus, profile) -> keys"},
    {"values", values, METH_VARARGS, "values(stored, bits) -> values"},
    {"supers", supers, METH_VARARGS, "supers(stored, bits, run, most, profile) -> keys"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_verify", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__verify(void) {
    values_name = PyUnicode_InternFromString("values");
    shingles_name = PyUnicode_InternFromString("shingles");
    parity_name = PyUnicode_InternFromString("parity");
    return values_name && shingles_name && parity_name ? PyModule_Create(&module) : NULL;
}
