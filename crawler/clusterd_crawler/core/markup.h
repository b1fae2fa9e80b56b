/* Markup → visible text with marks around what is not main text: the walk of markup.py, with which it must agree byte
 * for byte. What is decided and why is written there.
 */
#ifndef CLUSTERD_MARKUP_H
#define CLUSTERD_MARKUP_H

#include "declared.h"
#include "embedded_content.h"
#include "formatting.h"
#include "shown.h"

static void judge_links(walk_t *w, const open_t *o, size_t letters) {
    size_t linked = w->link_letters - o->link_letters;
    if (w->links - o->links < DENSE_LINKS || !letters || linked * 100 < letters * DENSE_PERCENT) return;
    while (w->dense.count && w->dense.items[w->dense.count - 1].start >= o->start) w->dense.count--;
    add_span(w, &w->dense, o->start, w->length, letters);
}

static int is_content(const walk_t *w, const open_t *o, size_t letters) {
    if (o->doubtful & SEARCHING) return letters >= SEARCH_LETTERS;
    size_t linked = w->link_letters - o->link_letters;
    size_t least = o->boxed || o->doubtful & TITLED ? 0 : PROSE_LETTERS;
    return letters - linked >= (linked > least ? linked : least);
}

/* Take an element for chrome that has been read as content. */
static void cut(walk_t *w, const open_t *o, size_t letters) {
    if (w->length > o->start) add_span(w, &w->cut, o->start, w->length, 0);
    w->chrome_letters += letters;
    w->link_letters = o->link_letters;
    w->links = o->links;
    w->headed = o->headed;
    w->headed_in_main = o->headed_in_main;
    w->embedded_count = o->embedded;
    if (w->title.end != (size_t)-1 && w->title.start >= o->start) {
        w->title = (span_t){(size_t)-1, (size_t)-1, 0};
        w->title_letters = 0;
    }
    while (w->dense.count && w->dense.items[w->dense.count - 1].start >= o->start) w->dense.count--;
    while (w->main_count && w->mains[w->main_count - 1].start >= o->start) w->main_count--;
}

/* A hidden part of a drawing: <path/> has no end tag there. */
static int is_shape(const walk_t *w, uint32_t bits) { return !bits && w->foreign > 0 && w->hidden && !w->well_nested; }

static void pop(walk_t *w) {
    const open_t *o = &w->stack[--w->depth];
    w->odd -= o->odd;
    w->hidden = o->hidden;
    w->chrome -= o->chrome;
    w->scopes -= (o->bits & SCOPE) != 0;
    w->foreign -= (o->bits & FOREIGN) != 0;
    pop_formatting(w, o);
    if (w->link_depth > w->depth) {
        irregular(w);
        w->link_depth = -1;
    }
    if (o->chrome && !w->chrome && w->length > o->start) add_span(w, &w->cut, o->start, w->length, 0);
    if (w->chrome || w->hidden) return;
    size_t letters = w->letters - o->letters - (w->chrome_letters - o->chrome_letters);
    if (o->doubtful && !is_content(w, o, letters)) {
        cut(w, o, letters);
    } else if (o->main) {
        w->in_main = 0;
        if (w->main_count < MAX_MAINS) w->mains[w->main_count++] = (span_t){o->start, w->length, letters};
    } else if (o->bits & DENSE) {
        judge_links(w, o, letters);
    }
}

/* Close the innermost open element of that name, with what is open inside it; never across a table or template. */
static void close_element(walk_t *w, slice_t name) {
    int implied = 1;
    for (int height = w->depth - 1; height >= 0; height--) {
        const open_t *o = &w->stack[height];
        if (same_name(o->name, name)) {
            if (!implied) irregular(w);
            while (w->depth > height) pop(w);
            return;
        }
        if (o->hidden == DRAWING) irregular(w); /* it may be what a label stands in that ends */
        if (o->bits & (TABLE | MARKER)) {
            irregular(w);
            return;
        }
        implied &= (o->bits & IMPLIED) != 0;
    }
}

static void end_heading(walk_t *w) {
    if (w->heading != NO_HEADING && w->heading < w->letters && !w->chrome) {
        w->headed = 1;
        w->headed_in_main |= w->in_main;
    }
    w->heading = NO_HEADING;
}

