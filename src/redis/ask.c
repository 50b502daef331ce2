/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Every script is given the same keys in the same order, needed or not: so a script cannot touch a key that was not declared,
 * and all of them lie in one slot, for the room's name in braces is the only part that a cluster hashes.
 */

#include "redis/ask.h"

#include "base/little.h"
#include "base/must.h"
#include "redis/slots.h"

#include <inttypes.h>
#include <stdio.h>

/* The order is that of lua/lib/room.lua. */
static const char *const key_names[] = {
    "queue:room",           "queue:settings", "queue:event",  "queue:tickets", "queue:due",  "queue:requests",
    "queue:requests:order", "queue:measured", "queue:healed", "queue:epoch",   "queue:shop",
};

#define KEYS (sizeof(key_names) / sizeof(key_names[0]))

/* SHOP is a chore. */
static const struct {
    bool is_there;
    enum script script;
} script_of[] = {
    [ENGINE_JOIN] = {true, SCRIPT_JOIN},
    [ENGINE_STATUS] = {true, SCRIPT_STATUS},
    [ENGINE_HEARTBEAT] = {true, SCRIPT_HEARTBEAT},
    [ENGINE_LOOK] = {true, SCRIPT_LOOK},
    [ENGINE_ENTER] = {true, SCRIPT_ENTER},
    [ENGINE_LEAVE] = {true, SCRIPT_LEAVE},
    [ENGINE_LEAVE_SOON] = {true, SCRIPT_LEAVE_SOON},
    [ENGINE_SESSION_TOUCH] = {true, SCRIPT_SESSION_TOUCH},
    [ENGINE_SESSION_END] = {true, SCRIPT_SESSION_END},
    [ENGINE_SESSION_EXTEND] = {true, SCRIPT_SESSION_EXTEND},
    [ENGINE_FIGURES] = {true, SCRIPT_FIGURES},
    [ENGINE_SETTINGS] = {true, SCRIPT_SETTINGS},
    [ENGINE_ROOMS] = {true, SCRIPT_ROOMS},
    [ENGINE_PUT] = {true, SCRIPT_PUT},
    [ENGINE_DELETE] = {true, SCRIPT_DELETE},
    [ENGINE_ADVANCE] = {true, SCRIPT_ADVANCE},
    [ENGINE_CLEAR] = {true, SCRIPT_CLEAR},
};

const char *ask_key(size_t place)
{
    return place < KEYS ? key_names[place] : NULL;
}

bool ask_has_script(enum engine_op op)
{
    return op < sizeof(script_of) / sizeof(script_of[0]) && script_of[op].is_there;
}

uint16_t ask_call_slot(const struct engine_call *call)
{
    return call->op == ENGINE_ROOMS ? slot_of_key(SPAN(ASK_REGISTRY)) : slot_of_tag(call->room);
}

static bool is_about_registry(const struct redis_chore *chore)
{
    return chore->kind == CHORE_REGISTER || chore->kind == CHORE_UNREGISTER;
}

uint16_t ask_chore_slot(const struct redis_chore *chore)
{
    return is_about_registry(chore) ? slot_of_key(SPAN(ASK_REGISTRY)) : slot_of_tag(chore->room);
}

bool ask_may_gather(enum engine_op op)
{
    return op <= ENGINE_SESSION_EXTEND;
}

static void add_script(const struct ask *ask, enum script script)
{
    resp_begin(ask->resp);
    resp_add(ask->resp, ask->is_whole ? SPAN("EVAL") : SPAN("EVALSHA"));
    resp_add(ask->resp,
             ask->is_whole ? script_text(script) : (struct span){ask->names->sha[script], SCRIPT_SHA_LEN});
}

static void add_registry_head(const struct ask *ask, enum script script)
{
    add_script(ask, script);
    resp_add_number(ask->resp, 1);
    resp_add(ask->resp, SPAN(ASK_REGISTRY));
    resp_add_copy(ask->resp, span_of(ask->run_id));
}

