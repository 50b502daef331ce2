/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that dies between any two instructions leaves no half-done operation. Shown for every instruction there is: a
 * child is led through each operation in single steps, and after each step the parent takes a copy of the zone, rolls the
 * copy back as a successor would, and compares. Until the operation commits, that must be the state before it, byte by byte;
 * afterwards the state after it, whole and consistent.
 *
 * Where the room is recorded the same holds for its outbox: before, it is as it was; after, it has what makes the room before
 * the room after.
 */
#include "rig.h"
#include "tape.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEC 1000

struct scene {
    const char *name;
    uint32_t pages;
    uint32_t commits; /* at least so many in the whole act */
    void (*prepare)(struct rig *rig);
    void (*act)(struct rig *rig);
};

/* Whether a journal is kept; and whether the last owner died before the outbox was taken. */
enum recording { NOT_RECORDED, RECORDED, RECORDED_AND_NOT_TAKEN };

/* ---- watching ---- */

struct watch {
    struct rig *rig;
    const char *name;
    unsigned char *seen;     /* the zone at the last step */
    unsigned char *scratch;  /* for a copy to roll back */
    unsigned char *baseline; /* what a rollback must lead to */
    uint32_t undo_used;
    uint32_t steps, commits;
    struct tape before; /* a snapshot of what the act began with; none if nothing is recorded */
};

/* As image_of; and what lies behind the end of the outbox, or is noted for an operation under way, does not count. */
static unsigned char *image(const struct rig *rig)
{
    unsigned char *bytes = image_of(rig->base, rig->bytes, &rig->room->memory);
    struct room *room = (struct room *)(bytes + ((unsigned char *)rig->room - rig->base));
    struct outbox *outbox = &room->outbox;

    memset(outbox->bytes + outbox->used, 0, sizeof(outbox->bytes) - outbox->used);
    outbox->is_cut = false;
    return bytes;
}

static void expect_baseline(const struct watch *watch, const struct rig *copy)
{
    unsigned char *bytes = image(copy);
    bool is_same = memcmp(bytes, watch->baseline, copy->bytes) == 0;

    if (!is_same) {
        size_t at = 0;
        while (bytes[at] == watch->baseline[at])
            at++;
        fail_msg("%s: killed after step %u, byte %zu of page %zu would not come back", watch->name,
                 watch->steps, at % PAGE_BYTES, at / PAGE_BYTES);
    }
    free(bytes);
}

/* What was before, and what is in the outbox: together they are what is now. */
static void expect_recorded(const struct watch *watch, const struct rig *now)
{
    struct tape outbox = {0};

    if (watch->before.records == 0)
        return;
    if (room_outbox(now->room).len > 0)
        tape_add(&outbox, room_outbox(now->room));
    struct copy copy = copy_recovered(300, &watch->before, &(struct tape){0}, 0);
    for (uint32_t i = 0; i < outbox.records; i++)
        copy_apply(&copy, tape_record(&outbox, i), true);
    assert_same_room(now->room, copy.rig.room, watch->name);
    copy_free(&copy);
    tape_free(&outbox);
}

static void look(struct watch *watch)
{
    watch->steps++;
    if (memcmp(watch->seen, watch->rig->base, watch->rig->bytes) == 0)
        return;
    memcpy(watch->seen, watch->rig->base, watch->rig->bytes);
    memcpy(watch->scratch, watch->seen, watch->rig->bytes);
    struct rig copy = rig_at(watch->rig, watch->scratch);
    uint32_t was_used = watch->undo_used;

    watch->undo_used = copy.room->memory.undo_used;
    if (watch->undo_used > 0 || was_used == 0) {
        room_rollback(copy.room);
        expect_baseline(watch, &copy);
        return;
    }
    room_rollback(copy.room);
    room_check(copy.room);
    expect_recorded(watch, &copy);
    free(watch->baseline);
    watch->baseline = image(&copy);
    watch->commits++;
}

static pid_t child_new(struct rig *rig, void (*act)(struct rig *rig))
{
    pid_t child = fork_traced();

    if (child == 0) {
        act(rig);
        _exit(0);
    }
    return child;
}

