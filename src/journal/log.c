/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Nothing here is ever repaired after a death, because nothing is ever half done where somebody else looks:
 *
 * Appending builds behind the published end of the ring, where nobody reads, and publishes by one store: the tip (end, chain,
 * segments) is kept twice, the copy that is not in use is filled in, and the lowest bit of `version` says which one counts. What
 * a dead process built is overwritten by the next. Readers take no lock; they look at `version` again when they have copied.
 *
 * Flushing writes published bytes, which do not change until `written` has passed them, to an offset that follows from their
 * position. Whoever comes after a dead flusher writes the same bytes to the same place. A new segment's file gets its name when
 * it has its space, so that it is there as a whole or not at all.
 *
 * Syncing raises `synced` when all is done, and LOG_NEXT is nothing until its flag is set.
 *
 * A segment begins right behind the RECORD_END of the one before, so that positions have no gaps. Its head says by which mode
 * its records were acknowledged: another mode begins another segment.
 *
 * Locks are taken in this order: sync, append, flush, next. Only `next` is held over anything slow that an event loop could
 * wait for, and so it is only ever tried.
 */

#include "journal/log.h"

#include "base/little.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/must.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define RING_BYTES (1U << 18)

/* A record is built in one piece; what of it lies past the ring's end is then copied to its beginning. */
#define RING_SLACK (FRAME_RECORD_BYTES + FRAME_BODY_MAX)

/* What a change of segments takes. */
#define SEAM_BYTES (FRAME_END_BYTES + FRAME_HEAD_BYTES)

/* The ring holds bytes of two segments at most: a segment that is full is longer than it. */
_Static_assert(LOG_SEGMENT_LEAST > 2 * (RING_BYTES + RING_SLACK), "a ring is much smaller than a segment");
_Static_assert(RING_BYTES > 2 * (RING_SLACK + SEAM_BYTES), "any record fits into an empty ring");

/* Everything about the end of the log that changes with a record. Words only, so that it can be copied by the word. */
struct tip {
    uint64_t end;    /* behind the last record */
    uint64_t change; /* behind the last one that is no note of a sync */
    uint64_t before; /* where the segment before the present one begins: the ring may hold the rest of it */
    uint64_t first, last;   /* the present segment: where it begins, and where it ends at the latest */
    uint64_t sync;          /* what its head says: enum sync_mode */
    uint64_t sequence, crc; /* of the chain */
};

#define TIP_WORDS (sizeof(struct tip) / sizeof(uint64_t))

struct log {
    pthread_mutex_t append_lock, flush_lock, sync_lock;
    pthread_mutex_t next_lock; /* of the file LOG_NEXT */

    _Atomic uint64_t version; /* the lowest bit: which tip counts */
    _Atomic uint64_t tips[2][TIP_WORDS];

    _Atomic uint64_t written, synced;
    _Atomic uint64_t loose_from; /* behind the head that ended SYNC_ALWAYS last */
    _Atomic uint64_t sync_from;  /* the segment that `synced` lies in, or one before it */
    _Atomic uint64_t made;       /* the newest segment whose file is there, and allocated */
    _Atomic uint64_t next_bytes; /* that LOG_NEXT has taken; 0 = there is none */
    _Atomic uint64_t claimed_ms;
    _Atomic uint64_t trouble; /* see trouble_pack */
    _Atomic uint64_t trouble_first;

    _Atomic uint64_t segment_bytes, reserve_bytes; /* struct log_options */
    _Atomic uint32_t sync, interval_ms;

    unsigned char boot[DISK_BOOT_BYTES];

    _Alignas(8) unsigned char ring[RING_BYTES + RING_SLACK];
};

