/* Character references: the named ones that end in ";" and the numeric ones of plain characters. html.unescape, to which
 * everything else is left, gives the same for these. */
#ifndef CLUSTERD_REFERENCES_H
#define CLUSTERD_REFERENCES_H

#include <stdint.h>
#include <string.h>

#define REFERENCE_SLOTS 8192
#define MAX_REFERENCES 4096
#define NAME_BYTES 33

typedef struct {
    char name[NAME_BYTES]; /* with its ";" */
    uint8_t name_length, text_length;
    uint8_t text[8];
} reference_t;

static reference_t references[MAX_REFERENCES];
static uint16_t reference_slots[REFERENCE_SLOTS]; /* number + 1 of a reference; 0: free */
static size_t reference_count;

static uint16_t *reference_slot(const uint8_t *name, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ name[i]) * 16777619u;
    for (uint32_t slot = (hash ^ hash >> 15) % REFERENCE_SLOTS;; slot = (slot + 1) % REFERENCE_SLOTS) {
        uint16_t number = reference_slots[slot];
        if (!number) return &reference_slots[slot];
        const reference_t *r = &references[number - 1];
        if (r->name_length == length && !memcmp(r->name, name, length)) return &reference_slots[slot];
    }
}

/* One that is too long is left to html.unescape. */
static void add_reference(const uint8_t *name, size_t length, const uint8_t *text, size_t text_length) {
    if (!length || length > NAME_BYTES || text_length > 8 || reference_count == MAX_REFERENCES) return;
    uint16_t *slot = reference_slot(name, length);
    if (*slot) return;
    reference_t *r = &references[reference_count++];
    memcpy(r->name, name, length);
    memcpy(r->text, text, text_length);
    r->name_length = (uint8_t)length;
    r->text_length = (uint8_t)text_length;
    *slot = (uint16_t)reference_count;
}

static size_t write_utf8(uint32_t code, uint8_t *to) {
    if (code < 0x80) return to[0] = (uint8_t)code, 1;
    if (code < 0x800) return to[0] = (uint8_t)(0xC0 | code >> 6), to[1] = (uint8_t)(0x80 | (code & 0x3F)), 2;
    to[0] = (uint8_t)(0xE0 | code >> 12);
    to[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    to[2] = (uint8_t)(0x80 | (code & 0x3F));
    return 3;
}

/* A numeric reference behind "&#"; plain characters of the basic plane only. Returns its length behind "&", or 0. */
static size_t read_number(const uint8_t *p, const uint8_t *end, uint8_t *text, size_t *text_length) {
    const uint8_t *start = p++;
    int hex = p < end && (*p | 32) == 'x';
    uint32_t code = 0;
    p += hex;
    for (int digits = 0; p < end && *p != ';'; p++, digits++) {
        uint8_t c = *p, letter = (uint8_t)((c | 32) - 'a');
        int is_hex_letter = hex && letter < 6;
        if (digits == 6 || (!is_hex_letter && (uint8_t)(c - '0') > 9)) return 0;
        code = code * (hex ? 16 : 10) + (is_hex_letter ? letter + 10u : (uint32_t)(c - '0'));
    }
    int plain = (code >= 32 && code < 127) || (code >= 160 && code < 0xD800) || (code >= 0xE000 && code < 0xFDD0);
    if (p == end || !plain) return 0;
    *text_length = write_utf8(code, text);
    return (size_t)(p + 1 - start);
}

/* The reference behind an "&": its text, and its length (0 where it is left to html.unescape). */
static size_t read_reference(const uint8_t *p, const uint8_t *end, uint8_t *text, size_t *text_length) {
    if (p < end && *p == '#') return read_number(p, end, text, text_length);
    size_t length = 0;
    while (p + length < end && length < NAME_BYTES - 1 &&
           ((uint8_t)((p[length] | 32) - 'a') < 26 || (uint8_t)(p[length] - '0') < 10))
        length++;
    if (!length || p + length == end || p[length] != ';') return 0;
    uint16_t number = *reference_slot(p, ++length);
    if (!number) return 0;
    memcpy(text, references[number - 1].text, 8);
    *text_length = references[number - 1].text_length;
    return length;
}

#endif
