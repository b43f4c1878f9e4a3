/* manual.h: the reference manual, one page a topic, as text for a terminal, as a man page of section 7 or as
 * Markdown.
 *
 * A page is a file src/manual/TOPIC.md, compiled into the program. Its first line is `# TOPIC - summary`. It
 * may use headings (##, ###), paragraphs, lists (- and 1.), tables, fenced code, `code`, **bold** and
 * [links](other.md). A line `<!-- table: NAME -->` inserts a table of the program (settings, counters,
 * codes), so that their texts exist once.
 *
 * No memory is allocated: a page is read line by line, and words are wrapped as they are read. */
#ifndef SVI_MANUAL_H
#define SVI_MANUAL_H

#include <stdbool.h>
#include <stdio.h>

struct svi_manual_page {
    const char *topic, *text;
    bool task; /* a page by task; the others are reference */
};

/* All pages, in the order of the list of topics, those by task first; ends in a row without topic. Generated from src/manual. */
extern const struct svi_manual_page svi_manual_pages[];

/* The page of a topic, or NULL. */
const struct svi_manual_page *svi_manual_find(const char *topic);

/* The summary of a page: the rest of its first line, not NUL-terminated. *length: its bytes. */
const char *svi_manual_summary(const struct svi_manual_page *page, int *length);

enum svi_manual_form {
    SVI_MANUAL_TEXT,    /* wrapped to the width */
    SVI_MANUAL_STYLED,  /* the same with bold type, for a terminal */
    SVI_MANUAL_ROFF,    /* man macros, section 7 */
    SVI_MANUAL_MARKDOWN /* the source, with the program's tables inserted */
};

/* width: columns of a line, for the two forms of text; longer words exceed it. */
void svi_manual_write(const struct svi_manual_page *page, enum svi_manual_form form, int width, FILE *to);

/* Writes text as roff: backslashes and dashes escaped, and no line begins with a control character. */
void svi_manual_roff(FILE *to, const char *text, size_t length);

#endif