static void add_head(const struct ask *ask, enum script script, struct span room)
{
    struct resp *resp = ask->resp;

    add_script(ask, script);
    resp_add_number(resp, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        char key[ROOM_ID_MAX + 32];
        int len = snprintf(key, sizeof(key), "%s:{%.*s}", key_names[i], (int)room.len, room.data);
        must(len > 0 && (size_t)len < sizeof(key));
        resp_add_copy(resp, (struct span){key, (size_t)len});
    }
    resp_add_copy(resp, span_of(ask->run_id));
}

/* What a token says beside the place is one word, empty if it is not known: it is needed only after a loss. */
static void add_issue(struct resp *resp, const struct issue *issue)
{
    char text[32] = "";

    if (issue->is_known)
        snprintf(text, sizeof(text), "%d:%u:%" PRIu32, issue->is_trusted, issue->key_id, issue->sec);
    resp_add_copy(resp, span_of(text));
}

static void add_grant(struct resp *resp, const struct grant *grant)
{
    char text[32] = "";

    if (grant->is_known)
        snprintf(text, sizeof(text), "%u:%u:%" PRIu32, grant->key_id, grant->tier, grant->sec);
    resp_add_copy(resp, span_of(text));
}

static void add_place(struct resp *resp, const struct place *place)
{
    resp_add_holder(resp, &place->holder);
    resp_add_number(resp, place->epoch);
    resp_add_number(resp, place->count);
    add_issue(resp, &place->issue);
    add_grant(resp, &place->grant);
}

static void add_request(struct resp *resp, const struct request_key *request)
{
    unsigned char body[8];

    if (!request->is_set) {
        resp_add(resp, SPAN(""));
        resp_add(resp, SPAN(""));
        return;
    }
    little_put64(body, request->body);
    resp_add_holder(resp, &request->scope);
    resp_add_copy(resp, (struct span){(const char *)body, sizeof(body)});
}

static void add_join(struct resp *resp, const struct join *join)
{
    resp_add_holder(resp, &join->holder);
    resp_add_number(resp, join->is_trusted);
    resp_add_number(resp, join->key_id);
    resp_add_number(resp, join->wall_sec);
    add_request(resp, &join->request);
}

static void add_enter(struct resp *resp, const struct enter *enter)
{
    add_place(resp, &enter->place);
    resp_add_number(resp, enter->key_id);
    resp_add_number(resp, enter->wall_sec);
    add_request(resp, &enter->request);
    resp_add_number(resp, enter->spends);
}

static void add_put(struct resp *resp, const struct engine_put *put, const struct redis_epochs *epochs)
{
    char lines[SETTINGS_TEXT_MAX];

    resp_add_number(resp, put->version);
    resp_add_number(resp, put->is_from_api);
    resp_add(resp, epochs == NULL ? SPAN("") : (struct span){epochs->bytes, epochs->len});
    resp_add_copy(resp,
                  put->texts == NULL ? SPAN("") : (struct span){lines, texts_to_text(put->texts, lines)});
    for (size_t i = 0; i < setting_numbers; i++) {
        char value[SETTING_NUMBER_MAX];
        setting_format(&setting_list[i], setting_value(&put->settings, &setting_list[i]), value,
                       sizeof(value));
        resp_add(resp, span_of(setting_list[i].name));
        resp_add_copy(resp, span_of(value));
    }
}

static void add_call(struct resp *resp, const struct engine_call *call)
{
    switch (call->op) {
    case ENGINE_JOIN:
        add_join(resp, &call->join);
        break;
    case ENGINE_ENTER:
        add_enter(resp, &call->enter);
        break;
    case ENGINE_PUT:
        add_put(resp, &call->put, NULL);
        break;
    case ENGINE_ADVANCE:
        resp_add_number(resp, call->people);
        break;
    case ENGINE_FIGURES:
        resp_add_number(resp, call->texts != NULL);
        break;
    case ENGINE_STATUS:
    case ENGINE_HEARTBEAT:
    case ENGINE_LOOK:
    case ENGINE_LEAVE:
    case ENGINE_LEAVE_SOON:
    case ENGINE_SESSION_TOUCH:
    case ENGINE_SESSION_END:
        add_place(resp, &call->place);
        break;
    case ENGINE_SESSION_EXTEND:
        add_place(resp, &call->place);
        resp_add_number(resp, call->seconds);
        break;
    case ENGINE_SHOP:
    case ENGINE_SETTINGS:
    case ENGINE_ROOMS:
    case ENGINE_DELETE:
    case ENGINE_CLEAR:
        break;
    }
}

