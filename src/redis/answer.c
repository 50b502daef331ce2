/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An answer is a list whose first element is OK or the code of an error; but an OK that brings a standing is mostly the standing
 * alone, one string, for that is what nearly all replies are made of. The reply to calls that can be asked together is OK and
 * a list of their answers, or an error that holds for all of them; the reply to any other is its answer. Lists of numbers are read
 * by position; the order is that in which the scripts return them.
 */

#include "redis/answer.h"

#include "base/base64url.h"
#include "base/decimal.h"
#include "base/little.h"

#include "redis/ask.h"
#include "redis/peer.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define UNAVAILABLE_RETRY_SEC 5
#define TIER_MAX              2
#define HOLDER_LEN            BASE64URL_LEN(sizeof(struct holder))
#define STANDING_LEN          (HOLDER_LEN + 12 * sizeof(uint32_t) + 7)
#define TICK_FOLLOW           8 /* the element of a tick that tells of the shop */

static bool is_text(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
}

static struct span text_of(const redisReply *reply)
{
    return (struct span){reply->str, (size_t)reply->len};
}

bool answer_is_noscript(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

/* ---- lists ---- */

/* The element of a list, or NULL if it has none there. */
static const redisReply *element(const redisReply *reply, size_t i)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements ? reply->element[i] : NULL;
}

/* A list of numbers being read. What is wrong with it is noted, and everything behind that is 0. */
struct numbers {
    const redisReply *list;
    size_t at;
    bool is_bad;
};

static uint64_t take(struct numbers *numbers, uint64_t most)
{
    const redisReply *number = element(numbers->list, numbers->at++);

    if (number == NULL || number->type != REDIS_REPLY_INTEGER || number->integer < 0 ||
        (uint64_t)number->integer > most)
        numbers->is_bad = true;
    return numbers->is_bad ? 0 : (uint64_t)number->integer;
}

static uint32_t take32(struct numbers *numbers)
{
    return (uint32_t)take(numbers, UINT32_MAX);
}

static bool take_flag(struct numbers *numbers)
{
    return take(numbers, 1) == 1;
}

static bool is_whole(const struct numbers *numbers)
{
    return !numbers->is_bad && numbers->at == numbers->list->elements;
}

bool answer_is_other_primary(const redisReply *reply, struct span *former)
{
    const redisReply *word = reply == NULL ? NULL : element(reply, 0);
    const redisReply *id = word == NULL ? NULL : element(reply, 1);

    if (id == NULL || !is_text(word) || !is_text(id) || !span_equal(text_of(word), SPAN("OTHER_PRIMARY")))
        return false;
    *former = text_of(id);
    return former->len <= PEER_RUN_ID_MAX && memchr(former->data, '\0', former->len) == NULL;
}

/* ---- what calls answer ---- */

/* A key may bring the ticket of another holder than the one who asks: somebody without a cookie is another one each time. */
static bool read_holder(struct span text, struct holder *holder)
{
    size_t len;

    return base64url_decode(text, holder->id, sizeof(holder->id), &len) && len == sizeof(holder->id);
}

static uint32_t next32(const char **at)
{
    *at += 4;
    return little_get32(*at - 4);
}

static uint8_t next8(const char **at)
{
    return (uint8_t) * (*at)++;
}

/* One string, as lua/lib/standing.lua packs it. */
static bool read_standing(const redisReply *text, struct standing *standing)
{
    const char *at = text->str;

    *standing = (struct standing){0};
    if (!is_text(text) || text->len != STANDING_LEN ||
        !read_holder((struct span){at, HOLDER_LEN}, &standing->place.holder))
        return false;
    at += HOLDER_LEN;
    standing->place.epoch = next32(&at);
    standing->place.count = next32(&at);
    uint8_t state = next8(&at), is_trusted = next8(&at), is_ready = next8(&at), is_repeat = next8(&at);
    standing->key_id = next8(&at);
    standing->tier = next8(&at);
    standing->pass_key_id = next8(&at);
    standing->issued_sec = next32(&at);
    standing->position = next32(&at);
    standing->waited_sec = next32(&at);
    standing->eta_sec = next32(&at);
    standing->eta_low_sec = next32(&at);
    standing->eta_high_sec = next32(&at);
    standing->next_poll_sec = next32(&at);
    standing->iat_sec = next32(&at);
    standing->pass_life_sec = next32(&at);
    standing->arrive_ttl_sec = next32(&at);
    standing->state = (enum ticket_state)state;
    standing->is_trusted = is_trusted == 1;
    standing->is_ready = is_ready == 1;
    standing->is_repeat = is_repeat == 1;
    return state <= TICKET_DONE && is_trusted <= 1 && is_ready <= 1 && is_repeat <= 1;
}

