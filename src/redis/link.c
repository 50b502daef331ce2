/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two buffers: the greeting, and the commands. The second is not given away before the greeting has been answered, so a command
 * that came early waits without having been sent, and can still be taken back.
 *
 * In flight is a ring of slots in the order of the bytes, for that is the order of the replies. A slot outlives its command: one
 * that was late or forgotten leaves it behind empty, and the reply that comes after all is dropped there. If its bytes were never
 * offered to the owner, slot and bytes are swept out of the middle instead: what nobody waits for is not done late.
 *
 * "Offered" and not "sent" decides whether a command can have happened: a TLS library may have taken what it does not admit yet.
 *
 * Positions are counts of all bytes of a connection's commands, so they never wrap and are compared as they are.
 */
#include "redis/link.h"

#include "base/ascii.h"
#include "base/breaker.h"
#include "base/must.h"
#include "redis/reader.h"
#include "redis/refusal.h"

#include <stdio.h>
#include <stdlib.h>

#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define NEVER        UINT64_MAX
#define GREETING_MAX (2 * STORE_TEXT_MAX + LINK_NAME_MAX + 512)

#define NO_MEMORY "There is no memory for a connection to the store."
#define NOT_ASKED "The server said something that nobody asked for."

enum greet {
    GREET_LOGIN,
    GREET_DATABASE,
    GREET_NAME,
    GREET_LOADING,
    GREET_SERVER,
    GREET_REPLICATION,
    GREET_COUNT
};

struct slot {
    struct link_command *command; /* NULL: nobody waits */
    uint64_t begin, end;          /* of its bytes */
    uint32_t replies_before;
};

struct link {
    const struct link_options *options;
    uint64_t dice;
    enum link_state state;
    bool is_open;    /* the owner has a connection, or tries */
    bool is_calling; /* a `done` is running */
    uint64_t due_ms; /* RESTING: the next dial; DIALING and GREETING: when it is enough */
    uint64_t ready_ms;
    uint32_t losses_in_row;
    const char *trouble;
    const char *renew; /* why it is to be given up; NULL: it is not */

    char greeting[GREETING_MAX];
    size_t greeting_len, greeting_sent;
    enum greet greets[GREET_COUNT]; /* what was asked, in order */
    size_t greets_count, greets_answered;
    redisReply *server; /* what it said about itself */
    struct peer peer;
    struct reader *reader;
    redisReply *reply; /* that is being told; NULL: whoever was told keeps it */

    char *out; /* the bytes from out_sent on */
    uint64_t out_sent, out_offered, out_end;
    struct slot *slots; /* a ring: the slot of number n is n % in_flight_max */
    uint64_t first, count;
    uint64_t earliest_ms; /* no deadline is earlier */
    uint64_t heard_ms;    /* the last time that something came, or that waiting began */
    struct link_counts counts;
};

static void greeting_write(struct link *link, uint64_t now_ms);
static const char *login_write(struct link *link);
static bool greet_write(struct link *link, enum greet greet, int argc, const char **argv,
                        const size_t *lengths);
static void greet_take(struct link *link, redisReply *reply, uint64_t now_ms);
static const char *greet_judge(struct link *link, const redisReply *reply);
static const char *loading_judge(struct span persistence);
static const char *greet_refusal(enum greet greet, struct span text);
static const char *peer_learn(struct link *link, const redisReply *replication);
static bool is_anybody(const char *run_id);
static bool reply_take(struct link *link, redisReply *reply, uint64_t now_ms);
static bool answer_take(struct link *link, const redisReply *reply);
static void deadlines_check(struct link *link, uint64_t now_ms);
static void unoffered_sweep(struct link *link);
static void link_lose(struct link *link, const char *why, uint64_t now_ms);
static void in_flight_end(struct link *link);
static void renew_check(struct link *link, uint64_t now_ms);
static void command_end(struct link *link, struct link_command *command, enum link_outcome outcome,
                        const redisReply *reply);
static struct slot *slot_at(const struct link *link, uint64_t number);
static bool is_offered(const struct link *link, const struct slot *slot);
static uint32_t dice_next(struct link *link);

