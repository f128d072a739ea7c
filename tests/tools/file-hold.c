/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds a file open and mapped, or a directory open, while a test changes it elsewhere.
 *
 *   file-hold PATH [rw]
 *
 * Answers each line of standard input: "read" with what pread finds, "map" with what the shared
 * mapping shows (as far as the file reaches), "reopen" with what a fresh open of PATH reads, "size"
 * with fstat's size, "write OFFSET TEXT", "mapstore OFFSET TEXT" into the mapping, "mapwrite OFFSET
 * TEXT" (the same, then msync), "msync", "fsync", and "close" of a duplicate. Texts of up to 4096
 * bytes. Answers are "ok VALUE" or "error ERRNO-NAME".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT = 4096 };

static void answer_error(void)
{
    printf("error %s\n", strerrorname_np(errno));
}

static void read_and_answer(int fd)
{
    char text[LIMIT];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    if (n < 0)
        answer_error();
    else
        printf("ok %.*s\n", (int)n, text);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: file-hold PATH [rw]\n");
        return 2;
    }
    int writable = argc > 2;
    int fd = open(argv[1], (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    char *map = mmap(NULL, LIMIT, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (map == MAP_FAILED && errno != ENODEV) { /* a directory */
        perror("mmap");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ok\n");
    char line[LIMIT + 64];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *save, *verb = strtok_r(line, " ", &save);
        if (!verb)
            continue;
        if (!strcmp(verb, "read")) {
            read_and_answer(fd);
        } else if (!strcmp(verb, "map")) {
            struct stat st;
            if (fstat(fd, &st) != 0)
                answer_error();
            else
                printf("ok %.*s\n", (int)(st.st_size < LIMIT ? st.st_size : LIMIT), map);
        } else if (!strcmp(verb, "reopen")) {
            int again = open(argv[1], O_RDONLY | O_CLOEXEC);
            if (again < 0) {
                answer_error();
            } else {
                read_and_answer(again);
                close(again);
            }
        } else if (!strcmp(verb, "size")) {
            struct stat st;
            if (fstat(fd, &st) != 0)
                answer_error();
            else
                printf("ok %lld\n", (long long)st.st_size);
        } else if (!strcmp(verb, "fsync") || !strcmp(verb, "close")) {
            if ((verb[0] == 'f' ? fsync(fd) : close(dup(fd))) != 0)
                answer_error();
            else
                printf("ok\n");
        } else if (!strcmp(verb, "msync")) {
            if (msync(map, LIMIT, MS_SYNC) != 0)
                answer_error();
            else
                printf("ok\n");
        } else if (!strcmp(verb, "write") || !strncmp(verb, "map", 3)) {
            char *offset = strtok_r(NULL, " ", &save), *text = strtok_r(NULL, "", &save);
            if (!offset || !text) {
                printf("error usage\n");
                continue;
            }
            size_t length = strlen(text);
            if (verb[0] == 'm') {
                memcpy(map + atoi(offset), text, length);
                if (!strcmp(verb, "mapwrite") && msync(map, LIMIT, MS_SYNC) != 0)
                    answer_error();
                else
                    printf("ok\n");
            } else if (pwrite(fd, text, length, atoll(offset)) != (ssize_t)length) {
                answer_error();
            } else {
                printf("ok\n");
            }
        } else {
            printf("error unknown %s\n", verb);
        }
    }
    return 0;
}
