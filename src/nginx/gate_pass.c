/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A token counts as presented only if we signed it: a shopper's login token in Authorization is nothing to the gate and goes to
 * the shop untouched, and so does a neighbour's junk under our cookie's name. Of those that count several may come at once (a
 * header and a cookie, a lobby's pass and its hall's), and the one that is tried first may belong to a session that is over: so
 * the few best are kept, and the gate asks for one after the other.
 *
 * Two passes of different people for the same room are none. The shop might look at the one that we did not.
 */
#include "nginx/gate_pass.h"

#include "nginx/gate_body.h"
#include "nginx/gate_seen.h"
#include "nginx/gate_state.h"
#include "nginx/identity.h"
#include "nginx/pass_cookie.h"
#include "nginx/request.h"

static bool headers_try(ngx_http_request_t *r, struct gate *gate);
static bool cookies_try(ngx_http_request_t *r, struct gate *gate);
static bool client_cookies_try(ngx_http_request_t *r, struct gate *gate);
static bool given_try(ngx_http_request_t *r, struct gate *gate);
static bool token_try(ngx_http_request_t *r, struct gate *gate, struct span token);
static bool token_read(ngx_http_request_t *r, struct gate *gate, struct span token, struct pass_claims *out);
static bool signature_is_good(ngx_http_request_t *r, struct gate_passes *passes, struct span token,
                              struct pass_claims *out);
static bool costs_a_check(enum pass_fault fault);
static bool is_of_now(const struct pass_claims *pass);
static bool is_theirs(ngx_http_request_t *r, const struct pass_claims *pass);
static bool passes_add(struct gate_passes *passes, const struct pass_claims *pass);
static bool is_better(const struct pass_claims *a, const struct pass_claims *b);

void gate_passes_find(ngx_http_request_t *r, struct gate *gate)
{
    gate->passes.count = gate->passes.wasted = 0;
    gate->passes.are_disputed = !headers_try(r, gate) || !cookies_try(r, gate) || !given_try(r, gate) ||
                                !token_try(r, gate, gate_body_field(r, gate->conf));
    if (gate->passes.are_disputed)
        gate->passes.count = 0;
}

/* This and the next five: false if two passes contradict each other. */
static bool headers_try(ngx_http_request_t *r, struct gate *gate)
{
    const struct sent *sent = &request_of(r)->sent;
    for (size_t i = 0; i < sent->pass_count; i++)
        if (!token_try(r, gate, sent->passes[i]))
            return false;
    return token_try(r, gate, request_bearer(r));
}

static bool cookies_try(ngx_http_request_t *r, struct gate *gate)
{
    const struct request *request = request_of(r);
    char memory[PASS_COOKIE_NAME_MAX];
    struct cookie_walk walk = {0};
    struct span cookie;
    if (gate->conf->room_count == 0)
        while (request_cookie_next_of(request, SPAN(PASS_COOKIE_PREFIX), &walk, &cookie))
            if (!token_try(r, gate, cookie))
                return false;
    for (size_t i = 0; i < gate->room_count; i++) {
        struct span name = pass_cookie_name(gate->rooms[i], memory);
        walk = (struct cookie_walk){0};
        while (request_cookie_next(request, name, &walk, &cookie))
            if (!token_try(r, gate, cookie))
                return false;
    }
    return client_cookies_try(r, gate);
}

/* What clients of a lobby and of a hall set themselves, for whichever event they came to last. */
static bool client_cookies_try(ngx_http_request_t *r, struct gate *gate)
{
    static const struct span names[] = {SPAN("urr-entry-token"), SPAN("urr-vwr-token")};
    struct span cookie;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct cookie_walk walk = {0};
        while (request_cookie_next(request_of(r), names[i], &walk, &cookie))
            if (!token_try(r, gate, cookie))
                return false;
    }
    return true;
}

/* The client has it only when it has the answer; but error_page may have sent the request here after another gate. */
static bool given_try(ngx_http_request_t *r, struct gate *gate)
{
    const struct gate_note *note = gate_note_peek(r);
    for (size_t i = 0; note != NULL && i < note->given_count; i++)
        if (!token_try(r, gate, note->given[i].token))
            return false;
    return true;
}

