# SPDX-License-Identifier: BSD-2-Clause
"""Forward auth: another proxy asks the gate about each request, and the gate answers as it would have acted."""

import pytest
from weirtest import Nginx, free_port, raw, wait_until

ROOMS = {
    "hall": "rate=100000 burst=1000 max_active=0",
    "held": "mode=hold",
    "open": "mode=open",
    "lobby:7": "rate=100000 burst=1000 max_active=0 tier=1",
    "7": "rate=100000 burst=1000 max_active=0",
}
# Whatever gets as far as the shop here was served, though it was only asked about.
SERVER = """
        weir_gate room=hall;
        location = /verify {{ weir_verify $http_x_forwarded_uri; }}
        location = /verify-401 {{ weir_verify $http_x_forwarded_uri redirect=off; }}
        location / {{ proxy_pass http://127.0.0.1:{shop}; }}
        location /free/ {{ weir_gate off; proxy_pass http://127.0.0.1:{shop}; }}
        set $asked $request_uri$event_of_map;
        if ($request_uri ~ "dots\\.\\.") {{ return 404; }}
        location /mapped/ {{ weir_gate room=$event_of_map; proxy_pass http://127.0.0.1:{shop}; }}
        location = /ask-inward {{ internal; weir_verify $request_uri; }}
        location /inward/ {{ auth_request /ask-inward; proxy_pass http://127.0.0.1:{shop}; }}
        location /held/ {{ weir_gate room=held; proxy_pass http://127.0.0.1:{shop}; }}
        location /open/ {{ weir_gate room=open; proxy_pass http://127.0.0.1:{shop}; }}
        location /staff/ {{ weir_bypass $http_x_staff; proxy_pass http://127.0.0.1:{shop}; }}
        location /user/ {{ weir_user $http_x_user_id from=127.0.0.1; proxy_pass http://127.0.0.1:{shop}; }}
        location ~* ^/events/(?<event>[\\w-]+) {{ weir_gate tier=1 room=lobby:$event room=$event page=/vwr/; proxy_pass http://127.0.0.1:{shop}; }}
        location /api/v1/queue/ {{ weir_gate off; weir_api queue; }}
        location /queue/ {{ weir_gate off; weir_page; }}
"""
# Another proxy, as an nginx that knows nothing of gates.
OTHER = """
    map $request_uri $event_of_map {{ ~^/mapped/(?<mapped>[^/]+) $mapped; default none; }}
    server {{
        listen unix:{dir}/other.sock;
        location / {{
            auth_request /ask;
            auth_request_set $weir_who $upstream_http_x_weir_user;
            auth_request_set $weir_where $upstream_http_x_weir_room;
            proxy_set_header X-Weir-User $weir_who;
            proxy_set_header X-Weir-Room $weir_where;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location = /ask {{
            internal;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header X-Forwarded-Uri $request_uri;
            proxy_set_header X-Forwarded-Method $request_method;
            proxy_pass http://127.0.0.1:{port}/verify-401;
        }}
    }}
    server {{ listen 127.0.0.1:{front}; location / {{ proxy_pass http://unix:{dir}/other.sock; }} }}
"""
BROWSER = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    folder = tmp_path_factory.mktemp("verify") / "nginx"
    server = Nginx(folder, rooms=ROOMS, api=False)
    server.front = free_port()
    server.write_conf(server=SERVER.format(shop=shop.port),
                      http=OTHER.format(dir=folder, shop=shop.port, port=server.port, front=server.front))
    yield server.start()
    server.stop()


@pytest.fixture(autouse=True)
def nothing_is_served(shop):
    shop.seen.clear()
    yield
    assert all(visit.header_all("X-Served-By-Other") for visit in shop.seen), "a question reached the shop"


def entered(server, room="hall"):
    person = server.api()
    person.waiting_token = person.ticket(room)
    person.enter(person.waiting_token)
    return person


def ask(client, uri, method="GET", path="/verify", headers=None):
    sent = {"X-Forwarded-Uri": uri, "X-Forwarded-Method": method, **(headers or {})}
    return client.get(path, headers={name: value for name, value in sent.items() if value is not None})


def said(answer):
    return {name: value for name, value in answer.headers if name.startswith("x-weir-")}


