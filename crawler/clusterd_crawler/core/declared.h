/* What a page declares about itself: `Declarations` of declared.py. */
#ifndef CLUSTERD_DECLARED_H
#define CLUSTERD_DECLARED_H

#include "walk.h"

/* Whether an anchor of these digits has been kept; notes them. */
static int anchor_known(walk_t *w, slice_t digits) {
    uint64_t sum = digits.length;
    for (size_t i = 0; i < digits.length; i++) sum = sum * 10 + digits.at[i];
    uint64_t before = w->anchor_sums;
    w->anchor_sums |= 1ULL << (sum & 63);
    if (w->anchor_sums != before) return 0; /* a sum that no kept one has */
    for (int i = 0; i < w->declared_count; i++) {
        const declared_t *d = &w->declared[i];
        if (d->kind == ANCHOR && d->value.length == digits.length && !memcmp(d->value.at, digits.at, digits.length)) return 1;
    }
    return 0;
}

static void declare(walk_t *w, int kind, slice_t value) {
    if (kind == ANCHOR) {
        size_t digits = 0;
        while (digits < value.length && digits < MAX_ANCHOR_DIGITS && is_digit(value.at[value.length - 1 - digits])) digits++;
        if (!digits || w->anchors == MAX_ANCHORS || w->anchors_kept == MAX_ANCHORS_KEPT) return;
        w->anchors++;
        value = (slice_t){value.at + value.length - digits, digits};
        if (anchor_known(w, value)) return;
        w->anchors_kept++;
    } else {
        if (!value.length || value.length > MAX_DECLARED_BYTES || w->kinds >> kind & 1) return;
        w->kinds |= 1u << kind;
    }
    w->declared[w->declared_count++] = (declared_t){kind, value};
}

static slice_t value_of(const tag_t *tag, enum attribute attribute) {
    return has(tag, attribute) ? tag->values[attribute] : (slice_t){(const uint8_t *)"", 0};
}

static void declare_names(walk_t *w, const tag_t *tag) {
    if (has(tag, A_ID)) declare(w, ANCHOR, tag->values[A_ID]);
    if (tag->bits & LINK && has(tag, A_NAME)) declare(w, ANCHOR, tag->values[A_NAME]);
    if (!(tag->bits & DECLARES)) return;
    if (slice_is(tag->name, "link")) {
        if (has_word(value_of(tag, A_REL), NULL, "canonical")) declare(w, CANONICAL, value_of(tag, A_HREF));
        if (has_word(value_of(tag, A_REL), NULL, "shortlink")) declare(w, SHORTLINK, value_of(tag, A_HREF));
    } else if (slice_is(tag->name, "base")) {
        declare(w, BASE, value_of(tag, A_HREF));
    } else if (slice_is(value_of(tag, A_PROPERTY), "og:url") || slice_is(value_of(tag, A_NAME), "og:url")) {
        declare(w, OG, value_of(tag, A_CONTENT));
    }
}

#endif
