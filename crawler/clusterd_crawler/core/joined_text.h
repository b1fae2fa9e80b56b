/* How much memory a parser may take for text that it joins: joined_text.py. */
#ifndef CLUSTERD_JOINED_TEXT_H
#define CLUSTERD_JOINED_TEXT_H

#include "walk.h"

/* Whether what is open is a table outside its cells. */
static int is_beside_cells(const walk_t *w) {
    const open_t *t = w->depth ? &w->stack[w->depth - 1] : NULL;
    return t && (t->bits & ROW || (t->bits & TABLE && !t->cell));
}

static int is_all_blank(const uint8_t *p, const uint8_t *end) {
    while (p < end && is_blank(*p)) p++;
    return p == end;
}

static void join_text(walk_t *w, const uint8_t *p, const uint8_t *end) {
    run_t *run = is_beside_cells(w) && !is_all_blank(p, end) ? &w->in_tables : &w->behind;
    if (run->passed) w->copied += run->size;
    run->size += (size_t)(end - p);
    run->passed = 0;
    if (w->copied > MAX_COPIED) w->flags |= EXTREME;
}

/* An attribute or a comment is kept. */
static void pass_over(walk_t *w) { w->behind.passed = w->in_tables.passed = 1; }

static void join_start(walk_t *w, const tag_t *tag) {
    const open_t *t = top(w);
    int dropped = tag->bits & DROPPED || (tag->bits & (CELL | ROW) && !(t && t->bits & TABLE));
    if (!dropped) w->behind.size = 0;
    if (tag->attributes) pass_over(w);
}

#endif
