/* What a page shows besides words: `Embedded` of embedded_content.py. */
#ifndef CLUSTERD_EMBEDDED_CONTENT_H
#define CLUSTERD_EMBEDDED_CONTENT_H

#include "walk.h"

static int is_pixel(const tag_t *tag, enum attribute side) {
    if (!has(tag, side) || tag->values[side].length != 1) return 0;
    return *tag->values[side].at >= '0' && *tag->values[side].at <= PIXEL;
}

static void take_embedded(walk_t *w, const tag_t *tag) {
    if (w->embedded_count == MAX_EMBEDDED || is_pixel(tag, A_WIDTH) || is_pixel(tag, A_HEIGHT)) return;
    embedded_t *e = &w->embedded[w->embedded_count];
    e->at = w->length;
    e->count = 0;
    for (int name = A_SRC; name <= A_DATA_LAZY_SRC; name++)
        if (has(tag, name) && tag->values[name].length) e->named[e->count++] = tag->values[name];
    w->embedded_count += e->count > 0;
}

static void take_script(walk_t *w, const uint8_t *p, const uint8_t *end) {
    if (w->script_count < MAX_SCRIPTS) w->scripts[w->script_count++] = (slice_t){p, (size_t)(end - p)};
}

/* Leave out what stands within sorted spans, and the scripts of a page of letters. */
static void decide_embedded(walk_t *w, const span_t *spans, size_t count) {
    size_t last = 0;
    int kept = 0;
    for (int i = 0; i < w->embedded_count; i++) {
        size_t at = w->embedded[i].at;
        while (last < count && spans[last].end <= at) last++;
        if (last == count || at <= spans[last].start) w->embedded[kept++] = w->embedded[i];
    }
    w->embedded_count = kept;
    if (w->letters >= SHELL_LETTERS) w->script_count = 0;
}

#endif
