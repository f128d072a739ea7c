/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/screen.h"
#include "cmd/hearthctl/report/style.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

struct Screen {
    struct termios before;
    sigset_t old_mask;
    int signals;
};

static void put(const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(STDOUT_FILENO, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* the terminal is gone; the next wait reports it */
        text += done;
        n -= (size_t)done;
    }
}

Screen *screen_open(void)
{
    struct termios settings;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &settings) < 0)
        return NULL;
    Screen *screen = g_new0(Screen, 1);
    screen->before = settings;
    sigset_t signals;
    sigemptyset(&signals);
    const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++)
        sigaddset(&signals, wanted[i]);
    sigprocmask(SIG_BLOCK, &signals, &screen->old_mask);
    screen->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    settings.c_cc[VSUSP] = _POSIX_VDISABLE; /* the shell would be left with our screen */
    tcsetattr(STDIN_FILENO, TCSANOW, &settings);
    put(ENTER, strlen(ENTER));
    return screen;
}

void screen_close(Screen *screen)
{
    if (!screen)
        return;
    put(LEAVE, strlen(LEAVE));
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
    /* Consume a pending Ctrl-C: it has already ended us. */
    struct signalfd_siginfo info;
    while (screen->signals >= 0 && read(screen->signals, &info, sizeof(info)) > 0)
        ;
    sigprocmask(SIG_SETMASK, &screen->old_mask, NULL);
    if (screen->signals >= 0)
        close(screen->signals);
    g_free(screen);
}

void screen_size(const Screen *screen, unsigned *columns, unsigned *rows)
{
    struct winsize size;
    (void)screen;
    const gboolean known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col ? size.ws_col : 80;
    *rows = known && size.ws_row ? size.ws_row : 24;
}

void screen_draw(Screen *screen, char *const *lines, int bold)
{
    unsigned columns, rows;
    screen_size(screen, &columns, &rows);
    /* Written over, each line to its end, and in one write: clearing first would flicker. */
    g_autoptr(GString) out = g_string_new("\033[H");
    for (unsigned i = 0; lines[i] && i < rows; i++) {
        g_autofree char *fit = style_cut(lines[i], columns);
        if (i > 0)
            g_string_append(out, "\r\n");
        if ((int)i == bold)
            g_string_append_printf(out, "\033[7m%s\033[0m\033[K", fit);
        else
            g_string_append_printf(out, "%s\033[K", fit);
    }
    g_string_append(out, "\033[J");
    put(out->str, out->len);
}

ScreenEvent screen_wait(Screen *screen, gint64 deadline_us, char *key)
{
    for (;;) {
        const gint64 left_us = deadline_us - g_get_monotonic_time();
        if (left_us <= 0)
            return SCREEN_TIME;
        struct pollfd polls[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                 {.fd = screen->signals, .events = POLLIN}};
        if (poll(polls, G_N_ELEMENTS(polls), (int)MIN(left_us / 1000 + 1, G_MAXINT)) < 0 &&
            errno != EINTR)
            return SCREEN_END;
        struct signalfd_siginfo info;
        if (polls[1].revents && read(screen->signals, &info, sizeof(info)) == sizeof(info))
            return info.ssi_signo == SIGWINCH ? SCREEN_RESIZED : SCREEN_END;
        if (polls[0].revents)
            return read(STDIN_FILENO, key, 1) == 1 ? SCREEN_KEY : SCREEN_END;
    }
}
