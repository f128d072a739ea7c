/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"
#include "cmd/hearthctl/client/text.h"
#include <string.h>

/* Of a word that a shell takes as it is. */
#define PLAIN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%"
#define MINUTE 60
#define HOUR 3600
#define DAY 86400

static char *two_units(uint64_t n, uint64_t large, const char *large_name, uint64_t small,
                       const char *small_name)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT "%s%" G_GUINT64_FORMAT "%s", n / large, large_name,
                           n % large / small, small_name);
}

char *words_duration(uint64_t seconds)
{
    if (seconds >= DAY)
        return two_units(seconds, DAY, "d", HOUR, "h");
    if (seconds >= HOUR)
        return two_units(seconds, HOUR, "h", MINUTE, "m");
    if (seconds >= MINUTE)
        return two_units(seconds, MINUTE, "m", 1, "s");
    return g_strdup_printf("%" G_GUINT64_FORMAT "s", seconds);
}

char *words_duration_ms(uint64_t ms)
{
    if (ms >= MINUTE * 1000)
        return words_duration(ms / 1000);
    return g_strdup_printf("%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT "s", ms / 1000,
                           ms % 1000 / 100);
}

char *words_percent(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return g_strdup("-");
    const unsigned share = part >= whole ? 100 : (unsigned)(100.0 * (double)part / (double)whole);
    return g_strdup_printf("%u%%", part < whole ? MIN(share, 99) : share);
}

char *words_part(uint64_t part, uint64_t whole)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double some = (double)part, all = (double)whole;
    guint unit = 0;
    for (; all >= 1023.95 && unit < G_N_ELEMENTS(units) - 1; unit++) {
        some /= 1024;
        all /= 1024;
    }
    const int decimals = unit == 0 || all >= 100 ? 0 : 1;
    return g_strdup_printf("%.*f/%.*f %s", decimals, some, decimals, all, units[unit]);
}

char *words_shell(const char *word)
{
    g_autofree char *text = text_printable(word);
    return text[0] && strspn(text, PLAIN_CHARACTERS) == strlen(text) ? g_steal_pointer(&text)
                                                                     : g_shell_quote(text);
}

const char *words_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}
