/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A file is an inode: names point to it, and it stays while the sim lives, because a name that was removed may come back with a
 * power cut. What is on the disk is never computed from what is seen; it is changed only by a sync, which applies the waiting
 * changes to it one by one. So what a failed sync has lost stays lost, however often somebody syncs again.
 */

#include "disk_sim.h"

#include "base/must.h"
#include "rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIM_PAGE_BYTES 4096
#define SECTOR_BYTES   512
#define NAME_BYTES     64
#define NAMES          256
#define HANDLES        64

/* Shared by all contents that have it, and by sims; replaced before it is written to. */
struct page {
    uint32_t refs;
    unsigned char bytes[SIM_PAGE_BYTES];
};

struct slot {
    struct page *page; /* NULL: zeros */
};

struct contents {
    struct slot *slots;
    size_t count;
    uint64_t size;
};

/* Not synced. */
struct change {
    uint64_t number; /* of the call that made it */
    uint64_t offset;
    size_t len; /* 0: the file was made `offset` bytes long */
    unsigned char *data;
    bool is_extending; /* made the file longer when it was made */
};

struct file {
    struct contents seen, durable;
    struct change *changes;
    size_t change_count, change_room;
    uint64_t taken; /* bytes of the disk */
    uint32_t handles;
};

struct name {
    char text[NAME_BYTES];
    size_t file;
};

struct names {
    size_t count;
    struct name entries[NAMES];
};

/* Not synced. `from` empty: made; `to` empty: removed. */
struct move {
    uint64_t number;
    char from[NAME_BYTES], to[NAME_BYTES];
    size_t file;
};

struct fault {
    uint64_t left; /* 0 = none; 1 = the next call */
    int error;
    bool is_for_good;
};

struct disk_sim {
    struct disk disk; /* first: a sim is a disk */
    struct file *files;
    size_t file_count, file_room;
    struct names seen, durable;
    struct move *moves;
    size_t move_count, move_room;
    struct {
        bool is_open, may_write;
        size_t file;
    } handles[HANDLES];
    uint64_t calls[SIM_ANY + 1];
    struct fault faults[SIM_ANY + 1];
    uint64_t space;
    uint32_t boots;
    struct dice dice;
    void (*after)(void *context, struct disk_sim *sim, enum sim_call call);
    void *after_context;
};

const char *sim_call_name(enum sim_call call)
{
    static const char *const names[] = {
        [SIM_OPEN] = "open",     [SIM_CLOSE] = "close",
        [SIM_READ] = "read",     [SIM_WRITE] = "write",
        [SIM_SYNC] = "sync",     [SIM_ALLOCATE] = "allocate",
        [SIM_SIZE] = "size",     [SIM_RENAME] = "rename",
        [SIM_REMOVE] = "remove", [SIM_SYNC_FOLDER] = "sync of the folder",
        [SIM_LIST] = "list",     [SIM_ANY] = "any call",
    };

    return names[call];
}

/* ---- memory ---- */

/* Room for one more in an array that doubles. */
static void *grown(void *array, size_t count, size_t *room, size_t each)
{
    if (count < *room)
        return array;
    *room = *room == 0 ? 8 : 2 * *room;
    array = realloc(array, *room * each);
    must(array != NULL);
    return array;
}

static void *copied(const void *bytes, size_t len)
{
    if (len == 0)
        return NULL;
    void *copy = malloc(len);
    must(copy != NULL);
    memcpy(copy, bytes, len);
    return copy;
}

/* ---- contents ---- */

static void page_drop(struct page *page)
{
    if (page != NULL && --page->refs == 0)
        free(page);
}

static void contents_free(struct contents *contents)
{
    for (size_t i = 0; i < contents->count; i++)
        page_drop(contents->slots[i].page);
    free(contents->slots);
}

static struct contents contents_copy(const struct contents *contents)
{
    struct contents copy = *contents;

    copy.slots = copied(contents->slots, contents->count * sizeof(struct slot));
    for (size_t i = 0; i < contents->count; i++)
        if (contents->slots[i].page != NULL)
            contents->slots[i].page->refs++;
    return copy;
}

static void contents_reach(struct contents *contents, size_t count)
{
    if (count <= contents->count)
        return;
    contents->slots = realloc(contents->slots, count * sizeof(struct slot));
    must(contents->slots != NULL);
    memset(contents->slots + contents->count, 0, (count - contents->count) * sizeof(struct slot));
    contents->count = count;
}

