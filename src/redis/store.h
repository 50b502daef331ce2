/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_STORE_H
#define WEIR_REDIS_STORE_H

/*
 * All servers of a store as one thing to send commands to: an order names a slot, and goes to whoever keeps it.
 *
 * It keeps a topology and, for each primary, a link of its own per lane, and does what a refusal asks for: follows a slot that
 * moved, asks the one that has it already, waits while a server cannot, looks for the primaries again. All of that ends with the
 * order's deadline. Only primaries are ever sent an order, and only on a connection that is ready: until then it waits here. But who
 * has not been reached for STORE_TROUBLE_MS is not waited for: all who ask would stand here together, and none of them be served.
 *
 * Orders of one slot and lane are sent in the order in which they were given: while one waits for another try, those behind it
 * wait too. (What was in flight behind one that a server refused may have been done before it.)
 *
 * What may have happened is never sent twice: such an order ends as LINK_UNKNOWN, and whoever gave it knows whether it may be
 * given again.
 *
 * The owner has the sockets. In each turn of its event loop it tells the links of the lines what happened, calls store_turn once,
 * and then goes over the lines: dials and hangs up as store_wish says, and writes what each link has to say.
 */

#include "redis/link.h"
#include "redis/refusal.h"
#include "redis/topology.h"

#define STORE_LINES_MAX  (2 * SLOT_MAP_PRIMARIES_MAX + 64)
#define STORE_TROUBLE_MS 3000

/* What waits for replicas to confirm has connections of its own: whatever stands behind a WAIT waits with it. */
enum store_lane { STORE_LANE_MAIN, STORE_LANE_CONFIRMED, STORE_LANE_SCOUT };

struct store_order {
    uint16_t slot;
    bool needs_map; /* it waits while the map is not whole: what it says depends on who the primaries are */
    enum store_lane lane;
    struct span bytes; /* a whole command in RESP, which lives until `done` */
    /*
     * Puts into `bytes` what is for the process of this run id, whenever that is about to get it. (One that it names while the slot
     * moves gets the same bytes.) False: no memory. NULL: the bytes are for anybody.
     */
    bool (*write)(struct store_order *order, const char *run_id);
    uint64_t deadline_ms;
    /* Once, perhaps before store_send returns. LINK_UNSENT: it did nothing, anywhere: its time is over, or there was no room. */
    void (*done)(struct store_order *order, enum link_outcome outcome, const redisReply *reply);

    /* the store's own */
    struct store *store;
    struct store_order *next;
    struct store_line *line; /* that it was given to last */
    struct link_command command;
    struct refusal refusal;
    bool is_new_refusal; /* that nobody has heeded yet */
    bool is_behind;      /* another one of its slot that waits */
    bool awaits_line;    /* that is ready */
    uint32_t tries;
    uint64_t turn; /* of all that were given */
    uint64_t again_ms;
};

struct store_options {
    const struct store_url *url;
    /* The password of a login of the URL, as it is now: NULL, or a constant sentence why there is none. */
    const char *(*password)(void *context, const struct store_login *login, struct store_text *out);
    void *context;
    const char *name;
    uint32_t dial_ms, silence_ms;
    uint32_t in_flight_max, out_bytes_max; /* of each line */
    uint32_t waiting_max;                  /* orders that wait for another try */
};

/* One connection that the owner is to keep. */
struct store_line {
    struct link *link;
    struct address address;
    enum store_lane lane;
    void *holder;        /* of store_hold; NULL: nobody */
    bool is_retired;     /* no primary any more: leaves when nothing is in flight */
    bool is_leaving;     /* is not dialed again */
    bool is_ready;       /* at the last turn */
    uint64_t unready_ms; /* when it ceased to be, or began */
    uint64_t losses;     /* that were looked after */
    void *connection;    /* the owner's own */
};

struct store;

/* `options` must live as long. NULL: no memory. */
struct store *store_new(const struct store_options *options, uint64_t seed, uint64_t now_ms);

/* All lines must be closed. Orders that wait end. */
void store_free(struct store *store);

/* The same without the end of the store. */
void store_drop_orders(struct store *store);

void store_send(struct store *store, struct store_order *order, uint64_t now_ms);

/* After events, and when store_due_ms says so: asks who keeps what, tries again, looks at deadlines, lets lines go. */
void store_turn(struct store *store, uint64_t now_ms);
uint64_t store_due_ms(const struct store *store);

/* The lines, in no order. store_turn and store_send may add some; only store_turn takes some away, which are closed. */
size_t store_lines(const struct store *store);
struct store_line *store_line(const struct store *store, size_t place);
enum link_wish store_wish(const struct store_line *line, uint64_t now_ms);

/* Between the two no order is sent on this line, and it does not leave. */
void store_hold(struct store_line *line, void *holder);
void store_release(struct store *store, struct store_line *line);

const struct topology *store_topology(const struct store *store);

/* The process that keeps this slot, as its main line knows it; NULL while it is not ready. */
const struct peer *store_peer(const struct store *store, uint16_t slot);

/*
 * Whether a primary of the map, which is whole, is this process and is connected with us. A room that was last changed by such a one
 * has moved away from it with its slot and lost nothing; else its primary died, or is none any more. While a map is half of the one
 * before a failover, the former primary looks like one still: an order that asks this has `needs_map`.
 */
bool store_is_running(const struct store *store, const char *run_id);

/*
 * Why it could not serve at the last turn: a constant sentence, or NULL. Until every primary has been reached for the first time,
 * and again when one has not been for STORE_TROUBLE_MS on end: a short loss is nobody's trouble, and neither is a slow command.
 */
const char *store_trouble(const struct store *store);

/* Of all lines that there are and were. */
struct link_counts store_counts(const struct store *store);

#endif
