/* Which spans of a walked text are not main text, and the text with marks around them: main_text.py. */
#ifndef CLUSTERD_MARKS_H
#define CLUSTERD_MARKS_H

#include "markup.h"

static int by_start(const void *a, const void *b) {
    const span_t *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* What lies outside the main elements, save the title. */
static void add_gaps(walk_t *w, spans_t *spans) {
    size_t at = 0;
    for (int i = 0; i <= w->main_count; i++) {
        size_t start = i < w->main_count ? w->mains[i].start : w->length;
        if (w->title.end != (size_t)-1 && at <= w->title.start && w->title.end <= start) {
            if (w->title.start > at) add_span(w, spans, at, w->title.start, 0);
            at = w->title.end;
        }
        if (start > at) add_span(w, spans, at, start, 0);
        if (i < w->main_count) at = w->mains[i].end;
    }
}

static int in_a_main(const walk_t *w, const span_t *span) {
    for (int i = 0; i < w->main_count; i++)
        if (w->mains[i].start <= span->start && span->end <= w->mains[i].end) return 1;
    return 0;
}

/* Steps 2 to 5: add to what calls itself chrome; no spans at all where nothing would remain. */
static void decide_spans(walk_t *w, spans_t *spans) {
    size_t letters = w->letters - w->chrome_letters - w->title_letters, in_mains = 0, in_dense = 0;
    for (int i = 0; i < w->main_count; i++) in_mains += w->mains[i].letters;
    int by_main = in_mains && in_mains * MAIN_SHARE >= letters, headed = by_main ? w->headed_in_main : w->headed;
    if (by_main) {
        letters = in_mains;
        add_gaps(w, spans);
    }
    for (size_t i = 0; i < w->dense.count; i++)
        if (!by_main || in_a_main(w, &w->dense.items[i])) in_dense += w->dense.items[i].letters;
    if (in_dense * DENSE_REST <= letters) {
        letters -= in_dense;
        for (size_t i = 0; i < w->dense.count; i++) {
            const span_t *d = &w->dense.items[i];
            if (!by_main || in_a_main(w, d)) add_span(w, spans, d->start, d->end, 0);
        }
    }
    if (headed && w->title_letters && letters >= TITLE_REST)
        add_span(w, spans, w->title.start, w->title.end, 0);
    if (!letters) spans->count = 0;
}

/* Join sorted spans that overlap or touch; returns how many are left. */
static size_t unite(span_t *spans, size_t count) {
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        if (made && spans[i].start <= spans[made - 1].end) {
            if (spans[i].end > spans[made - 1].end) spans[made - 1].end = spans[i].end;
        } else {
            spans[made++] = spans[i];
        }
    }
    return made;
}

static PyObject *with_marks(const walk_t *w, const span_t *spans, size_t count) {
    PyObject *marked = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(w->length + 2 * count));
    if (!marked) return NULL;
    char *to = PyBytes_AS_STRING(marked);
    size_t at = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t start = i < count ? spans[i].start : w->length;
        if (start > at) memcpy(to, w->out + at, start - at);
        to += start - at;
        if (i == count) break;
        *to++ = 1;
        memcpy(to, w->out + start, spans[i].end - start);
        to += spans[i].end - start;
        *to++ = 2;
        at = spans[i].end;
    }
    return marked;
}

/* The marked text as bytes; consumes the spans of the walk, and decides what is embedded in main text. */
static PyObject *marked_text(walk_t *w) {
    spans_t spans = w->cut;
    w->cut = (spans_t){NULL, 0, 0};
    decide_spans(w, &spans);
    if (spans.count > 1) qsort(spans.items, spans.count, sizeof *spans.items, by_start);
    PyObject *marked = NULL;
    spans.count = unite(spans.items, spans.count);
    decide_embedded(w, spans.items, spans.count);
    if (!(w->flags & NO_MEMORY)) marked = with_marks(w, spans.items, spans.count);
    else if (!PyErr_Occurred()) PyErr_NoMemory();
    free(spans.items);
    return marked;
}

#endif