/* Those behind the ones that are listed already. */
static void add_page(struct resp *resp, const struct engine_list *list)
{
    uint32_t left = list->size - list->count;

    resp_add_number(resp, list->count);
    resp_add_number(resp, left < ASK_ROOMS_MAX ? left : ASK_ROOMS_MAX);
}

void ask_calls(const struct ask *ask, const struct engine_call *const *calls, uint32_t count)
{
    must(count > 0 && count <= RESP_CALLS_MAX && (count == 1 || ask_may_gather(calls[0]->op)));
    must(ask_has_script(calls[0]->op));
    if (calls[0]->op == ENGINE_ROOMS) {
        add_registry_head(ask, SCRIPT_ROOMS);
        add_page(ask->resp, &calls[0]->list);
        return;
    }
    add_head(ask, script_of[calls[0]->op].script, calls[0]->room);
    for (uint32_t i = 0; i < count; i++)
        add_call(ask->resp, calls[i]);
}

static void add_times(struct resp *resp, struct span what, uint64_t times)
{
    if (times == 0)
        return;
    resp_add_copy(resp, what);
    resp_add_number(resp, times);
}

static void add_seen(struct resp *resp, const struct shop_report *seen)
{
    add_times(resp, SPAN("failures"), seen->failures);
    add_times(resp, SPAN("ages_sec"), seen->ages_sec);
    for (int i = 0; i < SHOP_TIMES; i++) {
        char place[12];
        snprintf(place, sizeof(place), "%d", i);
        add_times(resp, span_of(place), seen->times[i]);
    }
}

void ask_chore(const struct ask *ask, const struct redis_chore *chore)
{
    switch (chore->kind) {
    case CHORE_TICK:
        add_head(ask, SCRIPT_TICK, chore->room);
        resp_add_number(ask->resp, chore->node);
        break;
    case CHORE_MAKE:
        add_head(ask, SCRIPT_PUT, chore->room);
        add_put(ask->resp, &(struct engine_put){.settings = *chore->settings, .texts = chore->texts},
                chore->epochs);
        break;
    case CHORE_REGISTER:
        add_registry_head(ask, SCRIPT_REGISTER);
        resp_add(ask->resp, chore->room);
        resp_add_number(ask->resp, chore->rooms_max);
        resp_add_number(ask->resp, chore->since_ms);
        break;
    case CHORE_UNREGISTER:
        add_registry_head(ask, SCRIPT_UNREGISTER);
        resp_add(ask->resp, chore->room);
        break;
    case CHORE_SHOP:
        add_head(ask, SCRIPT_SHOP, chore->room);
        resp_add_number(ask->resp, chore->shop->left_alone_ms);
        add_seen(ask->resp, chore->shop);
        break;
    }
}

void ask_follow(const struct ask *ask, struct span room, const struct follower *follower)
{
    add_head(ask, SCRIPT_FOLLOW, room);
    resp_add_number(ask->resp, follower->version);
    resp_add(ask->resp, (struct span){(const char *)follower->state, follower->len});
    resp_add_number(ask->resp, follower->rate_milli);
    add_seen(ask->resp, &follower->seen);
}

void ask_renew(const struct ask *ask, struct span room, struct span former, bool is_moved)
{
    add_head(ask, SCRIPT_RENEW, room);
    resp_add(ask->resp, former);
    resp_add_number(ask->resp, is_moved);
}
