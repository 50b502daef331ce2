# SPDX-License-Identifier: BSD-2-Clause
"""The whole way in the demo: the line, the shop, a seat, and the end of the visit. In a browser, and with curl alone."""

import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from demo import ROOT
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from weirtest import Api, Response, wait_until

ROOM = "concert"
PASS = f"weir-pass-{ROOM}"
SEATS = "*/api/v1/seats"  # what the page looks at every few seconds
FAST = dict(rate=50, burst=50, claim_ttl_sec=600)
LOGIN = {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJsb2dpbiIsInN1YiI6Ik1pbmEifQ.c2lnbmVkLWVsc2V3aGVyZQ"}


class Shopper:
    """The shop as a person sees it."""

    def __init__(self, demo, driver):
        self.demo = demo
        self.driver = driver
        self.seen = []  # everything that any page could show or read

    def open(self, path):
        self.driver.get(self.demo.url + path)
        return self

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def wait_for(self, path, state=None):
        """Until a page of that path is there, and in that state."""
        wait_until(lambda: self._is_at(path, state), 40, f"{path} {state or ''}", every_sec=0.05)
        self.seen.append(self.driver.execute_script(
            "return [location.href, document.cookie, document.documentElement.outerHTML, JSON.stringify([localStorage, sessionStorage])].join()"))
        return self

    def _is_at(self, path, state):
        try:
            is_there = path == self.driver.execute_script("return location.pathname")
            return is_there and (state is None or self.find("#page").get_attribute("data-state") == state)
        except StaleElementReferenceException:
            return False  # it moved on while we looked

    def go_to_seats(self):
        """By the way that everybody goes."""
        self.open("/").wait_for("/")
        self.find("a[href='/seats/a']").click()
        return self.wait_for("/seats/a", "choosing")

    def choose(self, seat):
        self.find(f"input[value={seat}]").click()
        return self

    def reserve(self):
        self.find("#reserve").click()
        return self

    @property
    def notice(self):
        return self.find("#notice").text

    def fetch_status(self, path):
        return self.driver.execute_async_script(f"const done = arguments[0]; fetch('{path}').then((answer) => done(answer.status))")


@pytest.fixture
def fast_demo(demo):
    """One in which nobody waits for long."""
    running = demo().wait_for_banner()
    assert running.admin.patch(ROOM, **FAST).status == 200
    return running


@pytest.fixture
def shopper(fast_demo, browser):
    return lambda **kwargs: Shopper(fast_demo, browser(**kwargs))


def test_a_person_walks_from_the_line_to_a_seat_and_the_next_is_called(demo, browser):
    running = demo().wait_for_banner()
    running.admin.patch(ROOM, mode="hold")
    shopper = Shopper(running, browser()).open("/").wait_for(f"/queue/{ROOM}", "waiting")
    assert int(shopper.find("#position").text) > 8, "a crowd of twelve came before"
    running.admin.patch(ROOM, mode="queue", **FAST)
    shopper.wait_for("/")
    assert "You are in" in shopper.find("#inside").text
    shopper.find("a[href='/seats/a']").click()
    shopper.wait_for("/seats/a", "choosing").choose("A-7")
    assert "Block A, seat 7" in shopper.find("#chosen").text
    pass_ = shopper.driver.get_cookie(PASS)["value"]

    person, token = stand_before_a_full_shop(running)
    shopper.reserve().wait_for("/reserved", "made")
    wait_until(lambda: person.status(token).json()["ready_for_entry"], 2, "the call of the next in line")
    assert shopper.find("#seats").text == "Block A, seat 7"
    number = shopper.find("#number").text

    # The visit is over, for this pass and for good; what was bought stays to be seen.
    wait_until(lambda: shopper.fetch_status("/api/v1/seats") == 403, 2, "the shop to be closed")
    shopper.open("/seats/a").wait_for(f"/queue/{ROOM}")
    with_old_pass = Api(running.port, headers={"x-queue-entry-token": pass_})
    assert with_old_pass.get("/seats/a").error_code == "ADMISSION_REQUIRED"
    shopper.driver.back()
    shopper.wait_for("/reserved", "made")
    assert shopper.find("#number").text == number
    assert not any(pass_ in seen for seen in shopper.seen), "a page knows the pass"


def stand_before_a_full_shop(running):
    """Somebody who is next, in a room whose every slot is taken. Returns them and their token."""
    running.admin.patch(ROOM, mode="hold")
    person = Api(running.port)
    token = person.ticket(ROOM)
    ahead = person.status(token).json()["position"] - 1
    inside = running.admin.figures(ROOM).json()
    slots = inside["called"] + inside["entered"] + inside["active"]
    assert running.admin.patch(ROOM, mode="queue", max_active=slots + ahead).status == 200
    wait_until(lambda: person.status(token).json()["position"] == 1, 10, "those ahead to be called")
    assert not person.status(token).json()["ready_for_entry"], "there is a free slot"
    return person, token


def test_a_seat_that_somebody_else_took_is_named_and_the_visit_goes_on(fast_demo, shopper):
    shopper = shopper().go_to_seats().choose("A-8")
    block(shopper, SEATS)
    assert buy(fast_demo, "A-8").status == 201
    shopper.reserve()
    wait_until(lambda: "Block A, seat 8 has just been sold" in shopper.notice, 10, "the news")
    assert not shopper.find("input[value=A-8]").is_enabled()
    assert shopper.find("#chosen").text == "No seat chosen yet"
    assert "Please choose a seat" in shopper.reserve().notice
    shopper.choose("A-16").reserve().wait_for("/reserved", "made")
    assert shopper.find("#seats").text == "Block A, seat 16"


def test_a_seat_that_is_sold_is_seen_to_be_sold(fast_demo, shopper):
    shopper = shopper().go_to_seats().choose("A-8")
    assert not shopper.find("input[value=A-3]").is_enabled(), "it was sold before"
    assert buy(fast_demo, "A-8").status == 201
    wait_until(lambda: "Block A, seat 8 has just been sold" in shopper.notice, 20, "the news")


def test_an_answer_that_got_lost_is_found_and_nothing_is_sold_twice(shopper):
    shopper = shopper().go_to_seats().choose("A-2")
    block(shopper, SEATS)
    lose_answers(shopper)
    shopper.reserve().wait_for("/reserved", "made")
    assert shopper.find("#seats").text == "Block A, seat 2"


def test_an_answer_that_got_lost_is_found_after_a_refresh_too(shopper):
    """The visit is over by then, so it leads through the line."""
    shopper = shopper().go_to_seats().choose("A-2")
    block(shopper, SEATS, "*/api/v1/reservations/*")
    lose_answers(shopper)
    shopper.reserve()
    wait_until(lambda: "it will not reserve twice" in shopper.notice, 10, "the truth")
    block(shopper)
    shopper.driver.refresh()
    shopper.wait_for("/reserved", "made")
    assert shopper.find("#seats").text == "Block A, seat 2"


def lose_answers(shopper):
    shopper.driver.execute_script("""
        const real = window.fetch;
        window.fetch = async (path, options) => {
          const answer = await real(path, options);
          if (path === '/api/v1/reservations') throw new TypeError('lost');
          return answer;
        };""")


def test_whoever_is_no_longer_inside_stands_in_line_again_and_comes_back_to_the_seats(fast_demo, shopper):
    shopper = shopper().go_to_seats().choose("A-2")
    block(shopper, SEATS)
    assert fast_demo.admin.patch(ROOM, mode="hold").status == 200
    in_another_tab = {"x-queue-entry-token": shopper.driver.get_cookie(PASS)["value"]}
    assert curl(fast_demo, "/api/v1/reservations", order("C-1"), in_another_tab).status == 201
    wait_until(lambda: curl(fast_demo, "/api/v1/seats", headers=in_another_tab).status == 403, 2, "the end of the visit")
    shopper.reserve().wait_for(f"/queue/{ROOM}", "waiting")
    block(shopper)
    fast_demo.admin.patch(ROOM, mode="queue")
    shopper.wait_for("/seats/a", "choosing")
    assert shopper.find("input[value=A-2]").is_enabled(), "it was not sold"


def test_the_seats_speak_korean_fit_a_small_phone_and_hold_still_for_those_who_ask(shopper):
    shopper = shopper(lang="ko", size=(500, 700), flags=["--force-prefers-reduced-motion"])
    size = {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True}
    shopper.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    shopper.go_to_seats().choose("A-2")
    assert shopper.find("h1").text == "좌석을 골라 주세요" and shopper.find("html").get_attribute("lang") == "ko"
    assert shopper.find("#chosen").text == "A구역 2번 · 154,000원"
    assert shopper.find("input[value=A-3]").accessible_name == "A구역 3번, 판매 완료"
    assert shopper.find(".seat span").value_of_css_property("transition-duration") == "0s"
    assert shopper.driver.execute_script("return document.documentElement.scrollWidth") == 320
    assert min(shopper.find(".seat").size.values()) >= 24, "a finger finds it"


# --- with curl alone


def test_with_curl_alone_from_the_line_to_a_seat(fast_demo):
    turned_away = curl(fast_demo, "/api/v1/seats")
    assert (turned_away.status, turned_away.json()["redirectTo"]) == (403, f"/queue/{ROOM}")
    pass_ = enter_with_curl(fast_demo)
    header = {"x-queue-entry-token": pass_}
    seats = curl(fast_demo, "/api/v1/seats", headers=header).json()["blocks"][0]
    assert (seats["id"], seats["seats"]) == ("A", 32) and "A-3" in seats["sold"] and "A-7" not in seats["sold"]

    taken = curl(fast_demo, "/api/v1/reservations", order("A-7", "A-3"), header)
    assert (taken.status, taken.error_code, taken.json()["error"]["seat_ids"]) == (409, "SEAT_TAKEN", ["A-3"])
    for wrong in ({}, order(), order("Z-1"), order("A-33"), order("A-7", "A-7"), order(*["A-7"] * 5), [], order(7)):
        assert curl(fast_demo, "/api/v1/reservations", wrong, header).error_code == "INVALID_REQUEST"
    assert curl(fast_demo, "/api/v1/reservations", {**order("A-7"), "event_id": "opera"}, header).status == 404
    assert curl(fast_demo, "/api/v1/seats", headers=header).status == 200, "a refusal ended the visit"

    made = curl(fast_demo, "/api/v1/reservations", order("A-7", "A-8"), header)
    assert (made.status, made.json()["seat_ids"], made.json()["price"]) == (201, ["A-7", "A-8"], 308000)
    assert made.header("weir-session") is None and pass_.encode() not in made.body
    wait_until(lambda: curl(fast_demo, "/api/v1/seats", headers=header).status == 403, 2, "the visit over")
    assert curl(fast_demo, "/api/v1/reservations", order("A-1"), header).error_code == "ADMISSION_REQUIRED"
    assert curl(fast_demo, f"/api/v1/reservations/{made.json()['id']}").json() == made.json()
    assert curl(fast_demo, "/api/v1/reservations/none").status == 404
    assert curl(fast_demo, "/api/v1/reservations/none", order("A-1")).status == 403, "only looking is free"
    for log in (fast_demo.data / "logs").iterdir():
        assert pass_ not in log.read_text(), f"{log.name} knows the pass"


def test_a_login_token_beside_the_pass_is_in_nobodys_way(fast_demo):
    """In `Authorization`, where a pass could be too; the pass in the cookie, the header or the body."""
    ways = {
        "A-15": lambda pass_: ({"Cookie": f"{PASS}={pass_}"}, {}),
        "A-16": lambda pass_: ({"x-queue-entry-token": pass_}, {}),
        "A-17": lambda pass_: ({}, {"reservation_token": pass_}),
    }
    for seat, way in ways.items():
        headers, fields = way(enter_with_curl(fast_demo))
        made = curl(fast_demo, "/api/v1/reservations", {**order(seat), **fields}, {**LOGIN, **headers})
        assert (made.status, made.json()["seat_ids"]) == (201, [seat])
    assert curl(fast_demo, "/api/v1/reservations", order("A-18"), LOGIN).error_code == "ADMISSION_REQUIRED"


def curl(running, path, body=None, headers=None):
    command = ["curl", "-s", "-i", "--max-time", "20", running.url + path]
    for name, value in (headers or {}).items():
        command += ["-H", f"{name}: {value}"]
    if body is not None:
        command += ["-d", json.dumps(body)]
    said = subprocess.run(command, capture_output=True, check=True, timeout=30).stdout
    head, _, rest = said.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in lines)
    return Response(int(first.split()[1]), [(name.lower(), value) for name, value in pairs], rest)


