/* The state of one walk over markup (core/markup.h): what is open, what has been counted, what was found. */
#ifndef CLUSTERD_WALK_H
#define CLUSTERD_WALK_H

#include <Python.h>

#include "tags.h"

/* NO_MEMORY: or an exception of Python's, which is set then. */
enum { IRREGULAR = 1, EXTREME = 2, NO_MEMORY = 4 };
enum { CANONICAL, SHORTLINK, OG, BASE, ANCHOR, EMBEDDED, SCRIPT, KINDS };

#define MAX_DEPTH 256
#define MAX_FORMATTING 2000
#define MAX_REOPENED 300000
#define MAX_CROSSED 8
#define MAX_ATTRIBUTES 1000
#define MAX_OPTIONS 10000
#define MAX_ANCHORS 256
#define MAX_ANCHORS_KEPT 64
#define MAX_ANCHOR_DIGITS 20
#define MAX_MAINS 8
#define MAX_DECLARED_BYTES 2048
#define MAX_EMBEDDED 64
#define MAX_SCRIPTS 64
#define SHELL_LETTERS 512
#define PIXEL '2'
#define NAMING (A_DATA_LAZY_SRC - A_SRC + 1)
#define MAIN_SHARE 4
#define DENSE_LINKS 5
#define DENSE_PERCENT 85
#define DENSE_REST 3
#define TITLE_REST 48
#define PROSE_LETTERS 200
#define SEARCH_LETTERS 100
#define TITLE_WITHIN 256
#define MAX_COPIED 100000000

/* Why text is not shown; 0 where it is. */
enum { DRAWING = 1, HIDING = 2 };

#define NO_HEADING ((size_t)-1)

typedef struct {
    size_t start, end, letters;
} span_t;

typedef struct {
    span_t *items;
    size_t count, room;
} spans_t;

typedef struct {
    slice_t name;
    uint32_t bits;
    size_t start, letters, chrome_letters, link_letters, links;
    size_t formatting, floor;
    uint32_t item; /* the class of the last list item in it */
    uint8_t chrome, hidden, main, odd, cell; /* hidden: what the walk's was around it */
    uint8_t doubtful, headed, headed_in_main; /* DOUBTFULLY, SEARCHING, TITLED; what stood before it */
    uint8_t boxed; /* chrome unless it begins with a title and is not mostly links */
    int embedded;
} open_t;

typedef struct {
    slice_t name;
    uint32_t bits;
    int depth;
} formatted_t;

/* Text that a parser may join (core/joined_text.h): its bytes, and whether lexbor has kept something else since. */
typedef struct {
    size_t size;
    int passed;
} run_t;

typedef struct {
    int kind;
    slice_t value;
} declared_t;

typedef struct {
    size_t at;
    slice_t named[NAMING];
    int count;
} embedded_t;

typedef struct {
    const uint8_t *end;
    int well_nested, flags;
    PyObject *unescape;    /* references.unescape, for the character references that are not read here */
    PyThreadState *thread; /* saved while the lock is released */
    uint8_t *out;
    size_t length, room;
    open_t stack[MAX_DEPTH];
    int depth, odd, hidden, chrome, scopes, foreign, in_main, link_depth;
    size_t letters, chrome_letters, link_letters, links, reopened, title_letters;
    formatted_t *formatted; /* what may be open beside the containers: core/formatting.h */
    size_t formatting, formatted_room, floor, merged, options;
    run_t behind, in_tables;
    size_t copied;
    uint32_t item;
    int barriers, formulas; /* formulas ("math") among what may be open */
    size_t heading; /* letters where the open h1 began; NO_HEADING where none is open */
    int headed, headed_in_main;
    span_t title;
    spans_t cut, dense;
    span_t mains[MAX_MAINS];
    int main_count;
    declared_t declared[MAX_ANCHORS_KEPT + ANCHOR];
    int declared_count, anchors, anchors_kept;
    uint64_t anchor_sums; /* one bit for each remainder of what the digits kept so far sum up to */
    uint32_t kinds;
    embedded_t embedded[MAX_EMBEDDED];
    slice_t scripts[MAX_SCRIPTS];
    int embedded_count, script_count;
} walk_t;

static void irregular(walk_t *w) {
    if (!w->well_nested) w->flags |= IRREGULAR;
}

static open_t *top(walk_t *w) { return w->depth ? &w->stack[w->depth - 1] : NULL; }

static int make_room(walk_t *w, size_t more) {
    if (w->length + more <= w->room) return 1;
    size_t room = (w->length + more) * 2;
    uint8_t *out = realloc(w->out, room);
    if (!out) {
        w->flags |= NO_MEMORY;
        return 0;
    }
    w->out = out;
    w->room = room;
    return 1;
}

static void add_span(walk_t *w, spans_t *spans, size_t start, size_t end, size_t letters) {
    if (spans->count == spans->room) {
        size_t room = spans->room ? spans->room * 2 : 16;
        span_t *items = realloc(spans->items, room * sizeof *items);
        if (!items) {
            w->flags |= NO_MEMORY;
            return;
        }
        spans->items = items;
        spans->room = room;
    }
    spans->items[spans->count++] = (span_t){start, end, letters};
}

#endif