static void end_element(walk_t *w, const tag_t *tag) {
    uint32_t bits = tag->bits;
    if (!(bits & INLINE)) line_break(w);
    if (w->foreign && bits & ~(uint32_t)(INLINE | LINK) && !(bits & FOREIGN)) irregular(w);
    if (bits & (VOID | RAW | ESCAPABLE)) return;
    if (bits & HEADING) end_heading(w);
    if (!(bits & (CONTAINER | IMPLIED))) end_formatting(w, tag->name);
    open_t *t = top(w);
    if (t && t->bits & TABLE && bits & (CELL | ROW)) t->cell = 0;
    if (bits & CONTAINER || (w->odd && !is_shape(w, bits))) close_element(w, tag->name);
    if (bits & LINK && w->link_depth >= 0) {
        if (w->link_depth != w->depth) irregular(w);
        w->link_depth = -1;
    }
}

/* Whether a tag of that name may begin at p, behind its "<" or "</". */
static int begins_tag(const walk_t *w, const uint8_t *p, slice_t name) {
    if ((size_t)(w->end - p) <= name.length || !same_name((slice_t){p, name.length}, name)) return 0;
    uint8_t c = p[name.length];
    return is_blank(c) || c == '/' || c == '>';
}

/* Where the end tag of a script begins; one within "<!-- <script>" ends another. */
static const uint8_t *find_script_end(const walk_t *w, const uint8_t *p, slice_t name) {
    int escaped = 0, inner = 0;
    for (; p < w->end; p++) {
        if (!escaped && !(p = memchr(p, '<', (size_t)(w->end - p)))) return w->end;
        size_t left = (size_t)(w->end - p);
        if (*p == '-' && left >= 3 && p[1] == '-' && p[2] == '>') escaped = inner = 0;
        if (*p != '<') continue;
        int ending = left > 1 && p[1] == '/';
        if (left >= 4 && !memcmp(p, "<!--", 4)) {
            escaped = 1;
            p++; /* <!--> is begun and ended */
        } else if (begins_tag(w, p + 1 + ending, name)) {
            if (ending && !inner) return p;
            inner = escaped && !ending;
        }
    }
    return w->end;
}

/* Where the end tag of a raw or escapable element begins. */
static const uint8_t *find_end_tag(const walk_t *w, const uint8_t *p, slice_t name) {
    if (slice_is(name, "script")) return find_script_end(w, p, name);
    while ((p = memchr(p, '<', (size_t)(w->end - p)))) {
        if (w->end - p > 1 && p[1] == '/' && begins_tag(w, p + 2, name)) return p;
        p++;
    }
    return w->end;
}

static int is_hidden(const tag_t *tag) {
    if (tag->bits & HIDDEN && !(tag->bits & MARKER && has(tag, A_SHADOWROOTMODE))) return 1;
    if (has(tag, A_HIDDEN) || (tag->bits & DIALOG && !has(tag, A_OPEN))) return 1;
    if (!has(tag, A_STYLE)) return 0;
    return style_has(tag->values[A_STYLE], "display:none") || style_has(tag->values[A_STYLE], "visibility:hidden");
}

static const uint8_t *pass_unparsed(walk_t *w, const tag_t *tag, const uint8_t *p) {
    int endless = !w->well_nested && slice_is(tag->name, "plaintext"); /* a parser writes its end */
    const uint8_t *stop = endless ? w->end : find_end_tag(w, p, tag->name);
    note_unparsed(w, p, stop); /* a parser may read it as markup */
    if (!w->hidden && slice_is(tag->name, "script") && !value_of(tag, A_SRC).length) take_script(w, p, stop);
    if (!(tag->bits & ESCAPABLE) || is_hidden(tag) || w->foreign) return stop; /* a drawing's title is not shown */
    size_t start = w->length, letters = w->letters;
    show(w, p, stop, tag->bits & RAW);
    if (tag->bits & TITLE && w->title.end == (size_t)-1 && !w->hidden && !w->chrome && !w->in_main) {
        w->title = (span_t){start, w->length, 0};
        w->title_letters = w->letters - letters;
    }
    return stop;
}

static void check_nesting(walk_t *w, const tag_t *tag) {
    open_t *t = top(w);
    uint32_t bits = tag->bits;
    if (bits & (CELL | ROW) && !(t && t->bits & (TABLE | CELL | ROW))) irregular(w);
    if (!t) return;
    if ((t->bits & CHOICE && !(bits & IMPLIED)) || (t->odd && !(t->bits & (IMPLIED | NAMED) || bits & INLINE))) irregular(w);
    if (t->bits & TABLE) {
        if (bits & (CELL | ROW))
            t->cell = (bits & CELL) != 0;
        else if (bits & (CONTAINER | NAMED) && !t->cell)
            irregular(w);
    } else if (t->bits & IMPLIED) {
        if (same_name(t->name, tag->name) || (t->bits & PARAGRAPH && !(bits & INLINE)) ||
            (t->bits & CELL && bits & (CELL | ROW)) || (t->bits & ROW && !(bits & (CELL | ROW))) ||
            (t->bits & TERM && bits & TERM))
            irregular(w);
    }
}

