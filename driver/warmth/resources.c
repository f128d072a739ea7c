/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/resources.h"

const KubeResource node_cache_resource = {"csi.hearth.dev", "v1alpha1", "nodecaches"};
const KubeResource hint_resource = {"csi.hearth.dev", "v1alpha1", "datasethints"};
