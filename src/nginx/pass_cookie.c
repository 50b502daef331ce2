/* SPDX-License-Identifier: BSD-2-Clause */
/* A cookie a room, so that somebody may be in several; a cookie's name may not hold ':', and no room's name holds '~'. */
#include "nginx/pass_cookie.h"

#include "base/must.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

#define TICKET_LIFE_SEC 86400

static struct span name_write(struct span prefix, struct span room, char *memory);
static ngx_int_t cookie_set(ngx_http_request_t *r, struct span name, struct span value, uint32_t life_sec);

struct span pass_cookie_name(struct span room, char memory[PASS_COOKIE_NAME_MAX])
{
    return name_write(SPAN(PASS_COOKIE_PREFIX), room, memory);
}

struct span ticket_cookie_name(struct span room, char memory[TICKET_COOKIE_NAME_MAX])
{
    return name_write(SPAN(TICKET_COOKIE_PREFIX), room, memory);
}

static struct span name_write(struct span prefix, struct span room, char *memory)
{
    must(room.len <= ROOM_ID_MAX);
    memcpy(memory, prefix.data, prefix.len);
    for (size_t i = 0; i < room.len; i++)
        memory[prefix.len + i] = room.data[i] == ':' ? '~' : room.data[i];
    return (struct span){memory, prefix.len + room.len};
}

ngx_int_t pass_cookie_set(ngx_http_request_t *r, struct span room, struct span pass, uint32_t life_sec)
{
    char memory[PASS_COOKIE_NAME_MAX];
    return cookie_set(r, pass_cookie_name(room, memory), pass, life_sec);
}

ngx_int_t ticket_cookie_set(ngx_http_request_t *r, struct span room, struct span ticket)
{
    char memory[TICKET_COOKIE_NAME_MAX];
    return cookie_set(r, ticket_cookie_name(room, memory), ticket, TICKET_LIFE_SEC);
}

static ngx_int_t cookie_set(ngx_http_request_t *r, struct span name, struct span value, uint32_t life_sec)
{
    ngx_buf_t *text = reply_buffer(r, name.len + value.len + 96);
    if (text == NULL)
        return NGX_ERROR;
    text_add(text, name);
    TEXT_ADD(text, "=");
    text_add(text, value);
    TEXT_ADD(text, "; Path=/; Max-Age=");
    text_add_number(text, life_sec);
    TEXT_ADD(text, "; HttpOnly; SameSite=Lax");
    if (request_is_tls(r))
        TEXT_ADD(text, "; Secure");
    return reply_header(r, SPAN("Set-Cookie"),
                        (struct span){(const char *)text->pos, (size_t)(text->last - text->pos)});
}