/* A page that may be written to. */
static struct page *page_own(struct contents *contents, size_t index)
{
    contents_reach(contents, index + 1);
    struct slot *slot = &contents->slots[index];
    if (slot->page != NULL && slot->page->refs == 1)
        return slot->page;
    struct page *own = slot->page == NULL ? calloc(1, sizeof(*own)) : copied(slot->page, sizeof(*own));
    must(own != NULL);
    own->refs = 1;
    page_drop(slot->page);
    slot->page = own;
    return own;
}

static void contents_write(struct contents *contents, const unsigned char *data, size_t len, uint64_t offset)
{
    if (offset + len > contents->size)
        contents->size = offset + len;
    while (len > 0) {
        size_t at = offset % SIM_PAGE_BYTES;
        size_t part = len < SIM_PAGE_BYTES - at ? len : SIM_PAGE_BYTES - at;
        memcpy(page_own(contents, offset / SIM_PAGE_BYTES)->bytes + at, data, part);
        data += part;
        offset += part;
        len -= part;
    }
}

static void contents_read(const struct contents *contents, unsigned char *out, size_t len, uint64_t offset)
{
    while (len > 0) {
        size_t at = offset % SIM_PAGE_BYTES, index = offset / SIM_PAGE_BYTES;
        size_t part = len < SIM_PAGE_BYTES - at ? len : SIM_PAGE_BYTES - at;
        const struct page *page = index < contents->count ? contents->slots[index].page : NULL;
        if (page == NULL)
            memset(out, 0, part);
        else
            memcpy(out, page->bytes + at, part);
        out += part;
        offset += part;
        len -= part;
    }
}

/* ---- changes of a file ---- */

static void change_add(struct file *file, uint64_t number, const void *data, size_t len, uint64_t offset)
{
    file->changes = grown(file->changes, file->change_count, &file->change_room, sizeof(file->changes[0]));
    file->changes[file->change_count++] = (struct change){
        .number = number,
        .offset = offset,
        .len = len,
        .data = copied(data, len),
        .is_extending = offset + len > file->seen.size,
    };
}

static void changes_free(struct file *file)
{
    for (size_t i = 0; i < file->change_count; i++)
        free(file->changes[i].data);
    file->change_count = 0;
}

/* The bytes [from, to) of a write. What lies past the end of a file that did not become as long as it was is gone with it. */
static void apply_part(struct contents *contents, const struct change *change, size_t from, size_t to)
{
    if (!change->is_extending && change->offset + to > contents->size)
        to = contents->size > change->offset ? contents->size - change->offset : 0;
    if (from < to)
        contents_write(contents, change->data + from, to - from, change->offset + from);
}

static void apply_size(struct contents *contents, uint64_t size)
{
    if (size > contents->size)
        contents->size = size;
}

static void apply(struct contents *contents, const struct change *change)
{
    if (change->len == 0)
        apply_size(contents, change->offset);
    else
        apply_part(contents, change, 0, change->len);
}

/* Up to any byte, or to any sector, the two being equally likely. */
static void apply_torn(struct contents *contents, const struct change *change, struct dice *dice)
{
    size_t to = dice_below(dice, (uint32_t)change->len + 1);

    if (change->len == 0) {
        apply_size(contents, dice_below(dice, 2) == 0 ? 0 : change->offset);
        return;
    }
    if (dice_below(dice, 2) == 0) {
        size_t behind = (change->offset + to) % SECTOR_BYTES;
        to = behind < to ? to - behind : 0;
    }
    apply_part(contents, change, 0, to);
}

/* Of a size all, nothing or some pages are there. */
static void apply_some_size(struct contents *contents, uint64_t size, struct dice *dice)
{
    uint64_t some = dice_below(dice, (uint32_t)(size / SIM_PAGE_BYTES) + 1) * (uint64_t)SIM_PAGE_BYTES;

    apply_size(contents, dice_below(dice, 2) == 0 ? size : dice_below(dice, 2) == 0 ? 0 : some);
}

/* Sectors that have fallen behind stay so. */
static void apply_some_sectors(struct contents *contents, const struct change *change, bool *is_behind,
                               struct dice *dice)
{
    for (size_t from = 0; from < change->len;) {
        size_t sector = (change->offset + from) / SECTOR_BYTES;
        size_t to = (sector + 1) * SECTOR_BYTES - change->offset;
        if (to > change->len)
            to = change->len;
        is_behind[sector] = is_behind[sector] || dice_below(dice, 2) == 0;
        if (!is_behind[sector])
            apply_part(contents, change, from, to);
        from = to;
    }
}