static bool read_figures(const redisReply *list, struct figures *figures, uint64_t *left_alone_ms)
{
    struct numbers in = {.list = list};
    uint64_t alive = 0;

    *figures = (struct figures){.epoch = take32(&in)};
    figures->clock_ms = take(&in, INT64_MAX);
    for (int state = TICKET_WAITING; state < TICKET_DONE; state++)
        alive += figures->in_state[state] = take32(&in);
    figures->issued = take(&in, INT64_MAX);
    figures->in_state[TICKET_DONE] = figures->issued - alive;
    figures->calls = take(&in, INT64_MAX);
    figures->refunds = take(&in, INT64_MAX);
    figures->keys_dropped = take(&in, INT64_MAX);
    figures->last_called = take32(&in);
    figures->joined_milli = take32(&in);
    figures->called_milli = take32(&in);
    figures->newcomer_eta_sec = take32(&in);
    figures->eta_checked = take(&in, INT64_MAX);
    figures->eta_kept = take(&in, INT64_MAX);
    figures->rate_milli = take(&in, INT64_MAX);
    figures->settings_version = take32(&in);
    figures->is_settings_from_api = take_flag(&in);
    *left_alone_ms = take(&in, INT64_MAX);
    return is_whole(&in) && alive <= figures->issued;
}

/* Of names that this version does not know as numbers nothing is taken: another version may have put them there. */
static bool read_settings(const redisReply *list, struct settings *settings)
{
    char text[SETTINGS_TEXT_MAX];
    size_t used = 0;

    if (list == NULL || list->type != REDIS_REPLY_ARRAY || list->elements % 2 != 0)
        return false;
    for (size_t i = 0; i < list->elements; i += 2) {
        const redisReply *name = list->element[i], *value = list->element[i + 1];
        if (!is_text(name) || !is_text(value))
            return false;
        const struct setting_info *info = setting_find(text_of(name));
        if (info == NULL || setting_is_text(info))
            continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%s\n", name->str, value->str);
        if (used >= sizeof(text))
            return false;
    }
    return settings_from_text(settings, NULL, (struct span){text, used});
}

/* A room that was never given any has no lines. */
static bool read_texts(const redisReply *lines, struct texts *texts)
{
    return texts == NULL || (lines != NULL && is_text(lines) && texts_from_text(texts, text_of(lines)));
}

/* Figures, the settings that they follow from, and what is known of the shop. */
static bool read_all_figures(const redisReply *reply, struct engine_call *call)
{
    const redisReply *list = element(reply, 1), *shop = element(reply, 3);
    uint64_t left_alone_ms;

    if (list == NULL || shop == NULL || !is_text(shop) ||
        !read_figures(list, &call->figures, &left_alone_ms) ||
        !read_settings(element(reply, 2), &call->settings))
        return false;
    follower_tell(text_of(shop), &call->settings, left_alone_ms, &call->figures);
    return true;
}

/* Behind those that are listed already, if the caller has place for them. */
static bool read_rooms(const redisReply *names, struct engine_list *list)
{
    if (names == NULL || names->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < names->elements && list->count < list->size; i++) {
        const redisReply *name = names->element[i];
        if (!is_text(name) || !room_id_is_valid(text_of(name)))
            return false;
        struct room_id *id = &list->ids[list->count++];
        id->len = (uint32_t)name->len;
        memcpy(id->name, name->str, id->len);
    }
    return true;
}

