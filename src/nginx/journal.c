/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Zones are initialised under nginx -t as well, in a second nginx before it finds its ports taken, and at a binary upgrade
 * beside the old workers. So the folder has a lock: flock on a file in it, whose descriptor is inherited by every worker. It
 * belongs to all processes of one nginx together and is free when the last of them is gone, however it went; workers whose
 * master was killed go on holding it, as they go on serving. Over exec, at an upgrade, it is not inherited.
 *
 * At an upgrade the new nginx has the lock file open, and its workers try to lock that one descriptor: whichever succeeds has
 * locked it for all of them and for their master.
 *
 * The folder belongs to the workers' user, and the master is root. What a compromised worker may have left there must not
 * become root's deed: the master works in the folder with the rights of that user, and so also finds out at the start whether
 * they are enough.
 */
#include "nginx/journal.h"

#include "base/lock.h"
#include "journal/folder.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/fsuid.h>

#define LOCK_NAME    "lock"
#define LOCK_TRIES   5 /* as often and as long as nginx tries a port that is still taken */
#define LOCK_WAIT_MS 500

struct opened {
    int folder, lock;
};

static ngx_int_t folder_make(struct journal *journal, const struct journal_conf *conf);
static ngx_int_t folder_give(struct journal *journal, const struct journal_conf *conf, bool is_new);
static bool folder_is_empty(int fd);
static ngx_int_t lock_file_open(struct journal *journal, const struct journal_conf *conf);
static ngx_int_t opened_note(struct journal *journal, struct journal_conf *conf);
static void opened_close(void *data);
static ngx_int_t folder_lock(struct journal *journal, ngx_log_t *log, int tries);
static ngx_int_t journal_await(struct journal *journal, struct main_conf *conf, struct local_zone *zone);
static ngx_int_t journal_start(struct journal *journal, struct main_conf *conf, struct local_zone *zone);
static ngx_int_t options_set(struct journal *journal, const struct journal_conf *conf,
                             struct local_zone *zone);
static void rights_of_workers(const ngx_cycle_t *cycle);
static void rights_of_self(void);
static const ngx_core_conf_t *core_conf(const ngx_cycle_t *cycle);
static uint64_t clock_ms(void);

ngx_int_t journal_open(struct journal *journal, struct main_conf *conf, struct local_zone *zone)
{
    struct journal_conf *said = conf->journal_conf;
    ngx_log_t *log = said->cycle->log;
    journal->folder = journal->lock = -1;
    lock_init(&journal->recovering);
    ngx_cpystrn((u_char *)journal->path, said->path.data, sizeof(journal->path));
    ngx_int_t answer = folder_make(journal, said);
    if (answer == NGX_OK)
        answer = lock_file_open(journal, said);
    if (opened_note(journal, said) != NGX_OK || answer != NGX_OK)
        return NGX_ERROR;
    answer = folder_lock(journal, log, ngx_inherited ? 1 : LOCK_TRIES);
    if (answer == NGX_OK)
        return journal_start(journal, conf, zone);
    if (answer == NGX_BUSY && ngx_inherited)
        return journal_await(journal, conf, zone);
    if (answer == NGX_BUSY)
        ngx_log_error(
            NGX_LOG_EMERG, log, 0,
            "weir_journal \"%s\" is in use by another nginx, or by workers left over from one whose "
            "master was killed: stop them first (\"fuser %s/%s\" names them)",
            journal->path, journal->path, LOCK_NAME);
    return NGX_ERROR;
}

static ngx_int_t folder_make(struct journal *journal, const struct journal_conf *conf)
{
    bool is_new = ngx_create_dir(journal->path, 0700) == 0;
    if (!is_new && ngx_errno != NGX_EEXIST) {
        ngx_log_error(NGX_LOG_EMERG, conf->cycle->log, ngx_errno, "weir_journal \"%s\" cannot be made",
                      journal->path);
        return NGX_ERROR;
    }
    journal->folder = open(journal->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->folder == -1) {
        ngx_log_error(NGX_LOG_EMERG, conf->cycle->log, ngx_errno, "weir_journal \"%s\" cannot be opened",
                      journal->path);
        return NGX_ERROR;
    }
    return folder_give(journal, conf, is_new);
}

/*
 * To the workers' user, if it is new or nothing is in it; whatever else stands there is not ours to give away. What is new must
 * also be there after a power cut.
 */
