/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_TOPOLOGY_H
#define WEIR_REDIS_TOPOLOGY_H

/*
 * Who keeps what, and how that is found out: by asking, never by guessing from how many addresses the operator wrote. One server
 * after another is greeted until one knows:
 *
 *     a standalone primary keeps everything            a replica, or who does not answer: the next one is asked
 *     a server of a cluster is asked for the slots     a sentinel is asked for the primary, which then must say that it is one
 *
 * It only thinks: its owner sends what topology_question asks, and tells what came back. One question at a time. Once it knows, it
 * asks again about every TOPOLOGY_REFRESH_MS, or soon after somebody doubts it; when nobody can say, it rests, each time longer.
 *
 * No clock and no chance of its own: `now_ms` is of any clock that goes on, `random` is any number.
 */

#include "redis/peer.h"
#include "redis/slot_map.h"
#include "redis/store_url.h"

#define TOPOLOGY_REFRESH_MS 10000 /* less up to a half, by chance */
#define TOPOLOGY_REST_MS \
    100 /* after a round in which nobody knew, or a doubt that came too soon; doubled each time, */
#define TOPOLOGY_RESTS_MAX 5 /* so often: a failover is noticed within two seconds of its end */

enum question_kind {
    QUESTION_NONE,   /* nothing to ask before topology_due_ms */
    QUESTION_GREET,  /* connect, log in and find out who it is: topology_greeted */
    QUESTION_SLOTS,  /* CLUSTER SLOTS, of whoever was greeted last: topology_answered */
    QUESTION_MASTER, /* SENTINEL GET-MASTER-ADDR-BY-NAME, of the same */
};

struct question {
    enum question_kind kind;
    struct address address;
    bool is_of_sentinel; /* with the sentinels' login */
};

struct topology;

/* `url` must live as long. NULL: no memory. */
struct topology *topology_new(const struct store_url *url, uint64_t now_ms);
void topology_free(struct topology *topology);

/* What is to be asked now. It stays the same until one of the three below has said how it went. */
struct question topology_question(struct topology *topology, uint64_t now_ms);

/* When there will be something to ask; while something is being asked: never (UINT64_MAX). */
uint64_t topology_due_ms(const struct topology *topology);

void topology_greeted(struct topology *topology, const struct peer *peer, uint64_t now_ms, uint32_t random);
void topology_answered(struct topology *topology, const redisReply *reply, uint64_t now_ms, uint32_t random);

/* Nobody there, nothing said in time, or not let in. `why` is a constant sentence. */
void topology_failed(struct topology *topology, const char *why, uint64_t now_ms, uint32_t random);

/* The command of QUESTION_SLOTS or QUESTION_MASTER as bytes, freed with redisFreeCommand. Returns how many; 0: no memory. */
size_t topology_format(const struct topology *topology, char **command);

/* A server refused with MOVED: the slot is there from now on. And the map is doubted. */
void topology_follow(struct topology *topology, uint16_t slot, const struct address *address, uint64_t now_ms,
                     uint32_t random);

/* Somebody met a replica, a cluster that is down or a closed door where a primary should be. */
void topology_doubt(struct topology *topology, uint64_t now_ms, uint32_t random);

/* Somebody waits for the map to be whole: whatever doubts there were, the next look is due now. */
void topology_hurry(struct topology *topology, uint64_t now_ms);

/* Who keeps this slot. NULL: nobody, or it is not known yet. Good until the next call that changes something. */
const struct primary *topology_find(const struct topology *topology, uint16_t slot);

/* All primaries; the map's version goes up whenever it changes, and is 0 until one is known. */
const struct slot_map *topology_map(const struct topology *topology);
uint64_t topology_version(const struct topology *topology);

/*
 * Whether the map is as one server told it, who was asked after the last MOVED. Until then it is half of one map and half of another:
 * a primary that it names beside its successor may be none any more.
 */
bool topology_is_whole(const struct topology *topology);
bool topology_is_cluster(const struct topology *topology);

/* Why the last round found nobody who knows: from the last one asked. NULL: it did, or none has ended yet. */
const char *topology_trouble(const struct topology *topology);

#endif
