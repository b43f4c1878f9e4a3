/* The renderer of the manual's pages.
 *
 * A page is a sequence of blocks (heading, paragraph, list item, table, code) of some lines of Markdown each.
 * svi_manual_write goes from block to block, and one function a kind of block writes it. Before the text of a
 * block is laid out, copy_words removes the marks (`, **, links) and puts the bytes BOLD and PLAIN around
 * each word that they make bold. From there on a text is words separated by single spaces, which can be
 * wrapped anywhere; only put_char knows how a terminal or roff shows bold or in roff.
 *
 * A man page differs in two ways only. groff fills paragraphs, so a paragraph is one line after its macro.
 * Tables are laid out here as for a terminal, between .nf and .fi, because tbl cannot wrap cells to a width
 * that it does not know. */
#include "cli/manual.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "engine/counters.h"
#include "config/settings.h"
#include "svmstream/svmstream.h"

#define INDENT      2  /* columns, of everything except headings */
#define ROFF_WIDTH  72 /* of a table in a man page: 80 less the indentation of man */
#define COLUMN_MAX  12
#define COLUMN_GAP  2
#define BLOCK_BYTES 8192 /* of a paragraph or a row of a table, marks included */
#define BOLD        '\1'
#define PLAIN       '\2'

enum block { BLOCK_NONE, BLOCK_HEADING, BLOCK_TEXT, BLOCK_ITEM, BLOCK_TABLE, BLOCK_CODE, BLOCK_COMMENT };

struct page_writer {
    FILE *to;
    enum svi_manual_form form;
    int width;
    bool line_begun; /* roff: the next character is not at the start of a line */
};

/* ---- characters */

static bool is_roff(const struct page_writer *o) {
    return o->form == SVI_MANUAL_ROFF;
}

static void put_char(struct page_writer *o, char c) {
    if (c == BOLD || c == PLAIN) {
        if (is_roff(o))
            fputs(c == BOLD ? "\\fB" : "\\fR", o->to);
        else if (o->form == SVI_MANUAL_STYLED)
            fputs(c == BOLD ? "\033[1m" : "\033[0m", o->to);
    } else if (is_roff(o)) {
        if (!o->line_begun && (c == '.' || c == '\'')) /* roff would take the line for a request */
            fputs("\\&", o->to);
        fputs(c == '\\' ? "\\e" : c == '-' ? "\\-" : (char[]){c, '\0'}, o->to);
    } else {
        fputc(c, o->to);
    }
    o->line_begun = c != '\n';
}

static void put_bytes(struct page_writer *o, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        put_char(o, text[i]);
}

static void put_repeated(struct page_writer *o, char c, int count) {
    for (; count > 0; count--)
        put_char(o, c);
}

/* Writes roff requests, which are whole lines; nothing in the other forms. */
static void put_macro(struct page_writer *o, const char *macro) {
    if (is_roff(o))
        fputs(macro, o->to);
}

void svi_manual_roff(FILE *to, const char *text, size_t length) {
    struct page_writer o = {.to = to, .form = SVI_MANUAL_ROFF};
    put_bytes(&o, text, length);
}

/* ---- lines and blocks of a page */

static const char *line_end(const char *line) {
    return line + strcspn(line, "\n");
}

static const char *next_line(const char *line) {
    const char *end = line_end(line);
    return *end ? end + 1 : end;
}

/* The length of a list item's mark, "- " or "12. "; 0: the text is no item. */
static size_t item_mark(const char *text) {
    const size_t digits = strspn(text, "0123456789");
    if (text[0] == '-' && text[1] == ' ')
        return 2;
    return digits > 0 && digits < 3 && text[digits] == '.' && text[digits + 1] == ' ' ? digits + 2 : 0;
}

