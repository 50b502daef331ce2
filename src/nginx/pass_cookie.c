/* SPDX-License-Identifier: BSD-2-Clause */
/* A cookie a room, so that somebody may be in several; a cookie's name may not hold ':', and no room's name holds '~'. */
#include "nginx/pass_cookie.h"

#include "base/must.h"
#include "nginx/reply.h"
#include "nginx/request.h"
#include "nginx/text.h"

struct span pass_cookie_name(struct span room, char memory[PASS_COOKIE_NAME_MAX])
{
    static const struct span prefix = SPAN(PASS_COOKIE_PREFIX);
    must(room.len <= ROOM_ID_MAX);
    memcpy(memory, prefix.data, prefix.len);
    for (size_t i = 0; i < room.len; i++)
        memory[prefix.len + i] = room.data[i] == ':' ? '~' : room.data[i];
    return (struct span){memory, prefix.len + room.len};
}

ngx_int_t pass_cookie_set(ngx_http_request_t *r, struct span room, struct span pass, uint32_t life_sec)
{
    char memory[PASS_COOKIE_NAME_MAX];
    ngx_buf_t *text = reply_buffer(r, PASS_COOKIE_NAME_MAX + pass.len + 96);
    if (text == NULL)
        return NGX_ERROR;
    text_add(text, pass_cookie_name(room, memory));
    TEXT_ADD(text, "=");
    text_add(text, pass);
    TEXT_ADD(text, "; Path=/; Max-Age=");
    text_add_number(text, life_sec);
    TEXT_ADD(text, "; HttpOnly; SameSite=Lax");
    if (request_is_tls(r))
        TEXT_ADD(text, "; Secure");
    return reply_header(r, SPAN("Set-Cookie"),
                        (struct span){(const char *)text->pos, (size_t)(text->last - text->pos)});
}
