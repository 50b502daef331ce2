# SPDX-License-Identifier: BSD-2-Clause
"""Every part of nginx that answers, copies, retries or adds to a request: none of them leads around the gate, over any HTTP."""

import subprocess

import pytest
from weirtest import Nginx, Shop, free_port, raw, wait_until

ROOMS = {"shop": "rate=100000 burst=1000 max_active=0"}
DOORS = """
        location /in/ {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{shop}; }}
        location /excepted/ {{ weir_gate room=shop; limit_except GET {{ allow all; }} proxy_pass http://127.0.0.1:{shop}; }}
        location /ifs/ {{
            weir_gate room=shop;
            if ($arg_a) {{ proxy_pass http://127.0.0.1:{shop}; }}
            if ($arg_b) {{ set $b 1; }}
            if ($arg_c) {{ break; }}
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /after/ {{ post_action /in/after; root {html}; }}
        location /after-in/ {{ weir_gate room=shop; post_action /in/after; proxy_pass http://127.0.0.1:{shop}; }}
        location /mirrored/ {{ weir_gate room=shop; mirror /mirror; proxy_pass http://127.0.0.1:{shop}; }}
        location = /mirror {{ internal; proxy_pass http://127.0.0.1:{shop}/copy; }}
        location /mirrors/ {{ mirror /in/copy; root {html}; }}
        location /added/ {{ add_before_body /static/secret.txt; add_after_body /in/more; addition_types *; root {html}; }}
        location /static/ {{ weir_gate room=shop; root {html}; }}
        location /listed/ {{ weir_gate room=shop; autoindex on; alias {html}/static/; }}
        location /index/ {{ weir_gate room=shop; index secret.txt; alias {html}/static/; }}
        location /sliced/ {{ weir_gate room=shop; slice 1k; proxy_set_header Range $slice_range; proxy_pass http://127.0.0.1:{shop}; }}
        location /kept/ {{
            weir_gate room=shop;
            proxy_cache kept;
            proxy_cache_valid 1m;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /erring/ {{ weir_gate room=shop; error_page 403 =200 @shop; proxy_pass http://127.0.0.1:{shop}; }}
        location @shop {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{shop}; }}
        location /circle/ {{
            weir_gate room=shop;
            recursive_error_pages on;
            error_page 403 /circle/x;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /dav/ {{ weir_gate room=shop; dav_methods PUT DELETE MKCOL COPY MOVE; root {html}; }}
        location /gif/ {{ weir_gate room=shop; empty_gif; }}
        location /stub/ {{ weir_gate room=shop; stub_status; }}
        location /socket/ {{
            weir_gate room=shop;
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $http_connection;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /basic/ {{
            weir_gate room=shop;
            satisfy any;
            allow all;
            auth_basic x;
            auth_basic_user_file {html}/nobody;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /rewritten/ {{ weir_gate room=shop; rewrite ^ /free/x break; proxy_pass http://127.0.0.1:{shop}; }}
        location /led/ {{ rewrite ^ /in/x last; }}
        location /unbuffered/ {{
            weir_gate room=shop body=reservation_token;
            proxy_request_buffering off;
            proxy_http_version 1.1;
            proxy_pass http://127.0.0.1:{shop};
        }}
        location /cross/ {{ weir_gate room=shop; weir_cors https://app.example; proxy_pass http://127.0.0.1:{shop}; }}
        location /free/ {{ proxy_pass http://127.0.0.1:{shop}; }}
"""
HTTP2 = """
    proxy_cache_path {dir}/kept keys_zone=kept:1m;
    underscores_in_headers on;
    proxy_ignore_client_abort on;
    server {{
        listen 127.0.0.1:{port} http2;
        location /in/ {{ weir_gate room=shop; proxy_pass http://127.0.0.1:{shop}; }}
        location /pushing/ {{ http2_push /in/pushed; http2_push_preload on; root {html}; }}
    }}
"""
GATED = ["/in/", "/excepted/", "/ifs/?a=1", "/ifs/?b=1", "/ifs/?c=1", "/after-in/", "/mirrored/", "/static/secret.txt", "/listed/",
         "/listed/secret.txt", "/index/", "/sliced/", "/kept/", "/erring/", "/circle/", "/dav/x", "/gif/", "/stub/", "/socket/", "/basic/",
         "/rewritten/", "/led/", "/unbuffered/", "/cross/"]
BESIDE = ["/after/page", "/mirrors/page", "/added/page"]


@pytest.fixture(scope="module")
def shop():
    shop = Shop()
    shop.answer_headers["/pushing/"] = [("Link", "</in/pushed>; rel=preload")]
    yield shop
    shop.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    folder = tmp_path_factory.mktemp("doors") / "nginx"
    html = folder / "html"
    for name, text in (("static/secret.txt", "secret"), ("after/page", "page"), ("mirrors/page", "page"), ("added/page", "page"),
                       ("pushing/page", "page"), ("nobody", "")):
        (html / name).parent.mkdir(parents=True, exist_ok=True)
        (html / name).write_text(text)
    server = Nginx(folder, rooms=ROOMS, server=DOORS.format(shop=shop.port, html=html))
    server.port2 = free_port()
    server.write_conf(http=HTTP2.format(dir=folder, port=server.port2, shop=shop.port, html=html))
    yield server.start()
    server.stop()


