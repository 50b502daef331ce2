/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A posted event runs after the I/O events and the timers of a turn, and one that is posted late runs last: that is where
 * everything that the turn has brought is written at once, and where the answers go out.
 *
 * What takes long, a sync or the taking of space, is done in a thread of nginx's pool, one thing at a time in each worker.
 * Without threads it is done in the event loop. So it is in a single process, where a reload would pull the pool away from
 * under its threads.
 *
 * A worker that dies while it recovers the folder, at an upgrade, leaves a zone that is neither fresh nor whole. Nobody looks
 * into the zone before it is ready, so the next worker lays it out again and begins anew: a recovery can be interrupted anywhere.
 */
#include "nginx/journal.h"

#include "base/lock.h"
#include "base/must.h"
#include "journal/folder.h"
#include "nginx/worker.h"
#include "nginx/zone.h"

#include <sys/file.h>

/* Something done in a thread, and what follows in the event loop. */
struct job {
    void (*run)(void);
    void (*done)(void);
};

static void work_done(void);
static void work_run(void);
static void recovery_done(void);
static void recovery_run(void);

static const struct job work = {work_run, work_done};
static const struct job recovery = {recovery_run, recovery_done};

/* What this worker has of it; `engine` NULL: nothing. */
static struct {
    struct engine *engine;
    struct local_zone *zone;
    struct journal *journal;
    struct folder folder;
    ngx_event_t turn;
    const struct job *job; /* under way; NULL: none */
    bool has_ended;        /* one has, since the last turn */
    struct local_recovery recovery;
    bool is_recovered;
    ngx_msec_t began_ms;
#if (NGX_THREADS)
    ngx_thread_task_t task;
#endif
} own;

static void turn_on_end(ngx_event_t *event);
static bool turn_is_to_leave(void);
static void job_begin(const struct job *job);
static bool job_post(const struct job *job);
static void job_end(ngx_event_t *event);
static void folder_try(void);
static bool recovery_claim(void);
static void recovery_settle(void);
static void journal_ruin(const char *why);
static void rooms_settle(void);
static void state_tell(void);
static void state_log(enum journal_state before, enum journal_state state, const char *text);
static struct main_conf *conf_now(void);

ngx_int_t journal_begin(struct engine *engine, struct main_conf *conf, ngx_log_t *log)
{
    int error = folder_open_at(&own.folder, conf->journal->folder, ".");
    if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, -error, "weir_journal \"%s\" cannot be opened",
                      conf->journal->path);
        return NGX_ERROR;
    }
    own.engine = engine;
    own.zone = conf->zone;
    own.journal = conf->journal;
    own.turn.handler = turn_on_end;
    own.turn.log = log;
    if (own.journal->is_ready)
        rooms_settle();
    local_engine_use_disk(engine, &own.folder.disk, journal_wall_ms);
    return NGX_OK;
}

void journal_end(void)
{
    if (own.engine == NULL)
        return;
    if (own.turn.posted) {
        ngx_delete_posted_event(&own.turn);
    }
    folder_close(&own.folder);
    own.engine = NULL;
}

bool journal_is_ready(void)
{
    return own.engine == NULL || own.journal->is_ready;
}

const char *journal_trouble(void)
{
    if (journal_is_ready())
        return NULL;
    return own.journal->is_ruined ? own.journal->why : "the nginx before this one still has the journal";
}

void journal_note_call(void)
{
    if (own.engine != NULL) {
        ngx_post_event(&own.turn, &ngx_posted_events);
    }
}

void journal_on_tick(void)
{
    if (own.engine == NULL)
        return;
    if (own.journal->is_ready)
        rooms_settle();
    else
        folder_try();
    state_tell();
    journal_note_call();
}

bool journal_is_busy(void)
{
    return own.engine != NULL && (own.job != NULL || local_engine_waiting(own.engine) > 0);
}

static void turn_on_end(ngx_event_t *event)
{
    if (own.journal->is_ready) {
        local_engine_flush(own.engine);
        if (own.job == NULL && !turn_is_to_leave() && local_engine_wants_work(own.engine, ngx_current_msec))
            job_begin(&work);
    }
    own.has_ended = false;
    worker_stay(journal_is_busy());
}

/*
 * A job keeps the worker. Where a sync takes longer than the interval, the next one is due when it is done: a worker that was told
 * to leave would sync for ever. What keeps it besides, a slow client maybe, does not keep it from syncing at its next tick.
 */
static bool turn_is_to_leave(void)
{
    return ngx_exiting && own.has_ended && local_engine_waiting(own.engine) == 0;
}