/* What a pass can be signed for. */
static bool is_sound(const struct standing *standing)
{
    return standing->state >= TICKET_WAITING && standing->state < TICKET_DONE && standing->tier >= 1 &&
           standing->tier <= TIER_MAX;
}

/* Whether a NOT_READY or an OK brings what this kind of call answers. */
static bool read_answer(const redisReply *reply, struct engine_call *call)
{
    const redisReply *first = is_text(reply) ? reply : element(reply, 1);
    struct numbers in = {.list = reply, .at = 1};

    switch (call->op) {
    case ENGINE_JOIN:
    case ENGINE_STATUS:
    case ENGINE_HEARTBEAT:
    case ENGINE_LOOK:
    case ENGINE_ENTER:
        return first != NULL && read_standing(first, &call->standing) && is_sound(&call->standing);
    case ENGINE_FIGURES:
        return read_all_figures(reply, call) && read_texts(element(reply, 4), call->texts);
    case ENGINE_ROOMS:
        return read_rooms(first, &call->list);
    case ENGINE_SETTINGS:
        return read_settings(first, &call->settings);
    case ENGINE_ADVANCE:
    case ENGINE_CLEAR:
        call->people = take32(&in);
        return is_whole(&in);
    default:
        return true;
    }
}

/* ---- errors ---- */

static enum error error_of(const redisReply *reply)
{
    const redisReply *word = reply == NULL ? NULL : element(reply, 0);

    if (word == NULL || !is_text(word))
        return ERROR_ENGINE_UNAVAILABLE;
    if (span_equal(text_of(word), SPAN("OK")))
        return ERROR_NONE;
    for (int i = ERROR_NONE + 1; i < ERROR_COUNT; i++)
        if (span_equal(text_of(word), span_of(error_info((enum error)i)->code)))
            return (enum error)i;
    return ERROR_ENGINE_UNAVAILABLE;
}

static void refuse(struct engine_call *call, enum error error)
{
    call->error = error;
    call->retry_after_sec = error == ERROR_ENGINE_UNAVAILABLE ? UNAVAILABLE_RETRY_SEC : 0;
}

static void answer_refusal(const redisReply *reply, enum error error, struct engine_call *call)
{
    struct numbers in = {.list = reply, .at = 1};

    refuse(call, error);
    if (call->op == ENGINE_JOIN && reply != NULL && element(reply, 1) != NULL)
        call->retry_after_sec = take32(&in);
    if (in.is_bad)
        refuse(call, ERROR_ENGINE_UNAVAILABLE);
}

/* Alone, without the word before it. */
static bool is_standing(const redisReply *reply, const struct engine_call *call)
{
    return reply != NULL && is_text(reply) && reply->len == STANDING_LEN && call->op <= ENGINE_ENTER;
}

static void answer_one(const redisReply *reply, struct engine_call *call)
{
    enum error error = is_standing(reply, call) ? ERROR_NONE : error_of(reply);

    if (error != ERROR_NONE && error != ERROR_NOT_READY)
        answer_refusal(reply, error, call);
    else
        refuse(call, read_answer(reply, call) ? error : ERROR_ENGINE_UNAVAILABLE);
}

bool answer_is_renewed(const redisReply *reply)
{
    enum error error = error_of(reply);

    return error == ERROR_NONE || error == ERROR_ROOM_NOT_FOUND;
}

void answer_calls(const redisReply *reply, struct engine_call *const *calls, uint32_t count)
{
    bool is_list = ask_may_gather(calls[0]->op) && error_of(reply) == ERROR_NONE;

    for (uint32_t i = 0; i < count; i++)
        answer_one(is_list ? element(reply, i + 1) : reply, calls[i]);
}

