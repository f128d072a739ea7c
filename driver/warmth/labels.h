/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which labels a node has, so that the scheduler knows what is warm on it: of each dataset how
 * much of it, in four steps, as warm.csi.hearth.dev/<id>: "25" | "50" | "75" | "100". No I/O, and
 * no clock but the caller's (monotonic, ms): what a node reports and what labels it has go in, a
 * JSON merge patch comes out.
 *
 * A label costs a write to a Node, which everyone who watches nodes is told of. So
 *   - a step is entered at its edge ("100": when complete) and left 10 points below it;
 *   - a label stays as it is for 60 s at least; the first change of one that did is made at once;
 *   - 32 datasets at most, those with most bytes here; one that has a label is only displaced by
 * one with a tenth more, so that two of a size do not take turns;
 *   - a node is patched every 30 s at most.
 * Labels of a node that has not reported for 90 s are removed at once, all of them: it may be gone,
 * and what it held with it. Labels of ours that nobody here asked for are removed with the next
 * patch.
 *
 * Whoever takes over from another controller takes the labels it finds for what was decided, so
 * that nothing changes but what has changed.
 *
 * For one thread. Source: design of layer L2, ARCHITECTURE.md.
 */
#ifndef HEARTH_DRIVER_WARMTH_LABELS_H
#define HEARTH_DRIVER_WARMTH_LABELS_H

#include <glib.h>
#include <jansson.h>

/* Beside them TOPOLOGY_TIER and TOPOLOGY_ZONE (volume/topology.h), as the node says. They stay when
 * it is silent, for they are no matter of time. */
#define WARM_LABEL_PREFIX "warm.csi.hearth.dev/"
/* Of a dataset's id in a label: the first of its digits, 0-9a-f. */
#define WARM_LABEL_DIGITS 16
#define WARM_LABELS_MAX 32
#define WARM_DWELL_MS 60000
#define WARM_PATCH_MS 30000
#define WARM_STALE_MS 90000

/* Of one dataset, what a node reports. */
typedef struct WarmDataset {
    const char *id; /* WARM_LABEL_DIGITS; another is passed over */
    guint64 bytes;  /* of it that are here */
    guint64 total;  /* 0: not known, or nothing to keep warm */
} WarmDataset;

/* Of one node. */
typedef struct WarmLabels WarmLabels;

/* It counts as having reported now, so that a controller that starts waits for a report before it
 * removes anything. */
WarmLabels *warm_labels_new(gint64 now_ms);
void warm_labels_free(WarmLabels *labels);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WarmLabels, warm_labels_free)

/*
 * The node says that it holds this, and of others nothing. alive_ms: when it last gave a sign of
 * life, now_ms or before (its heartbeat changed then; of one seen for the first time, what its
 * clock says).
 */
void warm_labels_report(WarmLabels *labels, const WarmDataset *datasets, gsize n, gint64 alive_ms,
                        gint64 now_ms);
/* Its tier and zone, label values; zone NULL: it is in none. Before the first call what the node
 * has of both is let be: its plugin may be of a release that told kubelet. */
void warm_labels_place(WarmLabels *labels, const char *tier, const char *zone);
/* Its report was deleted. */
void warm_labels_gone(WarmLabels *labels);
/* metadata.labels of the Node, as a watch or the answer to a patch shows them; NULL: none. First of
 * all before the first report, which goes on from them. */
void warm_labels_have(WarmLabels *labels, const json_t *node_labels);

/*
 * The patch that is due, the caller's, or NULL. That it was returned counts as a patch: one that
 * failed comes again, as long as warm_labels_have() does not show what it wanted.
 */
json_t *warm_labels_patch(WarmLabels *labels, gint64 now_ms);

#endif
