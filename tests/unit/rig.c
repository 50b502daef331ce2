/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM_PAGE  1
#define FIRST_PAGE (ROOM_PAGE + ROOM_BYTES / PAGE_BYTES)

const struct standing no_standing;

void *shared_new(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(at != MAP_FAILED);
    return at;
}

void shared_free(void *at, size_t bytes)
{
    assert_int_equal(munmap(at, bytes), 0);
}

struct rig rig_new(uint32_t pages, const struct settings *settings)
{
    struct settings defaults = settings_default();
    struct rig rig = {.bytes = (size_t)(FIRST_PAGE + pages) * PAGE_BYTES};

    rig.base = shared_new(rig.bytes);
    rig.room = room_init(rig.base + ROOM_PAGE * PAGE_BYTES, rig.base, SPAN("sale"), 7,
                         settings == NULL ? &defaults : settings, NULL);
    struct memory *memory = room_memory(rig.room);
    for (uint32_t page = pages; page > 0; page--) {
        memory_give(memory, FIRST_PAGE + page - 1, memory);
        memory_commit(memory);
    }
    return rig;
}

void rig_free(struct rig *rig)
{
    shared_free(rig->base, rig->bytes);
}

struct rig rig_at(const struct rig *rig, unsigned char *copy)
{
    struct rig there = {copy, rig->bytes, (struct room *)(copy + ((unsigned char *)rig->room - rig->base))};

    room_memory(there.room)->base = copy;
    return there;
}

unsigned char *image_of(const unsigned char *base, size_t bytes, const struct memory *memory)
{
    unsigned char *image = malloc(bytes);

    assert_non_null(image);
    memcpy(image, base, bytes);
    struct memory *own = (struct memory *)(image + ((const unsigned char *)memory - base));
    for (page_ref page = own->spare; page != 0;) {
        page_ref next;
        memcpy(&next, image + (size_t)page * PAGE_BYTES, sizeof(next));
        memset(image + (size_t)page * PAGE_BYTES + sizeof(next), 0, PAGE_BYTES - sizeof(next));
        page = next;
    }
    own->base = NULL;
    own->has_freed = false;
    own->undo_used = 0;
    memset(own->undo, 0, sizeof(own->undo));
    return image;
}

uint64_t dice_roll(struct dice *dice)
{
    uint64_t z = (dice->state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

uint32_t dice_below(struct dice *dice, uint32_t limit)
{
    return (uint32_t)((dice_roll(dice) >> 32) * limit >> 32);
}

struct holder holder_of(uint64_t who)
{
    struct dice dice = {who};
    uint64_t words[2] = {dice_roll(&dice), dice_roll(&dice)};
    struct holder holder;

    memcpy(holder.id, words, sizeof(holder.id));
    return holder;
}

struct request_key key_of(uint64_t key, uint64_t body)
{
    return (struct request_key){true, holder_of(key ^ 0x6b6579), body};
}

static enum error join_with(struct rig *rig, uint64_t who, struct request_key request,
                            struct standing *standing)
{
    struct join join = {.holder = holder_of(who), .key_id = 3, .wall_sec = 1700000000, .request = request};
    uint32_t retry_after_sec;
    enum error error = room_join(rig->room, &join, standing, &retry_after_sec);

    assert_true((retry_after_sec > 0) ==
                (error == ERROR_QUEUE_FULL || error == ERROR_WAIT_TOO_LONG || error == ERROR_ROOM_CLOSED));
    return error;
}

enum error rig_join(struct rig *rig, uint64_t who, struct standing *standing)
{
    return join_with(rig, who, (struct request_key){0}, standing);
}

enum error rig_join_by_key(struct rig *rig, uint64_t who, uint64_t key, uint64_t body,
                           struct standing *standing)
{
    return join_with(rig, who, key_of(key, body), standing);
}

enum error rig_enter(struct rig *rig, const struct place *place, struct standing *standing)
{
    struct enter enter = {.place = *place, .key_id = 4, .wall_sec = 1700000100};

    return room_enter(rig->room, &enter, standing);
}

struct place rig_place(struct rig *rig, uint64_t who)
{
    struct standing standing;

    assert_int_equal(rig_join(rig, who, &standing), ERROR_NONE);
    return standing.place;
}

struct standing rig_poll(struct rig *rig, const struct place *place)
{
    struct standing standing;

    assert_int_equal(room_status(rig->room, place, &standing), ERROR_NONE);
    return standing;
}

enum ticket_state rig_state(const struct rig *rig, const struct place *place)
{
    const struct ticket *ticket = line_find(&rig->room->line, &rig->room->memory, place->count);

    return ticket == NULL ? TICKET_DONE : (enum ticket_state)ticket->state;
}

void rig_pass(struct rig *rig, uint64_t ms)
{
    assert_true(ms % 100 == 0);
    for (; ms > 0; ms -= 100)
        room_tick(rig->room, 100);
}

enum error rig_set(struct rig *rig, const struct settings *settings)
{
    return room_set_settings(rig->room, settings, NULL, true);
}

pid_t fork_traced(void)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        raise(SIGSTOP);
        return 0;
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    return child;
}

bool dies(void (*act)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        fclose(stderr);
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

struct texts texts_longest(void)
{
    struct texts texts = {.logo = "/", .colour = "#A1b2C3", .lang = "ko"};

    for (size_t at = 0; at + 4 < sizeof(texts.title); at += 4)
        memcpy(texts.title + at, "🎫", 4);
    for (size_t at = 0; at + 3 < sizeof(texts.message); at += 4)
        memcpy(texts.message + at, "🎟", 4);
    memset(texts.logo + 1, '%', sizeof(texts.logo) - 2);
    return texts;
}

const struct texts *texts_at_random(struct dice *dice)
{
    static struct texts texts[] = {
        {.title = ""},
        {.title = "겨울 콘서트", .message = "곧 시작합니다", .lang = "ko"},
        {.title = "\"a\" \\ =b= </script> %s {x}", .colour = "#00ff00"},
        {.message = "only this", .logo = "https://cdn.example/a.png?b=c#d"},
        {.title = ""}, /* becomes the longest */
    };
    uint32_t choice = dice_below(dice, 6);

    texts[4] = texts_longest();
    return choice == 5 ? NULL : &texts[choice];
}