size_t log_bytes(void)
{
    return (sizeof(struct log) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

void log_init(struct log *log)
{
    lock_init(&log->append_lock);
    lock_init(&log->flush_lock);
    lock_init(&log->sync_lock);
    lock_init(&log->next_lock);
}

void log_set_options(struct log *log, const struct log_options *options)
{
    must(options->segment_bytes >= LOG_SEGMENT_LEAST && options->segment_bytes % 8 == 0);
    atomic_store(&log->sync, options->sync);
    atomic_store(&log->interval_ms, options->interval_ms);
    atomic_store(&log->reserve_bytes, options->reserve_bytes);
    atomic_store(&log->segment_bytes, options->segment_bytes);
}

struct log_options log_options(const struct log *log)
{
    return (struct log_options){
        .sync = (enum sync_mode)atomic_load(&log->sync),
        .interval_ms = atomic_load(&log->interval_ms),
        .segment_bytes = atomic_load(&log->segment_bytes),
        .reserve_bytes = atomic_load(&log->reserve_bytes),
    };
}

void log_writer_init(struct log_writer *writer, struct disk *disk)
{
    *writer = (struct log_writer){.disk = disk, .file = -1};
}

void log_writer_close(struct log_writer *writer)
{
    if (writer->file >= 0)
        writer->disk->close(writer->disk, writer->file);
    writer->file = -1;
}

/* ---- the tip ---- */

static struct tip tip_read(const struct log *log)
{
    uint64_t words[TIP_WORDS];
    struct tip tip;
    uint64_t version;

    do {
        version = atomic_load_explicit(&log->version, memory_order_acquire);
        for (size_t i = 0; i < TIP_WORDS; i++)
            words[i] = atomic_load_explicit(&log->tips[version & 1][i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
    } while (atomic_load_explicit(&log->version, memory_order_relaxed) != version);
    memcpy(&tip, words, sizeof(tip));
    return tip;
}

/* Under the lock of append. What was put into the ring before counts from the last store on. */
static void tip_publish(struct log *log, const struct tip *tip)
{
    uint64_t version = atomic_load_explicit(&log->version, memory_order_relaxed) + 1;
    uint64_t words[TIP_WORDS];

    memcpy(words, tip, sizeof(*tip));
    /* Who sees one of these words sees the version that made this copy free, and looks again. */
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < TIP_WORDS; i++)
        atomic_store_explicit(&log->tips[version & 1][i], words[i], memory_order_relaxed);
    atomic_store_explicit(&log->version, version, memory_order_release);
}

uint64_t log_end(const struct log *log)
{
    return tip_read(log).end;
}

uint64_t log_written(const struct log *log)
{
    return atomic_load_explicit(&log->written, memory_order_acquire);
}

uint64_t log_synced(const struct log *log)
{
    return atomic_load_explicit(&log->synced, memory_order_acquire);
}

bool log_syncs_all(const struct log *log)
{
    return atomic_load(&log->sync) == SYNC_ALWAYS || tip_read(log).sync == SYNC_ALWAYS ||
           atomic_load(&log->loose_from) > log_synced(log);
}

uint64_t log_change(const struct log *log)
{
    return tip_read(log).change;
}

bool log_is_dirty(const struct log *log)
{
    return log_change(log) > log_synced(log);
}

/* ---- trouble ---- */

enum act { ACT_OPEN, ACT_RENAME, ACT_ALLOCATE, ACT_WRITE, ACT_SYNC, ACT_SYNC_FOLDER, ACT_LIST };

/* One word, so that nobody ever sees half of it. `error` is a negative errno. */
static uint64_t trouble_pack(enum log_trouble trouble, enum act act, int error)
{
    return (uint64_t)trouble | (uint64_t)act << 8 | (uint64_t)-error << 16;
}

static enum log_trouble trouble_of(uint64_t word)
{
    return (enum log_trouble)(word & 0xff);
}

static int trouble_error(uint64_t word)
{
    return -(int)(word >> 16);
}

enum log_trouble log_trouble(const struct log *log)
{
    return trouble_of(atomic_load(&log->trouble));
}

/* Zero unless the log is broken. */
static int broken_error(const struct log *log)
{
    uint64_t word = atomic_load(&log->trouble);

    return trouble_of(word) == LOG_BROKEN ? trouble_error(word) : 0;
}

/* What is broken stays so, with its first reason. */
static void trouble_set(struct log *log, uint64_t word, uint64_t first)
{
    uint64_t old = atomic_load(&log->trouble);

    do {
        if (trouble_of(old) == LOG_BROKEN)
            return;
        atomic_store(&log->trouble_first, first);
    } while (!atomic_compare_exchange_weak(&log->trouble, &old, word));
}

static void trouble_end(struct log *log)
{
    uint64_t old = atomic_load(&log->trouble);

    if (trouble_of(old) == LOG_FULL)
        atomic_compare_exchange_strong(&log->trouble, &old, 0);
}

/* Where nothing was tried yet: what the machine lacks now it may have again. */
static bool is_shortage(enum act act, int error)
{
    return act != ACT_WRITE && act != ACT_SYNC && act != ACT_SYNC_FOLDER &&
           (error == -EMFILE || error == -ENFILE || error == -ENOMEM);
}

static bool is_full(int error)
{
    return error == -ENOSPC || error == -EDQUOT;
}

void log_trouble_text(const struct log *log, char *out, size_t size)
{
    static const char *const acts[] = {
        [ACT_OPEN] = "open",
        [ACT_RENAME] = "make",
        [ACT_ALLOCATE] = "take space for",
        [ACT_WRITE] = "write to",
        [ACT_SYNC] = "sync",
        [ACT_SYNC_FOLDER] = "sync the folder of",
        [ACT_LIST] = "list the folder of",
    };
    uint64_t word = atomic_load(&log->trouble);
    char name[FRAME_NAME_BYTES], why[128];

    must(size > 0);
    out[0] = '\0';
    if (trouble_of(word) == LOG_FINE)
        return;
    frame_name(false, atomic_load(&log->trouble_first), name);
    if (strerror_r(-trouble_error(word), why, sizeof(why)) != 0)
        snprintf(why, sizeof(why), "error %d", -trouble_error(word));
    snprintf(out, size, "cannot %s %s: %s; %s", acts[word >> 8 & 0xff], name, why,
             trouble_of(word) == LOG_FULL ? "it goes on by itself as soon as that is over"
                                          : "nothing is acknowledged until the journal is recovered");
}

/* ---- appending ---- */

static unsigned char *ring_at(struct log *log, uint64_t position)
{
    return log->ring + position % RING_BYTES;
}

/* Brings what was just put at `position` and stands past the ring's end to its beginning. */
static void ring_wrap(struct log *log, uint64_t position, size_t bytes)
{
    size_t behind = position % RING_BYTES + bytes;

    if (behind > RING_BYTES)
        memcpy(log->ring, log->ring + RING_BYTES, behind - RING_BYTES);
}

static void put_record(struct log *log, struct tip *tip, enum record_type type, struct span body,
                       uint64_t time_ms)
{
    struct frame_chain chain = {(uint32_t)tip->crc, tip->sequence};
    size_t bytes = frame_record_bytes(body.len);

    frame_write_record(ring_at(log, tip->end), type, body, time_ms, &chain);
    ring_wrap(log, tip->end, bytes);
    tip->end += bytes;
    tip->crc = chain.crc;
    tip->sequence = chain.sequence;
    must(tip->end <= tip->last);
}

/* The present segment is over, or there is none yet: another one begins here. */
static void put_head(struct log *log, struct tip *tip)
{
    struct log_options options = log_options(log);
    struct frame_head head = {
        .version = FRAME_VERSION,
        .first = tip->end,
        .end = tip->end + options.segment_bytes,
        .sequence = tip->sequence,
        .sync = options.sync,
    };

    memcpy(head.boot, log->boot, sizeof(head.boot));
    frame_write_head(&head, ring_at(log, tip->end));
    ring_wrap(log, tip->end, FRAME_HEAD_BYTES);
    tip->end += FRAME_HEAD_BYTES;
    tip->before = tip->first;
    tip->first = head.first;
    tip->last = head.end;
    tip->sync = head.sync;
    tip->crc = head.crc;
}

static void put_end(struct log *log, struct tip *tip, uint64_t time_ms)
{
    unsigned char next[8];

    little_put64(next, tip->end + FRAME_END_BYTES);
    put_record(log, tip, RECORD_END, (struct span){(const char *)next, sizeof(next)}, time_ms);
}

/* Until a head that ends SYNC_ALWAYS is on the disk, a recovery would believe that every answer waited for a sync. */
static void put_seam(struct log *log, struct tip *tip, uint64_t time_ms)
{
    bool was_always = tip->sync == SYNC_ALWAYS;

    put_end(log, tip, time_ms);
    put_head(log, tip);
    if (was_always && tip->sync != SYNC_ALWAYS)
        atomic_store(&log->loose_from, tip->end);
}

static bool needs_segment(const struct log *log, const struct tip *tip, size_t bytes)
{
    return tip->end + bytes + FRAME_END_BYTES > tip->last || tip->sync != atomic_load(&log->sync);
}

/* Whether the ring takes so many bytes of records now, with or without a new segment. It holds two segments at most. */
static bool ring_takes(const struct log *log, const struct tip *tip, size_t bytes, bool needs_new_segment)
{
    uint64_t written = log_written(log);

    if (needs_new_segment)
        return written >= tip->first && tip->end + bytes + SEAM_BYTES <= written + RING_BYTES;
    return tip->end + bytes <= written + RING_BYTES;
}

/* Under the lock of append. UINT64_MAX: not now. */
static uint64_t put(struct log *log, enum record_type type, struct span body, uint64_t time_ms)
{
    struct tip tip = tip_read(log);
    size_t bytes = frame_record_bytes(body.len);
    bool needs_new_segment = needs_segment(log, &tip, bytes);

    if (broken_error(log) < 0 || !ring_takes(log, &tip, bytes, needs_new_segment))
        return UINT64_MAX;
    if (needs_new_segment)
        put_seam(log, &tip, time_ms);
    put_record(log, &tip, type, body, time_ms);
    if (type != RECORD_SYNCED)
        tip.change = tip.end;
    tip_publish(log, &tip);
    return tip.end;
}

uint64_t log_append(struct log *log, struct log_writer *writer, enum record_type type, struct span body,
                    uint64_t time_ms)
{
    lock_take(&log->append_lock);
    uint64_t end = put(log, type, body, time_ms);
    if (end == UINT64_MAX) {
        int error = log_flush(log, writer);
        end = put(log, type, body, time_ms); /* a flush that failed may have made room all the same */
        must(end != UINT64_MAX || error < 0 || broken_error(log) < 0); /* nobody else can have filled it */
    }
    lock_release(&log->append_lock);
    return end;
}

bool log_has_room(const struct log *log, size_t bytes)
{
    struct tip tip = tip_read(log);

    return ring_takes(log, &tip, bytes, needs_segment(log, &tip, bytes));
}

/* ---- flushing ---- */

/* A stretch of the log that lies in one segment. */
struct stretch {
    uint64_t first, last; /* the segment */
    uint64_t from, to;
};

static int flush_failed(struct log *log, enum act act, uint64_t first, int error)
{
    enum log_trouble trouble = is_full(error) || is_shortage(act, error) ? LOG_FULL : LOG_BROKEN;

    trouble_set(log, trouble_pack(trouble, act, error), first);
    return error;
}

/* -ENOENT: there is none of that size, or it is being made just now. */
static int next_take(struct log *log, struct disk *disk, const char *name, uint64_t bytes)
{
    if (!lock_try(&log->next_lock))
        return -ENOENT;
    int error = atomic_load(&log->next_bytes) < bytes ? -ENOENT : disk->rename(disk, LOG_NEXT, name);
    lock_release(&log->next_lock);
    return error;
}

static int aside_open(struct disk *disk)
{
    int file = disk->open(disk, LOG_ASIDE, DISK_WRITE);

    return file == -ENOENT ? disk->open(disk, LOG_ASIDE, DISK_MAKE) : file;
}

static int aside_allocate(struct disk *disk, uint64_t bytes)
{
    int file = aside_open(disk);

    if (file < 0)
        return file;
    int error = disk->allocate(disk, file, bytes);
    disk->close(disk, file);
    return error;
}

/* On the spot. What there is of space is kept for the next try. */
static int aside_make(struct log *log, struct disk *disk, const struct stretch *stretch, const char *name)
{
    int error = aside_allocate(disk, stretch->last - stretch->first);

    if (error < 0)
        return flush_failed(log, ACT_ALLOCATE, stretch->first, error);
    error = disk->rename(disk, LOG_ASIDE, name);
    return error < 0 ? flush_failed(log, ACT_RENAME, stretch->first, error) : 0;
}

/* Until it has its space it has another name: a segment that is shorter than it should be was cut by somebody. */
static int segment_make(struct log *log, struct disk *disk, const struct stretch *stretch, const char *name)
{
    int error = next_take(log, disk, name, stretch->last - stretch->first);

    if (error == -ENOENT)
        return aside_make(log, disk, stretch, name);
    if (error < 0)
        return flush_failed(log, ACT_RENAME, stretch->first, error);
    disk->remove(disk, LOG_ASIDE); /* somebody may have tried to do without */
    return 0;
}

/*
 * The segment's space is taken: first that is said, and then that LOG_NEXT is none any more, or somebody would in between find the
 * log short of both. (If it still is there, because another had made the file, it is made anew.)
 */
static void segment_is_made(struct log *log, uint64_t first)
{
    atomic_store(&log->made, first);
    atomic_store(&log->next_bytes, 0);
}

/* Its file may be there: somebody died, or could not write to it. */
static int segment_begin(struct log *log, struct disk *disk, const struct stretch *stretch, const char *name)
{
    int file = disk->open(disk, name, DISK_WRITE);

    if (file == -ENOENT) {
        int error = segment_make(log, disk, stretch, name);
        if (error < 0)
            return error;
        file = disk->open(disk, name, DISK_WRITE);
    }
    if (file < 0)
        return flush_failed(log, ACT_OPEN, stretch->first, file);
    segment_is_made(log, stretch->first);
    return file;
}

/* A segment that is gone though something was written to it is not made again: that would leave a hole. */
static int segment_open(struct log *log, struct disk *disk, const struct stretch *stretch)
{
    char name[FRAME_NAME_BYTES];

    frame_name(false, stretch->first, name);
    if (stretch->from == stretch->first)
        return segment_begin(log, disk, stretch, name);
    int file = disk->open(disk, name, DISK_WRITE);
    return file < 0 ? flush_failed(log, ACT_OPEN, stretch->first, file) : file;
}

static int writer_open(struct log_writer *writer, struct log *log, const struct stretch *stretch)
{
    if (writer->file >= 0 && writer->first == stretch->first)
        return writer->file;
    log_writer_close(writer);
    writer->first = stretch->first;
    writer->file = segment_open(log, writer->disk, stretch);
    return writer->file;
}

static int write_stretch(struct log *log, struct log_writer *writer, const struct stretch *stretch)
{
    int file = writer_open(writer, log, stretch);
    struct disk *disk = writer->disk;

    if (file < 0)
        return file;
    for (uint64_t at = stretch->from; at < stretch->to;) {
        uint64_t len = RING_BYTES - at % RING_BYTES; /* to where the ring begins again */
        if (len > stretch->to - at)
            len = stretch->to - at;
        int error = disk->write(disk, file, ring_at(log, at), len, at - stretch->first);
        if (error < 0)
            return flush_failed(log, ACT_WRITE, stretch->first, error);
        at += len;
    }
    atomic_store_explicit(&log->written, stretch->to, memory_order_release);
    return 0;
}

/* Under the lock of flush. */
static int flush(struct log *log, struct log_writer *writer)
{
    struct tip tip = tip_read(log);
    uint64_t written = log_written(log);
    int error = broken_error(log);

    if (error == 0 && written < tip.first) {
        must(written >= tip.before);
        struct stretch rest = {tip.before, tip.first, written, tip.first};
        error = write_stretch(log, writer, &rest);
        written = tip.first;
    }
    if (error == 0 && written < tip.end) {
        struct stretch present = {tip.first, tip.last, written, tip.end};
        error = write_stretch(log, writer, &present);
    }
    if (error == 0)
        trouble_end(log);
    return error;
}

int log_flush(struct log *log, struct log_writer *writer)
{
    /* A disk that was full is not said to be well again before somebody has seen to it: see trouble_end. */
    if (log_trouble(log) == LOG_FINE && log_written(log) == log_end(log))
        return 0;
    lock_take(&log->flush_lock);
    int error = flush(log, writer);
    lock_release(&log->flush_lock);
    return error;
}

/* ---- syncing ---- */

static int sync_failed(struct log *log, struct disk *disk, enum act act, uint64_t first, int error)
{
    if (is_shortage(act, error))
        return error;
    trouble_set(log, trouble_pack(LOG_BROKEN, act, error), first);
    int file = disk->open(disk, LOG_FAILED, DISK_MAKE);
    if (file >= 0)
        disk->close(disk, file);
    return error;
}

struct search {
    uint64_t after, found;
};

static void find_segment(void *context, const char *name)
{
    struct search *search = context;
    bool is_snapshot;
    uint64_t first;

    if (frame_name_read(name, &is_snapshot, &first) && !is_snapshot && first > search->after &&
        first < search->found)
        search->found = first;
}

static int sync_segment(struct log *log, struct disk *disk, uint64_t first, bool is_last)
{
    char name[FRAME_NAME_BYTES];

    frame_name(false, first, name);
    int file = disk->open(disk, name, DISK_WRITE);
    if (file == -ENOENT && !is_last)
        return 0; /* a snapshot has taken its place */
    if (file < 0)
        return sync_failed(log, disk, ACT_OPEN, first, file);
    int error = disk->sync(disk, file);
    disk->close(disk, file);
    return error < 0 ? sync_failed(log, disk, ACT_SYNC, first, error) : 0;
}

/*
 * Every segment with bytes before `target` that were not synced. `from` goes on to the last of them. The tip knows two; between
 * two syncs there may have been more, so the folder is asked.
 */
static int sync_segments(struct log *log, struct disk *disk, uint64_t *from, uint64_t target)
{
    uint64_t present = tip_read(log).first;

    for (;;) {
        struct search search = {*from, target};
        int error = *from == present ? 0 : disk->list(disk, find_segment, &search);
        if (error < 0)
            return sync_failed(log, disk, ACT_LIST, *from, error);
        bool is_last = search.found == target;
        error = sync_segment(log, disk, *from, is_last);
        if (error < 0 || is_last)
            return error;
        *from = search.found;
    }
}

/* Under the lock of sync. `target` was written. */
static int sync_until(struct log *log, struct disk *disk, uint64_t target)
{
    uint64_t begun = atomic_load(&log->sync_from), from = begun;
    int error = sync_segments(log, disk, &from, target);

    if (error == 0 && from != begun) {
        error = disk->sync_folder(disk);
        if (error < 0)
            return sync_failed(log, disk, ACT_SYNC_FOLDER, from, error);
    }
    if (error < 0)
        return error;
    atomic_store_explicit(&log->synced, target, memory_order_release);
    atomic_store(&log->sync_from, from);
    return 0;
}

/* Under the lock of sync. Says in `target` how far it is synced now, or 0 if it was as far as `least` already. */
static int sync_written(struct log *log, struct disk *disk, uint64_t least, uint64_t *target)
{
    int error = broken_error(log);

    *target = 0;
    if (error < 0 || log_synced(log) >= least)
        return error;
    uint64_t written = log_written(log);
    error = sync_until(log, disk, written);
    if (error == 0)
        *target = written;
    return error;
}

/* Without a flush: if the ring has no room, the next sync says it. */
static void note_sync(struct log *log, uint64_t target, uint64_t time_ms)
{
    unsigned char body[8];

    little_put64(body, target);
    lock_take(&log->append_lock);
    put(log, RECORD_SYNCED, (struct span){(const char *)body, sizeof(body)}, time_ms);
    lock_release(&log->append_lock);
}

int log_sync(struct log *log, struct disk *disk, uint64_t time_ms)
{
    uint64_t least = log_is_dirty(log) ? log_written(log) : 0, target;

    lock_take(&log->sync_lock);
    int error = sync_written(log, disk, least, &target); /* another may have done it while this one waited */
    lock_release(&log->sync_lock);
    if (error == 0 && target > 0)
        note_sync(log, target, time_ms);
    return error;
}

/*
 * Clocks of processes differ by a little; one that is behind by more than an interval was set back. While somebody is at it nobody
 * else is told: a disk that hangs is not waited for by ever more threads.
 */
bool log_claim_sync(struct log *log, uint64_t now_ms)
{
    uint64_t interval_ms = atomic_load(&log->interval_ms);
    uint64_t claimed_ms = atomic_load(&log->claimed_ms);
    bool is_due = now_ms >= claimed_ms + interval_ms || claimed_ms > now_ms + interval_ms;

    if (atomic_load(&log->sync) != SYNC_INTERVAL || !is_due || !log_is_dirty(log))
        return false;
    if (!lock_try(&log->sync_lock))
        return false;
    lock_release(&log->sync_lock);
    return atomic_compare_exchange_strong(&log->claimed_ms, &claimed_ms, now_ms);
}

/* ---- space ---- */

static int next_make(struct disk *disk, uint64_t bytes)
{
    int file = disk->open(disk, LOG_NEXT, DISK_MAKE);

    if (file < 0)
        return file;
    int error = disk->allocate(disk, file, bytes);
    if (error == 0)
        error = disk->sync(disk, file);
    disk->close(disk, file);
    if (error < 0)
        disk->remove(disk, LOG_NEXT);
    return error;
}

/* Under the lock of next. What is there is somebody's who died, or was made in another size. */
static int next_renew(struct log *log, struct disk *disk, uint64_t bytes)
{
    atomic_store(&log->next_bytes, 0);
    int error = disk->remove(disk, LOG_NEXT);
    if (error == 0 || error == -ENOENT)
        error = next_make(disk, bytes);
    if (error == 0)
        atomic_store(&log->next_bytes, bytes);
    return error;
}

int log_prepare(struct log *log, struct disk *disk)
{
    if (!lock_try(&log->next_lock))
        return 0; /* somebody else is at it */
    int error = log_needs_prepare(log) ? next_renew(log, disk, atomic_load(&log->segment_bytes)) : 0;
    lock_release(&log->next_lock);
    return error;
}

bool log_needs_prepare(const struct log *log)
{
    return atomic_load(&log->next_bytes) != atomic_load(&log->segment_bytes) && broken_error(log) == 0;
}

bool log_is_short(const struct log *log)
{
    uint64_t next = atomic_load(&log->next_bytes); /* before `made`, which is said before this is unsaid */
    struct tip tip = tip_read(log);
    uint64_t left = tip.last - tip.end;

    if (atomic_load(&log->made) >= tip.first)
        left += next;
    else if (next < tip.last - tip.first) /* it is to be the present one */
        left = 0;
    return left < atomic_load(&log->reserve_bytes) || log_trouble(log) == LOG_FULL;
}

/* ---- beginning and end ---- */

/* Everything but the locks, for a log of which nothing is written. */
static void log_reset(struct log *log, const struct log_start *start)
{
    struct tip tip = {.end = start->position, .first = start->position, .sequence = start->sequence};

    atomic_store(&log->trouble, 0);
    atomic_store(&log->next_bytes, 0);
    atomic_store(&log->made, 0);
    atomic_store(&log->claimed_ms, 0);
    atomic_store(&log->loose_from, 0);
    atomic_store(&log->written, start->position);
    atomic_store(&log->synced, start->position);
    atomic_store(&log->sync_from, start->position);
    put_head(log, &tip);
    tip.change = tip.end;
    tip_publish(log, &tip);
}

/* Bytes of another log are never written over. */
static int first_is_free(struct disk *disk, uint64_t first)
{
    char name[FRAME_NAME_BYTES];

    frame_name(false, first, name);
    int file = disk->open(disk, name, DISK_READ);
    if (file >= 0)
        disk->close(disk, file);
    return file >= 0 ? -EEXIST : file == -ENOENT ? 0 : file;
}

static void first_remove(struct disk *disk, uint64_t first)
{
    char name[FRAME_NAME_BYTES];

    frame_name(false, first, name);
    disk->remove(disk, name);
    disk->remove(disk, LOG_ASIDE);
}

static int first_write(struct log *log, struct disk *disk, uint64_t first)
{
    struct log_writer writer;

    log_writer_init(&writer, disk);
    int error = log_flush(log, &writer);
    log_writer_close(&writer);
    if (error == 0)
        error = sync_until(log, disk, log_written(log));
    if (error == 0) {
        error = disk->sync_folder(disk);
        if (error < 0)
            sync_failed(log, disk, ACT_SYNC_FOLDER, first, error);
    }
    return error;
}

int log_begin(struct log *log, struct disk *disk, const struct log_start *start,
              const struct log_options *options)
{
    must(start->position % 8 == 0);
    log_set_options(log, options);
    disk->boot(disk, log->boot);
    log_reset(log, start);
    int error = disk->remove(disk, LOG_NEXT);
    if (error < 0 && error != -ENOENT)
        return error;
    error = first_is_free(disk, start->position);
    if (error < 0)
        return error;
    error = first_write(log, disk, start->position);
    if (error < 0) {
        first_remove(disk, start->position);
        return error;
    }
    log_prepare(log, disk);
    return 0;
}

/* With the notes of syncs; and not noted: RECORD_CLOSED says it of all that is before it, and is to stay the last. */
static int sync_all(struct log *log, struct log_writer *writer)
{
    uint64_t target;
    int error = log_flush(log, writer);

    if (error < 0)
        return error;
    lock_take(&log->sync_lock);
    error = sync_written(log, writer->disk, log_end(log), &target);
    lock_release(&log->sync_lock);
    return error;
}

int log_close(struct log *log, struct log_writer *writer, uint64_t time_ms)
{
    int error = sync_all(log, writer);

    if (error == 0 && log_append(log, writer, RECORD_CLOSED, SPAN_NONE, time_ms) == UINT64_MAX)
        error = trouble_error(atomic_load(&log->trouble));
    return error == 0 ? sync_all(log, writer) : error;
}