static bool token_try(ngx_http_request_t *r, struct gate *gate, struct span token)
{
    struct pass_claims pass;
    return !token_read(r, gate, token, &pass) || passes_add(&gate->passes, &pass);
}

static bool token_read(ngx_http_request_t *r, struct gate *gate, struct span token, struct pass_claims *out)
{
    if (token.len == 0 || token.len > PASS_TOKEN_MAX || !signature_is_good(r, &gate->passes, token, out))
        return false;
    if (out->tier < gate->conf->tier || !is_of_now(out))
        return false;
    /* One that was minted without a ticket has no session, and is for tests of services. */
    return pass_has_place(out) && gate_has_room(gate, out->room) &&
           (gate->is_for_anybody || is_theirs(r, out));
}

static bool signature_is_good(ngx_http_request_t *r, struct gate_passes *passes, struct span token,
                              struct pass_claims *out)
{
    if (seen_find(r->pool, token, out))
        return true;
    if (passes->wasted == GATE_WASTED_MAX)
        return false;
    /* Usually a few hundred bytes: room for the longest pass would be a pool block of its own. */
    size_t size = PASS_SCRATCH(token.len);
    char *scratch = ngx_pnalloc(r->pool, size);
    if (scratch == NULL)
        return false;
    enum pass_fault fault = PASS_FAULT_TIER;
    for (int tier = 2; tier >= 1 && fault == PASS_FAULT_TIER; tier--)
        fault = pass_judge(conf_main(r)->keys, conf_main(r)->verified, tier, token, (uint64_t)ngx_time(), out,
                           scratch, size);
    if (fault == PASS_FAULT_NONE)
        seen_add(token, out);
    passes->wasted += costs_a_check(fault);
    return fault == PASS_FAULT_NONE;
}

/* Its header was ours, so the signature was looked at, and for nothing. */
static bool costs_a_check(enum pass_fault fault)
{
    return fault == PASS_FAULT_SIGNATURE || fault == PASS_FAULT_CLAIMS || fault == PASS_FAULT_EARLY ||
           fault == PASS_FAULT_EXPIRED;
}

/* What was verified before was of its time then. */
static bool is_of_now(const struct pass_claims *pass)
{
    uint64_t now = (uint64_t)ngx_time();
    return now < pass->exp_sec && pass->iat_sec <= now + PASS_SKEW_SEC;
}

bool gate_has_room(const struct gate *gate, struct span room)
{
    for (size_t i = 0; i < gate->room_count; i++)
        if (span_equal(gate->rooms[i], room))
            return true;
    return gate->conf->room_count == 0;
}

/* Where somebody is vouched for, the pass must be theirs; where weir_user is on and nobody is, it must be an anonymous one. */
static bool is_theirs(ngx_http_request_t *r, const struct pass_claims *pass)
{
    struct span identity = identity_of(r);
    if (identity.data != NULL)
        return span_equal(identity, pass->uid);
    return conf_loc(r)->identity == NULL || identity_is_anonymous(pass);
}

static bool passes_add(struct gate_passes *passes, const struct pass_claims *pass)
{
    size_t at = passes->count;
    for (size_t i = 0; i < passes->count; i++) {
        const struct pass_claims *other = &passes->of[i];
        if (!span_equal(other->room, pass->room))
            continue;
        if (!holder_equal(&other->holder, &pass->holder))
            return false;
        if (other->epoch == pass->epoch && other->count == pass->count)
            return true;
    }
    if (at == GATE_PASSES_MAX) {
        if (!is_better(pass, &passes->of[--at]))
            return true;
    } else
        passes->count++;
    for (; at > 0 && is_better(pass, &passes->of[at - 1]); at--)
        passes->of[at] = passes->of[at - 1];
    passes->of[at] = *pass;
    return true;
}

static bool is_better(const struct pass_claims *a, const struct pass_claims *b)
{
    return a->tier != b->tier ? a->tier > b->tier : a->iat_sec > b->iat_sec;
}
