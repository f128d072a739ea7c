/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/client/output.h"
#include "cmd/hearthctl/client/client.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void output_begin(void)
{
    /* open(2) takes the lowest number that is free. Input cannot be read, output not written. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int output_end(int code)
{
    const int flushed = fflush(stdout), why = errno;
    if (flushed == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "hearthctl: cannot write the output%s%s\n", flushed ? ": " : "",
            flushed ? strerror(why) : "");
    return code == CTL_OK ? CTL_FAILED : code;
}