def order(*seats):
    return {"event_id": ROOM, "seat_ids": list(seats)}


def enter_with_curl(running):
    """Joins, polls until called, enters; the pass."""
    joined = curl(running, "/api/v1/queue/join", {"event_id": ROOM}).json()
    token = joined["waiting_token"]
    status = f"/api/v1/queue/status?token={quote(token)}"
    wait_until(lambda: curl(running, status).json()["ready_for_entry"], 30, "the call", every_sec=0.2)
    entered = curl(running, "/api/v1/queue/enter", {"waiting_token": token}).json()
    assert entered["admission"] == "granted"
    return entered["reservation_token"]


def buy(running, seat):
    return curl(running, "/api/v1/reservations", order(seat), {"x-queue-entry-token": enter_with_curl(running)})


def block(shopper, *patterns):
    """What the browser cannot reach from here on."""
    shopper.driver.execute_cdp_cmd("Network.enable", {})
    shopper.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(patterns)})


# --- the shop itself


def test_the_shop_does_not_outlive_the_demo_that_started_it(tmp_path):
    command = ["sh", "-c", '/usr/bin/python3 "$1" "$2" & echo $!; read -r _', "sh", ROOT / "demo" / "shop.py", tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        shop = int(starter.stdout.readline())
        wait_until((tmp_path / "shop.sock").exists, 10, "the shop")
        starter.kill()
        wait_until(lambda: not is_alive(shop), 10, "the end of the shop")


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
