/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the directive opens nothing and makes nothing: nginx -t and a second nginx come this way too. What can be seen by
 * looking, a file where the folder should be or a folder that cannot be made, is refused here already.
 */
#include "nginx/journal.h"

#define INTERVAL_MS       1000
#define INTERVAL_LEAST_MS 10
#define SEGMENT_BYTES     (64 << 20)
#define SEGMENT_UNIT      4096
#define RESERVE_BYTES     (16 << 20)

enum part { PART_SYNC = 1, PART_INTERVAL = 2, PART_SEGMENT = 4, PART_RESERVE = 8 };

static char *path_read(ngx_conf_t *cf, struct journal_conf *journal);
static char *path_check(ngx_conf_t *cf, const ngx_str_t *path);
static char *parts_read(ngx_conf_t *cf, struct log_options *options);
static char *part_read(const ngx_str_t *word, struct log_options *options, unsigned *said);
static char *sync_read(ngx_str_t value, struct log_options *options, unsigned *said);
static char *interval_read(ngx_str_t value, struct log_options *options, unsigned *said);
static char *segment_read(ngx_str_t value, struct log_options *options, unsigned *said);
static char *reserve_read(ngx_str_t value, struct log_options *options, unsigned *said);

char *journal_directive(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct main_conf *conf = data;
    if (conf->journal_conf != NULL)
        return "is duplicate: one journal keeps all rooms";
    struct journal_conf *journal = ngx_pcalloc(cf->pool, sizeof(*journal));
    if (journal == NULL)
        return NGX_CONF_ERROR;
    conf->journal_conf = journal;
    journal->cycle = cf->cycle;
#if (NGX_THREADS)
    journal->threads = ngx_thread_pool_add(cf, NULL);
    if (journal->threads == NULL)
        return NGX_CONF_ERROR;
#endif
    conf_note_need(cf);
    char *answer = parts_read(cf, &journal->options);
    return answer == NGX_CONF_OK ? path_read(cf, journal) : answer;
}

static char *path_read(ngx_conf_t *cf, struct journal_conf *journal)
{
    ngx_str_t *words = cf->args->elts, path = words[1];
    if (path.len == 0)
        return "needs a folder";
    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK)
        return NGX_CONF_ERROR;
    while (path.len > 1 && path.data[path.len - 1] == '/')
        path.len--;
    if (path.len >= JOURNAL_PATH_MAX)
        return "names a folder with too long a path";
    path.data = ngx_pstrdup(cf->pool, &(ngx_str_t){path.len + 1, path.data});
    if (path.data == NULL)
        return NGX_CONF_ERROR;
    path.data[path.len] = '\0';
    journal->path = path;
    return path_check(cf, &path);
}

static char *path_check(ngx_conf_t *cf, const ngx_str_t *path)
{
    ngx_file_info_t info;
    if (ngx_file_info(path->data, &info) == 0) {
        if (ngx_is_dir(&info))
            return NGX_CONF_OK;
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_journal needs a folder, and \"%V\" is none", path);
        return NGX_CONF_ERROR;
    }
    char above[JOURNAL_PATH_MAX];
    ngx_cpystrn((u_char *)above, path->data, sizeof(above));
    *strrchr(above, '/') = '\0';
    /* Whoever may not look there may be testing for somebody who may. */
    if (above[0] == '\0' || (ngx_file_info(above, &info) == 0 ? ngx_is_dir(&info) : ngx_errno == NGX_EACCES))
        return NGX_CONF_OK;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "weir_journal cannot make the folder \"%V\": there is no folder \"%s\"", path, above);
    return NGX_CONF_ERROR;
}

static char *parts_read(ngx_conf_t *cf, struct log_options *options)
{
    const ngx_str_t *words = cf->args->elts;
    unsigned said = 0;
    *options = (struct log_options){SYNC_INTERVAL, INTERVAL_MS, SEGMENT_BYTES, RESERVE_BYTES};
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        char *answer = part_read(&words[i], options, &said);
        if (answer != NGX_CONF_OK)
            return answer;
    }
    if (said & PART_INTERVAL && options->sync != SYNC_INTERVAL)
        return "has an interval, which sync=always and sync=off do not";
    if (!(said & PART_RESERVE) && options->reserve_bytes > options->segment_bytes / 4)
        options->reserve_bytes = options->segment_bytes / 4;
    /* A new segment is all there is until the one after it is made: it must be worth more than the reserve. */
    if (options->reserve_bytes > options->segment_bytes / 2)
        return "takes a reserve of up to half a segment";
    return NGX_CONF_OK;
}

static char *part_read(const ngx_str_t *word, struct log_options *options, unsigned *said)
{
    static const struct {
        const char *prefix;
        enum part part;
        char *(*read)(ngx_str_t value, struct log_options *options, unsigned *said);
    } parts[] = {{"sync=", PART_SYNC, sync_read},
                 {"interval=", PART_INTERVAL, interval_read},
                 {"segment=", PART_SEGMENT, segment_read},
                 {"reserve=", PART_RESERVE, reserve_read}};
    ngx_str_t value;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!conf_parameter(word, parts[i].prefix, &value))
            continue;
        if (*said & parts[i].part)
            return "says the same thing twice";
        *said |= parts[i].part;
        return parts[i].read(value, options, said);
    }
    return "knows a folder and sync=, interval=, segment= and reserve=";
}

/* sync=interval=1s says in one what sync=interval interval=1s says in two. */
static char *sync_read(ngx_str_t value, struct log_options *options, unsigned *said)
{
    ngx_str_t interval;
    if (conf_parameter(&value, "interval=", &interval)) {
        if (*said & PART_INTERVAL)
            return "says the same thing twice";
        return interval_read(interval, options, said);
    }
    if (span_equal(span_of_str(value), SPAN("always")))
        options->sync = SYNC_ALWAYS;
    else if (span_equal(span_of_str(value), SPAN("off")))
        options->sync = SYNC_OFF;
    else if (!span_equal(span_of_str(value), SPAN("interval")))
        return "takes sync=always, sync=interval=TIME or sync=off";
    return NGX_CONF_OK;
}

static char *interval_read(ngx_str_t value, struct log_options *options, unsigned *said)
{
    ngx_int_t ms = ngx_parse_time(&value, 0);
    *said |= PART_INTERVAL;
    if (ms == NGX_ERROR || ms < INTERVAL_LEAST_MS || ms > UINT32_MAX)
        return "takes interval=TIME with a time from 10ms on";
    options->interval_ms = (uint32_t)ms;
    return NGX_CONF_OK;
}

static char *segment_read(ngx_str_t value, struct log_options *options, unsigned *said)
{
    off_t bytes = ngx_parse_offset(&value);
    if (bytes == NGX_ERROR || bytes < LOG_SEGMENT_LEAST)
        return "takes segment=SIZE with a size from 1m on";
    options->segment_bytes = (uint64_t)bytes / SEGMENT_UNIT * SEGMENT_UNIT;
    return NGX_CONF_OK;
}

static char *reserve_read(ngx_str_t value, struct log_options *options, unsigned *said)
{
    off_t bytes = ngx_parse_offset(&value);
    if (bytes == NGX_ERROR)
        return "takes reserve=SIZE";
    options->reserve_bytes = (uint64_t)bytes;
    return NGX_CONF_OK;
}
