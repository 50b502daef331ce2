/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any folder, scanned, sealed and scanned again; every checksum counts as right, since no fuzzer finds one. Whatever a scan takes
 * for good it must find again after a seal, with nothing torn.
 *
 * An input is a byte of flags and files: for each a byte (whether it is a snapshot), its position (8 bytes), its length (2 bytes)
 * and its bytes, as many as there are.
 */
#include "../unit/shelf.h"
#include "base/little.h"
#include "base/must.h"
#include "journal/scan.h"

#include <string.h>

#define FILES_MAX  8
#define FILE_START 11 /* bytes before those of the file */

#define FLAG_BOOTED 1
#define FLAG_FAILED 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t file_take(struct shelf *shelf, const uint8_t *data, size_t size);
static bool record_take(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot);
static void report_check(const struct scan_report *report, enum scan_result result);
static void seal_try(struct shelf *shelf, const struct scan_report *report);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* as in the journals of the corpus */
    static const unsigned char boot[DISK_BOOT_BYTES] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe,
                                                        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
    struct scan_report report;
    struct shelf shelf;
    uint64_t bytes = 0;
    struct scan_reader reader = {record_take, &bytes, NULL};

    if (size == 0)
        return 0;
    frame_trusts_checksums = true;
    shelf_init(&shelf);
    memcpy(shelf.boot, boot, sizeof(boot));
    shelf.boot[0] ^= data[0] & FLAG_BOOTED;
    if (data[0] & FLAG_FAILED)
        shelf_put(&shelf, LOG_FAILED, 0);
    size_t at = 1;
    for (int n = 0; n < FILES_MAX && at < size; n++)
        at += file_take(&shelf, data + at, size - at);
    enum scan_result result = journal_scan(&shelf.disk, &reader, &report);
    report_check(&report, result);
    if (result == SCAN_GOOD) {
        must(report.journal_bytes + report.snapshot_bytes >= bytes);
        seal_try(&shelf, &report);
    }
    must(shelf.opened == 0);
    shelf_fini(&shelf);
    return 0;
}

static size_t file_take(struct shelf *shelf, const uint8_t *data, size_t size)
{
    char name[FRAME_NAME_BYTES];

    if (size < FILE_START)
        return size;
    size_t len = little_get16(data + 9);
    if (len > size - FILE_START)
        len = size - FILE_START;
    frame_name(data[0] & 1, little_get64(data + 1), name);
    memcpy(shelf_put(shelf, name, len)->bytes, data + FILE_START, len);
    return FILE_START + len;
}

/* Looks at every byte, for the sanitizers. */
static bool record_take(void *context, const struct frame_record *record, const struct scan_place *place,
                        bool is_snapshot)
{
    static volatile char seen;
    uint64_t *bytes = context;

    must(record->body.len <= FRAME_BODY_MAX && place->offset % 8 == 0 && place->offset >= FRAME_HEAD_BYTES);
    must(strncmp(place->file, is_snapshot ? "snapshot-" : "journal-", is_snapshot ? 9 : 8) == 0);
    for (size_t n = 0; n < record->body.len; n++)
        seen = record->body.data[n];
    (void)seen;
    *bytes += frame_record_bytes(record->body.len);
    return true;
}

static void report_check(const struct scan_report *report, enum scan_result result)
{
    size_t len = strlen(report->why);

    must(result != SCAN_FAILED && result != SCAN_STOPPED);
    must((len == 0) == (result == SCAN_GOOD));
    must(len == 0 || report->why[len - 1] == '.');
    must(report->next % 8 == 0);
}

static void seal_try(struct shelf *shelf, const struct scan_report *report)
{
    struct scan_report again;
    struct log_start start;
    uint64_t bytes = 0;
    struct scan_reader reader = {record_take, &bytes, NULL};

    must(journal_seal(&shelf->disk, report, &start) == 0);
    must(journal_scan(&shelf->disk, &reader, &again) == SCAN_GOOD);
    must(again.torn_bytes == 0 && again.dropped_records == 0 && !again.is_short);
    must(again.segments == report->segments && again.snapshot_records == report->snapshot_records);
    must(strcmp(again.tail.file, report->tail.file) == 0 && again.end >= report->end);
    must(again.next >= start.position);
    must(journal_compact(&shelf->disk, report->snapshot_first) == 0);
    must(journal_scan(&shelf->disk, &reader, &again) == SCAN_GOOD);
}
