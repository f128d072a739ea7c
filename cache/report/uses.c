/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/uses.h"
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
#include "proto/wire_keys.h"

static const char *const kinds[REPORT_MEMORY_KINDS] = {
    "liveInodes",   "writtenBlocks", "clientData",    "clientNames",
    "fetchBuffers", "imageBuffers",  "bypassBuffers",
};

static json_int_t count(uint64_t n)
{
    return (json_int_t)MIN(n, (uint64_t)G_MAXINT64);
}

/* 0: not known. */
static uint64_t resident_bytes(void)
{
    g_autofree char *text = NULL;
    unsigned long long pages = 0;
    if (g_file_get_contents("/proc/self/statm", &text, NULL, NULL) &&
        sscanf(text, "%*u %llu", &pages) == 1)
        return pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static uint64_t milliseconds(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000 + (uint64_t)t->tv_usec / 1000;
}

uint64_t report_cpu_ms(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return milliseconds(&usage.ru_utime) + milliseconds(&usage.ru_stime);
}

json_t *report_memory(const ReportUses *uses)
{
    json_t *list = json_array();
    for (gsize i = 0; i < REPORT_MEMORY_KINDS; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:I}", WIRE_KEY_KIND, kinds[i],
                                              WIRE_KEY_BYTES, count(uses->memory[i].used),
                                              WIRE_KEY_MAX_BYTES, count(uses->memory[i].most)));
    return json_pack("{s:I, s:o}", WIRE_KEY_RESIDENT_BYTES, count(resident_bytes()), WIRE_KEY_KINDS,
                     list);
}

static void add_kinds(OpenMetrics *m, const ReportUses *uses, const char *name, const char *help,
                      gboolean most)
{
    openmetrics_family(m, OPENMETRICS_GAUGE, name, help);
    for (gsize i = 0; i < REPORT_MEMORY_KINDS; i++)
        if (!most || uses->memory[i].most)
            openmetrics_add(m, most ? uses->memory[i].most : uses->memory[i].used, "kind", kinds[i],
                            NULL);
}

void report_uses_metrics(OpenMetrics *m, const ReportUses *uses)
{
    add_kinds(m, uses, "hearthd_memory_used_bytes",
              "Memory in use, or granted to Ceph's clients, by kind", FALSE);
    add_kinds(m, uses, "hearthd_memory_limit_bytes", "Its limit, by kind", TRUE);
    openmetrics_family(m, OPENMETRICS_GAUGE, "hearthd_threads", "Threads of hearthd");
    openmetrics_add(m, uses->threads.used, NULL);
    if (!uses->threads.most)
        return;
    openmetrics_family(m, OPENMETRICS_GAUGE, "hearthd_threads_limit",
                       "How many threads hearthd can have, by --max-threads, its cgroup and the "
                       "kernel");
    openmetrics_add(m, uses->threads.most, NULL);
}
