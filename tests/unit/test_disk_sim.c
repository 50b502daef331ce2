/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated disk takes what a disk may take, and nothing that it may not. */
#include "rig.h"

#include "disk_sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BYTES 5000
#define SEEDS 200

static int make(struct disk *disk, const char *name)
{
    int file = disk->open(disk, name, DISK_MAKE);

    assert_true(file >= 0);
    return file;
}

static void put(struct disk *disk, int file, char what, size_t len, uint64_t offset)
{
    char bytes[BYTES];

    memset(bytes, what, sizeof(bytes));
    assert_int_equal(disk->write(disk, file, bytes, len, offset), 0);
}

/* How many of the first bytes of a file are `what`; -1 if there is no such file. */
static int64_t count(struct disk_sim *sim, const char *name, char what)
{
    struct disk *disk = disk_sim_disk(sim);
    int file = disk->open(disk, name, DISK_READ);
    char bytes[BYTES];

    if (file < 0) {
        assert_int_equal(file, -ENOENT);
        return -1;
    }
    int64_t len = disk->read(disk, file, bytes, sizeof(bytes), 0), found = 0;
    for (int64_t i = 0; i < len; i++)
        found += bytes[i] == what;
    assert_int_equal(disk->close(disk, file), 0);
    return found;
}

static int64_t count_after(const struct disk_sim *sim, enum sim_loss loss, uint64_t seed, const char *name,
                           char what)
{
    struct disk_sim *after = disk_sim_power_cut(sim, loss, seed);
    int64_t found = count(after, name, what);

    disk_sim_free(after);
    return found;
}

static void what_was_synced_with_its_folder_survives_and_nothing_else_must(void **state)
{
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    int file = make(disk, "a");
    (void)state;

    put(disk, file, 'x', 1000, 0);
    assert_int_equal(count(sim, "a", 'x'), 1000);
    assert_int_equal(count_after(sim, SIM_DROP, 1, "a", 'x'), -1);
    assert_int_equal(count_after(sim, SIM_KEEP, 1, "a", 'x'), 1000);
    assert_int_equal(disk->sync(disk, file), 0);
    assert_int_equal(count_after(sim, SIM_DROP, 1, "a", 'x'), -1); /* the file is there, but has no name */
    assert_int_equal(disk->sync_folder(disk), 0);
    for (int loss = 0; loss < SIM_LOSSES; loss++)
        assert_int_equal(count_after(sim, loss, 1, "a", 'x'), 1000);
    put(disk, file, 'y', 1000, 1000);
    assert_int_equal(count_after(sim, SIM_DROP, 1, "a", 'y'), 0);
    assert_int_equal(count_after(sim, SIM_KEEP, 1, "a", 'y'), 1000);
    struct disk_sim *crash = disk_sim_crash(sim);
    assert_int_equal(count(crash, "a", 'y'), 1000);
    assert_int_equal(count_after(crash, SIM_DROP, 1, "a", 'y'), 0); /* what waits for a sync still does */
    disk_sim_free(crash);
    disk_sim_free(sim);
}

/* A write of sectors 0..9 over zeros, torn: its first bytes, of all lengths; reordered: any of its sectors. */
static void a_torn_write_is_a_beginning_and_a_reordered_one_any_of_its_sectors(void **state)
{
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    int file = make(disk, "a");
    bool was_odd = false, was_sector = false, was_holed = false;
    (void)state;

    assert_int_equal(disk->allocate(disk, file, BYTES), 0);
    assert_int_equal(disk->sync(disk, file), 0);
    assert_int_equal(disk->sync_folder(disk), 0);
    put(disk, file, 'x', BYTES, 0);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_sim *after = disk_sim_power_cut(sim, seed % 2 == 0 ? SIM_TEAR : SIM_REORDER, seed);
        struct disk *found = disk_sim_disk(after);
        int there = found->open(found, "a", DISK_READ);
        char bytes[BYTES];
        assert_int_equal(found->read(found, there, bytes, BYTES, 0), BYTES);
        int first = 0, sum = 0;
        for (int i = 0; i < BYTES; i++)
            sum += bytes[i] == 'x';
        while (first < BYTES && bytes[first] == 'x')
            first++;
        if (seed % 2 == 0)
            assert_int_equal(first, sum);
        for (int i = 0; seed % 2 == 1 && i < BYTES; i++)
            assert_int_equal(bytes[i], bytes[i / 512 * 512]);
        was_odd |= first % 512 != 0 && first < BYTES;
        was_sector |= first % 512 == 0 && first > 0 && first < BYTES;
        was_holed |= first < sum;
        disk_sim_free(after);
    }
    assert_true(was_odd && was_sector && was_holed);
    disk_sim_free(sim);
}

