/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_TESTS_REDIS_PROCESS_H
#define WEIR_TESTS_REDIS_PROCESS_H

/* A real redis-server of a test's own, in a folder that is gone afterwards. It ends with the test, however that ends. */

#include <stdint.h>
#include <sys/types.h>

struct redis_process {
    pid_t pid;
    int log;         /* what it prints */
    char folder[32]; /* in the folder for such things */
    char socket[48]; /* in that folder */
    uint16_t port;   /* on 127.0.0.1 */
};

/* Serves when this returns. `options` ends with NULL, and may begin with the path of a configuration file; NULL for none. */
void redis_process_start(struct redis_process *server, const char *const *options);

/* It may have been stopped before. */
void redis_process_stop(struct redis_process *server);

/* The end that an accident brings: no time to save anything. */
void redis_process_kill(struct redis_process *server);

/* A new connection to its socket: a descriptor that waits. */
int redis_process_dial(const struct redis_process *server);

#endif
