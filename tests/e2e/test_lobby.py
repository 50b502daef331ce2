# SPDX-License-Identifier: BSD-2-Clause
"""A lobby before a hall: a place in the hall's line is taken with a living pass of the lobby, and needs it no more."""

import json

import pytest
from selenium.common.exceptions import WebDriverException
from weirtest import Nginx, at_once, wait_until
from weirtest.command import run
from weirtest.redis import Standalone

FAST = "rate=100000 burst=1000 max_active=0"
ROOMS = {
    "lobby:1": f"tier=1 {FAST} session_ttl_sec=2", "1": f"{FAST} mode=hold",
    "lobby:2": f"tier=1 {FAST}", "2": FAST,
    "lobby:3": "tier=1 mode=open", "3": FAST, "lobby:4": "tier=1 mode=hold", "4": FAST, "alone": FAST,
}
SERVER = """
        location /api/v1/queue/ {{ weir_api queue; weir_lobby /vwr/; }}
        location /named/ {{ weir_api queue; weir_lobby /vwr/; weir_user $http_x_user_id from=127.0.0.1; }}
        location /tier2/ {{ weir_api tier2; weir_lobby /vwr/; weir_user $http_x_user_id from=127.0.0.1; }}
        location /free/ {{ weir_api queue; }}
        location /queue/ {{ weir_page; }}
        location /vwr/ {{ weir_page lobby; }}
        location /vwr-api/vwr/ {{ weir_api lobby; }}
        location ~ ^/hall/(?<event>[^/]+) {{ weir_gate tier=2 room=$event; weir_lobby /vwr/; proxy_pass http://127.0.0.1:{shop}; }}
        location ~ ^/events/(?<event>[^/]+) {{
            weir_gate tier=1 room=lobby:$event room=$event page=/vwr/$event;
            weir_lobby /vwr/;
            proxy_pass http://127.0.0.1:{shop};
        }}
"""
BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def server(tmp_path_factory, shop):
    server = Nginx(tmp_path_factory.mktemp("lobby") / "nginx", rooms=ROOMS, api=False, admin=["ops"], server=SERVER.format(shop=shop.port))
    yield server.start()
    server.stop()


def through_lobby(server, event):
    person = server.api()
    person.lobby_ticket = person.ticket(f"lobby:{event}")
    person.lobby_pass = person.enter(person.lobby_ticket).json()["reservation_token"]
    return person


def assert_sent_to_lobby(answer, event):
    assert (answer.status, answer.error_code) == (403, "ADMISSION_REQUIRED"), answer
    assert answer.json()["redirectTo"] == f"/vwr/{event}"


def test_a_join_into_a_hall_needs_a_pass_of_its_lobby(server):
    before = server.admin().figures("2").json()["issued"]
    assert_sent_to_lobby(server.api().join("2"), "2")
    assert_sent_to_lobby(through_lobby(server, "1").join("2"), "2")
    junk = {"x-queue-entry-token": "a.b.c", "Authorization": "Bearer x", "Cookie": "weir-pass-lobby~2=junk"}
    assert_sent_to_lobby(server.api().join("2", headers=junk), "2")
    assert server.admin().figures("2").json()["issued"] == before
    assert through_lobby(server, "2").join("2").status == 202


def test_the_pass_may_come_in_any_of_its_places(server):
    token = through_lobby(server, "2").lobby_pass
    for headers in ({"x-queue-entry-token": token}, {"Authorization": f"Bearer {token}"}, {"Cookie": f"weir-pass-lobby~2={token}"}):
        assert server.api(cookies=False).join("2", headers=headers).status == 202


def test_a_lobby_itself_a_room_without_one_and_one_behind_an_open_lobby_need_none(server):
    for room in ("lobby:2", "alone", "3"):
        assert server.api().join(room).status == 202, room
    assert server.api().join("nowhere").error_code == "ROOM_NOT_FOUND"
    assert_sent_to_lobby(server.api().join("4"), "4")
    assert server.api().post("/free/join", {"event_id": "2"}).status == 202, "where the directive is not"


def test_the_lobbys_pass_may_end_while_its_holder_waits_in_the_hall(server):
    """Failure 55."""
    person = through_lobby(server, "1")
    token = person.ticket("1")
    person.leave(person.lobby_ticket)
    assert_sent_to_lobby(server.api(cookies=False).join("1", headers={"x-queue-entry-token": person.lobby_pass}), "1")
    assert person.status(token).json()["status"] == "waiting"
    wait_until(lambda: server.admin().advance("1", 100).json()["called"] == 0, 5, "the call")
    assert person.enter(token).status == 200
    for path in ("/hall/1", "/events/1"):
        assert person.get(path).status == 200, "the hall's pass stands for both"