static ngx_int_t folder_give(struct journal *journal, const struct journal_conf *conf, bool is_new)
{
    const ngx_core_conf_t *core = core_conf(conf->cycle);
    bool is_ours = is_new || folder_is_empty(journal->folder);
    if (is_ours && geteuid() == 0 && fchown(journal->folder, core->user, core->group) == -1) {
        ngx_log_error(NGX_LOG_EMERG, conf->cycle->log, ngx_errno,
                      "weir_journal \"%s\" cannot be given to the user \"%s\"", journal->path,
                      core->username);
        return NGX_ERROR;
    }
    int above = is_new ? openat(journal->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (above != -1) {
        (void)fsync(above); /* a file system that cannot do that does not need it */
        close(above);
    }
    return NGX_OK;
}

/* A disk that was made for the journal may have a folder of the file system's own. */
static bool folder_is_empty(int fd)
{
    DIR *listing = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;
    bool is_empty = listing != NULL;
    while (is_empty && (entry = readdir(listing)) != NULL)
        is_empty = ngx_strcmp(entry->d_name, ".") == 0 || ngx_strcmp(entry->d_name, "..") == 0 ||
                   ngx_strcmp(entry->d_name, "lost+found") == 0;
    if (listing != NULL)
        closedir(listing);
    return is_empty;
}

static ngx_int_t lock_file_open(struct journal *journal, const struct journal_conf *conf)
{
    rights_of_workers(conf->cycle);
    journal->lock = openat(journal->folder, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ngx_err_t error = ngx_errno;
    rights_of_self();
    if (journal->lock != -1)
        return NGX_OK;
    ngx_log_error(
        NGX_LOG_EMERG, conf->cycle->log, error,
        "weir_journal \"%s\" cannot be written by the workers: the folder and all that is in it must "
        "belong to the user \"%s\"",
        journal->path, geteuid() == 0 ? core_conf(conf->cycle)->username : "that runs nginx");
    return NGX_ERROR;
}

/* Where something else goes wrong with a reload, its zone is thrown away, and this must not stay behind. */
static ngx_int_t opened_note(struct journal *journal, struct journal_conf *conf)
{
    conf->opened = ngx_pool_cleanup_add(conf->cycle->pool, sizeof(struct opened));
    if (conf->opened == NULL)
        return NGX_ERROR;
    *(struct opened *)conf->opened->data = (struct opened){journal->folder, journal->lock};
    conf->opened->handler = opened_close;
    return NGX_OK;
}

static void opened_close(void *data)
{
    const struct opened *opened = data;
    if (opened->folder != -1)
        close(opened->folder);
    if (opened->lock != -1)
        close(opened->lock);
}

void journal_settle(struct main_conf *conf)
{
    if (conf->journal_conf != NULL && conf->journal_conf->opened != NULL)
        conf->journal_conf->opened->handler = NULL;
}

static ngx_int_t folder_lock(struct journal *journal, ngx_log_t *log, int tries)
{
    for (;;) {
        if (flock(journal->lock, LOCK_EX | LOCK_NB) == 0)
            return NGX_OK;
        if (ngx_errno != EWOULDBLOCK) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "weir_journal \"%s\" cannot be locked",
                          journal->path);
            return NGX_ERROR;
        }
        if (--tries == 0)
            return NGX_BUSY;
        ngx_msleep(LOCK_WAIT_MS);
    }
}

static ngx_int_t journal_await(struct journal *journal, struct main_conf *conf, struct local_zone *zone)
{
    local_zone_await_journal(zone);
    journal->told = JOURNAL_AWAITED;
    ngx_log_error(NGX_LOG_WARN, conf->journal_conf->cycle->log, 0,
                  "weir_journal \"%s\" is still in use by the nginx before this one: until that has quit, "
                  "whoever needs a room is told 503",
                  journal->path);
    return NGX_OK;
}

static ngx_int_t journal_start(struct journal *journal, struct main_conf *conf, struct local_zone *zone)
{
    struct journal_conf *said = conf->journal_conf;
    struct local_recovery recovery;
    uint64_t began_ms = clock_ms();
    rights_of_workers(said->cycle);
    bool is_good = journal_recover(journal, &said->options, zone, &recovery);
    rights_of_self();
    if (!is_good) {
        ngx_log_error(NGX_LOG_EMERG, said->cycle->log, 0, "weir_journal \"%s\" cannot be recovered: %s",
                      journal->path, recovery.why);
        return NGX_ERROR;
    }
    journal->is_ready = 1; /* before anybody can be asked the rooms are put, too */
    journal->told = JOURNAL_FINE;
    journal_recovery_log(said->cycle->log, journal, &recovery, clock_ms() - began_ms);
    return NGX_OK;
}

bool journal_recover(struct journal *journal, const struct log_options *options, struct local_zone *zone,
                     struct local_recovery *recovery)
{
    struct folder folder;
    int error = folder_open_at(&folder, journal->folder, ".");
    if (error != 0) {
        ngx_snprintf((u_char *)recovery->why, sizeof(recovery->why), "the folder cannot be opened: %s%Z",
                     strerror(-error));
        return false;
    }
    bool is_good = local_zone_recover(zone, &folder.disk, options, journal_wall_ms(), recovery);
    folder_close(&folder);
    return is_good;
}

