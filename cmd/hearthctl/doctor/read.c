/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/doctor/doctor.h"

char *doctor_read(const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strchomp(text);
}