/* Each sector by itself is as it was at some time: nothing, or some first writes to it, or all. */
static void apply_reordered(struct contents *contents, const struct file *file, struct dice *dice)
{
    bool *is_behind = calloc(file->seen.size / SECTOR_BYTES + 1, sizeof(*is_behind));

    must(is_behind != NULL);
    for (size_t i = 0; i < file->change_count; i++) {
        const struct change *change = &file->changes[i];
        if (change->len == 0)
            apply_some_size(contents, change->offset, dice);
        else
            apply_some_sectors(contents, change, is_behind, dice);
    }
    free(is_behind);
}

/* ---- names ---- */

static struct name *name_find(struct names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->entries[i].text, text) == 0)
            return &names->entries[i];
    return NULL;
}

static void text_copy(char to[NAME_BYTES], const char *text)
{
    must(strlen(text) < NAME_BYTES);
    memcpy(to, text, strlen(text) + 1);
}

static void name_put(struct names *names, const char *text, size_t file)
{
    struct name *name = name_find(names, text);

    if (name == NULL) {
        must(names->count < NAMES);
        name = &names->entries[names->count++];
        text_copy(name->text, text);
    }
    name->file = file;
}

static void name_drop(struct names *names, const char *text, size_t file)
{
    struct name *name = name_find(names, text);

    if (name != NULL && name->file == file)
        *name = names->entries[--names->count];
}

static void move_apply(struct names *names, const struct move *move)
{
    if (move->from[0] != '\0')
        name_drop(names, move->from, move->file);
    if (move->to[0] != '\0')
        name_put(names, move->to, move->file);
}

static void move_do(struct disk_sim *sim, const char *from, const char *to, size_t file)
{
    sim->moves = grown(sim->moves, sim->move_count, &sim->move_room, sizeof(sim->moves[0]));
    struct move *move = &sim->moves[sim->move_count++];

    *move = (struct move){.number = sim->calls[SIM_ANY], .file = file};
    text_copy(move->from, from);
    text_copy(move->to, to);
    move_apply(&sim->seen, move);
}

/* ---- calls ---- */

static struct disk_sim *sim_of(struct disk *disk)
{
    return (struct disk_sim *)disk;
}

static int fault_meet(struct fault *fault)
{
    if (fault->left == 0)
        return 0;
    if (fault->left > 1) {
        fault->left--;
        return 0;
    }
    fault->left = fault->is_for_good ? 1 : 0;
    return -fault->error;
}

/* Counts a call; a negative errno if it is to fail. */
static int begin(struct disk_sim *sim, enum sim_call call)
{
    sim->calls[call]++;
    sim->calls[SIM_ANY]++;
    int error = fault_meet(&sim->faults[call]);
    int error_of_any = fault_meet(&sim->faults[SIM_ANY]);
    return error != 0 ? error : error_of_any;
}

static int64_t finish(struct disk_sim *sim, enum sim_call call, int64_t result)
{
    if (sim->after != NULL)
        sim->after(sim->after_context, sim, call);
    return result;
}

static struct file *file_of(struct disk_sim *sim, int handle)
{
    must(handle >= 0 && handle < HANDLES && sim->handles[handle].is_open);
    return &sim->files[sim->handles[handle].file];
}

static struct file *file_to_write(struct disk_sim *sim, int handle)
{
    struct file *file = file_of(sim, handle);

    must(sim->handles[handle].may_write);
    return file;
}

static bool has_name(const struct disk_sim *sim, size_t file)
{
    for (size_t i = 0; i < sim->seen.count; i++)
        if (sim->seen.entries[i].file == file)
            return true;
    return false;
}

uint64_t disk_sim_space_used(const struct disk_sim *sim)
{
    uint64_t used = 0;

    for (size_t i = 0; i < sim->file_count; i++)
        if (sim->files[i].handles > 0 || has_name(sim, i))
            used += sim->files[i].taken;
    return used;
}