/* The next letter or digit from p on that is not of a tag or a character reference; `end` where there is none. */
static const uint8_t *next_of_word(const uint8_t *p, const uint8_t *end) {
    for (; p < end && !is_letter(*p) && !is_digit(*p); p++) {
        const uint8_t *q = p + 1;
        if (*p == '<') {
            while (q < end && *q != '<' && *q != '>') q++;
            if (q < end && *q == '>') p = q;
        } else if (*p == '&') {
            q += q < end && *q == '#';
            const uint8_t *name = q;
            while (q < end && (is_letter(*q) || is_digit(*q))) q++;
            if (q > name && q < end && *q == ';') p = q;
        }
    }
    return p;
}

/* Whether what begins at p begins with a heading of the id's words: `is_titled` of tags.py. */
static int is_titled(const uint8_t *p, const uint8_t *end, slice_t id) {
    if (end - p > TITLE_WITHIN) end = p + TITLE_WITHIN;
    while (p < end && is_blank(*p)) p++;
    if (end - p < 4 || *p != '<' || lower(p[1]) != 'h' || p[2] < '1' || p[2] > '6') return 0;
    if (!(byte_kinds[p[3]] & NAME_END)) return 0;
    for (p += 3; p < end && *p != '<' && *p != '>';) p++;
    if (p == end || *p++ == '<') return 0;
    const uint8_t *stop = p;
    while (end - stop > 2 && !(stop[0] == '<' && stop[1] == '/' && lower(stop[2]) == 'h')) stop++;
    if (end - stop < 3) return 0;
    const uint8_t *id_end = id.at + id.length, *of_id = next_of_word(id.at, id_end);
    int matched = 0;
    for (p = next_of_word(p, stop); p < stop; p = next_of_word(p + 1, stop)) {
        if (is_digit(*p) && !matched) continue;
        if (of_id == id_end || lower(*of_id) != lower(*p)) return 0;
        of_id = next_of_word(of_id + 1, id_end);
        matched = 1;
    }
    return matched && of_id == id_end;
}

/* SURELY to TITLED: what the role, the class and the id of an element say, whose content begins at p. */
static uint32_t named(const tag_t *tag, slice_t role, const uint8_t *p, const uint8_t *end) {
    const word_t *known = role.length ? find_word(&role_words, role.at, role.length) : NULL;
    uint32_t found = known ? known->value : 0;
    if (!(tag->bits & NAMED)) return found;
    if (has(tag, A_CLASS)) found |= has_word(tag->values[A_CLASS], &chrome_words, NULL);
    uint32_t by_id = has(tag, A_ID) && !(found & PART) ? has_word(tag->values[A_ID], &chrome_words, NULL) : 0;
    if (by_id & ~found && is_titled(p, end, tag->values[A_ID])) return found ? found : TITLED;
    return found | by_id;
}

/* Doubt whether an element is chrome that begins with a title. */
static void title_box(walk_t *w) {
    open_t *t = top(w);
    if (!t || !t->boxed || !t->chrome || t->letters != w->letters) return;
    t->chrome = 0;
    t->doubtful = DOUBTFULLY;
    w->chrome--;
}