def test_who_signs_in_behind_the_lobby_brings_its_anonymous_pass(server):
    person = through_lobby(server, "2")
    alice = {"X-User-Id": "alice"}
    joined = person.post("/named/join", {"event_id": "2"}, headers=alice)
    assert joined.status == 202
    entered = person.post("/named/enter", {"waiting_token": joined.json()["waiting_token"]}, headers=alice)
    assert entered.status == 200


def test_a_lobby_that_follows_its_hall_sends_nobody_while_people_wait_there(server):
    server.admin().put("lobby:6", tier=1, pace="hall", rate=1000)
    server.admin().put("6", max_active=1, preset="hall")
    inside, second, third = through_lobby(server, "6"), through_lobby(server, "6"), server.api()
    inside_ticket, second_ticket = inside.ticket("6"), second.ticket("6")
    assert inside.enter(inside_ticket).status == 200
    assert not second.status(second_ticket).json()["ready_for_entry"]
    wait_until(lambda: server.admin().figures("lobby:6").json()["pace_reason"] == "frozen", 5, "the lobby's hearing of it")
    third_ticket = third.ticket("lobby:6")

    def waited_for_longer_than_the_lobby_remembers():
        assert not second.status(second_ticket).json()["ready_for_entry"]
        told = third.status(third_ticket).json()
        assert not told["ready_for_entry"]
        return told["waiting_time"] >= 6
    wait_until(waited_for_longer_than_the_lobby_remembers, 20, "six seconds in the lobby")
    inside.leave(inside_ticket)
    wait_until(lambda: second.status(second_ticket).json()["ready_for_entry"], 5, "the hall's free slot")
    wait_until(lambda: third.status(third_ticket).json()["ready_for_entry"], 10, "the lobby's going on")


def test_a_lobby_hears_from_the_signed_in_too_that_they_wait(server):
    server.admin().put("lobby:7", tier=1, pace="hall", rate=1000)
    server.admin().put("7", preset="hall", mode="hold")
    person = through_lobby(server, "7")
    assert server.admin().figures("lobby:7").json()["pace_reason"] == "fixed"
    assert person.post("/tier2/check/7", "", headers={"X-User-Id": "waiting"}).json()["queued"]
    wait_until(lambda: server.admin().figures("lobby:7").json()["pace_reason"] == "frozen", 5, "the lobby's hearing of it")


def signed_in_join(person, name, event="2", **kwargs):
    return person.post("/named/join", {"event_id": event}, headers={"X-User-Id": name}, **kwargs)


def test_a_pass_of_the_lobby_serves_one_person(server):
    person = through_lobby(server, "2")
    first = signed_in_join(person, "first")
    assert first.status == 202
    issued = server.admin().figures("2").json()["issued"]
    assert_sent_to_lobby(signed_in_join(person, "second"), "2")
    assert_sent_to_lobby(server.api().join("2", headers={"x-queue-entry-token": person.lobby_pass}), "2")
    assert signed_in_join(person, "first").json() == first.json(), "to the same person it is a repeat"
    assert server.admin().figures("2").json()["issued"] == issued


@pytest.mark.once
def test_a_pass_of_the_lobby_serves_one_person_also_when_its_key_is_forgotten(weir, shop):
    """Keys are kept for 300 s, and a session may last longer."""
    with Standalone() as store:
        server = weir(rooms={room: ROOMS[room] for room in ("lobby:2", "2")}, store=store.directive, api=False,
                      server=SERVER.format(shop=shop.port))
        person = through_lobby(server, "2")
        assert signed_in_join(person, "first").status == 202
        assert store.only("DEL", "queue:requests:{lobby:2}", "queue:requests:order:{lobby:2}") == 2
        assert_sent_to_lobby(signed_in_join(person, "second"), "2")
        server.stop()


def test_who_comes_with_a_spent_pass_stands_in_the_lobby_again(server):
    """Two who sign in one after the other, in one browser: the second is not sent to and fro with the first one's pass."""
    browser = through_lobby(server, "2")
    assert signed_in_join(browser, "one").status == 202
    assert_sent_to_lobby(signed_in_join(browser, "two"), "2")
    assert browser.status(browser.lobby_ticket).error_code == "TOKEN_NOT_FOUND"
    again = browser.ticket("lobby:2")
    assert again != browser.lobby_ticket and browser.enter(again).status == 200
    assert signed_in_join(browser, "two").status == 202
    assert signed_in_join(browser, "one").status == 202, "who has a place keeps it"