static enum block block_kind(const char *line) {
    const char *text = line + strspn(line, " ");
    if (*text == '\n' || *text == '\0')
        return BLOCK_NONE;
    if (*line == '#')
        return BLOCK_HEADING;
    if (*line == '|')
        return BLOCK_TABLE;
    if (strncmp(text, "```", 3) == 0)
        return BLOCK_CODE;
    if (strncmp(text, "<!--", 4) == 0)
        return BLOCK_COMMENT;
    return item_mark(text) > 0 ? BLOCK_ITEM : BLOCK_TEXT;
}

/* ---- words: text without marks */

/* True when the bracket at `at` opens a link, [text](target). */
static bool opens_link(const char *at, const char *end) {
    const char *close = memchr(at, ']', (size_t)(end - at));
    return close && close + 1 < end && close[1] == '(';
}

/* Copies the words of the text up to `end` to `out`, which ends at `limit`. Marks are removed, and
 * runs of white space become one space. Bold words are marked one by one, so that a line break
 * never falls inside a bold part. Returns the byte after their NUL. */
static char *copy_words(const char *at, const char *end, char *out, const char *limit) {
    const char *const begin = out;
    bool code = false, strong = false, link = false, bold = false;
    for (; at < end && limit - out > 4; at++) {
        const bool space = isspace((unsigned char)*at);
        if (*at == '`') {
            code = !code;
        } else if (!code && at[0] == '*' && at[1] == '*') {
            strong = !strong;
            at++;
        } else if (!code && *at == '[' && opens_link(at, end)) {
            link = true;
        } else if (!code && link && *at == ']') {
            link = false;
            at += strcspn(at, ")");
        } else if (!space || (out > begin && out[-1] != ' ')) {
            at += at[0] == '\\' && at[1] == '|'; /* a bar inside a table's cell */
            if (bold != ((code || strong) && !space))
                *out++ = bold ? PLAIN : BOLD;
            bold = (code || strong) && !space;
            *out++ = space ? ' ' : *at;
        }
    }
    if (bold)
        *out++ = PLAIN;
    else if (out > begin && out[-1] == ' ')
        out--;
    *out = '\0';
    return out + 1;
}

static int text_width(const char *text, size_t length) {
    int width = 0;
    for (size_t i = 0; i < length; i++) /* BOLD, PLAIN and continuation bytes of UTF-8 take no column */
        width += text[i] != BOLD && text[i] != PLAIN && (text[i] & 0xc0) != 0x80;
    return width;
}

/* Writes as many of the words as fit `capacity` columns, at least one, so that long words cause no endless
 * loop. Returns the columns written. */
static int put_line(struct page_writer *o, const char **words, int capacity) {
    int column = 0;
    while (**words) {
        const size_t length = strcspn(*words, " ");
        const int needed = text_width(*words, length) + (column > 0);
        if (column > 0 && column + needed > capacity)
            break;
        put_repeated(o, ' ', column > 0);
        put_bytes(o, *words, length);
        *words += length + ((*words)[length] == ' ');
        column += needed;
    }
    return column;
}

/* Writes a block of text. The caller has written the first line's indentation. */
static void put_wrapped(struct page_writer *o, const char *text, const char *end, int indent) {
    char buffer[BLOCK_BYTES];
    const char *words = buffer;
    copy_words(text, end, buffer, buffer + sizeof buffer);
    for (bool first = true; first || *words; first = false) {
        put_repeated(o, ' ', first ? 0 : indent);
        put_line(o, &words, is_roff(o) ? INT_MAX : o->width - indent);
        put_char(o, '\n');
    }
}

/* ---- tables */

struct table_layout {
    int columns, width[COLUMN_MAX], longest[COLUMN_MAX]; /* longest: width of the longest word */
};

/* Splits a line `| a | b |` into cells, whose words are stored in `buffer` of BLOCK_BYTES. Returns the number
 * of cells. A bar after a backslash belongs to its cell. */
static int split_row(const char *line, char *buffer, const char **cells) {
    const char *const end = line_end(line), *const limit = buffer + BLOCK_BYTES;
    int count = 0;
    for (const char *at = line + 1, *bar; at < end && count < COLUMN_MAX && buffer < limit - 8;
         at = bar + 1) {
        for (bar = at; bar < end && (*bar != '|' || bar[-1] == '\\');)
            bar++;
        cells[count++] = buffer;
        buffer = copy_words(at, bar, buffer, limit);
    }
    return count;
}

