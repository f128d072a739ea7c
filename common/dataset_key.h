/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dataset's name in Kubernetes: 16 hex digits, the same on every node and in the controller,
 * whichever class, claim or static volume shows it. It is made of where the snapshot is: cluster,
 * file system, and
 *
 *     /volumes/GROUP/SUBVOLUME/.snap/NAME[/UUID]     a subvolume's, without what the mgr named it
 *     any other path with /.snap/NAME in it          as it is
 */
#ifndef HEARTH_COMMON_DATASET_KEY_H
#define HEARTH_COMMON_DATASET_KEY_H

#include <glib.h>

#define DATASET_KEY_DIGITS 16
/* The group of subvolumes whose name needs no group; ceph-csi's too. */
#define DATASET_DEFAULT_GROUP "csi"

/* The caller's; NULL: the path is of no snapshot. */
char *dataset_key(const char *cluster_id, const char *fs_name, const char *root_path);
/* "SUBVOLUME@NAME", with "GROUP/" before it unless that is the default, or the path; the caller's.
 * For people. */
char *dataset_key_title(const char *root_path);
/*
 * Whether `text`, written by a person, means the dataset with this title: the title itself, with
 * the default group or without its group.
 */
gboolean dataset_title_matches(const char *title, const char *text);
/* "[GROUP/]SUBVOLUME@SNAPSHOT", as far as its form goes. */
gboolean dataset_title_is(const char *text);

#endif