/* Takes space up to `bytes` of the file, as far as there is some. Returns how many bytes it has then. */
static uint64_t space_take(struct disk_sim *sim, struct file *file, uint64_t bytes)
{
    if (bytes <= file->taken)
        return file->taken;
    uint64_t used = sim->space == UINT64_MAX ? 0 : disk_sim_space_used(sim);
    uint64_t left = sim->space > used ? sim->space - used : 0;
    file->taken += bytes - file->taken < left ? bytes - file->taken : left;
    return file->taken;
}

static int handle_new(struct disk_sim *sim, size_t file, bool may_write)
{
    for (int i = 0; i < HANDLES; i++)
        if (!sim->handles[i].is_open) {
            sim->handles[i].is_open = true;
            sim->handles[i].may_write = may_write;
            sim->handles[i].file = file;
            sim->files[file].handles++;
            return i;
        }
    return -EMFILE;
}

static size_t file_new(struct disk_sim *sim)
{
    sim->files = grown(sim->files, sim->file_count, &sim->file_room, sizeof(sim->files[0]));
    sim->files[sim->file_count] = (struct file){0};
    return sim->file_count++;
}

static int open_file(struct disk_sim *sim, const char *text, enum disk_open how)
{
    struct name *name = name_find(&sim->seen, text);

    if (how != DISK_MAKE)
        return name == NULL ? -ENOENT : handle_new(sim, name->file, how == DISK_WRITE);
    if (name != NULL)
        return -EEXIST;
    size_t file = file_new(sim);
    move_do(sim, "", text, file);
    return handle_new(sim, file, true);
}

static int sim_open(struct disk *disk, const char *name, enum disk_open how)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_OPEN);

    return (int)finish(sim, SIM_OPEN, error < 0 ? error : open_file(sim, name, how));
}

static int sim_close(struct disk *disk, int handle)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_CLOSE);

    file_of(sim, handle)->handles--;
    sim->handles[handle].is_open = false; /* as Linux does, whatever close returned */
    return (int)finish(sim, SIM_CLOSE, error);
}

static int64_t sim_read(struct disk *disk, int handle, void *out, size_t len, uint64_t offset)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_READ);
    const struct contents *seen = &file_of(sim, handle)->seen;
    uint64_t left = seen->size > offset ? seen->size - offset : 0;

    if (error < 0)
        return finish(sim, SIM_READ, error);
    if (len > left)
        len = left;
    contents_read(seen, out, len, offset);
    return finish(sim, SIM_READ, (int64_t)len);
}

static void write_part(struct disk_sim *sim, struct file *file, const void *data, size_t len, uint64_t offset)
{
    if (len == 0)
        return;
    change_add(file, sim->calls[SIM_ANY], data, len, offset);
    contents_write(&file->seen, data, len, offset);
}

static int sim_write(struct disk *disk, int handle, const void *data, size_t len, uint64_t offset)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_WRITE);
    struct file *file = file_to_write(sim, handle);
    size_t done = error < 0 ? dice_below(&sim->dice, (uint32_t)len) : len;
    uint64_t has = space_take(sim, file, offset + done);

    if (has < offset + done) {
        done = has > offset ? has - offset : 0;
        error = -ENOSPC;
    }
    write_part(sim, file, data, done, offset);
    return (int)finish(sim, SIM_WRITE, error);
}

static int sim_sync(struct disk *disk, int handle)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_SYNC);
    struct file *file = file_of(sim, handle);

    if (error < 0)
        apply_reordered(&file->durable, file, &sim->dice);
    for (size_t i = 0; error == 0 && i < file->change_count; i++)
        apply(&file->durable, &file->changes[i]);
    changes_free(file);
    return (int)finish(sim, SIM_SYNC, error);
}

static int sim_allocate(struct disk *disk, int handle, uint64_t bytes)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_ALLOCATE);
    struct file *file = file_to_write(sim, handle);
    uint64_t has = space_take(sim, file, error < 0 ? bytes / 2 : bytes);

    if (error == 0 && has < bytes)
        error = -ENOSPC;
    uint64_t size = (has < bytes ? has : bytes) / SIM_PAGE_BYTES * SIM_PAGE_BYTES;
    if (error == 0)
        size = bytes;
    if (size > file->seen.size) {
        change_add(file, sim->calls[SIM_ANY], NULL, 0, size);
        apply_size(&file->seen, size);
    }
    return (int)finish(sim, SIM_ALLOCATE, error);
}

static int64_t sim_size(struct disk *disk, int handle)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_SIZE);

    return finish(sim, SIM_SIZE, error < 0 ? error : (int64_t)file_of(sim, handle)->seen.size);
}

