/* SPDX-License-Identifier: Apache-2.0 */
/* The process behind a socket. One that is dying and cannot end needs Ceph: killed_hung_test. */
#include "driver/node/hearthd/peer.h"
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/harness.h"

static struct sockaddr_un place;

static int listening(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    /* An abstract name, by the kernel's choice. */
    socklen_t size = sizeof(sa_family_t);
    place.sun_family = AF_UNIX;
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&place, size), 0);
    return fd;
}

START_TEST(a_process_that_lives_is_not_dying_and_goes_on)
{
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    const int fd = listening();
    const pid_t child = fork();
    if (child == 0) {
        if (listen(fd, 1) == 0 && write(ready[1], "1", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    char one;
    ck_assert_int_eq(read(ready[0], &one, 1), 1);
    socklen_t size = sizeof(place);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&place, &size), 0);
    const int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&place, size), 0);
    const int peer = peer_open(client);
    ck_assert(!peer_is_dying(peer));
    ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!peer_is_dying(peer)); /* it has ended */
    ck_assert(!peer_is_dying(-1));
    if (peer >= 0)
        close(peer);
    close(client);
    close(fd);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

HARNESS_MAIN("driver/node/hearthd/peer", a_process_that_lives_is_not_dying_and_goes_on)