def test_whoever_may_pass_is_allowed_with_the_gates_headers(server):
    person = entered(server)
    answer = ask(person, "/seats?row=1")
    assert answer.status == 200 and answer.body == b""
    assert answer.header("cache-control") == "no-store"
    assert set(said(answer)) == {"x-weir-room", "x-weir-user", "x-weir-session", "x-weir-tier"}
    assert said(answer)["x-weir-room"] == "hall"
    assert said(ask(person, "/pay", "POST")) == said(answer)
    person.leave(person.waiting_token)
    wait_until(lambda: ask(person, "/seats").status == 401, 1, "the end of the session")


def test_a_program_without_a_pass_is_told_401_and_where_the_line_is(server):
    for uri, method, headers in (("/seats", "GET", {}), ("/seats", "POST", {}), ("/", "PUT", {}), ("/", "PUT", BROWSER), ("/x", "FROB", BROWSER)):
        answer = ask(server.api(), uri, method, headers=headers)
        assert (answer.status, answer.error_code) == (401, "ADMISSION_REQUIRED"), answer
        assert answer.json()["redirectTo"] == "/queue/hall"
        assert answer.header("www-authenticate")
        assert answer.header("cache-control") == "no-store"


def test_a_page_without_a_pass_is_sent_to_the_line_and_back(server):
    for method in ("GET", "HEAD"):
        answer = ask(server.api(), "/seats?row=1", method, headers=BROWSER)
        assert (answer.status, answer.header("location")) == (302, "/queue/hall?return=%2Fseats%3Frow%3D1")
    assert ask(server.api(), "/seats", None, headers=BROWSER).status == 302, "GET is meant where nothing is said"
    assert ask(server.api(), "/buy", "POST", headers=BROWSER).header("location") == "/queue/hall", "a form is no page to come back to"


def test_nobody_is_let_in_unnoticed(server):
    """The proxy would not hand the cookie on, and every request would take a slot."""
    answer = ask(server.api(), "/seats", headers=BROWSER)
    assert answer.status == 302 and answer.cookies() == {}


def test_a_proxy_that_takes_no_redirect_gets_401_for_pages_too(server):
    answer = ask(server.api(), "/seats?a=b", path="/verify-401", headers=BROWSER)
    assert answer.status == 401 and answer.json()["redirectTo"] == "/queue/hall?return=%2Fseats%3Fa%3Db"


def test_the_way_back_never_leaves_the_site(server):
    for uri in ("//evil.example/", "/\\evil.example/"):
        assert ask(server.api(), uri, headers=BROWSER).header("location") == "/queue/hall"


def test_free_ways_staff_preflights_and_open_rooms_are_as_at_the_gate(server):
    stranger = server.api()
    for uri in ("/free/", "/free/x?y", "/api/v1/queue/status", "/queue/hall"):
        answer = ask(stranger, uri)
        assert (answer.status, said(answer)) == (200, {}), uri
    assert said(ask(stranger, "/open/")) == {"x-weir-room": "open"}
    assert ask(stranger, "/staff/").status == 401
    assert said(ask(stranger, "/staff/", headers={"X-Staff": "1"})) == {"x-weir-room": "hall"}
    preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    assert ask(stranger, "/seats", "OPTIONS", headers=preflight).status == 200
    assert ask(stranger, "/seats", "OPTIONS").status == 401


def test_the_shops_own_page_of_the_endpoints_name_is_gated(server):
    """The endpoint itself is free; what is asked about is a path of the other proxy's site, whatever it is called."""
    for uri in ("/verify", "/verify?token=1", "/verify-401"):
        answer = ask(server.api(), uri)
        assert (answer.status, answer.error_code) == (401, "ADMISSION_REQUIRED"), uri
        assert ask(entered(server), uri).status == 200


def test_an_identity_counts_as_at_the_gate(server):
    person = entered(server)
    assert ask(person, "/user/").status == 200
    assert ask(person, "/user/", headers={"X-User-Id": "mallory"}).status == 401


EVENTS = ["/events/7", "/Events/7", "//events/7", "/./events/7", "/%65vents/7", "/free/../events/7", "/free/%2e%2e/events/7",
          "/events//7", "/events/7/", "/EVENTS/7?x=/free/", "/events/7#/free/", "/%2Fevents/7", "/free/..%2fevents/7"]


