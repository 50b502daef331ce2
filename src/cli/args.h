/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_CLI_ARGS_H
#define WEIR_CLI_ARGS_H

/*
 * The command line: words and options, in any order, `--name value` or `--name=value`; `--` ends the options.
 * One list of options for all commands: it is read before the command is known, so that `weir --json rooms` works too.
 *
 * OPTION(name, written, placeholder of its value or NULL, commands that take it, help)
 */
#define OPTION_LIST(OPTION)                                                                                \
    OPTION(CAPACITY, "capacity", "N", FOR_PLAN, "requests per second that the shop takes")                 \
    OPTION(REQUESTS, "requests", "N", FOR_PLAN, "requests of one visit")                                   \
    OPTION(VISIT, "visit", "SECONDS", FOR_PLAN, "how long a visit takes")                                  \
    OPTION(FAILURES, "failures", "SHARE", FOR_PLAN, "requests that fail and are sent again (default 0%)")  \
    OPTION(TARGET, "target", "SHARE", FOR_PLAN, "how full the shop should be (default 80%)")               \
    OPTION(EVERY, "every", "SECONDS", FOR_PLAN, "time between two batches (default 10)")                   \
    OPTION(ARRIVALS, "arrivals", "N", FOR_PLAN, "people expected: says how long until the last is called") \
    OPTION(POSITION, "position", "N", FOR_PLAN, "says how long the wait is at this position")              \
    OPTION(CAUTIOUS, "cautious", NULL, FOR_PLAN, "round down to figures that a person keeps in mind")      \
    OPTION(ROOM, "room", "ID", FOR_PLAN | FOR_JOURNAL | FOR_PASS | FOR_REDIS,                              \
           "the room: of the settings to paste (default shop), of the records to show, of the pass, or "   \
           "ID,ID… beside those that the store knows")                                                     \
    OPTION(REPLICAS, "replicas", "N", FOR_REDIS, "replicas= of weir_store, for the warnings")              \
    OPTION(FROM, "from", "SEQUENCE", FOR_JOURNAL, "show records from this number on, and no snapshot")     \
    OPTION(LIMIT, "limit", "N", FOR_JOURNAL, "show at most so many records")                               \
    OPTION(TIER, "tier", "N", FOR_EXPORT | FOR_PASS, "1 or 2: whose passes (mint: default 2)")             \
    OPTION(ALG, "alg", "hs256|eddsa", FOR_EXPORT | FOR_PASS, "what signs passes (default hs256)")          \
    OPTION(ID, "id", "K", FOR_EXPORT | FOR_MINT, "the key (mint: default the one that signs)")             \
    OPTION(SECRET, "secret", NULL, FOR_EXPORT, "export: give the HS256 key away, which makes passes too")  \
    OPTION(NEXT, "next", NULL, FOR_ROTATE, "rotate: the new key verifies, and does not sign yet")          \
    OPTION(DROP_OLDEST, "drop-oldest", NULL, FOR_ROTATE, "rotate: the last key ends, and all it signed")   \
    OPTION(UID, "uid", "WHO", FOR_PASS, "whose pass it is (mint: default somebody anonymous)")             \
    OPTION(TTL, "ttl", "SECONDS", FOR_MINT, "mint: how long it is valid (default 3600)")                   \
    OPTION(KEY_FILE, "key-file", "PATH", FOR_PASS, "the file of weir_pass_key, for --tier")                \
    OPTION(ONCE, "once", NULL, FOR_TOP, "print one frame and end")                                         \
    OPTION(URL, "url", "URL", FOR_SERVER, "the server (default $WEIR_URL, else http://127.0.0.1:8000)")    \
    OPTION(TOKEN_FILE, "token-file", "PATH", FOR_SERVER,                                                   \
           "file with `NAME TOKEN` (default $WEIR_TOKEN_FILE)")                                            \
    OPTION(JSON, "json", NULL, FOR_ALL, "print JSON for programs")                                         \
    OPTION(HELP, "help", NULL, FOR_ALL, "say how it is used")                                              \
    OPTION(VERSION, "version", NULL, FOR_NONE, "say which version this is")

#include <stdbool.h>
#include <stddef.h>

enum option {
#define OPTION_ENUM(name, written, placeholder, commands, help) OPTION_##name,
    OPTION_LIST(OPTION_ENUM)
#undef OPTION_ENUM
        OPTION_COUNT
};

/* Who takes an option: one bit a kind of command. */
enum option_for {
    FOR_NONE = 0,
    FOR_PLAN = 1,
    FOR_TOP = 2,
    FOR_SERVER = 4,
    FOR_JOURNAL = 8,
    FOR_SHOW = 16,
    FOR_EXPORT = 32,
    FOR_ROTATE = 64,
    FOR_KEY = FOR_SHOW | FOR_EXPORT | FOR_ROTATE,
    FOR_MINT = 128,
    FOR_CHECK = 256,
    FOR_PASS = FOR_MINT | FOR_CHECK,
    FOR_REDIS = 512,
    FOR_ALL = FOR_PLAN | FOR_TOP | FOR_SERVER | FOR_JOURNAL | FOR_KEY | FOR_PASS | FOR_REDIS,
};

struct option_info {
    const char *written, *placeholder;
    unsigned commands;
    const char *help;
};

extern const struct option_info option_list[OPTION_COUNT];

/* Words of the longest sensible line (a `set` of every setting), with room to spare. */
#define ARGS_WORDS_MAX 128

struct args {
    const char *words[ARGS_WORDS_MAX]; /* the command first */
    size_t count;
    const char *values[OPTION_COUNT]; /* NULL = not given; an option without value has "" */
};

/* False when the line is wrong, with one sentence in `reason`. What is read points into argv. */
bool args_read(int argc, char *const argv[], struct args *args, char *reason, size_t reason_size);

/* False, with `reason`, when an option was given that these commands (bits of option_for) do not take. */
bool args_suit(const struct args *args, unsigned commands, char *reason, size_t reason_size);

/* The same for a command of several verbs, by what its second word takes. */
bool args_suit_verb(const struct args *args, unsigned verbs, char *reason, size_t reason_size);

bool args_has(const struct args *args, enum option option);

#endif
