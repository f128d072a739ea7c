/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdmissionReview (admission.k8s.io/v1): a request of the API server's in, the answer to it out.
 * The answer always allows: with a patch for a pod that is being created and uses datasets, else
 * without. No I/O.
 *
 * Source: Kubernetes documentation, "Dynamic Admission Control", request and response.
 */
#ifndef HEARTH_DRIVER_AFFINITY_REVIEW_H
#define HEARTH_DRIVER_AFFINITY_REVIEW_H

#include "driver/affinity/preferences.h"

/* The answer's text, the caller's. NULL with HEARTH_ERROR_INVALID_ARGUMENT: the text is no
 * AdmissionReview of that version with a request, so there is nothing to answer. */
char *review_answer(const char *text, gsize size, const PreferencesHints *hints, GError **error);

#endif