/* Columns are as wide as their widest cell. While the table is wider than `capacity`, the widest column that
 * still can is narrowed by one; none becomes narrower than its longest word. Row 1 is the rule below the
 * header. */
static void lay_out_table(struct table_layout *t, const char *text, int capacity) {
    char buffer[BLOCK_BYTES];
    const char *cells[COLUMN_MAX];
    *t = (struct table_layout){.columns = 0};
    for (int row = 0; *text == '|'; text = next_line(text), row++) {
        const int count = split_row(text, buffer, cells);
        t->columns = count > t->columns ? count : t->columns;
        for (int c = 0; row != 1 && c < count; c++) {
            const int width = text_width(cells[c], strlen(cells[c]));
            t->width[c] = width > t->width[c] ? width : t->width[c];
            for (const char *s = cells[c]; *s; s += strspn(s, " ")) {
                const size_t length = strcspn(s, " ");
                const int word = text_width(s, length);
                t->longest[c] = word > t->longest[c] ? word : t->longest[c];
                s += length;
            }
        }
    }
    int sum = COLUMN_GAP * (t->columns - 1), widest = 0;
    for (int c = 0; c < t->columns; c++)
        sum += t->width[c];
    for (; sum > capacity && widest >= 0; sum--) {
        widest = -1;
        for (int c = 0; c < t->columns; c++)
            if (t->width[c] > t->longest[c] && (widest < 0 || t->width[c] >= t->width[widest]))
                widest = c;
        if (widest >= 0)
            t->width[widest]--;
    }
}

static void put_row(struct page_writer *o, const struct table_layout *t, const char *line, int indent) {
    char buffer[BLOCK_BYTES];
    const char *cells[COLUMN_MAX];
    const int count = split_row(line, buffer, cells);
    for (bool more = true; more;) {
        int blank = indent; /* columns from the last word written to the next cell */
        more = false;
        for (int c = 0; c < count; c++) {
            if (*cells[c]) {
                put_repeated(o, ' ', blank);
                blank = -put_line(o, &cells[c], t->width[c]);
            }
            more = more || *cells[c];
            blank += t->width[c] + COLUMN_GAP;
        }
        put_char(o, '\n');
    }
}

static const char *put_table(struct page_writer *o, const char *text) {
    const int indent = is_roff(o) ? 0 : INDENT;
    struct table_layout t;
    lay_out_table(&t, text, (is_roff(o) ? ROFF_WIDTH : o->width) - indent);
    put_macro(o, ".PP\n.nf\n");
    for (int row = 0; *text == '|'; text = next_line(text), row++) {
        if (row != 1) {
            put_row(o, &t, text, indent);
            continue;
        }
        for (int c = 0; c < t.columns; c++) {
            put_repeated(o, ' ', c > 0 ? COLUMN_GAP : indent);
            put_repeated(o, '-', t.width[c]);
        }
        put_char(o, '\n');
    }
    put_macro(o, ".fi\n");
    return text;
}

/* ---- the other blocks: each writes one and returns what follows it */

static const char *put_heading(struct page_writer *o, const char *text) {
    const size_t level = strspn(text, "#");
    put_macro(o, level == 2 ? ".SH " : ".SS ");
    put_repeated(o, ' ', !is_roff(o) && level > 2);
    put_repeated(o, BOLD, !is_roff(o));
    put_bytes(o, text + level + 1, (size_t)(line_end(text) - text) - level - 1);
    put_repeated(o, PLAIN, !is_roff(o));
    put_char(o, '\n');
    return next_line(text);
}