@pytest.fixture
def seen(shop):
    shop.seen.clear()
    return shop.seen


@pytest.fixture
def insider(server):
    person = server.api()
    person.reservation = person.enter(person.ticket("shop")).json()["reservation_token"]
    return person


def passed(visit):
    return visit.of_weir().get("x-weir-session") is not None


@pytest.mark.parametrize("path", GATED + BESIDE)
def test_nothing_gets_to_the_shop_without_a_pass(server, seen, path):
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "MOVE"):
        for headers in ({}, {"Upgrade": "websocket", "Connection": "upgrade"}, {"Range": "bytes=0-3"}, {"Expect": "100-continue"}):
            answer = server.client().request(method, path, headers=headers)
            assert b"secret" not in answer.body and b'"shop": true' not in answer.body
            assert path in BESIDE or answer.status in (403, 405, 501), answer
    assert list(seen) == []


@pytest.mark.parametrize("path", ["/after/page", "/after-in/", "/mirrored/", "/mirrors/page", "/added/page", "/ifs/?a=1", "/excepted/",
                                  "/erring/", "/sliced/", "/kept/", "/socket/", "/unbuffered/", "/rewritten/", "/led/"])
def test_with_a_pass_each_of_them_leads_in_and_says_who_passed(insider, seen, path):
    """Or the refusals above would say nothing."""
    assert insider.get(path).status == 200
    wait_until(lambda: len(seen) > 0, 5, "the shop")
    assert all(passed(visit) for visit in seen)


def test_what_a_cache_keeps_is_behind_the_gate_too(server, insider, seen):
    assert insider.get("/kept/a").status == insider.get("/kept/a").status == 200
    assert len(seen) == 1
    assert server.client().get("/kept/a").status == 403


def test_a_refusal_can_be_read_by_pages_of_a_named_origin(server, seen):
    """Else a script of theirs never learns where the line is. The preflight before it is the shop's own to answer."""
    origin = {"Origin": "https://app.example"}
    refused = server.client().get("/cross/", headers=origin)
    assert (refused.status, refused.header("access-control-allow-origin")) == (403, "https://app.example")
    assert refused.json()["redirectTo"] == "/queue/shop"
    assert server.client().get("/cross/", headers={"Origin": "https://evil.example"}).header("access-control-allow-origin") is None
    assert list(seen) == []
    assert server.client().request("OPTIONS", "/cross/", headers={**origin, "Access-Control-Request-Method": "PUT"}).status == 200
    assert [visit.method for visit in seen] == ["OPTIONS"]


# --- other ways to speak HTTP


def curl(*words):
    return subprocess.run(["curl", "-s", "-i", "--http2-prior-knowledge", "--max-time", "20", *words], capture_output=True, text=True, check=True)


def test_over_http2_the_same_holds(server, insider, seen):
    forged = ["-H", "x-weir-user: root", "-H", "X-Weir-Tier: 9", "-H", "x_weir_room: other"]
    address = f"http://127.0.0.1:{server.port2}/in/"
    assert curl(*forged, address).stdout.startswith("HTTP/2 403")
    assert list(seen) == []
    assert curl(*forged, "-H", f"x-queue-entry-token: {insider.reservation}", address).stdout.startswith("HTTP/2 200")
    [visit] = seen
    assert visit.of_weir()["x-weir-room"] == "shop" and len(visit.of_weir()) == 4
    assert [name for name, _ in visit.headers if "weir" in name.lower() and "_" in name] == []


def test_what_a_server_pushes_is_judged_like_what_is_asked_for(server, seen):
    assert curl(f"http://127.0.0.1:{server.port2}/pushing/page").stdout.startswith("HTTP/2 200")
    assert list(seen) == []


def test_trailers_say_nothing_of_who_passed(server, insider, seen):
    head = f"POST /in/ HTTP/1.1\r\nHost: x\r\nx-queue-entry-token: {insider.reservation}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    answer = raw(server.port, f"{head}Trailer: X-Weir-User\r\n\r\n3\r\nabc\r\n0\r\nX-Weir-User: root\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200")
    [visit] = seen
    assert visit.body == "abc" and "root" not in visit.of_weir().values()
    raw(server.port, b"POST /in/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n"
        b"x-queue-entry-token: " + insider.reservation.encode() + b"\r\n\r\n")
    assert len(seen) == 1, "a pass in a trailer is none"


@pytest.mark.parametrize("line", ["GET /in/x HTTP/1.0", "GET /in/x", "GET http://127.0.0.1/in/x HTTP/1.1"])
def test_over_old_http_the_same_holds(server, insider, seen, line):
    rest = "" if line == "GET /in/x" else "Host: x\r\nX-Weir-User: root\r\nConnection: close, X-Weir-User, X-Weir-Session\r\n"
    raw(server.port, f"{line}\r\n{rest}\r\n".encode())
    assert list(seen) == []
    if rest:
        raw(server.port, f"{line}\r\n{rest}x-queue-entry-token: {insider.reservation}\r\n\r\n".encode())
        [visit] = seen
        assert len(visit.of_weir()) == 4 and "root" not in visit.of_weir().values()
        assert "X-Weir" not in "".join(visit.header_all("Connection"))
