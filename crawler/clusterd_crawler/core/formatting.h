/* What may be open beside the containers, and how much a parser may have to open again: formatting.py. */
#ifndef CLUSTERD_FORMATTING_H
#define CLUSTERD_FORMATTING_H

#include "walk.h"

static int same_name(slice_t a, slice_t b) {
    if (a.length != b.length) return 0;
    if (a.length - 1 < 8) return lower_short(a.at, a.length) == lower_short(b.at, b.length);
    for (size_t i = 0; i < a.length; i++)
        if (lower(a.at[i]) != lower(b.at[i])) return 0;
    return 1;
}

static int is_formula(slice_t name) { return slice_is(name, "math"); }

static void begin_formatting(walk_t *w, slice_t name, uint32_t bits) {
    if (w->formatting == MAX_FORMATTING) {
        w->flags |= EXTREME;
        return;
    }
    if (w->formatting == w->formatted_room) {
        size_t room = w->formatted_room ? w->formatted_room * 2 : 32;
        formatted_t *formatted = realloc(w->formatted, room * sizeof *formatted);
        if (!formatted) {
            w->flags |= NO_MEMORY;
            return;
        }
        w->formatted = formatted;
        w->formatted_room = room;
    }
    w->formatted[w->formatting++] = (formatted_t){name, bits, w->depth};
    w->formulas += is_formula(name);
}

/* An element that may be open, and whose end will not be seen. */
static void begin_unknown(walk_t *w) { begin_formatting(w, (slice_t){(const uint8_t *)"", 0}, 0); }

/* In a drawing or a formula what has no end tag, or may have none, stays open. */
static void start_unended(walk_t *w, const tag_t *tag) {
    static const char *const breaking[] = {"p", "li", "dt", "dd", "br", "embed", "hr", "img", "meta"};
    if (!(tag->bits & (IMPLIED | VOID))) return;
    for (size_t i = 0; i < sizeof breaking / sizeof *breaking; i++)
        if (slice_is(tag->name, breaking[i])) return;
    begin_unknown(w);
}

static void start_formatting(walk_t *w, const tag_t *tag) {
    uint32_t bits = tag->bits, kind = bits & (ITEM | TERM);
    if (!(bits & (CONTAINER | IMPLIED))) {
        begin_formatting(w, tag->name, bits);
        return;
    }
    w->reopened += w->formatting;
    w->options += (bits & OPTION) != 0;
    if (w->reopened > MAX_REOPENED || w->options > MAX_OPTIONS) w->flags |= EXTREME;
    if (bits & CELL && w->barriers) w->floor = w->formatting;
    open_t *t = top(w);
    if (kind) {
        uint32_t *item = t ? &t->item : &w->item;
        if (*item && *item != kind) begin_unknown(w);
        *item = kind;
    }
    if (bits & LOOSE && !(t && t->bits & CHOICE && slice_is(tag->name, "optgroup")) &&
        !(w->formatting && slice_is(w->formatted[w->formatting - 1].name, "ruby")))
        begin_unknown(w);
}

/* A parser compares each attribute of an element with all of them. */
static void count_attributes(walk_t *w, const tag_t *tag) {
    if (tag->bits & MERGED) w->merged += tag->attributes;
    if (tag->attributes > MAX_ATTRIBUTES || w->merged > MAX_ATTRIBUTES) w->flags |= EXTREME;
}

static void end_formatting(walk_t *w, slice_t name) {
    for (size_t crossed = 0; crossed <= MAX_CROSSED && w->formatting - crossed > w->floor; crossed++) {
        formatted_t *f = &w->formatted[w->formatting - crossed - 1];
        if (same_name(f->name, name)) {
            if (w->depth > f->depth && (size_t)(w->depth - f->depth) + crossed > MAX_CROSSED) return;
            memmove(f, f + 1, crossed * sizeof *f);
            w->formatting--;
            w->formulas -= is_formula(name);
            return;
        }
        if (f->bits & MARKER) return;
    }
}

static void note_unparsed(walk_t *w, const uint8_t *p, const uint8_t *end) {
    const open_t *t = top(w);
    if (!w->foreign && !w->formulas && !(t && t->bits & CHOICE)) return;
    while (!(w->flags & (EXTREME | NO_MEMORY)) && (p = memchr(p, '<', (size_t)(end - p)))) {
        begin_unknown(w);
        p++;
    }
}

static int is_barrier(const open_t *o) { return o->bits & CONTAINER && o->bits & (TABLE | MARKER); }

static void push_formatting(walk_t *w, open_t *o) {
    o->formatting = w->formatting;
    o->floor = w->floor;
    if (!is_barrier(o)) return;
    w->barriers++;
    w->floor = w->formatting;
}

static void pop_formatting(walk_t *w, const open_t *o) {
    if (is_barrier(o)) {
        w->barriers--;
        w->floor = o->floor;
    }
    if (!(o->bits & FOREIGN)) return;
    size_t kept = o->formatting;
    for (size_t i = kept; i < w->formatting; i++) {
        const formatted_t f = w->formatted[i];
        if (f.bits || !f.name.length) w->formatted[kept++] = f;
        else w->formulas -= is_formula(f.name);
    }
    if (kept < w->formatting) w->formatting = kept;
    if (w->floor > w->formatting) w->floor = w->formatting;
}

#endif
