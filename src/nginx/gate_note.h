/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_GATE_NOTE_H
#define WEIR_NGINX_GATE_NOTE_H

/*
 * What is known of a request whatever location it is sent on to. nginx forgets what modules keep with a request when it
 * redirects it (error_page, try_files, X-Accel-Redirect); this lasts as long as the request.
 */

#include "nginx/conf.h"
#include "nginx/identity.h"
#include "nginx/pass_give.h"

/* OUTCOME(name, word, whether the request goes on, what it means) */
#define GATE_OUTCOME_LIST(OUTCOME)                                                                          \
    OUTCOME(PASSED, "passed", true, "with a living pass")                                                   \
    OUTCOME(ADMITTED, "admitted", true, "joined, called and let in with this very request")                 \
    OUTCOME(OPEN, "open", true, "without one: the room is in mode `open`")                                  \
    OUTCOME(BYPASSED, "bypassed", true, "without one: weir_bypass lets them by")                            \
    OUTCOME(PREFLIGHT, "preflight", true, "a CORS preflight, which has none")                               \
    OUTCOME(SIGNED, "signed", true, "with a pass whose session could not be asked for: the engine is away") \
    OUTCOME(UNGUARDED, "unguarded", true, "without one: the engine is away, and weir_when_down says open")  \
    OUTCOME(REFUSED, "refused", false, "no pass, and no way in now")                                        \
    OUTCOME(UNAVAILABLE, "unavailable", false, "no pass, and the engine is away")

enum gate_outcome {
    GATE_UNDECIDED,
#define GATE_OUTCOME_ENUM(name, word, goes_on, help) GATE_##name,
    GATE_OUTCOME_LIST(GATE_OUTCOME_ENUM)
#undef GATE_OUTCOME_ENUM
        GATE_OUTCOME_COUNT
};

#define GATE_GIVEN_MAX 4

struct gate_note {
    enum gate_outcome outcome; /* of the last gate it came to */
    bool has_visitor;          /* somebody who had no cookie was made one */
    struct visitor visitor;
    struct pass_given
        *given; /* passes that go out with the answer; place for GATE_GIVEN_MAX once there is one */
    size_t given_count;
    struct {
        bool is_on, redirects;
        ngx_uint_t
            method;   /* of the request that is asked about: NGX_HTTP_GET, HEAD, POST, OPTIONS or UNKNOWN */
    } verify;         /* weir_verify: it is only a question */
    bool has_session; /* of the pass that it went on with */
    struct pass_claims session;
};

/* Of the main request. Made on first use; NULL: out of memory. */
struct gate_note *gate_note_of(ngx_http_request_t *r);

/* The same, or NULL if it came to no gate. */
struct gate_note *gate_note_peek(ngx_http_request_t *r);

bool gate_goes_on(enum gate_outcome outcome);
struct span gate_outcome_word(enum gate_outcome outcome);

#endif
