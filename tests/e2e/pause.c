/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process of a pod and of a node of kubelets.sh: holds their namespaces, takes the exit
 * status of whoever is left to it, and ends on TERM or INT. Linked statically, so that an image is
 * this file alone.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void)
{
    sigset_t waited;
    sigemptyset(&waited);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGINT);
    sigaddset(&waited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited, NULL);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        int number = 0;
        if (sigwait(&waited, &number) == 0 && number != SIGCHLD)
            return 0;
    }
}
