/* SPDX-License-Identifier: BSD-2-Clause */
/* How the journal does, for the operator. It is read from the zone, and so answered also when no room can be asked. */
#include "nginx/admin.h"
#include "nginx/journal.h"
#include "nginx/reply.h"
#include "nginx/text.h"

#define STATUS_BYTES 512 /* without the text */

static const char *const states[] = {
    [JOURNAL_AWAITED] = "awaited", [JOURNAL_FINE] = "fine",     [JOURNAL_SHORT] = "short",
    [JOURNAL_FULL] = "full",       [JOURNAL_BROKEN] = "broken",
};
static const char *const syncs[] = {
    [SYNC_OFF] = "off", [SYNC_INTERVAL] = "interval", [SYNC_ALWAYS] = "always"};

static enum journal_state status_of(const struct main_conf *conf, struct local_journal_figures *figures);
static void status_add(ngx_buf_t *body, enum journal_state state,
                       const struct local_journal_figures *figures);
static void word_add(ngx_buf_t *body, struct span name, const char *word);

enum admin_next journal_status_begin(ngx_http_request_t *r, struct admin_state *state)
{
    const struct main_conf *conf = conf_main(r);
    struct local_journal_figures figures;
    ngx_buf_t *body = reply_buffer(r, STATUS_BYTES + 2 * sizeof(figures.text));
    if (body != NULL && conf->journal == NULL)
        TEXT_ADD(body, "{\"state\":\"off\"}");
    else if (body != NULL)
        status_add(body, status_of(conf, &figures), &figures);
    return admin_tell(r, state, NGX_HTTP_OK, body);
}

/* Before it is recovered it has the options that it is going to have. */
static enum journal_state status_of(const struct main_conf *conf, struct local_journal_figures *figures)
{
    enum journal_state state = journal_look(conf->journal, conf->zone, figures);
    if (!figures->is_on)
        figures->options = conf->journal_conf->options;
    return state;
}

static void status_add(ngx_buf_t *body, enum journal_state state, const struct local_journal_figures *figures)
{
    const struct log_options *options = &figures->options;
    word_add(body, SPAN("{\"state\":"), states[state]);
    word_add(body, SPAN(",\"text\":"), figures->text);
    word_add(body, SPAN(",\"sync\":"), syncs[options->sync]);
    text_add_count(body, SPAN(",\"interval_ms\":"), options->interval_ms);
    text_add_count(body, SPAN(",\"segment_bytes\":"), options->segment_bytes);
    text_add_count(body, SPAN(",\"reserve_bytes\":"), options->reserve_bytes);
    text_add_count(body, SPAN(",\"end\":"), figures->end);
    text_add_count(body, SPAN(",\"written\":"), figures->written);
    text_add_count(body, SPAN(",\"synced\":"), figures->synced);
    text_add_count(body, SPAN(",\"unsynced_bytes\":"), figures->end - figures->synced);
    text_add_count(body, SPAN(",\"snapshot\":"), figures->snapshot);
    TEXT_ADD(body, "}");
}

static void word_add(ngx_buf_t *body, struct span name, const char *word)
{
    text_add(body, name);
    TEXT_ADD(body, "\"");
    text_add_message(body, span_of(word));
    TEXT_ADD(body, "\"");
}
