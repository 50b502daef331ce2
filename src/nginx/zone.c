/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nginx lays a slab allocator over every shared zone, and force-unlocks that allocator's mutex when a worker dies; so its
 * head must stay whole. The local engine wants one plain block with locks of its own. Both are had by one allocation that
 * takes every free page of the slab: it is page-aligned, and the slab is never asked again.
 *
 * Over a reload nginx hands the same memory to the new configuration if name, size and tag are the same. The tag usually is
 * the module, but a reload that also brings a new module file brings a new address for it, and everybody in line would be
 * forgotten; so the tag is a symbol of nginx itself. What guards against a new module with another idea of the memory is
 * the layout written at its head, the sizes of what lies in it included. Another size or layout is refused: the old workers
 * go on with the old configuration.
 */
#include "nginx/zone.h"

#include "base/must.h"
#include "engine/local.h"
#include "nginx/journal.h"

#include <sys/mman.h>

#define ZONE_TAG     ((void *)&ngx_http_core_module)
#define HEAD_BYTES   ((size_t)ngx_pagesize)
#define LAYOUT_BYTES 64
#define LAYOUT       "weir zone 3, " /* raised where a change of meaning leaves every size as it was */

/* What lies before the engine's block. It outlives configurations, and maybe the module that wrote it. */
struct zone_head {
    char layout[LAYOUT_BYTES];
    uint32_t rooms_max;
    struct local_zone *zone;
    size_t bytes; /* of it */
    struct journal journal;
};

static char *parameters_read(ngx_conf_t *cf, struct main_conf *conf, size_t *bytes);
static char *size_check(ngx_conf_t *cf, struct main_conf *conf, size_t bytes);
static ngx_shm_zone_t *zone_of_running_nginx(ngx_conf_t *cf);
static ngx_int_t zone_init(ngx_shm_zone_t *shm, void *old_data);
static struct local_zone_options options_of(const struct main_conf *conf);
static ngx_int_t zone_lay_out(ngx_shm_zone_t *shm, const struct local_zone_options *options);
static ngx_int_t zone_take_over(ngx_shm_zone_t *shm, const struct local_zone_options *options);
static bool layout_is_ours(const struct zone_head *head);
static void layout_write(char out[LAYOUT_BYTES]);

static ngx_str_t name = ngx_string("weir");

char *zone_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct main_conf *conf = data;
    size_t bytes;
    if (conf->shm != NULL)
        return "is duplicate: one zone holds all rooms";
    if (conf->store != NULL)
        return "cannot stand beside weir_store: one of them keeps the rooms";
    char *answer = parameters_read(cf, conf, &bytes);
    if (answer != NGX_CONF_OK)
        return answer;
    answer = size_check(cf, conf, bytes);
    if (answer != NGX_CONF_OK)
        return answer;
    conf->shm = ngx_shared_memory_add(cf, &name, bytes, ZONE_TAG);
    if (conf->shm == NULL)
        return NGX_CONF_ERROR;
    conf->shm->init = zone_init;
    conf->shm->data = conf;
    return NGX_CONF_OK;
}

static char *parameters_read(ngx_conf_t *cf, struct main_conf *conf, size_t *bytes)
{
    ngx_str_t *words = cf->args->elts, value;
    ssize_t size = ngx_parse_size(&words[1]);
    ngx_int_t rooms = CONF_ROOMS_DEFAULT;
    if (cf->args->nelts == 3) {
        if (!conf_parameter(&words[2], "rooms=", &value))
            return "knows a size and rooms=N";
        rooms = ngx_atoi(value.data, value.len);
    }
    if (size == NGX_ERROR)
        return "needs a size such as 64m";
    if (rooms < 1 || rooms > CONF_ROOMS_MOST)
        return "takes rooms=N with N from 1 to 100000";
    conf->rooms_max = (uint32_t)rooms;
    *bytes = (size_t)size / ngx_pagesize * ngx_pagesize;
    return NGX_CONF_OK;
}

