/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of a node that show the scheduler what is warm on it: one label for each dataset with
 * the part that is cached, in four steps: warm.csi.hearth.dev/<id>: "25" | "50" | "75" | "100". No
 * I/O, and no clock but the caller's (monotonic, ms): the reports and the labels of a node go in, a
 * JSON merge patch comes out.
 *
 * A label costs a write to a Node, which is sent to every watcher of nodes. So
 *   - a step is entered at its edge ("100": when complete) and left 10 points below it;
 *   - a label stays unchanged for 60 s at least; after that its first change is made at once;
 *   - 32 datasets at most have one, those with most bytes on the node; a dataset that has a label
 * is only displaced by one with a tenth more, so that two of a size do not take turns;
 *   - a node is patched every 30 s at most.
 * All labels of a node that has not reported for 90 s are removed at once: the node may be gone,
 * and its cache with it. Unknown labels with our prefix are removed with the next patch.
 *
 * A controller that takes over from another believes the labels that it finds, so only real changes
 * are written.
 *
 * For one thread.
 */
#ifndef HEARTH_DRIVER_WARMTH_LABELS_H
#define HEARTH_DRIVER_WARMTH_LABELS_H

#include <glib.h>
#include <jansson.h>

/* TOPOLOGY_TIER and TOPOLOGY_ZONE (volume/topology.h) are labels too, with what the node reports.
 * They stay when it is silent, because they do not depend on time. */
#define WARM_LABEL_PREFIX "warm.csi.hearth.dev/"
/* The length of a dataset's id in a label: its first digits, 0-9a-f. */
#define WARM_LABEL_DIGITS 16
#define WARM_LABELS_MAX 32
#define WARM_DWELL_MS 60000
#define WARM_PATCH_MS 30000
#define WARM_STALE_MS 90000

/* What a node reports of one dataset. */
typedef struct WarmDataset {
    const char *id; /* of WARM_LABEL_DIGITS; others are skipped */
    guint64 bytes;  /* of it that are cached */
    guint64 total;  /* 0: not known, or nothing to keep warm */
} WarmDataset;

/* The labels of one node. */
typedef struct WarmLabels WarmLabels;

/* The node counts as having reported now, so a controller that starts waits for a report before it
 * removes labels. */
WarmLabels *warm_labels_new(gint64 now_ms);
void warm_labels_free(WarmLabels *labels);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WarmLabels, warm_labels_free)

/*
 * The node reports that it holds these datasets and no others. alive_ms: the time of its last
 * heartbeat, now_ms or before; for a node seen for the first time, by the node's own clock.
 */
void warm_labels_report(WarmLabels *labels, const WarmDataset *datasets, gsize n, gint64 alive_ms,
                        gint64 now_ms);
/* Its tier and zone, label values; zone NULL: it is in none. Before the first call these two labels
 * are not changed: a plugin of an earlier release may have given them to kubelet. */
void warm_labels_place(WarmLabels *labels, const char *tier, const char *zone);
/* Its report was deleted. */
void warm_labels_gone(WarmLabels *labels);
/* metadata.labels of the Node, as a watch or the answer to a patch shows them; NULL: none. To be
 * called before the first report, which starts from them. */
void warm_labels_have(WarmLabels *labels, const json_t *node_labels);

/*
 * The patch that is due, the caller's, or NULL. Returning it counts as patching: a patch that
 * failed is returned again, until warm_labels_have() shows its labels.
 */
json_t *warm_labels_patch(WarmLabels *labels, gint64 now_ms);

#endif
