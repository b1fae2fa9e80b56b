/* The text that a page shows: copied, its character references replaced, its letters counted. */
#ifndef CLUSTERD_SHOWN_H
#define CLUSTERD_SHOWN_H

#include "ascii.h"
#include "joined_text.h"
#include "lock.h"
#include "references.h"
#include "walk.h"

static void line_break(walk_t *w) {
    if (!w->hidden && w->length && w->out[w->length - 1] > 0x20 && make_room(w, 1)) w->out[w->length++] = '\n';
}

/* Copy text in which there are NULs and marks: without the ones, with blanks for the others. Returns its letters. */
static size_t copy_special(walk_t *w, const uint8_t *p, size_t length) {
    uint8_t *out = w->out + w->length;
    size_t letters = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t c = p[i];
        *out = (uint8_t)(c == 1 || c == 2 ? ' ' : c);
        out += c != 0;
        letters += c >= 0x80 || is_digit(c) || is_letter(c);
    }
    w->length = (size_t)(out - w->out);
    return letters;
}

/* Copy shown text, of which bytes up to `limit` may be read; returns its letters. */
static size_t copy_text(walk_t *w, const uint8_t *p, size_t length, const uint8_t *limit) {
    int has_marks;
    if (!make_room(w, length + LANES)) return 0;
    size_t letters = copy_lanes(p, length, limit, w->out + w->length, &has_marks);
    if (has_marks) return copy_special(w, p, length);
    w->length += length;
    return letters;
}

static size_t copy_unescaped(walk_t *w, const uint8_t *p, size_t length) {
    size_t letters = 0;
    if (w->flags & NO_MEMORY) return 0; /* the walk ends here; an exception may be set */
    take_back(w->thread);
    PyObject *text = PyObject_CallFunction(w->unescape, "y#", (const char *)p, (Py_ssize_t)length);
    if (text && PyBytes_Check(text)) {
        const uint8_t *plain = (const uint8_t *)PyBytes_AS_STRING(text);
        size_t size = (size_t)PyBytes_GET_SIZE(text);
        letters = copy_text(w, plain, size, plain + size);
    } else {
        w->flags |= NO_MEMORY;
    }
    Py_XDECREF(text);
    w->thread = let_go_again(w->thread);
    return letters;
}

/* Copy text with its character references replaced; one that is not plain sends the whole segment to Python. */
static size_t copy_references(walk_t *w, const uint8_t *p, const uint8_t *end) {
    const uint8_t *segment = p;
    size_t start = w->length, letters = 0;
    for (;;) {
        const uint8_t *sign = memchr(p, '&', (size_t)(end - p));
        if (!sign) return letters + copy_text(w, p, (size_t)(end - p), w->end);
        uint8_t text[8] = "&";
        size_t text_length = 1, length = read_reference(sign + 1, end, text, &text_length);
        if (!length && sign + 1 < end && !is_blank(sign[1])) {
            w->length = start;
            return copy_unescaped(w, segment, (size_t)(end - segment));
        }
        letters += copy_text(w, p, (size_t)(sign - p), w->end);
        letters += copy_text(w, text, text_length, text + text_length);
        p = sign + 1 + length;
    }
}

static void show(walk_t *w, const uint8_t *p, const uint8_t *end, int as_it_stands) {
    if (w->hidden || p >= end) return;
    size_t length = (size_t)(end - p);
    int plain = as_it_stands || !memchr(p, '&', length);
    size_t letters = plain ? copy_text(w, p, length, w->end) : copy_references(w, p, end);
    w->letters += letters;
    if (w->chrome)
        w->chrome_letters += letters;
    else if (w->link_depth >= 0)
        w->link_letters += letters;
    if (letters && is_beside_cells(w)) irregular(w);
}

static void show_text(walk_t *w, const uint8_t *p, const uint8_t *end) {
    if (p >= end) return;
    join_text(w, p, end);
    show(w, p, end, 0);
}

#endif