static void push(walk_t *w, const tag_t *tag, const uint8_t *p) {
    int searching = !has(tag, A_ROLE) && slice_is(tag->name, "search");
    slice_t role = searching ? tag->name : stripped(value_of(tag, A_ROLE));
    int hidden = is_hidden(tag), main = tag->bits & MAIN || slice_is(role, "main");
    int lettering = w->hidden == DRAWING && (slice_is(tag->name, "text") || slice_is(tag->name, "foreignobject"));
    uint32_t said = main ? 0 : named(tag, role, p, w->end), doubtful = said & (DOUBTFULLY | SEARCHING | TITLED);
    int surely = said & SURELY || tag->bits & CHROME;
    int chrome = !main && (surely || said & BOXED || (tag->bits & SECTIONAL && !w->scopes));
    if (said & TITLING) title_box(w);
    int stacked = tag->bits & CONTAINER || lettering || (w->odd && !is_shape(w, tag->bits));
    if (!(stacked || hidden || chrome || main || doubtful)) return;
    if (w->depth == MAX_DEPTH) {
        w->flags |= EXTREME;
        return;
    }
    main = main && !(w->hidden || w->chrome || w->in_main);
    int odd = !(tag->bits & CONTAINER);
    w->stack[w->depth++] = (open_t){
        .name = tag->name, .bits = tag->bits, .start = w->length, .letters = w->letters,
        .chrome_letters = w->chrome_letters, .link_letters = w->link_letters, .links = w->links,
        .chrome = (uint8_t)chrome, .hidden = (uint8_t)w->hidden, .main = (uint8_t)main, .odd = (uint8_t)odd, .cell = 0,
        .doubtful = (uint8_t)doubtful, .headed = (uint8_t)w->headed, .headed_in_main = (uint8_t)w->headed_in_main,
        .boxed = said & BOXED && !surely, .embedded = w->embedded_count,
    };
    push_formatting(w, top(w));
    w->odd += odd;
    if (hidden)
        w->hidden = HIDING;
    else if (lettering)
        w->hidden = 0;
    else if (tag->bits & FOREIGN && !w->hidden)
        w->hidden = DRAWING;
    w->chrome += chrome;
    w->in_main |= main;
    w->scopes += (tag->bits & SCOPE) != 0;
    w->foreign += (tag->bits & FOREIGN) != 0;
}

static const uint8_t *start_element(walk_t *w, const tag_t *tag, const uint8_t *p) {
    uint32_t bits = tag->bits;
    if (!(bits & INLINE)) line_break(w);
    if (tag->embeds && !w->hidden && !w->chrome && !is_hidden(tag)) take_embedded(w, tag);
    if (tag->seen) declare_names(w, tag);
    count_attributes(w, tag);
    join_start(w, tag);
    if (w->foreign && bits && !(bits & LINK)) irregular(w);
    if (w->foreign || w->formulas) start_unended(w, tag);
    if (bits & (RAW | ESCAPABLE)) return pass_unparsed(w, tag, p);
    if (bits & VOID) return p;
    check_nesting(w, tag);
    if (bits & HEADING) w->heading = w->letters;
    if (bits & LINK && has(tag, A_HREF)) {
        if (w->link_depth >= 0) irregular(w);
        w->link_depth = w->depth;
        w->links += !w->chrome && !w->hidden;
    }
    start_formatting(w, tag);
    push(w, tag, p);
    return p;
}

static const uint8_t *comment_end(const uint8_t *p, const uint8_t *end) {
    if (p < end && *p == '>') return p + 1;
    if (end - p >= 2 && p[0] == '-' && p[1] == '>') return p + 2;
    while ((p = memchr(p, '-', (size_t)(end - p)))) {
        if (end - p >= 3 && p[1] == '-' && p[2] == '>') return p + 3;
        if (end - p >= 4 && p[1] == '-' && p[2] == '!' && p[3] == '>') return p + 4;
        p++;
    }
    return end;
}

/* Read what begins with the "<" at p; returns where it ends. */
static const uint8_t *read_markup(walk_t *w, const uint8_t *p) {
    size_t left = (size_t)(w->end - p);
    int ending = left > 1 && p[1] == '/';
    if (left > (size_t)1 + ending && is_letter(p[1 + ending])) {
        tag_t tag;
        const uint8_t *after = read_tag(p + 1 + ending, w->end, &tag);
        if (!after) return w->end;
        if (!ending) return start_element(w, &tag, after);
        if (tag.attributes) pass_over(w);
        end_element(w, &tag);
        return after;
    }
    if (left >= 2 && (p[1] == '!' || p[1] == '?' || (ending && left > 2))) {
        pass_over(w);
        if (left >= 4 && !memcmp(p, "<!--", 4)) return comment_end(p + 4, w->end);
        if (left >= 9 && !memcmp(p, "<![CDATA[", 9)) irregular(w);
        const uint8_t *stop = memchr(p + 2, '>', left - 2);
        return stop ? stop + 1 : w->end;
    }
    show_text(w, p, p + 1);
    return p + 1;
}

static void walk_markup(walk_t *w, const uint8_t *p) {
    w->link_depth = -1;
    w->heading = NO_HEADING;
    w->title = (span_t){(size_t)-1, (size_t)-1, 0};
    while (p < w->end && !(w->flags & NO_MEMORY)) {
        const uint8_t *tag = *p == '<' ? p : memchr(p, '<', (size_t)(w->end - p));
        if (!tag) tag = w->end;
        show_text(w, p, tag);
        p = tag < w->end ? read_markup(w, tag) : tag;
    }
    if (w->link_depth >= 0 || w->hidden || w->foreign || w->chrome) irregular(w);
    while (w->depth) pop(w);
}

#endif