static const char *put_fenced(struct page_writer *o, const char *text) {
    const size_t margin = strspn(text, " ");
    put_macro(o, ".PP\n.RS 4\n.nf\n");
    for (text = next_line(text); *text && block_kind(text) != BLOCK_CODE; text = next_line(text)) {
        const size_t spaces = strspn(text, " "), length = (size_t)(line_end(text) - text);
        const size_t skipped = spaces < margin ? spaces : margin;
        put_repeated(o, ' ', is_roff(o) || length == skipped ? 0 : 2 * INDENT);
        put_bytes(o, text + skipped, length - skipped);
        put_char(o, '\n');
    }
    put_macro(o, ".fi\n.RE\n");
    return next_line(text);
}

/* A paragraph or a list item: all lines up to the first that does not continue its text. */
static const char *put_text(struct page_writer *o, const char *text) {
    const size_t margin = strspn(text, " "), mark = item_mark(text + margin);
    const char *begin = text + margin, *end = text;
    char macro[32] = ".PP\n";
    do
        end = next_line(end);
    while (block_kind(end) == BLOCK_TEXT);
    if (mark > 0)
        snprintf(macro, sizeof macro, "%s.IP %.*s %d\n", margin > 0 ? ".RS 2\n" : "",
                 mark == 2 ? 5 : (int)mark - 1, mark == 2 ? "\\(bu" : begin, (int)mark + (mark > 2));
    put_macro(o, macro);
    if (!is_roff(o)) {
        put_repeated(o, ' ', INDENT + (mark > 0 ? (int)margin : 0));
        put_bytes(o, begin, mark);
    }
    put_wrapped(o, begin + mark, end, INDENT + (mark > 0 ? (int)(margin + mark) : 0));
    put_macro(o, mark > 0 && margin > 0 ? ".RE\n" : "");
    return end;
}

/* ---- tables of the program, as lists: write the i-th item to `out`; false: no more */

static const char *change_text(const struct svi_setting *row) {
    static const char *const texts[] = {
        [SVI_CHANGE_START] = "set at each start, not kept",
        [SVI_CHANGE_LIVE] = "kept; may change at a start or by `ctl config`",
        [SVI_CHANGE_LIMIT] = "kept; may be raised at a start",
        [SVI_CHANGE_MODEL] = "kept; fixed for the lifetime of the state",
        [SVI_CHANGE_ONWARD] = "kept; may change at a start or by `ctl config`, and takes effect from then on",
        [SVI_CHANGE_RELEARN] =
            "kept; may change at a start or by `ctl config`: the model is rebuilt from the samples held",
        [SVI_CHANGE_RENEW] = "kept; may change at a start or by `ctl config`: novelty starts from nothing",
    };
    return texts[row->change];
}

static bool settings_item(int i, char *out, size_t size) {
    char range[128];
    const struct svi_setting *row = &svi_settings_table[i];
    if (!row->key)
        return false;
    const bool any = row->type == SVI_SET_TEXT && !row->words;
    snprintf(out, size,
             row->value[0] ? "- `%s` (default `%s`): %s. %s Takes %s; %s.\n"
                           : "- `%s` (default none%s): %s. %s Takes %s; %s.\n",
             row->key, row->value, row->text, row->advice,
             any ? "text" : svi_settings_range(row, range, sizeof range), change_text(row));
    return true;
}

static bool counters_item(int i, char *out, size_t size) {
    const struct svi_counter_row *row = &svi_counter_table[i];
    if (i < SVI_COUNTER_COUNT)
        snprintf(out, size, "- `%s` (%s): %s\n", row->name, row->unit[0] ? row->unit : "no unit", row->text);
    return i < SVI_COUNTER_COUNT;
}

static bool codes_item(int i, char *out, size_t size) {
    const svs_code code = (svs_code)(SVS_OK + 1 + i);
    if (code < SVS_CODE_COUNT)
        snprintf(out, size, "- `%s`: %s\n", svs_code_name(code), svs_code_text(code));
    return code < SVS_CODE_COUNT;
}