static void single_step(struct watch *watch, void (*act)(struct rig *rig))
{
    pid_t child = child_new(watch->rig, act);
    int status;

    for (;;) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            break;
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        look(watch);
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void play(const struct scene *scene, enum recording recording)
{
    struct settings settings = settings_default();
    settings.mode = MODE_HOLD;
    settings.session_max_sec = 1000;
    struct rig rig = rig_new(scene->pages, &settings);

    scene->prepare(&rig);
    if (recording != NOT_RECORDED)
        room_record(rig.room);
    if (recording == RECORDED)
        room_outbox_taken(rig.room);
    struct watch watch = {
        .rig = &rig,
        .name = scene->name,
        .seen = malloc(rig.bytes),
        .scratch = malloc(rig.bytes),
        .baseline = image(&rig),
    };
    if (recording != NOT_RECORDED)
        tape_snapshot(&watch.before, rig.room);
    memcpy(watch.seen, rig.base, rig.bytes);
    single_step(&watch, scene->act);
    if (watch.commits < scene->commits)
        fail_msg("%s: %u commits", scene->name, watch.commits);
    room_check(rig.room);
    free(watch.seen);
    free(watch.scratch);
    free(watch.baseline);
    tape_free(&watch.before);
    rig_free(&rig);
}

/* ---- scenes ---- */

static void set_mode(struct rig *rig, enum room_mode mode)
{
    struct settings settings = *room_settings(rig->room);

    settings.mode = mode;
    assert_int_equal(rig_set(rig, &settings), ERROR_NONE);
}

static struct place place_of(uint32_t count)
{
    return (struct place){.epoch = 7, .count = count, .holder = holder_of(count)};
}

/* Count n is person n. */
static void join_people(struct rig *rig, uint32_t people)
{
    uint32_t from = rig->room->line.last;

    for (uint32_t who = from + 1; who <= from + people; who++)
        assert_int_equal(rig_place(rig, who).count, who);
}

static void join_next(struct rig *rig)
{
    struct standing standing;

    rig_join(rig, rig->room->line.last + 1, &standing);
}

static void join_next_by_key(struct rig *rig)
{
    struct standing standing;
    uint32_t who = rig->room->line.last + 1;

    rig_join_by_key(rig, who, who, 1, &standing);
}

static void nobody(struct rig *rig)
{
    (void)rig;
}

static void an_open_door(struct rig *rig)
{
    set_mode(rig, MODE_QUEUE);
}

static void a_few(struct rig *rig)
{
    join_people(rig, 5);
}

static void a_few_whose_turn_it_is(struct rig *rig)
{
    join_people(rig, 5);
    set_mode(rig, MODE_QUEUE);
}

static void a_pace_that_follows_the_shop(struct rig *rig)
{
    struct settings settings = *room_settings(rig->room);

    settings.pace = PACE_AUTO;
    settings.rate_milli = 10000;
    settings.rate_max_milli = 20000;
    rig_set(rig, &settings);
    join_people(rig, 5);
}

static void tell_of_the_shop(struct rig *rig)
{
    struct shop_report report = {.failures = 30, .ages_sec = 60};

    shop_report_add(&report, 20, 1);
    assert_int_equal(room_shop(rig->room, &report), ERROR_NONE);
}

static void a_failing_shop(struct rig *rig)
{
    a_pace_that_follows_the_shop(rig);
    tell_of_the_shop(rig);
}

static void a_few_away(struct rig *rig)
{
    join_people(rig, 5);
    rig_pass(rig, 10 * SEC);
    assert_int_equal(room_figures(rig->room).in_state[TICKET_AWAY], 5);
}

static void a_few_called(struct rig *rig)
{
    join_people(rig, 5);
    set_mode(rig, MODE_QUEUE);
    rig_pass(rig, 100);
}

static void one_inside(struct rig *rig)
{
    struct place place = place_of(1);
    struct standing standing;

    a_few_called(rig);
    assert_int_equal(rig_enter(rig, &place, &standing), ERROR_NONE);
}

static void one_active(struct rig *rig)
{
    struct place place = place_of(1);

    one_inside(rig);
    assert_int_equal(room_session_touch(rig->room, &place), ERROR_NONE);
    rig_pass(rig, 5 * SEC);
}

/* The next join takes a page for itself. */
static void a_full_page(struct rig *rig)
{
    join_people(rig, LINE_PAGE_COUNT - 1);
}

/* The next join splits a bucket of the map of holders. */
static void a_full_bucket(struct rig *rig)
{
    uint32_t buckets = rig->room->by_holder.buckets;

    while (buckets <= 1) { /* one too many, so one less */
        join_people(rig, 1);
        buckets = rig->room->by_holder.buckets;
    }
    struct place last = place_of(rig->room->line.last);
    assert_int_equal(room_leave(rig->room, &last), ERROR_NONE);
    while (rig->room->by_holder.buckets > 1) {
        last.count--;
        last.holder = holder_of(last.count);
        assert_int_equal(room_leave(rig->room, &last), ERROR_NONE);
    }
    while (rig->room->by_holder.entries % 272 != 0)
        join_people(rig, 1);
}

/* The memory ends somewhere in the next join. */
static void no_memory(struct rig *rig)
{
    struct standing standing;
    uint64_t who = 1;

    while (rig_join(rig, who, &standing) == ERROR_NONE)
        who++;
}

/* One less merges two buckets. */
static void a_map_about_to_merge(struct rig *rig)
{
    join_people(rig, 280);
    assert_int_equal(rig->room->by_holder.buckets, 2);
    for (uint32_t count = 1; rig->room->by_holder.entries > 100; count++) {
        struct place place = place_of(count);
        assert_int_equal(room_leave(rig->room, &place), ERROR_NONE);
    }
    assert_int_equal(rig->room->by_holder.buckets, 2);
}

/* One left, who frees the page and both nodes above it. */
static void the_last_of_a_page(struct rig *rig)
{
    join_people(rig, LINE_PAGE_COUNT - 1);
    for (uint32_t count = 2; count < LINE_PAGE_COUNT; count++) {
        struct place place = place_of(count);
        assert_int_equal(room_leave(rig->room, &place), ERROR_NONE);
    }
}

static void leave_first(struct rig *rig)
{
    struct place place = place_of(1);

    room_leave(rig->room, &place);
}

static void leave_last(struct rig *rig)
{
    struct place place = place_of(rig->room->line.last);

    room_leave(rig->room, &place);
}

static void poll_third(struct rig *rig)
{
    struct place place = place_of(3);
    struct standing standing;

    room_status(rig->room, &place, &standing);
}

static void enter_third(struct rig *rig)
{
    struct place place = place_of(3);
    struct standing standing;

    rig_enter(rig, &place, &standing);
}

static void enter_third_by_key(struct rig *rig)
{
    struct enter enter = {.place = place_of(3), .key_id = 4, .wall_sec = 9, .request = key_of(1, 1)};
    struct standing standing;

    room_enter(rig->room, &enter, &standing);
}

static void goodbye_of_third(struct rig *rig)
{
    struct place place = place_of(3);

    room_leave_soon(rig->room, &place);
}

static void touch_first(struct rig *rig)
{
    struct place place = place_of(1);

    room_session_touch(rig->room, &place);
}

static void end_first(struct rig *rig)
{
    struct place place = place_of(1);

    room_session_end(rig->room, &place);
}

static void extend_first(struct rig *rig)
{
    struct place place = place_of(1);

    room_session_extend(rig->room, &place, 700);
}

static void change_settings(struct rig *rig)
{
    struct settings settings = *room_settings(rig->room);

    settings.session_max_sec = 2000;
    settings.rate_milli = 1;
    settings.max_active = 3;
    room_set_settings(rig->room, &settings, &(struct texts){.title = "another", .lang = "ko"}, true);
}

static void tick(struct rig *rig)
{
    room_tick(rig->room, 100);
}

static void set_follow(struct rig *rig)
{
    struct settings settings = *room_settings(rig->room);

    settings.pace = PACE_AUTO;
    settings.rate_milli = 20000;
    settings.rate_max_milli = 100000;
    rig_set(rig, &settings);
}

static void a_pace_that_follows(struct rig *rig)
{
    one_active(rig);
    set_follow(rig);
}

static void report_slow_shop(struct rig *rig)
{
    struct shop_report report = {.times[40] = 30, .failures = 3, .left_alone_ms = 0};

    room_shop(rig->room, &report);
}

/* With the next tick its window is over, and the rate another. */
static void a_pace_about_to_fall(struct rig *rig)
{
    struct shop_report report = {.times[10] = 100};

    a_pace_that_follows(rig);
    room_shop(rig->room, &report);
    rig_pass(rig, SEC);
    report_slow_shop(rig);
    rig_pass(rig, SEC - 100);
}

static void tick_a_second(struct rig *rig)
{
    room_tick(rig->room, 1000);
}

/* The next tick ends some, sends others away and calls the rest. */
static void many_overdue(struct rig *rig)
{
    struct settings settings = *room_settings(rig->room);
    struct standing standing;

    settings.max_active = 3;
    settings.claim_ttl_sec = 5;
    assert_int_equal(rig_set(rig, &settings), ERROR_NONE);
    join_people(rig, 3);
    set_mode(rig, MODE_QUEUE);
    rig_pass(rig, 100);
    join_people(rig, 4);
    rig_pass(rig, 4900);
    join_people(rig, 3);
    for (uint32_t count = 1; count <= 3; count++) {
        struct place place = place_of(count);
        assert_int_equal(room_status(rig->room, &place, &standing), ERROR_NONE);
    }
    rig_pass(rig, 4900);
    assert_int_equal(room_figures(rig->room).in_state[TICKET_CALLED], 3);
    assert_int_equal(room_figures(rig->room).in_state[TICKET_WAITING], 7);
}

static void keys_about_to_be_over(struct rig *rig)
{
    struct standing standing;

    for (uint64_t key = 1; key <= 3; key++)
        assert_int_equal(rig_join_by_key(rig, 1, key, 1, &standing), ERROR_NONE);
    for (int s = 0; s < 299; s++) {
        struct place place = place_of(1);
        room_tick(rig->room, 1000);
        assert_int_equal(room_status(rig->room, &place, &standing), ERROR_NONE);
    }
    rig_pass(rig, 900);
    assert_int_equal(rig->room->keys.by_scope.entries, 3);
}

static void look_at_third(struct rig *rig)
{
    struct place place = place_of(3);
    struct standing standing;

    room_look(rig->room, &place, &standing);
}

static void advance(struct rig *rig)
{
    uint32_t called;

    room_advance(rig->room, 3, &called);
}

static void people_and_keys(struct rig *rig)
{
    join_people(rig, 4);
    join_next_by_key(rig);
    join_next_by_key(rig);
}

static void clear(struct rig *rig)
{
    uint32_t cleared;

    room_clear(rig->room, &cleared);
}

static void a_cleared_room(struct rig *rig)
{
    people_and_keys(rig);
    clear(rig);
}

static void dissolve(struct rig *rig)
{
    room_dissolve(rig->room);
}

/* A loss after the fifth: tickets from the sixth on may be missing. */
static void a_few_known(struct rig *rig)
{
    join_people(rig, 5);
    room_begin_epoch(rig->room, 8);
}

static struct place lost_place(uint32_t count)
{
    struct place place = place_of(count);

    place.issue = (struct issue){true, false, 3, 1700000000};
    return place;
}

/* Whose ticket was lost has come again, and stands behind. */
static void a_few_known_and_one_anew(struct rig *rig)
{
    a_few_known(rig);
    rig_place(rig, 7);
}

static void a_few_known_and_one_called(struct rig *rig)
{
    uint32_t called;

    a_few_known_and_one_anew(rig);
    assert_int_equal(room_advance(rig->room, 6, &called), ERROR_NONE);
}

static void come_back(struct rig *rig)
{
    struct place place = lost_place(7);
    struct standing standing;

    room_status(rig->room, &place, &standing);
}

static struct place with_pass(struct place place)
{
    place.grant = (struct grant){true, 4, 2, 900};
    return place;
}

static void touch_lost(struct rig *rig)
{
    struct place place = with_pass(lost_place(7));

    room_session_touch(rig->room, &place);
}

/* The room is new, and knows nobody of those who were there before. */
static void a_few_after_a_restart(struct rig *rig)
{
    join_people(rig, 5);
    room_had_former(rig->room, 1000);
}

static void touch_former(struct rig *rig)
{
    struct place place = with_pass(place_of(700));

    place.issue = (struct issue){true, false, 4, 900};
    room_session_touch(rig->room, &place);
}

static void leave_lost(struct rig *rig)
{
    struct place place = lost_place(7);

    room_leave(rig->room, &place);
}

static void begin_epoch(struct rig *rig)
{
    room_begin_epoch(rig->room, room_epoch(rig->room) + 1);
}

static void many_losses(struct rig *rig)
{
    join_people(rig, 5);
    for (uint32_t i = 1; i < ROOM_EPOCHS; i++)
        begin_epoch(rig);
}

static void end_room(struct rig *rig)
{
    room_end(rig->room);
}

/* Places that are remembered no longer: the tick gives their pages back. */
static void a_loss_far_behind(struct rig *rig)
{
    a_few_known(rig);
    leave_lost(rig);
    for (uint32_t count = 1; count <= 5; count++) {
        struct place place = place_of(count);
        assert_int_equal(room_leave(rig->room, &place), ERROR_NONE);
    }
    for (int i = 0; i < 70; i++)
        begin_epoch(rig);
}

static const struct scene scenes[] = {
    {"a first join", 12, 1, nobody, join_next},
    {"a join that is called at once", 12, 1, an_open_door, join_next},
    {"a join that takes a page", 12, 1, a_full_page, join_next},
    {"a join that splits a bucket", 16, 1, a_full_bucket, join_next},
    {"a join by key", 14, 1, a_few, join_next_by_key},
    {"a join for which there is no memory", 5, 0, no_memory, join_next},
    {"a join by key for which there is no memory", 7, 0, no_memory, join_next_by_key},
    {"a poll", 12, 1, a_few, poll_third},
    {"a return", 12, 1, a_few_away, poll_third},
    {"a poll that tells of the call", 12, 1, a_few_called, poll_third},
    {"an enter", 12, 1, a_few_called, enter_third},
    {"an enter by key", 14, 1, a_few_called, enter_third_by_key},
    {"an enter too early", 12, 1, a_few, enter_third},
    {"a leave", 12, 1, a_few, leave_last},
    {"a leave of somebody called", 12, 1, a_few_called, leave_first},
    {"a leave that merges buckets", 16, 1, a_map_about_to_merge, leave_last},
    {"a leave that frees a page and its nodes", 12, 1, the_last_of_a_page, leave_first},
    {"a goodbye", 12, 1, a_few, goodbye_of_third},
    {"a goodbye of somebody called", 12, 1, a_few_called, goodbye_of_third},
    {"an arrival", 12, 1, one_inside, touch_first},
    {"a renewal", 12, 1, one_active, touch_first},
    {"an end", 12, 1, one_active, end_first},
    {"more time for a session", 12, 1, one_active, extend_first},
    {"new settings", 12, 1, one_active, change_settings},
    {"a pace that begins to follow", 12, 1, one_active, set_follow},
    {"a report of the shop", 12, 1, a_pace_that_follows, report_slow_shop},
    {"a tick that changes the pace", 12, 3, a_pace_about_to_fall, tick},
    {"a tick that calls", 12, 6, a_few_whose_turn_it_is, tick},
    {"a report of the shop", 12, 1, a_pace_that_follows_the_shop, tell_of_the_shop},
    {"a tick that slows down for the shop", 12, 2, a_failing_shop, tick_a_second},
    {"a tick that ends, sends away and calls", 12, 4, many_overdue, tick},
    {"a tick that forgets keys", 14, 4, keys_about_to_be_over, tick_a_second},
    {"a look", 12, 0, a_few_called, look_at_third},
    {"an advance", 12, 3, a_few, advance},
    {"a clear", 14, 1, people_and_keys, clear},
    {"the tick after a clear", 14, 3, a_cleared_room, tick},
    {"a room given up", 14, 3, people_and_keys, dissolve},
    {"a room's end", 12, 1, nobody, end_room},
    {"a lost ticket that comes back", 12, 1, a_few_known, come_back},
    {"a lost ticket that comes back instead of a later one", 16, 2, a_few_known_and_one_anew, come_back},
    {"a lost ticket whose holder was called elsewhere", 16, 1, a_few_known_and_one_called, come_back},
    {"a lost ticket that comes back for which there is no memory", 5, 0, a_few_known, come_back},
    {"a lost session that is made anew", 12, 1, a_few_known, touch_lost},
    {"a session of a former room that is made anew", 16, 1, a_few_after_a_restart, touch_former},
    {"a session of a former room for which there is no memory", 5, 0, a_few_after_a_restart, touch_former},
    {"a lost ticket that is left", 12, 1, a_few_known, leave_lost},
    {"a loss", 12, 1, a_few, begin_epoch},
    {"a loss with all epochs in use", 12, 1, many_losses, begin_epoch},
    {"a tick that forgets a loss", 12, 2, a_loss_far_behind, tick},
};

static void a_kill_after_any_instruction_leaves_before_or_after_and_nothing_between(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        play(&scenes[i], NOT_RECORDED);
}

/* Where something is left in the outbox its end is written over: every second time. */
static void the_same_holds_for_the_outbox_of_a_recorded_room(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        play(&scenes[i], i % 2 == 0 ? RECORDED : RECORDED_AND_NOT_TAKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_after_any_instruction_leaves_before_or_after_and_nothing_between),
        cmocka_unit_test(the_same_holds_for_the_outbox_of_a_recorded_room),
    };
    return cmocka_run_group_tests_name("undo", tests, NULL, NULL);
}