@pytest.mark.parametrize("uri", EVENTS)
def test_the_address_is_read_as_nginx_reads_it(server, uri):
    assert ask(server.api(), uri).json()["redirectTo"] == "/vwr/lobby:7"
    for room in ("lobby:7", "7"):
        assert said(ask(entered(server, room), uri))["x-weir-room"] == room
    assert ask(entered(server), uri).status == 401


@pytest.mark.parametrize("uri", [None, "", "events", "http://127.0.0.1/events/7", "*", "/%zz", "/../x", "/%00", "/a%0", "?x"])
def test_an_address_that_is_none_is_refused(server, uri):
    answer = ask(entered(server), uri)
    assert (answer.status, answer.error_code) == (400, "INVALID_REQUEST"), answer


@pytest.mark.parametrize("more, status", [
    ("X-Forwarded-Uri: /free/\r\n", 400), ("x-forwarded-uri: /in/\r\n", 400),
    ("X-Forwarded-Method: OPTIONS\r\n", 401), ("X-Forwarded-Method: GET\r\n", 401), ("X_Forwarded_Uri: /free/\r\n", 401), ("", 200),
])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_proxy_adds_to_a_clients_own_does_not_let_the_client_speak_for_it(server, more, status, is_first):
    """A preflight goes by and /free/ is free: whoever could claim either would be in."""
    method = "OPTIONS" if more == "" else "GET"
    theirs = f"X-Forwarded-Uri: /in/\r\nX-Forwarded-Method: {method}\r\n"
    lines = (more + theirs if is_first else theirs + more) + "Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n"
    answer = raw(server.port, f"GET /verify HTTP/1.0\r\n{lines}\r\n".encode())
    assert int(answer.split()[1]) == status, answer


def test_headers_from_the_client_say_nothing(server):
    forged = {"X-Weir-User": "mallory", "X-Weir-Room": "hall", "X-Weir-Session": "x", "X-Weir-Tier": "2"}
    assert ask(server.api(), "/seats", headers=forged).status == 401
    answer = ask(entered(server), "/seats", headers=forged)
    assert "mallory" not in said(answer).values()


def test_another_proxy_asks_before_it_forwards(server, shop):
    person = entered(server)
    marked = {"X-Served-By-Other": "1"}
    cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in person.cookies.items())}
    front = type(person)(server.front, cookies=False)
    assert front.get("/seats", headers=marked).status == 401 and not shop.seen
    answer = front.post("/seats", {"a": 1}, headers={**marked, **cookies})
    assert answer.status == 200
    [visit] = shop.seen
    assert visit.body == '{"a": 1}' and visit.header_all("X-Weir-User")[0].startswith("v-")
    assert visit.header_all("X-Weir-Room") == ["hall"]


def test_what_was_looked_up_for_the_question_does_not_count_for_what_it_is_about(server):
    """The server's own lines look at $request_uri before the question is understood, and again for the address."""
    assert ask(server.api(), "/free/dots..").status == 404
    assert ask(server.api(), "/free/dots").status == 200
    assert ask(entered(server), "/mapped/hall/x").status == 200
    assert ask(entered(server), "/mapped/held/x").status == 401


def test_a_question_of_this_very_server_is_refused_and_nothing_is_served(server, shop):
    """An auth_request to weir_verify itself: what it asks about would be fetched from the shop before anybody is judged."""
    for person in (server.api(), entered(server)):
        assert person.get("/inward/").status == 403
    assert list(shop.seen) == []
    assert "not subrequests" in server.log()


def test_a_body_sent_along_harms_nothing(server):
    answer = entered(server).post("/verify", "x" * 100000, headers={"X-Forwarded-Uri": "/seats"})
    assert answer.status == 200


@pytest.mark.parametrize("directives, word", [
    ("weir_verify /path;", "$http_x_forwarded_uri"), ("weir_verify $request_uri redirect=on;", "redirect=off"),
    ("weir_verify $uri;", "decoded already"), ("weir_verify $document_uri;", "decoded already"),
    ("weir_page; weir_verify $request_uri;", "already"), ("weir_verify $request_uri; weir_api queue;", "already"),
])
def test_a_question_that_makes_no_sense_is_refused(weir, directives, word):
    accepted, said = weir(start=False, rooms=ROOMS, server=f"location /verify/ {{ {directives} }}").check_conf()
    assert not accepted and word in said