static void a_rename_is_done_or_not_done_and_never_loses_the_file(void **state)
{
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    int file = make(disk, "a"), done = 0;
    (void)state;

    put(disk, file, 'x', 10, 0);
    assert_int_equal(disk->sync(disk, file), 0);
    assert_int_equal(disk->sync_folder(disk), 0);
    assert_int_equal(disk->rename(disk, "a", "b"), 0);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_sim *after = disk_sim_power_cut(sim, seed % 2 == 0 ? SIM_TEAR : SIM_REORDER, seed);
        bool is_done = count(after, "b", 'x') == 10;
        assert_int_equal(count(after, "b", 'x'), is_done ? 10 : -1);
        assert_int_equal(count(after, "a", 'x'), is_done ? -1 : 10);
        done += is_done;
        disk_sim_free(after);
    }
    assert_true(done > SEEDS / 4 && done < 3 * SEEDS / 4);
    assert_int_equal(disk->remove(disk, "b"), 0);
    assert_int_equal(count_after(sim, SIM_DROP, 1, "a", 'x'), 10); /* a removed name comes back */
    assert_int_equal(disk->sync_folder(disk), 0);
    assert_int_equal(count_after(sim, SIM_DROP, 1, "a", 'x'), -1);
    disk_sim_free(sim);
}

/* The trap: a second sync says that all is well. */
static void what_a_failed_sync_has_lost_no_later_sync_brings_back(void **state)
{
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    int file = make(disk, "a");
    (void)state;

    assert_int_equal(disk->sync_folder(disk), 0);
    put(disk, file, 'x', BYTES, 0);
    disk_sim_fail(sim, SIM_SYNC, 1, EIO, false);
    assert_int_equal(disk->sync(disk, file), -EIO);
    assert_int_equal(disk->sync(disk, file), 0);
    assert_int_equal(count(sim, "a", 'x'), BYTES); /* still to be seen */
    assert_true(count_after(sim, SIM_KEEP, 1, "a", 'x') < BYTES);
    disk_sim_free(sim);
}

static void the_nth_call_fails_once_or_from_then_on(void **state)
{
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    int file = make(disk, "a");
    (void)state;

    disk_sim_fail(sim, SIM_WRITE, 2, EIO, false);
    put(disk, file, 'x', 10, 0);
    assert_int_equal(disk->write(disk, file, "yyyyyyyyyy", 10, 0), -EIO);
    assert_true(count(sim, "a", 'x') > 0); /* not all of it was overwritten */
    put(disk, file, 'x', 10, 0);
    disk_sim_fail(sim, SIM_ANY, 3, EDQUOT, true);
    assert_int_equal(disk->sync(disk, file), 0);
    assert_int_equal(disk->size(disk, file), 10);
    assert_int_equal(disk->sync(disk, file), -EDQUOT);
    assert_int_equal(disk->size(disk, file), -EDQUOT);
    disk_sim_heal(sim);
    assert_int_equal(disk->size(disk, file), 10);
    assert_int_equal(disk_sim_calls(sim, SIM_WRITE), 3);
    assert_int_equal(disk_sim_calls(sim, SIM_SYNC), 2);
    disk_sim_free(sim);
}

static void a_full_disk_says_so_and_takes_again_what_was_freed(void **state)
{
    struct disk_sim *sim = disk_sim_new();
    struct disk *disk = disk_sim_disk(sim);
    int a = make(disk, "a"), b = make(disk, "b");
    char bytes[BYTES] = {0};
    (void)state;

    disk_sim_set_space(sim, 8192);
    assert_int_equal(disk->allocate(disk, a, 6000), 0);
    assert_int_equal(disk->allocate(disk, b, 6000), -ENOSPC);
    assert_int_equal(disk->write(disk, b, bytes, BYTES, 0), -ENOSPC);
    assert_int_equal(disk->write(disk, a, bytes, BYTES, 0), 0); /* was taken before */
    assert_int_equal(disk_sim_space_used(sim), 8192);
    assert_int_equal(disk->remove(disk, "a"), 0);
    assert_int_equal(disk->write(disk, b, bytes, BYTES, 0), -ENOSPC); /* still open */
    assert_int_equal(disk->close(disk, a), 0);
    assert_int_equal(disk->write(disk, b, bytes, BYTES, 0), 0);
    disk_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_with_its_folder_survives_and_nothing_else_must),
        cmocka_unit_test(a_torn_write_is_a_beginning_and_a_reordered_one_any_of_its_sectors),
        cmocka_unit_test(a_rename_is_done_or_not_done_and_never_loses_the_file),
        cmocka_unit_test(what_a_failed_sync_has_lost_no_later_sync_brings_back),
        cmocka_unit_test(the_nth_call_fails_once_or_from_then_on),
        cmocka_unit_test(a_full_disk_says_so_and_takes_again_what_was_freed),
    };
    return cmocka_run_group_tests_name("disk_sim", tests, NULL, NULL);
}