static int sim_rename(struct disk *disk, const char *from, const char *to)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_RENAME);
    const struct name *name = name_find(&sim->seen, from);

    if (error == 0 && name == NULL)
        error = -ENOENT;
    if (error == 0)
        move_do(sim, from, to, name->file);
    return (int)finish(sim, SIM_RENAME, error);
}

static int sim_remove(struct disk *disk, const char *text)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_REMOVE);
    const struct name *name = name_find(&sim->seen, text);

    if (error == 0 && name == NULL)
        error = -ENOENT;
    if (error == 0)
        move_do(sim, text, "", name->file);
    return (int)finish(sim, SIM_REMOVE, error);
}

static int sim_sync_folder(struct disk *disk)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_SYNC_FOLDER);

    for (size_t i = 0; i < sim->move_count; i++)
        if (error == 0 || dice_below(&sim->dice, 2) == 0)
            move_apply(&sim->durable, &sim->moves[i]);
    sim->move_count = 0;
    return (int)finish(sim, SIM_SYNC_FOLDER, error);
}

static int sim_list(struct disk *disk, void (*each)(void *context, const char *name), void *context)
{
    struct disk_sim *sim = sim_of(disk);
    int error = begin(sim, SIM_LIST);
    struct names names = sim->seen; /* whatever is done meanwhile */

    for (size_t i = 0; error == 0 && i < names.count; i++)
        each(context, names.entries[i].text);
    return (int)finish(sim, SIM_LIST, error);
}

static void sim_boot(struct disk *disk, unsigned char id[DISK_BOOT_BYTES])
{
    struct dice dice = {sim_of(disk)->boots};

    for (int i = 0; i < DISK_BOOT_BYTES; i++)
        id[i] = (unsigned char)dice_roll(&dice);
}

struct disk_sim *disk_sim_new(void)
{
    struct disk_sim *sim = calloc(1, sizeof(*sim));

    must(sim != NULL);
    sim->disk = (struct disk){
        .open = sim_open,
        .close = sim_close,
        .read = sim_read,
        .write = sim_write,
        .sync = sim_sync,
        .allocate = sim_allocate,
        .size = sim_size,
        .rename = sim_rename,
        .remove = sim_remove,
        .sync_folder = sim_sync_folder,
        .list = sim_list,
        .boot = sim_boot,
    };
    sim->space = UINT64_MAX;
    return sim;
}

void disk_sim_free(struct disk_sim *sim)
{
    for (size_t i = 0; i < sim->file_count; i++) {
        contents_free(&sim->files[i].seen);
        contents_free(&sim->files[i].durable);
        changes_free(&sim->files[i]);
        free(sim->files[i].changes);
    }
    free(sim->files);
    free(sim->moves);
    free(sim);
}

struct disk *disk_sim_disk(struct disk_sim *sim)
{
    return &sim->disk;
}

uint64_t disk_sim_calls(const struct disk_sim *sim, enum sim_call call)
{
    return sim->calls[call];
}

void disk_sim_watch(struct disk_sim *sim,
                    void (*after)(void *context, struct disk_sim *sim, enum sim_call call), void *context)
{
    sim->after = after;
    sim->after_context = context;
}

void disk_sim_fail(struct disk_sim *sim, enum sim_call call, uint64_t n, int error, bool is_for_good)
{
    sim->faults[call] = (struct fault){n, error, is_for_good};
}

void disk_sim_heal(struct disk_sim *sim)
{
    memset(sim->faults, 0, sizeof(sim->faults));
}

void disk_sim_set_space(struct disk_sim *sim, uint64_t bytes)
{
    sim->space = bytes;
}

/* ---- the end of processes and of power ---- */

static struct disk_sim *sim_like(const struct disk_sim *sim, uint32_t boots)
{
    struct disk_sim *like = disk_sim_new();

    like->boots = boots;
    like->space = sim->space;
    like->dice = sim->dice;
    return like;
}

static void file_copy(struct disk_sim *to, const struct file *file)
{
    size_t index = file_new(to);
    struct file *copy = &to->files[index];

    *copy = (struct file){
        .seen = contents_copy(&file->seen), .durable = contents_copy(&file->durable), .taken = file->taken};
    for (size_t i = 0; i < file->change_count; i++) {
        const struct change *change = &file->changes[i];
        change_add(copy, change->number, change->data, change->len, change->offset);
        copy->changes[i].is_extending = change->is_extending;
    }
}