struct link *link_new(const struct link_options *options, uint64_t seed)
{
    must(options->in_flight_max > 0 && options->out_bytes_max > 0);
    must(strlen(options->name) <= LINK_NAME_MAX && ascii_all_visible(span_of(options->name)));
    struct link *link = calloc(1, sizeof(*link));
    if (link == NULL)
        return NULL;
    link->options = options;
    link->dice = seed | 1;
    link->earliest_ms = NEVER;
    link->out = malloc(options->out_bytes_max);
    link->slots = calloc(options->in_flight_max, sizeof(*link->slots));
    if (link->out != NULL && link->slots != NULL)
        return link;
    link_free(link);
    return NULL;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    must(!link->is_open && !link->is_calling && link->state == LINK_RESTING);
    if (link->slots != NULL)
        in_flight_end(link);
    reader_free(link->reader);
    freeReplyObject(link->server);
    explicit_bzero(link->greeting, sizeof(link->greeting));
    free(link->out);
    free(link->slots);
    free(link);
}

/* ---- wishes ---- */

enum link_wish link_wish(const struct link *link, uint64_t now_ms)
{
    if (link->state != LINK_RESTING)
        return LINK_KEEP;
    if (link->is_open)
        return LINK_HANG_UP;
    return now_ms >= link->due_ms ? LINK_DIAL : LINK_KEEP;
}

struct span link_output(struct link *link)
{
    if (link->state == LINK_GREETING)
        return (struct span){link->greeting + link->greeting_sent, link->greeting_len - link->greeting_sent};
    if (link->state != LINK_READY)
        return SPAN_NONE;
    link->out_offered = link->out_end;
    return (struct span){link->out, link->out_end - link->out_sent};
}

uint64_t link_due_ms(const struct link *link)
{
    if (link->renew != NULL || (link->state == LINK_RESTING && link->is_open))
        return 0;
    uint64_t state_ms = link->due_ms;
    if (link->state == LINK_READY)
        state_ms = link->count > 0 ? link->heard_ms + link->options->silence_ms : NEVER;
    return MIN(state_ms, link->earliest_ms);
}

/* ---- dialing and greeting ---- */

void link_dialing(struct link *link, uint64_t now_ms)
{
    must(link->state == LINK_RESTING && !link->is_open);
    link->is_open = true;
    link->state = LINK_DIALING;
    link->due_ms = now_ms + link->options->dial_ms;
    link->counts.dials++;
}

void link_connected(struct link *link, uint64_t now_ms)
{
    if (link->state != LINK_DIALING)
        return; /* too late: it was given up meanwhile */
    reader_free(link->reader);
    link->reader = reader_new();
    link->state = LINK_GREETING;
    if (link->reader == NULL)
        link_lose(link, NO_MEMORY, now_ms);
    else
        greeting_write(link, now_ms);
}

/* All of it in one write: nothing is asked that depends on an answer. */
static void greeting_write(struct link *link, uint64_t now_ms)
{
    char number[16];
    (void)snprintf(number, sizeof(number), "%u", link->options->database);
    const char *database[] = {"SELECT", number}, *name[] = {"CLIENT", "SETNAME", link->options->name};
    const char *loading[] = {"INFO", "persistence"}, *server[] = {"INFO", "server"};
    const char *replication[] = {"INFO", "replication"};

    link->greeting_len = link->greeting_sent = 0;
    link->greets_count = link->greets_answered = 0;
    const char *refusal = login_write(link);
    if (refusal == NULL &&
        ((link->options->database != 0 && !greet_write(link, GREET_DATABASE, 2, database, NULL)) ||
         !greet_write(link, GREET_NAME, 3, name, NULL) ||
         !greet_write(link, GREET_LOADING, 2, loading, NULL) ||
         !greet_write(link, GREET_SERVER, 2, server, NULL) ||
         !greet_write(link, GREET_REPLICATION, 2, replication, NULL)))
        refusal = NO_MEMORY;
    if (refusal != NULL)
        link_lose(link, refusal, now_ms);
}

/* AUTH, with the user if there is one. */
static const char *login_write(struct link *link)
{
    const char *argv[3] = {"AUTH"}, *user = link->options->user;
    size_t lengths[3] = {strlen(argv[0])};
    int argc = 1;
    struct store_text password;

    if (link->options->password == NULL)
        return NULL;
    const char *refusal = link->options->password(link->options->context, &password);
    if (refusal == NULL) {
        if (user[0] != '\0') {
            argv[argc] = user;
            lengths[argc++] = strlen(user);
        }
        argv[argc] = password.data;
        lengths[argc++] = password.len;
        refusal = greet_write(link, GREET_LOGIN, argc, argv, lengths) ? NULL : NO_MEMORY;
    }
    explicit_bzero(&password, sizeof(password));
    return refusal;
}

