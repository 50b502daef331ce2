/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_REDIS_REFUSAL_H
#define WEIR_REDIS_REFUSAL_H

#include "redis/address.h"

/*
 * What a server says no with, and what is to be done about it. Every refusal of the list means that the command did nothing, and
 * may be sent again.
 *
 * REFUSAL(word that the error begins with, what to do, what it means)
 */
#define REFUSAL_LIST(REFUSAL)                                                              \
    REFUSAL(MOVED, FOLLOW, "the slot is kept by another primary")                          \
    REFUSAL(ASK, ASK, "the slot is moving, and this key has moved already")                \
    REFUSAL(TRYAGAIN, WAIT, "the slot is moving, and only some of the keys have moved")    \
    REFUSAL(LOADING, WAIT, "the server is reading its data back")                          \
    REFUSAL(BUSY, WAIT, "a script has been running for too long")                          \
    REFUSAL(CLUSTERDOWN, LOOK, "the cluster has no primary for the slot")                  \
    REFUSAL(READONLY, LOOK, "the server is a replica now")                                 \
    REFUSAL(MASTERDOWN, LOOK, "the server is a replica, and has lost its primary")         \
    REFUSAL(NOSCRIPT, LOAD, "the server does not know the script")                         \
    REFUSAL(NOAUTH, LOGIN, "the server wants a password")                                  \
    REFUSAL(WRONGPASS, LOGIN, "the server does not take the password")                     \
    REFUSAL(NOPERM, OPERATOR, "the user may not do this")                                  \
    REFUSAL(DENIED, OPERATOR, "the server's protected mode lets nobody in")                \
    REFUSAL(OOM, OPERATOR, "the server's memory is used up")                               \
    REFUSAL(MISCONF, OPERATOR, "the server cannot save, and takes no writes until it can") \
    REFUSAL(NOREPLICAS, OPERATOR, "the server has too few replicas, and takes no writes")

enum refusal_deed {
    REFUSAL_FAILED =
        0, /* no refusal of the list: an error of the command itself, which may have done something */
    REFUSAL_FOLLOW,   /* send it to `address`, and look for the primaries again: the map is old */
    REFUSAL_ASK,      /* send ASKING and it to `address`, this once: the map is right */
    REFUSAL_WAIT,     /* send it again to the same server, a little later */
    REFUSAL_LOOK,     /* look for the primaries again, a little later, then send it to the right one */
    REFUSAL_LOAD,     /* send the whole script instead of its name */
    REFUSAL_LOGIN,    /* give this connection up; the next one reads the password anew */
    REFUSAL_OPERATOR, /* somebody has to do something; say so by name, and try again later */
};

struct refusal {
    enum refusal_deed deed;
    const char *word;       /* of the list, for logs and metrics; "ERR" for all else */
    const char *meaning;    /* the same for people */
    uint16_t slot;          /* of FOLLOW and ASK */
    struct address address; /* of FOLLOW and ASK */
};

/*
 * `text` is an error without its '-', and `asked` who sent it. A MOVED or ASK that makes no sense is a LOOK. What a script
 * stumbled over counts as what it is, if a server says it before a script's first write; Redis 6 wraps it into an ERR.
 */
struct refusal refusal_read(struct span text, const struct address *asked);

#endif
