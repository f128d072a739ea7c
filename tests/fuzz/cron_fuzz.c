/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule, before it eight bytes of time. What is refused says so in valid UTF-8; of what is
 * taken, the next time is after the given one, and is what was last at that time.
 */
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include "driver/warmup/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gint64 after_s;
    if (size < sizeof(after_s))
        return 0;
    memcpy(&after_s, data, sizeof(after_s));
    g_autofree char *text = g_strndup((const char *)data + sizeof(after_s), size - sizeof(after_s));
    g_autoptr(GError) error = NULL;
    Cron cron;
    if (!cron_parse(text, &cron, &error)) {
        if (!error || !g_utf8_validate(error->message, -1, NULL))
            abort();
        return 0;
    }
    if (!cron.minutes || !cron.hours || !cron.days || !cron.months || !cron.weekdays)
        abort();
    const gint64 next = cron_next(&cron, after_s);
    if (next == -1)
        return 0;
    if (next <= after_s || next % 60 != 0 || cron_last(&cron, next, after_s) != next ||
        cron_last(&cron, next - 1, after_s) != -1)
        abort();
    return 0;
}