/* `lengths` NULL: those of the strings. */
static bool greet_write(struct link *link, enum greet greet, int argc, const char **argv,
                        const size_t *lengths)
{
    char *command;
    int len = redisFormatCommandArgv(&command, argc, argv, lengths);
    if (len < 0)
        return false;
    must((size_t)len <= sizeof(link->greeting) - link->greeting_len);
    memcpy(link->greeting + link->greeting_len, command, (size_t)len);
    link->greeting_len += (size_t)len;
    explicit_bzero(command, (size_t)len);
    redisFreeCommand(command);
    link->greets[link->greets_count++] = greet;
    return true;
}

static void greet_take(struct link *link, redisReply *reply, uint64_t now_ms)
{
    const char *refusal = link->greeting_sent < link->greeting_len ? NOT_ASKED : greet_judge(link, reply);
    if (refusal != NULL) {
        freeReplyObject(reply);
        link_lose(link, refusal, now_ms);
        return;
    }
    if (link->greets[link->greets_answered++] == GREET_SERVER)
        link->server = reply;
    else
        freeReplyObject(reply);
    if (link->greets_answered < link->greets_count)
        return;
    link->state = LINK_READY;
    link->ready_ms = link->heard_ms = now_ms;
    unoffered_sweep(link);
}

static const char *greet_judge(struct link *link, const redisReply *reply)
{
    enum greet greet = link->greets[link->greets_answered];
    if (greet == GREET_NAME)
        return NULL; /* only people look at it */
    if (reply->type == REDIS_REPLY_ERROR)
        return greet_refusal(greet, (struct span){reply->str, reply->len});
    if (greet < GREET_LOADING)
        return NULL;
    if (reply->type != REDIS_REPLY_STRING)
        return "What the server says of itself makes no sense.";
    if (greet == GREET_LOADING)
        return loading_judge((struct span){reply->str, reply->len});
    return greet == GREET_REPLICATION ? peer_learn(link, reply) : NULL;
}

/* It answers, but it would refuse every command, perhaps for minutes: it is not there yet. A sentinel's text is empty. */
static const char *loading_judge(struct span persistence)
{
    struct span value;
    bool is_loading = peer_find(persistence, SPAN("loading"), &value) && !span_equal(value, SPAN("0"));
    return is_loading ? "The server is reading its data back." : NULL;
}

/* In our words: a server's own may quote what it was sent. */
static const char *greet_refusal(enum greet greet, struct span text)
{
    static const struct span crowded = SPAN("ERR max number of clients");
    static const struct address nowhere;
    struct refusal refusal = refusal_read(text, &nowhere);
    if (text.len >= crowded.len && memcmp(text.data, crowded.data, crowded.len) == 0)
        return "The server has as many clients as it may have.";
    if (strcmp(refusal.word, "NOAUTH") == 0)
        return "The server wants a password.";
    if (strcmp(refusal.word, "DENIED") == 0)
        return "The server's protected mode lets nobody in.";
    if (greet == GREET_LOGIN)
        return "The server does not take the store's user and password.";
    if (strcmp(refusal.word, "NOPERM") == 0)
        return "The store's user may not run SELECT or INFO.";
    return greet == GREET_DATABASE ? "The server does not have the store's database."
                                   : "The server does not say who it is.";
}

static const char *peer_learn(struct link *link, const redisReply *replication)
{
    must(link->server != NULL);
    const char *refusal = peer_read((struct span){link->server->str, link->server->len},
                                    (struct span){replication->str, replication->len}, &link->peer);
    freeReplyObject(link->server);
    link->server = NULL;
    if (refusal != NULL || !link->options->needs_primary)
        return refusal;
    if (!link->peer.is_primary)
        return "The server is not a primary.";
    return is_anybody(link->peer.run_id) ? "The server does not say which process it is (run_id)." : NULL;
}

/* Some that are managed by others hide it. A failover could not be noticed there. */
static bool is_anybody(const char *run_id)
{
    return run_id[strspn(run_id, "0")] == '\0';
}

/* ---- what happened ---- */