/* Comments are dropped, except `<!-- table: NAME -->`. */
static const char *put_comment(struct page_writer *o, const char *text) {
    static const struct {
        const char *name;
        bool (*item)(int i, char *out, size_t size);
    } lists[] = {{"settings", settings_item}, {"counters", counters_item}, {"codes", codes_item}};
    char name[32] = "", item[2048];
    sscanf(text, "<!-- table: %31s", name);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        if (strcmp(lists[l].name, name) != 0)
            continue;
        put_repeated(o, '\n', !is_roff(o));
        for (int i = 0; lists[l].item(i, item, sizeof item); i++)
            if (o->form == SVI_MANUAL_MARKDOWN)
                fputs(item, o->to);
            else
                put_text(o, item);
    }
    return next_line(text);
}

/* ---- pages */

static void put_title(struct page_writer *o, const struct svi_manual_page *page) {
    int length;
    const char *summary = svi_manual_summary(page, &length);
    if (is_roff(o))
        fprintf(o->to,
                ".TH SVMSTREAM\\-%s 7 \"\" \"svmstream %s\" \"svmstream manual\"\n.nh\n.ad l\n.SH "
                "NAME\nsvmstream\\-%s \\- ",
                page->topic, svs_version(), page->topic);
    else
        fprintf(o->to, "%ssvmstream %s - ", o->form == SVI_MANUAL_STYLED ? "\033[1m" : "", page->topic);
    o->line_begun = true;
    put_bytes(o, summary, (size_t)length);
    put_repeated(o, PLAIN, !is_roff(o));
    put_char(o, '\n');
    put_macro(o, ".SH DESCRIPTION\n");
}

static void put_see_also(struct page_writer *o, const struct svi_manual_page *page) {
    fputs(".SH SEE ALSO\n.BR svmstream (1)", o->to);
    for (const struct svi_manual_page *p = svi_manual_pages; p->topic; p++)
        if (p != page)
            fprintf(o->to, ",\n.BR svmstream\\-%s (7)", p->topic);
    fputc('\n', o->to);
}

static void put_markdown(struct page_writer *o, const char *text) {
    for (; *text; text = next_line(text)) {
        fwrite(text, 1, (size_t)(next_line(text) - text), o->to);
        if (block_kind(text) == BLOCK_COMMENT)
            put_comment(o, text);
    }
}

void svi_manual_write(const struct svi_manual_page *page, enum svi_manual_form form, int width, FILE *to) {
    static const char *(*const put[])(struct page_writer *, const char *) = {
        [BLOCK_HEADING] = put_heading, [BLOCK_TEXT] = put_text,   [BLOCK_ITEM] = put_text,
        [BLOCK_TABLE] = put_table,     [BLOCK_CODE] = put_fenced, [BLOCK_COMMENT] = put_comment,
    };
    struct page_writer o = {.to = to, .form = form, .width = width};
    enum block before = BLOCK_NONE;
    if (form == SVI_MANUAL_MARKDOWN) {
        put_markdown(&o, page->text);
        return;
    }
    put_title(&o, page);
    for (const char *text = next_line(page->text); *text;) {
        const enum block kind = block_kind(text);
        if (kind == BLOCK_NONE) {
            text = next_line(text);
            continue;
        }
        const bool tight = kind == BLOCK_COMMENT || (kind == BLOCK_ITEM && before == BLOCK_ITEM);
        put_repeated(&o, '\n', form != SVI_MANUAL_ROFF && !tight);
        text = put[kind](&o, text);
        before = kind;
    }
    if (form == SVI_MANUAL_ROFF)
        put_see_also(&o, page);
}

const struct svi_manual_page *svi_manual_find(const char *topic) {
    const struct svi_manual_page *p = svi_manual_pages;
    while (p->topic && strcmp(p->topic, topic) != 0)
        p++;
    return p->topic ? p : NULL;
}

const char *svi_manual_summary(const struct svi_manual_page *page, int *length) {
    const char *dash = strstr(page->text, " - "), *end = line_end(page->text);
    const char *summary = dash && dash < end ? dash + 3 : end;
    *length = (int)(end - summary);
    return summary;
}