static void work_run(void)
{
    local_engine_work(own.engine);
}

static void work_done(void)
{
    local_engine_worked(own.engine);
}

/* ---- jobs ---- */

static void job_begin(const struct job *job)
{
    must(own.job == NULL);
    own.job = job;
    if (job_post(job))
        return;
    job->run();
    job_end(NULL);
}

#if (NGX_THREADS)

static void task_run(void *data, ngx_log_t *log)
{
    const struct job *job = own.job;
    job->run();
}

static bool job_post(const struct job *job)
{
    if (ngx_process == NGX_PROCESS_SINGLE)
        return false;
    own.task.handler = task_run;
    own.task.event.handler = job_end;
    own.task.event.log = ngx_cycle->log;
    return ngx_thread_task_post(conf_now()->journal_conf->threads, &own.task) == NGX_OK;
}

#else

static bool job_post(const struct job *job)
{
    return false;
}

#endif

static void job_end(ngx_event_t *event)
{
    const struct job *job = own.job;
    own.job = NULL;
    own.has_ended = true;
    job->done();
    journal_note_call();
}

/* ---- an upgrade ---- */

static void folder_try(void)
{
    if (own.job != NULL || ngx_exiting || own.journal->is_ruined ||
        flock(own.journal->lock, LOCK_EX | LOCK_NB) != 0 || !recovery_claim())
        return;
    own.began_ms = ngx_current_msec;
    job_begin(&recovery);
}

/* True for one worker; it holds the mutex until it is done. */
static bool recovery_claim(void)
{
    int error = pthread_mutex_trylock(&own.journal->recovering);
    if (error == EBUSY)
        return false;
    bool died = error == EOWNERDEAD;
    must(died ? pthread_mutex_consistent(&own.journal->recovering) == 0 : error == 0);
    if (local_zone_is_awaiting(own.zone) && died)
        zone_lay_out_again(conf_now());
    if (local_zone_is_awaiting(own.zone))
        return true;
    recovery_settle(); /* for one who died over just that */
    lock_release(&own.journal->recovering);
    return false;
}

static void recovery_run(void)
{
    own.is_recovered =
        journal_recover(own.journal, &conf_now()->journal_conf->options, own.zone, &own.recovery);
}

static void recovery_done(void)
{
    if (own.is_recovered) {
        recovery_settle();
        journal_recovery_log(ngx_cycle->log, own.journal, &own.recovery, ngx_current_msec - own.began_ms);
    } else
        journal_ruin(own.recovery.why);
    lock_release(&own.journal->recovering);
}

static void recovery_settle(void)
{
    rooms_settle();
    own.journal->is_ready = 1;
}

static void journal_ruin(const char *why)
{
    ngx_cpystrn((u_char *)own.journal->why, (u_char *)why, sizeof(own.journal->why));
    ngx_memory_barrier();
    own.journal->is_ruined = 1;
}

/*
 * The rooms of the file, which could not be put while the zone waited. Every worker does it, for it cannot know whether one
 * of its own configuration has: putting them again changes nothing.
 */
static void rooms_settle(void)
{
    struct main_conf *conf = conf_now();
    if (!conf->rooms_are_pending || ngx_exiting)
        return;
    conf->rooms_are_pending = false;
    (void)zone_put_rooms(conf, ngx_cycle->log);
}

/* ---- how it does ---- */

/* All workers look, and one of them says it. */
static void state_tell(void)
{
    struct local_journal_figures figures;
    enum journal_state state = journal_look(own.journal, own.zone, &figures);
    ngx_atomic_uint_t told = own.journal->told;
    if (told != state && ngx_atomic_cmp_set(&own.journal->told, told, state))
        state_log(told, state, figures.text);
}

static void state_log(enum journal_state before, enum journal_state state, const char *text)
{
    const char *path = own.journal->path;
    switch (state) {
    case JOURNAL_AWAITED:
        break;
    case JOURNAL_FINE:
        if (before != JOURNAL_AWAITED)
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "weir_journal \"%s\" is well again", path);
        break;
    case JOURNAL_SHORT:
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "weir_journal \"%s\": the disk is nearly full, and nobody can join until there is room",
                      path);
        break;
    case JOURNAL_FULL:
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0, "weir_journal \"%s\": %s", path, text);
        break;
    case JOURNAL_BROKEN:
        ngx_log_error(NGX_LOG_EMERG, ngx_cycle->log, 0, "weir_journal \"%s\": %s", path, text);
        break;
    }
}

/* The configuration in force: in a single process it changes over a reload. */
static struct main_conf *conf_now(void)
{
    return ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_weir_module);
}