void link_sent(struct link *link, size_t bytes)
{
    if (link->state == LINK_GREETING) {
        must(bytes <= link->greeting_len - link->greeting_sent);
        explicit_bzero(link->greeting + link->greeting_sent, bytes);
        link->greeting_sent += bytes;
    } else if (link->state == LINK_READY) {
        must(bytes <= link->out_offered - link->out_sent);
        link->out_sent += bytes;
        memmove(link->out, link->out + bytes, link->out_end - link->out_sent);
    }
}

void link_received(struct link *link, struct span bytes, uint64_t now_ms)
{
    must(!link->is_calling);
    if (link->state != LINK_GREETING && link->state != LINK_READY)
        return; /* it was given up, and not closed yet */
    link->heard_ms = now_ms;
    reader_feed(link->reader, bytes);
    for (;;) {
        redisReply *reply = NULL;
        enum reader_result result = reader_next(link->reader, &reply);
        if (result == READER_BROKEN)
            link_lose(link, "The server does not speak RESP, or says too much.", now_ms);
        if (result != READER_REPLY || !reply_take(link, reply, now_ms))
            break;
    }
    renew_check(link, now_ms);
}

/* False: the connection was given up. */
static bool reply_take(struct link *link, redisReply *reply, uint64_t now_ms)
{
    if (link->state == LINK_GREETING)
        greet_take(link, reply, now_ms);
    else {
        link->reply = reply;
        bool is_asked = answer_take(link, reply);
        freeReplyObject(link->reply);
        link->reply = NULL;
        if (!is_asked)
            link_lose(link, NOT_ASKED, now_ms);
    }
    return link->state != LINK_RESTING;
}

/* False: nobody asked. */
static bool answer_take(struct link *link, const redisReply *reply)
{
    static const struct span login = SPAN("NOAUTH");
    struct slot *slot = slot_at(link, link->first);
    if (link->count == 0 || slot->end > link->out_sent)
        return false;
    if (reply->type == REDIS_REPLY_ERROR && reply->len >= login.len &&
        memcmp(reply->str, login.data, login.len) == 0)
        link_renew(link, "The server wants a password again.");
    if (slot->replies_before > 0) {
        slot->replies_before--;
        return true;
    }
    struct link_command *command = slot->command;
    link->first++;
    link->count--;
    link->counts.answered += command != NULL;
    command_end(link, command, LINK_ANSWERED, reply);
    return true;
}

void link_closed(struct link *link, const char *why, uint64_t now_ms)
{
    must(link->is_open && !link->is_calling);
    link->is_open = false;
    if (link->state != LINK_RESTING)
        link_lose(link, why, now_ms);
}

void link_timer(struct link *link, uint64_t now_ms)
{
    must(!link->is_calling);
    deadlines_check(link, now_ms);
    if ((link->state == LINK_DIALING || link->state == LINK_GREETING) && now_ms >= link->due_ms)
        link_lose(link, "The server did not answer in time when it was dialed.", now_ms);
    else if (link->state == LINK_READY && link->count > 0 &&
             now_ms >= link->heard_ms + link->options->silence_ms)
        link_lose(link, "The server has been silent for too long.", now_ms);
    renew_check(link, now_ms);
}

static void deadlines_check(struct link *link, uint64_t now_ms)
{
    if (now_ms < link->earliest_ms)
        return;
    link->earliest_ms = NEVER;
    for (uint64_t i = 0; i < link->count; i++) {
        struct slot *slot = slot_at(link, link->first + i);
        struct link_command *command = slot->command;
        if (command == NULL)
            continue;
        if (now_ms < command->deadline_ms) {
            link->earliest_ms = MIN(link->earliest_ms, command->deadline_ms);
            continue;
        }
        slot->command = NULL;
        link->counts.late++;
        command_end(link, command, is_offered(link, slot) ? LINK_UNKNOWN : LINK_UNSENT, NULL);
    }
    unoffered_sweep(link);
}

/* Takes out what nobody waits for and nobody was given yet. The rest moves up. */
static void unoffered_sweep(struct link *link)
{
    uint64_t position = link->out_offered, kept = 0;
    for (uint64_t i = 0; i < link->count; i++) {
        struct slot slot = *slot_at(link, link->first + i);
        if (!is_offered(link, &slot)) {
            uint64_t len = slot.end - slot.begin;
            if (slot.command == NULL)
                continue;
            memmove(link->out + (position - link->out_sent), link->out + (slot.begin - link->out_sent), len);
            slot.begin = position;
            slot.end = position += len;
        }
        if (slot.command != NULL)
            slot.command->number = link->first + kept;
        *slot_at(link, link->first + kept++) = slot;
    }
    link->count = kept;
    link->out_end = position;
}