static char *size_check(ngx_conf_t *cf, struct main_conf *conf, size_t bytes)
{
    /* The slab's own head: a descriptor a page, and a few pages. */
    size_t least = local_zone_least_bytes(conf->rooms_max);
    least += least / ngx_pagesize * sizeof(ngx_slab_page_t) + 8 * ngx_pagesize;
    least = ngx_align(least, ngx_pagesize);
    if (bytes < least) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_zone is too small: %uD rooms need at least %uzk",
                           conf->rooms_max, (least + 1023) / 1024);
        return NGX_CONF_ERROR;
    }
    ngx_shm_zone_t *running = zone_of_running_nginx(cf);
    if (running != NULL && running->shm.size != bytes) {
        ngx_conf_log_error(
            NGX_LOG_EMERG, cf, 0,
            "weir_zone cannot change its size from %uzk to %uzk in a reload, for everybody in line would be "
            "forgotten: restart nginx instead",
            running->shm.size / 1024, bytes / 1024);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static ngx_shm_zone_t *zone_of_running_nginx(ngx_conf_t *cf)
{
    if (cf->cycle->old_cycle == NULL)
        return NULL;
    for (ngx_list_part_t *part = &cf->cycle->old_cycle->shared_memory.part; part != NULL; part = part->next) {
        ngx_shm_zone_t *zones = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            if (zones[i].tag == ZONE_TAG && span_equal(span_of_str(zones[i].shm.name), span_of_str(name)))
                return &zones[i];
    }
    return NULL;
}

ngx_int_t zone_check_kept(ngx_conf_t *cf)
{
    const struct main_conf *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    const ngx_shm_zone_t *running = conf->shm == NULL ? zone_of_running_nginx(cf) : NULL;
    if (running == NULL)
        return NGX_OK;
    const struct zone_head *head = ((ngx_slab_pool_t *)running->shm.addr)->data;
    if (!layout_is_ours(head) || head->journal.path[0] == '\0')
        return NGX_OK;
    ngx_log_error(
        NGX_LOG_EMERG, cf->log, 0,
        "weir_zone cannot be taken away in a reload while it has a weir_journal: restart nginx instead");
    return NGX_ERROR;
}

static ngx_int_t zone_init(ngx_shm_zone_t *shm, void *old_data)
{
    struct main_conf *conf = shm->data;
    struct local_zone_options options = options_of(conf);
    ngx_int_t answer = old_data != NULL ? zone_take_over(shm, &options) : zone_lay_out(shm, &options);
    if (answer != NGX_OK)
        return answer;
    conf->rooms_are_pending = conf->journal != NULL && !conf->journal->is_ready;
    if (conf->rooms_are_pending)
        return NGX_OK;
    answer = zone_put_rooms(conf, shm->shm.log);
    if (answer == NGX_OK && old_data == NULL && conf->journal == NULL)
        local_zone_had_former(conf->zone, (uint32_t)ngx_time());
    return answer;
}

static struct local_zone_options options_of(const struct main_conf *conf)
{
    return (struct local_zone_options){conf->rooms_max, conf->makes_rooms, conf->made_settings,
                                       conf->made_texts, 0};
}

static ngx_int_t zone_lay_out(ngx_shm_zone_t *shm, const struct local_zone_options *options)
{
    struct main_conf *conf = shm->data;
    ngx_slab_pool_t *slab = (ngx_slab_pool_t *)shm->shm.addr;
    slab->log_nomem = 0;
    size_t bytes = slab->pfree * ngx_pagesize;
    struct zone_head *head = ngx_slab_alloc(slab, bytes);
    must(sizeof(*head) <= HEAD_BYTES);
    if (head == NULL || bytes < HEAD_BYTES + local_zone_least_bytes(options->rooms_max)) {
        ngx_log_error(NGX_LOG_EMERG, shm->shm.log, 0, "weir_zone is too small");
        return NGX_ERROR;
    }
#if (NGX_DEBUG_MALLOC)
    ngx_memzero(head, bytes); /* such a slab fills its memory with junk */
#endif
    head->bytes = bytes - HEAD_BYTES;
    head->zone = local_zone_init((u_char *)head + HEAD_BYTES, head->bytes, options);
    head->rooms_max = options->rooms_max;
    layout_write(head->layout);
    slab->data = head;
    conf->zone = head->zone;
    if (conf->journal_conf == NULL || ngx_test_config)
        return NGX_OK;
    conf->journal = &head->journal;
    return journal_open(conf->journal, conf, conf->zone);
}

static ngx_int_t zone_take_over(ngx_shm_zone_t *shm, const struct local_zone_options *options)
{
    struct main_conf *conf = shm->data;
    struct zone_head *head = ((ngx_slab_pool_t *)shm->shm.addr)->data;
    if (!layout_is_ours(head)) {
        ngx_log_error(NGX_LOG_EMERG, shm->shm.log, 0,
                      "weir_zone was laid out by another version of the module: restart nginx instead");
        return NGX_ERROR;
    }
    if (options->rooms_max != head->rooms_max) {
        ngx_log_error(NGX_LOG_EMERG, shm->shm.log, 0,
                      "weir_zone cannot change rooms=%uD to rooms=%uD in a reload: restart nginx instead",
                      head->rooms_max, options->rooms_max);
        return NGX_ERROR;
    }
    if (journal_keep(&head->journal, conf, head->zone, shm->shm.log) != NGX_OK)
        return NGX_ERROR;
    if (conf->journal_conf != NULL)
        conf->journal = &head->journal;
    conf->zone = head->zone;
    return NGX_OK;
}

void zone_lay_out_again(struct main_conf *conf)
{
    struct zone_head *head = ((ngx_slab_pool_t *)conf->shm->shm.addr)->data;
    struct local_zone_options options = options_of(conf);
    if (madvise(head->zone, head->bytes, MADV_REMOVE) != 0)
        ngx_memzero(head->zone, head->bytes);
    (void)local_zone_init(head->zone, head->bytes, &options);
    local_zone_await_journal(head->zone);
}

ngx_int_t zone_put_rooms(struct main_conf *conf, ngx_log_t *log)
{
    struct local_zone_options options = options_of(conf);
    struct room_conf *rooms = conf->rooms.elts;
    local_zone_reconfigure(conf->zone, &options);
    for (ngx_uint_t i = 0; i < conf->rooms.nelts; i++) {
        enum error error =
            local_zone_put_room(conf->zone, span_of_str(rooms[i].name), &rooms[i].settings, &rooms[i].texts);
        if (error == ERROR_NONE)
            continue;
        ngx_log_error(
            NGX_LOG_EMERG, log, 0, "the room \"%V\" cannot be set up: %s", &rooms[i].name,
            error == ERROR_QUEUE_FULL
                ? "weir_zone has no place for another room: say a higher rooms=N, or delete one that is not "
                  "needed any more (the journal keeps rooms that the configuration no longer names)"
                : error_info(error)->meaning);
        return NGX_ERROR;
    }
    return NGX_OK;
}

static bool layout_is_ours(const struct zone_head *head)
{
    char layout[LAYOUT_BYTES];
    layout_write(layout);
    return ngx_strncmp(head->layout, layout, LAYOUT_BYTES) == 0;
}

/* With the sizes of everything that lies in the zone, so that a change of one cannot be forgotten here. */
static void layout_write(char out[LAYOUT_BYTES])
{
    ngx_memcpy(out, LAYOUT, sizeof(LAYOUT));
    local_zone_layout(out + sizeof(LAYOUT) - 1, LAYOUT_BYTES - sizeof(LAYOUT));
}
