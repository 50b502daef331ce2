/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_SCRIPT_H
#define WEIR_REDIS_SCRIPT_H

/*
 * The scripts of lua/, one per atomic operation. Each is known to a server by the SHA-1 of its text; a server that does not know
 * it says NOSCRIPT, and is given the text.
 */

#include "base/span.h"

#define SCRIPT_LIST(SCRIPT)                \
    SCRIPT(ADVANCE, advance)               \
    SCRIPT(CLEAR, clear)                   \
    SCRIPT(DELETE, delete)                 \
    SCRIPT(ENTER, enter)                   \
    SCRIPT(FIGURES, figures)               \
    SCRIPT(FOLLOW, follow)                 \
    SCRIPT(HEARTBEAT, heartbeat)           \
    SCRIPT(JOIN, join)                     \
    SCRIPT(LEAVE, leave)                   \
    SCRIPT(LEAVE_SOON, leave_soon)         \
    SCRIPT(LOOK, look)                     \
    SCRIPT(PUT, put)                       \
    SCRIPT(REGISTER, register)             \
    SCRIPT(RENEW, renew)                   \
    SCRIPT(ROOMS, rooms)                   \
    SCRIPT(SESSION_END, session_end)       \
    SCRIPT(SESSION_EXTEND, session_extend) \
    SCRIPT(SESSION_TOUCH, session_touch)   \
    SCRIPT(SETTINGS, settings)             \
    SCRIPT(SHOP, shop)                     \
    SCRIPT(STATUS, status)                 \
    SCRIPT(TICK, tick)                     \
    SCRIPT(UNREGISTER, unregister)

enum script {
#define SCRIPT_ENUM(name, file) SCRIPT_##name,
    SCRIPT_LIST(SCRIPT_ENUM)
#undef SCRIPT_ENUM
        SCRIPT_COUNT
};

#define SCRIPT_SHA_LEN 40

/* As lower-case hexadecimal digits. To be made once: it hashes all of them. */
struct script_names {
    char sha[SCRIPT_COUNT][SCRIPT_SHA_LEN];
};

void script_names_init(struct script_names *names);

/* The name of its file, without the end. */
const char *script_file(enum script script);
struct span script_text(enum script script);

#endif