static void link_lose(struct link *link, const char *why, uint64_t now_ms)
{
    must(link->state != LINK_RESTING);
    if (link->state == LINK_READY && now_ms >= link->ready_ms + LINK_SOUND_MS)
        link->losses_in_row = 0;
    link->losses_in_row = MIN(link->losses_in_row + 1, LINK_RESTS_MAX);
    link->counts.losses++;
    link->trouble = why;
    link->renew = NULL;
    link->state = LINK_RESTING;
    link->due_ms = now_ms + breaker_backoff_ms(LINK_REST_MS, link->losses_in_row, dice_next(link));
    explicit_bzero(link->greeting, sizeof(link->greeting));
    freeReplyObject(link->server);
    link->server = NULL;
    reader_free(link->reader);
    link->reader = NULL;
    in_flight_end(link);
}

static void in_flight_end(struct link *link)
{
    while (link->count > 0) {
        const struct slot *slot = slot_at(link, link->first);
        enum link_outcome outcome = is_offered(link, slot) ? LINK_UNKNOWN : LINK_UNSENT;
        link->first++;
        link->count--;
        command_end(link, slot->command, outcome, NULL);
    }
    link->out_sent = link->out_offered = link->out_end = 0;
    link->earliest_ms = NEVER;
}

static void renew_check(struct link *link, uint64_t now_ms)
{
    if (link->renew != NULL && link->state != LINK_RESTING)
        link_lose(link, link->renew, now_ms);
    link->renew = NULL;
}

static void command_end(struct link *link, struct link_command *command, enum link_outcome outcome,
                        const redisReply *reply)
{
    if (command == NULL)
        return;
    must(!link->is_calling);
    link->is_calling = true;
    command->done(command, outcome, reply);
    link->is_calling = false;
}

/* ---- commands ---- */

bool link_send(struct link *link, struct link_command *command, struct span bytes, uint64_t now_ms)
{
    uint64_t waiting = link->out_end - link->out_sent;
    must(command->done != NULL && bytes.len > 0);
    bool is_lost = link->state == LINK_RESTING && link->counts.losses > 0;
    if (is_lost || link->renew != NULL || link->count == link->options->in_flight_max ||
        bytes.len > link->options->out_bytes_max - waiting) {
        link->counts.refused++;
        return false;
    }
    if (link->count == 0)
        link->heard_ms = now_ms;
    memcpy(link->out + waiting, bytes.data, bytes.len);
    command->number = link->first + link->count++;
    *slot_at(link, command->number) =
        (struct slot){command, link->out_end, link->out_end + bytes.len, command->replies_before};
    link->out_end += bytes.len;
    link->earliest_ms = MIN(link->earliest_ms, command->deadline_ms);
    link->counts.sent++;
    return true;
}

void link_forget(struct link *link, struct link_command *command)
{
    struct slot *slot = slot_at(link, command->number);
    must(command->number - link->first < link->count && slot->command == command);
    slot->command = NULL;
}

redisReply *link_keep_reply(struct link *link)
{
    redisReply *reply = link->reply;
    must(link->is_calling && reply != NULL);
    link->reply = NULL;
    return reply;
}

void link_renew(struct link *link, const char *why)
{
    if (link->state != LINK_RESTING)
        link->renew = why;
}

/* ---- what it knows ---- */

enum link_state link_state(const struct link *link)
{
    return link->state;
}

bool link_is_open(const struct link *link)
{
    return link->is_open;
}

const struct peer *link_peer(const struct link *link)
{
    must(link->state == LINK_READY);
    return &link->peer;
}

const char *link_trouble(const struct link *link)
{
    return link->trouble;
}

uint32_t link_in_flight(const struct link *link)
{
    return (uint32_t)link->count;
}

struct link_counts link_counts(const struct link *link)
{
    return link->counts;
}

/* ---- small things ---- */

static struct slot *slot_at(const struct link *link, uint64_t number)
{
    return &link->slots[number % link->options->in_flight_max];
}

static bool is_offered(const struct link *link, const struct slot *slot)
{
    return slot->begin < link->out_offered;
}

static uint32_t dice_next(struct link *link)
{
    link->dice ^= link->dice << 13;
    link->dice ^= link->dice >> 7;
    link->dice ^= link->dice << 17;
    return (uint32_t)(link->dice >> 32);
}
