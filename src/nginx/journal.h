/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_JOURNAL_H
#define WEIR_NGINX_JOURNAL_H

/*
 * weir_journal: where the local engine writes down what happens. journal.c is what the master does about it, at a start, in a
 * reload and at the end; journal_work.c is what a worker does, turn by turn of its event loop.
 */

#include "engine/local.h"
#include "nginx/conf.h"

#include <pthread.h>

#define JOURNAL_PATH_MAX 1024

/* What the configuration says. */
struct journal_conf {
    ngx_str_t path; /* absolute, without a slash at its end, and terminated */
    struct log_options options;
    ngx_cycle_t *cycle;
    ngx_pool_cleanup_t *opened; /* what was opened for it; NULL: nothing */
#if (NGX_THREADS)
    ngx_thread_pool_t *threads;
#endif
};

enum journal_state {
    JOURNAL_AWAITED, /* another nginx has the folder: an upgrade is under way */
    JOURNAL_FINE,
    JOURNAL_SHORT,  /* the disk is nearly full: joins are refused */
    JOURNAL_FULL,   /* it is full: nothing that changes anything is answered */
    JOURNAL_BROKEN, /* a write or a sync failed, or the folder could not be recovered: for good */
};

/* What lies in the zone's head: it outlives configurations, and maybe the module that wrote it. */
struct journal {
    int folder, lock; /* descriptors, the same in every process of this nginx */
    pthread_mutex_t recovering;
    ngx_atomic_t
        is_ready; /* recovered, and the rooms of the file are in it: before that nobody looks into the zone */
    ngx_atomic_t told;      /* enum journal_state: what was said of it in the log */
    ngx_atomic_t is_ruined; /* a worker could not recover it, and `why` */
    char why[sizeof(((struct local_recovery *)0)->why)];
    char path[JOURNAL_PATH_MAX]; /* empty: there is no journal */
};

char *journal_directive(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* ---- the master ---- */

/*
 * Opens the folder for a fresh zone, locks and recovers it. If it is another's in a binary upgrade, the zone awaits it
 * (local_zone_is_awaiting) and the workers go on from there.
 */
ngx_int_t journal_open(struct journal *journal, struct main_conf *conf, struct local_zone *zone);

/* A reload: the same journal, with what options are said now. Anything else is refused. */
ngx_int_t journal_keep(struct journal *journal, struct main_conf *conf, struct local_zone *zone,
                       ngx_log_t *log);

/* The configuration is in force: what was opened for it stays open. Without this, it is closed with its cycle. */
void journal_settle(struct main_conf *conf);

/* The last process of an orderly end. */
void journal_close(ngx_cycle_t *cycle);

/* ---- workers ---- */

ngx_int_t journal_begin(struct engine *engine, struct main_conf *conf, ngx_log_t *log);
void journal_end(void);

/* False: the rooms cannot be asked yet, for they are another nginx's still. */
bool journal_is_ready(void);

/* Why it is not; NULL if it is. */
const char *journal_trouble(void);

/* A call was submitted: this turn ends with a flush. */
void journal_note_call(void);

void journal_on_tick(void);

/* A worker that is told to leave has to stay for calls that wait, and for work on the disk. */
bool journal_is_busy(void);

/* Recovers what the lock is held for, and says so in the log. `why` in the recovery if it fails. */
bool journal_recover(struct journal *journal, const struct log_options *options, struct local_zone *zone,
                     struct local_recovery *recovery);
void journal_recovery_log(ngx_log_t *log, const struct journal *journal,
                          const struct local_recovery *recovery, uint64_t took_ms);

uint64_t journal_wall_ms(void);

/* How it does. `text` of the figures is one sentence about any trouble. */
enum journal_state journal_look(const struct journal *journal, const struct local_zone *zone,
                                struct local_journal_figures *figures);

#endif
