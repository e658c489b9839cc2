/* A program that knows nothing of weft: it waits in system calls and prints what they gave. It is
   run as it is, with libweft_hook.so loaded before it, and with its main() in a fiber. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *server(void *of) {
    int listening = *(int *)of;
    int fd = accept(listening, NULL, NULL);
    char byte;
    while (read(fd, &byte, 1) == 1) {
        usleep(1000);
        byte = (char)(byte + 1);
        write(fd, &byte, 1);
    }
    close(fd);
    return NULL;
}

int main(int count, char **words) {
    printf("words %d %s\n", count, count > 1 ? words[1] : "-");
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    bind(listening, (struct sockaddr *)&at, sizeof at);
    listen(listening, 1);
    getsockname(listening, (struct sockaddr *)&at, &bytes);
    pthread_t thread;
    pthread_create(&thread, NULL, server, &listening);

    char port[16];
    snprintf(port, sizeof port, "%d", ntohs(at.sin_port));
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    printf("getaddrinfo %d\n", getaddrinfo("localhost", port, &hints, &all));
    int fd = socket(all->ai_family, all->ai_socktype, all->ai_protocol);
    printf("connect %d\n", connect(fd, all->ai_addr, all->ai_addrlen));
    freeaddrinfo(all);
    for (char c = 'a'; c < 'e'; ++c) {
        char answer = 0;
        write(fd, &c, 1);
        struct pollfd p = {fd, POLLIN, 0};
        printf("poll %d", poll(&p, 1, 1000));
        printf(" read %zd", read(fd, &answer, 1));
        printf(" %c\n", answer);
    }
    close(fd);
    pthread_join(thread, NULL);

    struct timespec start, end, some = {0, 20000000};
    clock_gettime(CLOCK_MONOTONIC, &start);
    printf("nanosleep %d\n", nanosleep(&some, NULL));
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("long enough %d\n", (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec >=
                                   some.tv_nsec);

    int ends[2];
    pipe(ends);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(2000);
        write(ends[1], "child", 5);
        execlp("sh", "sh", "-c", "exit 3", (char *)NULL);
        _exit(1);
    }
    char text[8] = "";
    printf("read %zd", read(ends[0], text, 5));
    printf(" %s\n", text);
    int status = 0;
    printf("waitpid %d", waitpid(child, &status, 0) == child);
    printf(" %d\n", WEXITSTATUS(status));
    FILE *out = popen("echo from a shell", "r");
    char line[64] = "";
    fgets(line, sizeof line, out);
    printf("popen %d %s", pclose(out), line);
    printf("bad %zd", read(-1, text, 1));
    printf(" %s\n", strerror(errno));
    return 7;
}