/* What was in mind stays if anything is wrong with the list. */
static void take_epochs(struct numbers *in, const redisReply *text, struct redis_epochs *epochs)
{
    if (text == NULL || !is_text(text) || text_of(text).len > CHORE_EPOCHS_MAX)
        in->is_bad = true;
    if (!is_whole(in) || epochs == NULL)
        return;
    epochs->len = (uint32_t)text_of(text).len;
    memcpy(epochs->bytes, text_of(text).data, epochs->len);
}

/* How often something was seen of the shop. Of what this version cannot read nothing is taken. */
static bool read_seen(const redisReply *list, struct shop_report *seen)
{
    if (list == NULL || list->type != REDIS_REPLY_ARRAY || list->elements % 2 != 0)
        return false;
    for (size_t i = 0; i < list->elements; i += 2) {
        const redisReply *what = list->element[i], *often = list->element[i + 1];
        uint64_t times, place;
        if (!is_text(what) || !is_text(often))
            return false;
        if (!decimal_read(text_of(often), 0, &times))
            continue;
        uint32_t capped = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX;
        if (span_equal(text_of(what), SPAN("failures")))
            seen->failures = capped;
        else if (span_equal(text_of(what), SPAN("ages_sec")))
            seen->ages_sec = times;
        else if (decimal_read(text_of(what), 0, &place) && place < SHOP_TIMES)
            seen->times[place] = capped;
    }
    return true;
}

/* The list of lua/lib/follow.lua. */
static bool read_follow(const redisReply *list, struct follower *follower)
{
    struct numbers in = {.list = list};

    *follower = (struct follower){.version = take32(&in)};
    follower->clock_ms = take(&in, INT64_MAX);
    follower->calls = take(&in, INT64_MAX);
    follower->until_ms = take(&in, INT64_MAX);
    follower->rate_milli = take32(&in);
    follower->bounds = settings_default();
    follower->bounds.pace = PACE_AUTO;
    follower->bounds.rate_min_milli = take32(&in);
    follower->bounds.rate_max_milli = take32(&in);
    follower->bounds.shop_target_ms = take32(&in);
    const redisReply *state = element(list, in.at++);
    if (state == NULL || !is_text(state) || !read_seen(element(list, in.at++), &follower->seen))
        return false;
    follower->len = text_of(state).len == FOLLOWER_BYTES ? FOLLOWER_BYTES : 0;
    memcpy(follower->state, state->str, follower->len);
    return is_whole(&in);
}

static bool is_empty_list(const redisReply *list)
{
    return list->type == REDIS_REPLY_ARRAY && list->elements == 0;
}

bool answer_follow(const redisReply *reply, struct follower *follower)
{
    const redisReply *list = element(reply, TICK_FOLLOW);

    return list != NULL && !is_empty_list(list) && read_follow(list, follower);
}

static void take_follow(struct numbers *in)
{
    const redisReply *list = element(in->list, in->at++);
    struct follower follower;

    if (list == NULL || !(is_empty_list(list) || read_follow(list, &follower)))
        in->is_bad = true;
}

static void read_tick(struct numbers *in, struct redis_chore *chore)
{
    chore->wait_ms = (uint32_t)take(in, CHORE_LEASE_MS);
    chore->clock_ms = take(in, INT64_MAX);
    chore->called = take32(in);
    chore->is_behind = take_flag(in);
    chore->is_at_rest = take_flag(in);
    chore->is_empty = take_flag(in);
    const redisReply *epochs = element(in->list, in->at++);
    take_follow(in);
    take_epochs(in, epochs, chore->epochs);
}

static bool read_chore(const redisReply *reply, struct redis_chore *chore)
{
    struct numbers in = {.list = reply, .at = 1};

    if (chore->kind == CHORE_TICK)
        read_tick(&in, chore);
    return is_whole(&in);
}

void answer_chore(const redisReply *reply, struct redis_chore *chore)
{
    chore->error = error_of(reply);
    if (chore->kind == CHORE_MAKE && chore->error == ERROR_CONFLICT)
        chore->error = ERROR_NONE; /* another node was first */
    else if (chore->error == ERROR_NONE && !read_chore(reply, chore))
        chore->error = ERROR_ENGINE_UNAVAILABLE;
}
