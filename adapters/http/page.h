/* page.h: the page, as adapters/http/page/embed made it of its files when the program was built. */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include <stddef.h>

extern const char http_page_policy[];          /* Content-Security-Policy: exactly its own style and script */
extern const char http_page_tag[];             /* ETag, with its quotes */
extern const size_t http_page_size;            /* bytes of the document */
extern const size_t http_page_packed_size;     /* bytes of it as a gzip file */
extern const unsigned char http_page_packed[]; /* that file */

#endif