void journal_recovery_log(ngx_log_t *log, const struct journal *journal,
                          const struct local_recovery *recovery, uint64_t took_ms)
{
    const struct scan_report *scan = &recovery->scan;
    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "weir_journal \"%s\" recovered: rooms %uL, people %uL, from %uL records in %uL ms",
                  journal->path, recovery->rooms, recovery->tickets,
                  scan->snapshot_records + scan->journal_records, took_ms);
    if (scan->torn_bytes > 0)
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "weir_journal \"%s\" had a torn end: from byte %uL of %s on %uL bytes were no whole "
                      "record and have been cut off",
                      journal->path, scan->tail.offset, scan->tail.file, scan->torn_bytes);
    if (recovery->has_lost)
        ngx_log_error(
            NGX_LOG_WARN, log, 0,
            "weir_journal \"%s\" may lack the last moments before the machine went down or the disk "
            "failed: whoever joined or was called then has their own place again when they poll",
            journal->path);
}

ngx_int_t journal_keep(struct journal *journal, struct main_conf *conf, struct local_zone *zone,
                       ngx_log_t *log)
{
    const struct journal_conf *said = conf->journal_conf;
    bool has_one = journal->path[0] != '\0';
    if (has_one != (said != NULL)) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "weir_journal cannot be %s in a reload, for everybody in line would be forgotten: "
                      "restart nginx instead",
                      has_one ? "taken away" : "added");
        return NGX_ERROR;
    }
    if (!has_one)
        return NGX_OK;
    if (ngx_strcmp(said->path.data, journal->path) != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "weir_journal cannot move from \"%s\" to \"%V\" in a reload: restart nginx instead",
                      journal->path, &said->path);
        return NGX_ERROR;
    }
    struct journal other = *journal; /* another `user` may not have the rights to it */
    if (lock_file_open(&other, said) != NGX_OK)
        return NGX_ERROR;
    close(other.lock);
    return journal->is_ready ? options_set(journal, said, zone) : NGX_OK;
}

static ngx_int_t options_set(struct journal *journal, const struct journal_conf *conf,
                             struct local_zone *zone)
{
    struct folder folder;
    int error = folder_open_at(&folder, journal->folder, ".");
    if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, conf->cycle->log, -error, "weir_journal \"%s\" cannot be opened",
                      journal->path);
        return NGX_ERROR;
    }
    rights_of_workers(conf->cycle);
    local_zone_set_journal(zone, &folder.disk, &conf->options);
    rights_of_self();
    folder_close(&folder);
    return NGX_OK;
}

void journal_close(ngx_cycle_t *cycle)
{
    const struct main_conf *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module);
    struct folder folder;
    if (conf == NULL || conf->journal == NULL || !conf->journal->is_ready)
        return;
    rights_of_workers(cycle);
    int error = folder_open_at(&folder, conf->journal->folder, ".");
    if (error == 0) {
        error = local_zone_close(conf->zone, &folder.disk, journal_wall_ms());
        folder_close(&folder);
    }
    rights_of_self();
    if (error != 0)
        ngx_log_error(NGX_LOG_CRIT, cycle->log, -error, "weir_journal \"%s\" could not be closed in order",
                      conf->journal->path);
}

enum journal_state journal_look(const struct journal *journal, const struct local_zone *zone,
                                struct local_journal_figures *figures)
{
    *figures = (struct local_journal_figures){0};
    if (journal->is_ruined)
        ngx_cpystrn((u_char *)figures->text, (u_char *)journal->why, sizeof(figures->text));
    if (!journal->is_ready)
        return journal->is_ruined ? JOURNAL_BROKEN : JOURNAL_AWAITED;
    *figures = local_zone_journal(zone);
    if (figures->trouble != LOG_FINE)
        return figures->trouble == LOG_FULL ? JOURNAL_FULL : JOURNAL_BROKEN;
    return figures->is_short ? JOURNAL_SHORT : JOURNAL_FINE;
}

uint64_t journal_wall_ms(void)
{
    ngx_time_t *now = ngx_timeofday();
    return (uint64_t)now->sec * 1000 + now->msec;
}

/* Only in looking at files: nobody of that user's may send signals to the master meanwhile. */
static void rights_of_workers(const ngx_cycle_t *cycle)
{
    if (geteuid() != 0)
        return;
    setfsgid(core_conf(cycle)->group);
    setfsuid(core_conf(cycle)->user);
}

static void rights_of_self(void)
{
    setfsuid(geteuid());
    setfsgid(getegid());
}

static const ngx_core_conf_t *core_conf(const ngx_cycle_t *cycle)
{
    return (const ngx_core_conf_t *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);
}

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
