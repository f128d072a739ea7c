/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits are inserted, removed and replaced bytes, and neighbours that changed places (optimal
 * string alignment). A word may have one edit for each three of its bytes, so that short words do
 * not become each other.
 */
#include "common/suggest.h"
#include <string.h>

#define LONGEST 32

static unsigned edits(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    unsigned table[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return G_MAXUINT;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (unsigned)(i + j);
                continue;
            }
            const unsigned change = a[i - 1] == b[j - 1] ? 0 : 1;
            const unsigned one = MIN(table[i - 1][j], table[i][j - 1]) + 1;
            table[i][j] = MIN(one, table[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                table[i][j] = MIN(table[i][j], table[i - 2][j - 2] + 1);
        }
    return table[n][m];
}

const char *suggest(const char *word, const char *const *candidates)
{
    const char *near = NULL, *begun = NULL;
    unsigned least = (unsigned)strlen(word) / 3 + 1, beginning = 0;
    for (const char *const *c = candidates; *c; c++) {
        const unsigned n = edits(word, *c);
        if (n < least || (n == least && !near)) {
            near = *c;
            least = n;
        }
        if (word[0] && g_str_has_prefix(*c, word)) {
            begun = *c;
            beginning++;
        }
    }
    return beginning == 1 ? begun : near;
}