def test_who_keeps_no_cookie_has_one_place_by_the_pass(server):
    token = through_lobby(server, "2").lobby_pass
    answers = [server.api(cookies=False).join("2", headers={"x-queue-entry-token": token}) for _ in range(3)]
    assert len({answer.json()["waiting_token"] for answer in answers}) == 1
    assert not any(answer.cookies() for answer in answers), "no cookie of somebody who holds nothing"


def test_of_many_who_come_with_one_pass_at_once_one_takes_a_place(server):
    token = through_lobby(server, "2").lobby_pass
    requests = [("POST", "/named/join", '{"event_id":"2"}', {"X-User-Id": f"crowd {i}", "x-queue-entry-token": token}) for i in range(50)]
    answers = at_once(server.port, requests, connections=50)
    assert sorted(answer.status for answer in answers) == [202] + 49 * [403]


@pytest.mark.local
def test_that_a_pass_took_somebody_further_outlasts_the_key_that_says_whom(weir):
    """Keys of requests are forgotten after 300 s, and a pass lives longer: the ticket knows (test_kinds.c), and so does the journal."""
    server = weir(rooms={"lobby:1": f"tier=1 {FAST}", "1": FAST}, journal="journal", api=False, server="""
        location /api/v1/queue/ { weir_api queue; weir_lobby /vwr/; }
    """)

    def spent():
        lines = map(json.loads, run("journal", "show", server.dir / "journal", "--json").lines())
        parts = [part for line in lines if line.get("room") == "lobby:1" for part in line["parts"] if part["part"] == "tickets"]
        return parts[-1]["tickets"][-1]["spent"]
    person = through_lobby(server, "1")
    assert not spent()
    assert person.join("1").status == 202
    assert spent()


def test_who_was_refused_by_the_hall_may_come_again_with_the_same_pass(server):
    server.admin().put("lobby:5", tier=1, rate=1000)
    server.admin().put("5", mode="closed")
    person = through_lobby(server, "5")
    assert signed_in_join(person, "patient", "5").error_code == "ROOM_CLOSED"
    server.admin().patch("5", mode="queue")
    assert signed_in_join(person, "patient", "5").status == 202
    assert_sent_to_lobby(signed_in_join(person, "another", "5"), "5")


def test_who_has_a_place_is_not_asked_for_the_lobby_again(server):
    person = through_lobby(server, "1")
    joined = person.join("1").json()
    person.leave(person.lobby_ticket)
    assert person.join("1").json()["waiting_token"] == joined["waiting_token"]


def test_a_bad_join_is_refused_for_what_is_wrong_with_it(server):
    assert server.api().post("/api/v1/queue/join", {}).error_code == "MISSING_EVENT_ID"
    assert server.api().post("/api/v1/queue/join", "{").error_code == "INVALID_REQUEST"
    assert server.api().join("x" * 60).error_code == "ROOM_NOT_FOUND", "too long a name for a lobby"


def test_no_gate_lets_newcomers_past_the_lobby(server, shop):
    visitor = server.api()
    away = visitor.get("/hall/2", headers=BROWSER)
    assert (away.status, away.header("location")) == (302, "/queue/2?return=%2Fhall%2F2")
    assert not [visit for visit in shop.seen if visit.path == "/hall/2"]
    assert "weir-pass-lobby~2" in visitor.get("/events/2", headers=BROWSER).cookies(), "into the lobby they come unnoticed"


def test_a_browser_goes_through_lobby_and_hall_by_itself(server, shop, browser):
    driver = browser()
    driver.get(server.url + "/hall/2/seats")

    def is_in_shop():
        try:
            return '"path": "/hall/2/seats"' in driver.page_source
        except WebDriverException:
            return False
    wait_until(is_in_shop, 30, "the shop")
    names = {cookie["name"] for cookie in driver.get_cookies()}
    assert {"urr-vwr-token", "weir-pass-2"} <= names


@pytest.mark.parametrize("value", ["vwr/", "/vwr", "//vwr/", "on", "/a b/"])
def test_a_lobby_that_leads_nowhere_is_refused(weir, value):
    accepted, said = weir(start=False, rooms=ROOMS, http=f'weir_lobby "{value}";').check_conf()
    assert not accepted and "weir_lobby" in said