struct disk_sim *disk_sim_crash(const struct disk_sim *sim)
{
    struct disk_sim *after = sim_like(sim, sim->boots);

    for (size_t i = 0; i < sim->file_count; i++)
        file_copy(after, &sim->files[i]);
    after->seen = sim->seen;
    after->durable = sim->durable;
    after->moves = copied(sim->moves, sim->move_count * sizeof(sim->moves[0]));
    after->move_count = after->move_room = sim->move_count;
    /* Numbers of calls go on, so that what waits stays in order. */
    after->calls[SIM_ANY] = sim->calls[SIM_ANY];
    return after;
}

/* Every change that waits has a number. How many are there, and which is the n-th? */
struct waiting {
    uint64_t *numbers;
    size_t count;
};

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static struct waiting waiting_of(const struct disk_sim *sim)
{
    struct waiting waiting = {0};
    size_t room = 0;

    for (size_t i = 0; i < sim->file_count; i++)
        for (size_t k = 0; k < sim->files[i].change_count; k++) {
            waiting.numbers = grown(waiting.numbers, waiting.count, &room, sizeof(waiting.numbers[0]));
            waiting.numbers[waiting.count++] = sim->files[i].changes[k].number;
        }
    for (size_t i = 0; i < sim->move_count; i++) {
        waiting.numbers = grown(waiting.numbers, waiting.count, &room, sizeof(waiting.numbers[0]));
        waiting.numbers[waiting.count++] = sim->moves[i].number;
    }
    if (waiting.count > 0)
        qsort(waiting.numbers, waiting.count, sizeof(waiting.numbers[0]), compare_numbers);
    return waiting;
}

/* The number at which it tears: the last one as often as all others together, because that is where acknowledgements are. */
static uint64_t tear_at(const struct disk_sim *sim, struct dice *dice)
{
    struct waiting waiting = waiting_of(sim);
    uint64_t number = UINT64_MAX;

    if (waiting.count > 0) {
        uint32_t last = (uint32_t)waiting.count - 1;
        number = waiting.numbers[dice_below(dice, 2) == 0 ? last : dice_below(dice, last + 1)];
    }
    free(waiting.numbers);
    return number;
}

struct cut {
    enum sim_loss loss;
    uint64_t torn; /* SIM_TEAR: the number of the change that is torn */
    struct dice dice;
};

static void change_survive(struct contents *contents, const struct change *change, struct cut *cut)
{
    if (cut->loss == SIM_KEEP || (cut->loss == SIM_TEAR && change->number < cut->torn))
        apply(contents, change);
    else if (cut->loss == SIM_TEAR && change->number == cut->torn)
        apply_torn(contents, change, &cut->dice);
}

static bool move_survives(const struct move *move, struct cut *cut)
{
    switch (cut->loss) {
    case SIM_KEEP:
        return true;
    case SIM_TEAR:
        return move->number < cut->torn || (move->number == cut->torn && dice_below(&cut->dice, 2) == 0);
    case SIM_REORDER:
        return dice_below(&cut->dice, 2) == 0;
    default:
        return false;
    }
}

static void file_survive(struct disk_sim *after, const struct file *file, struct cut *cut)
{
    size_t index = file_new(after);
    struct file *copy = &after->files[index];

    copy->seen = contents_copy(&file->durable);
    if (cut->loss == SIM_REORDER)
        apply_reordered(&copy->seen, file, &cut->dice);
    for (size_t i = 0; i < file->change_count; i++)
        change_survive(&copy->seen, &file->changes[i], cut);
    copy->durable = contents_copy(&copy->seen);
    copy->taken = file->taken;
}

struct disk_sim *disk_sim_power_cut(const struct disk_sim *sim, enum sim_loss loss, uint64_t seed)
{
    struct disk_sim *after = sim_like(sim, sim->boots + 1);
    struct cut cut = {.loss = loss, .dice = {seed}};

    if (loss == SIM_TEAR)
        cut.torn = tear_at(sim, &cut.dice);
    for (size_t i = 0; i < sim->file_count; i++)
        file_survive(after, &sim->files[i], &cut);
    after->seen = sim->durable;
    for (size_t i = 0; i < sim->move_count; i++)
        if (move_survives(&sim->moves[i], &cut))
            move_apply(&after->seen, &sim->moves[i]);
    after->durable = after->seen;
    return after;
}
