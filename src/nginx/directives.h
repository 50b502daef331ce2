/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEIR_NGINX_DIRECTIVES_H
#define WEIR_NGINX_DIRECTIVES_H

/*
 * Every directive of the module, one row each: the command table in module.c and docs/reference/directives.md are both made
 * from this list. It needs no nginx header unless `flags`, `level` and `set` are expanded.
 *
 * DIRECTIVE(name, syntax, default, contexts, flags, level, set, help)
 */
#define DIRECTIVE_LIST(DIRECTIVE)                                                                          \
    DIRECTIVE("weir_zone", "weir_zone SIZE [rooms=N];", "none; this or weir_store", "http",                \
              NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE12, NGX_HTTP_MAIN_CONF_OFFSET, zone_directive,             \
              "The shared memory that holds all rooms, and how many rooms it has place for (64 if not "    \
              "said). One zone serves the whole nginx. A reload keeps it, and everybody in it; another "   \
              "size or another number of rooms needs a restart.")                                          \
    DIRECTIVE("weir_store", "weir_store URL [timeout=TIME] [replicas=N] [rooms=N];",                       \
              "none: weir_zone keeps the rooms", "http", NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE,              \
              NGX_HTTP_MAIN_CONF_OFFSET, store_directive,                                                  \
              "The Redis or Valkey that keeps all rooms, in place of weir_zone: for several nginx that "   \
              "share them, and for rooms that outlive a machine. URL is `redis://HOST[:PORT]`, with "      \
              "more hosts behind commas, `rediss://HOST` over TLS, `redis+sentinel://HOST/NAME` by way "   \
              "of sentinels; whether it is a cluster is asked. A password stands in it "                   \
              "(`redis://USER:PASSWORD@HOST`), in a file (`?password_file=PATH`, read anew for each "      \
              "connection by the workers, whose user must be able to) or in a variable "                   \
              "(`?password_env=NAME`). For TLS: `ca`, `cert`, `key`, `name`, `verify=full|ca|none`. "      \
              "Relative paths are relative to the folder of nginx.conf. Names of hosts are resolved "      \
              "with the configuration, and again by nginx's `resolver` if the http block has one. "        \
              "`timeout` (2s; 100ms to 60s): what takes longer is answered 503 ENGINE_UNAVAILABLE. "       \
              "`replicas` (0): so many must know of an enter before a pass is given. `rooms` (64): so "    \
              "many there may be, those of other nginx counted. Passwords are never logged.")              \
    DIRECTIVE("weir_journal",                                                                              \
              "weir_journal PATH [sync=always|interval=TIME|off] [segment=SIZE] [reserve=SIZE];",          \
              "none: a restart forgets everybody", "http", NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE,            \
              NGX_HTTP_MAIN_CONF_OFFSET, journal_directive,                                                \
              "The folder in which the local engine writes down what happens, so that everybody has "      \
              "their place again after a restart. It is made if it is not there, and belongs to "          \
              "the workers' user; a relative PATH is relative to nginx's prefix. Nothing is "              \
              "answered before it is written: a crash of any worker, of the master or of all at "          \
              "once loses nothing, in any mode. `sync` says when it is also on the disk, and so "          \
              "what a power cut may take. `always`: before every answer; nothing that was answered "       \
              "is lost. `interval=TIME` (1s if nothing is said; 10ms at least): that often; up to "        \
              "that time's joins and calls may be lost, and each of those people is back at their "        \
              "own place when they poll; an enter, a leave and what an operator did are on the disk "      \
              "before they are answered, and never lost. `off`: when the kernel sees fit; what it "        \
              "had not written yet is lost, enters too. The journal is made of files of `segment` "        \
              "(64m; 1m at least), two of which are there at any time. While less than `reserve` of "      \
              "them is free (16m or a quarter of a segment; half of one at most) and the disk has "        \
              "no room for another, nobody can join; everybody in line is served. Only one nginx "         \
              "can use the folder. A reload takes other options, another PATH needs a restart. "           \
              "nginx -t does not touch it.")                                                               \
    DIRECTIVE("weir_secret_file", "weir_secret_file PATH;", "none; required", "http",                      \
              NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, NGX_HTTP_MAIN_CONF_OFFSET, secret_directive,            \
              "The file with the master secret, relative to the folder of nginx.conf. It must be "         \
              "readable by its owner alone (mode 0600 or 0400). Every key is derived from it.")            \
    DIRECTIVE(                                                                                             \
        "weir_admin_token_file", "weir_admin_token_file PATH;", "none: the operator's API is off", "http", \
        NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, NGX_HTTP_MAIN_CONF_OFFSET, admin_token_directive,             \
        "The file with the tokens of the operator's API: up to 16 lines `NAME TOKEN`, a name for the log " \
        "and a token of "                                                                                  \
        "32 to 256 printable characters. Like the secret file it must be readable by its owner alone. A "  \
        "reload takes a changed file. `$weir_admin` is the name that a "                                   \
        "request's token belongs to, empty without a valid one: for `limit_req` and for the access log.")  \
    DIRECTIVE("weir_pass", "weir_pass hs256 | eddsa [tier=N] [id=K];", "hs256", "http",                    \
              NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE123, NGX_HTTP_MAIN_CONF_OFFSET, pass_directive,            \
              "What passes are signed with: `hs256` (HMAC-SHA256: who can verify can sign) or "            \
              "`eddsa` (Ed25519, with public keys at `weir_api jwks`). Of both tiers and every key "       \
              "of the secret file, unless a tier or a key's id is named; the most precise line wins, "     \
              "and a key before a tier. A pass of another algorithm than its key's is refused, so "        \
              "change it with a new key: add one to the secret file, and name the old algorithm with "     \
              "the old key's `id`. Then no pass ends.")                                                    \
    DIRECTIVE("weir_pass_key", "weir_pass_key tier=N file=PATH [id=K];",                                   \
              "none: derived from the secret file", "http", NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE23,          \
              NGX_HTTP_MAIN_CONF_OFFSET, pass_key_directive,                                               \
              "The HS256 key of a tier's passes, for services that verify with a key of their own "        \
              "already: the bytes of the file but for one line end at its end, 32 to 1024 of them. "       \
              "Like the secret file it must be readable by its owner alone. Without `id` it is for "       \
              "all keys of the secret file, with it for passes of that key id. A key that serves "         \
              "another purpose, or stands in the secret file, is refused.")                                \
    DIRECTIVE("weir_room", "weir_room NAME [setting=value ...];", "none", "http",                          \
              NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, NGX_HTTP_MAIN_CONF_OFFSET, rooms_room_directive,        \
              "A room and its settings (see the settings reference). A reload gives a living room its "    \
              "new settings; nobody loses a place by that.")                                               \
    DIRECTIVE("weir_rooms", "weir_rooms listed | auto [setting=value ...];", "listed", "http",             \
              NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, NGX_HTTP_MAIN_CONF_OFFSET, rooms_directive,             \
              "What happens to a join into a room that no weir_room names: `listed` refuses it, `auto` "   \
              "makes the room with the settings given here, as long as the zone has place for another.")   \
    DIRECTIVE("weir_user", "weir_user $variable [from=CIDR ...] | off;", "off", "http, server, location",  \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_1MORE,                 \
              NGX_HTTP_LOC_CONF_OFFSET, identity_directive,                                                \
              "The identity of a signed-in visitor: 1 to 256 bytes. With `from` it is believed only if "   \
              "the connection itself, whatever realip made of it, comes from one of these ranges "         \
              "(`unix:` is one too): needed wherever the variable is something a client could send. "      \
              "Without an identity a visitor is known by a signed cookie.")                                \
    DIRECTIVE("weir_cors", "weir_cors ORIGIN ... | off;", "off", "http, server, location",                 \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_1MORE,                 \
              NGX_HTTP_LOC_CONF_OFFSET, cors_directive,                                                    \
              "Origins whose pages may call the API from a browser, each written in full "                 \
              "(`https://shop.example`).")                                                                 \
    DIRECTIVE("weir_idempotency", "weir_idempotency optional | required;", "optional",                     \
              "http, server, location",                                                                    \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,                 \
              NGX_HTTP_LOC_CONF_OFFSET, conf_idempotency_directive,                                        \
              "Whether join and enter must carry an Idempotency-Key.")                                     \
    DIRECTIVE("weir_api",                                                                                  \
              "weir_api [queue] [tier2] [concert [room=NAME] [user_id=trusted]] | lobby | "                \
              "admin [lobby] | health | "                                                                  \
              "jwks [tier=N];",                                                                            \
              "none", "location", NGX_HTTP_LOC_CONF | NGX_CONF_1MORE, NGX_HTTP_LOC_CONF_OFFSET,            \
              api_directive,                                                                               \
              "`queue` answers the queue API in a location such as `/api/v1/queue/`; `tier2` the "         \
              "signed-in queue's there or in `/api/queue/`; `concert` the concert queue's, whose one "     \
              "room is NAME (`concert` if not said), and in which with `user_id=trusted` everybody who "   \
              "can ask here may ask for anybody by name: for a location that only a service of yours "     \
              "can reach; where several stand together, what a request "                                   \
              "carries says which it is for. `lobby` answers the lobby's API in `/vwr-api/vwr/`, and "     \
              "`admin lobby` that of its operators in `/api/admin/vwr/`; `health` answers "                \
              "`/healthz` and `/readyz`; `jwks` gives the public keys of passes, of one tier or of both, " \
              "in a location such as "                                                                     \
              "`/.well-known/jwks.json`; `admin` answers the operator's API in a location such as "        \
              "`/weir/api/`, to those "                                                                    \
              "with a token of weir_admin_token_file; without such a file it answers 404, and weir_cors "  \
              "does not apply there. In such a location the request body is limited to 16 KiB "            \
              "whatever client_max_body_size says, and tokens in the query are masked in the logs.")       \
    DIRECTIVE("weir_admin", "weir_admin $variable ... | off;", "off", "http, server, location",            \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_1MORE,                 \
              NGX_HTTP_LOC_CONF_OFFSET, admin_directive,                                                   \
              "Who is an administrator to `weir_api tier2` and `weir_api admin lobby`, beside those with " \
              "a token of weir_admin_token_file: whenever one of these variables is neither empty nor "    \
              "`0`. It must be something that nobody else can send, and that another site's page cannot "  \
              "have a browser send: a role that an auth module found, not a cookie. The operator's API "   \
              "takes a token alone.")                                                                      \
    DIRECTIVE("weir_page", "weir_page [queue | lobby | tier2];", "none", "location",                       \
              NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, NGX_HTTP_LOC_CONF_OFFSET,              \
              conf_page_directive,                                                                         \
              "Serves the waiting page, which waits by the calls of this family: `queue` for "             \
              "`/queue/{room}` in a location such as `/queue/`, by `/api/v1/queue/`; `tier2` the same "    \
              "for those who are signed in; `lobby` for `/vwr/{event}`, the room `lobby:{event}`, in "     \
              "a location such as `/vwr/`, by `/vwr-api/vwr/`. The site needs weir_api of that family "    \
              "at that address. Once let in it goes to the address in `?return=`, a path of this "         \
              "site; where there is none, to `/`, and from the pages of an event to "                      \
              "`/events/{event}`.")                                                                        \
    DIRECTIVE("weir_gate",                                                                                 \
              "weir_gate [tier=N] room=NAME|$variable|* ... [page=PREFIX] "                                \
              "[body=FIELD] [ticket=on] | off;",                                                           \
              "off", "http, server, location",                                                             \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_1MORE,                 \
              NGX_HTTP_LOC_CONF_OFFSET, gate_directive,                                                    \
              "Lets only living passes of these rooms through (up to four; a variable may be a named "     \
              "capture of the location's regular expression), of this tier at least, or of the one "       \
              "that the room gives. `room=*` takes a pass of any room: the shop is told which, and "       \
              "has to see that it is the right one. The pass comes in the header x-queue-entry-token, "    \
              "in the room's cookie, as `Authorization: Bearer`, or in the field FIELD of a JSON body "    \
              "of up to 16 KiB; with `ticket=on` a ticket in the header User-Token counts as one while "   \
              "its holder is inside, and refusals are worded as clients of `weir_api concert` know "       \
              "them. A browser's navigation without one joins the first room: where there "                \
              "is room it goes through, and the answer sets the pass; else it is sent to the waiting "     \
              "page (PREFIX and the room's name; PREFIX is `/queue/` if not said; with a variable in "     \
              "it, it is the whole path). Any other request without one gets 403. Gate the server as "     \
              "a whole and switch it off where the way is free. What goes on to the shop carries "         \
              "X-Weir-Room, "                                                                              \
              "X-Weir-User, X-Weir-Session and X-Weir-Tier; whatever a client sent under such names is "   \
              "removed. (`return` answers before any gate is reached: what it says is for everybody.) "    \
              "`$weir_gate` says how a request fared, for the access log.")                                \
    DIRECTIVE("weir_bypass", "weir_bypass $variable ... | off;", "off", "http, server, location",          \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_1MORE,                 \
              NGX_HTTP_LOC_CONF_OFFSET, gate_bypass_directive,                                             \
              "Who goes by the gate without a pass: whenever one of these variables is neither empty "     \
              "nor `0`. For staff, monitors and crawlers, by a `geo` or a `map` of something that "        \
              "nobody else can send. Each is counted (`GET gate` of the operator's API) and `bypassed` "   \
              "in `$weir_gate`; the shop is told the room alone.")                                         \
    DIRECTIVE("weir_when_down", "weir_when_down closed | signed | open;", "signed",                        \
              "http, server, location",                                                                    \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,                 \
              NGX_HTTP_LOC_CONF_OFFSET, gate_when_down_directive,                                          \
              "What the gate does while the engine cannot answer. `signed`: passes that we signed go "     \
              "on, though their sessions cannot be asked for; everybody else waits: a navigation on the "  \
              "waiting page, which goes on trying, anything else with 503 and Retry-After. `closed`: "     \
              "nobody goes through. `open`: everybody does. The engine's own word decides, never a "       \
              "client's; that it goes away and comes back is logged and counted.")                         \
    DIRECTIVE("weir_lobby", "weir_lobby PREFIX | off;", "off", "http, server, location",                   \
              NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,                 \
              NGX_HTTP_LOC_CONF_OFFSET, lobby_directive,                                                   \
              "For a hall with a lobby before it: a join into a room needs a living pass of its lobby, "   \
              "the room `lobby:` and its name, where there is such a room and it is not in mode `open`. "  \
              "Without one it gets 403 with redirectTo PREFIX and the room's name, where the waiting "     \
              "page goes by itself. Once in line nobody asks for the lobby again, and the hall's pass "    \
              "stands for both. A gate does not let newcomers into such a room unnoticed.")                \
    DIRECTIVE("weir_shop_key_file", "weir_shop_key_file PATH;", "none: not signed", "http",                \
              NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, NGX_HTTP_MAIN_CONF_OFFSET, gate_sign_directive,         \
              "A key that the shop has too: one line of 32 to 256 printable characters, in a file that "   \
              "its owner alone may read. With it every request that a gate lets by carries "               \
              "X-Weir-Signature, by which a shop that others can reach knows that the gate said the "      \
              "rest. `t=SECONDS,v1=HEX`: HEX is HMAC-SHA256 over SECONDS, X-Weir-Room, X-Weir-Tier, "      \
              "X-Weir-Session and X-Weir-User, a line feed between each, what is not there being empty.")  \
    DIRECTIVE("weir_verify", "weir_verify $variable [redirect=off];", "none", "location",                  \
              NGX_HTTP_LOC_CONF | NGX_CONF_TAKE12, NGX_HTTP_LOC_CONF_OFFSET, verify_directive,             \
              "Forward auth, for a site whose proxy is another one (Traefik, Caddy, Envoy, HAProxy): it "  \
              "asks here about each request. The variable has the address that was asked for, such as "    \
              "`$http_x_forwarded_uri`; X-Forwarded-Method its method. The gate of the location that "     \
              "this address has in this server judges it, and nothing is served there. Whoever may pass "  \
              "gets 200 with the X-Weir-* headers; a navigation without a pass 302 to the waiting page, "  \
              "anything else, or all with `redirect=off`, 401 with redirectTo. Nobody is let in "          \
              "unnoticed here, for a proxy does not hand cookies on.")                                     \
    DIRECTIVE("weir_breaker",                                                                              \
              "weir_breaker [requests=N] [window=TIME] [failed=N%] [open=TIME] [trials=N] "                \
              "[fallback=@NAME];",                                                                         \
              "none: every request goes to the shop", "upstream", NGX_HTTP_UPS_CONF | NGX_CONF_ANY,        \
              NGX_HTTP_SRV_CONF_OFFSET, breaker_directive,                                                 \
              "Leaves a failing upstream alone. When within `window` (10s) at least `requests` (10) "      \
              "were sent to it and `failed` (60%) of them or more failed, the breaker opens: for "         \
              "`open` (30s) everybody is answered at once, with 503 SERVICE_UNAVAILABLE and "              \
              "Retry-After, or by the named location `fallback`, whose answer is its own (not where "      \
              "proxy_request_buffering is off and there is a body: it would get a part of it). Then "      \
              "`trials` (3) requests go by and nobody else: if all succeed it closes, the first "          \
              "that fails opens it again. What counts as failed: no connection, no answer in time, "       \
              "an answer that breaks off, a status of 500 and more. A request whose client went "          \
              "away counts for nothing. A request that nginx takes to several servers of the "             \
              "upstream counts once, by its end. What a cache may serve of such a moment "                 \
              "(`proxy_cache_use_stale error`) it serves. All workers share one breaker, and a "           \
              "reload keeps it; `GET breakers` of the operator's API shows it, the error log says "        \
              "when it opens and closes.")                                                                 \
    DIRECTIVE("weir_retry",                                                                                \
              "weir_retry [times=N] [wait=TIME] [budget=N%] [burst=N] [also=PUT] [also=DELETE];",          \
              "none: nothing is tried again", "upstream", NGX_HTTP_UPS_CONF | NGX_CONF_ANY,                \
              NGX_HTTP_SRV_CONF_OFFSET, breaker_retry_directive,                                           \
              "Tries what failed once more, up to `times` (2), after `wait` (100ms), then twice "          \
              "that and so on, each less up to a half by chance. Only GET, HEAD and OPTIONS, and "         \
              "those that `also` names; a POST never. Only what got no whole answer, or 500, 502, "        \
              "503 or 504 without a Retry-After; and only while the breaker of the same upstream is "      \
              "closed. All retries together are at most `budget` (10%) of the requests and `burst` "       \
              "(10) beyond. It needs the request's body as a whole: one that nginx does not keep "         \
              "(proxy_request_buffering off) is not sent again. Nor is a subrequest, as of auth_request.")

#endif
