# SPDX-License-Identifier: BSD-2-Clause
"""The gate is not in the browser: cut off, without scripts, lied to by its own page, no browser gets past it without a pass."""

import json

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from weirtest import Shop, wait_until

pytestmark = pytest.mark.one_store

ROOM = "concert"


@pytest.fixture
def shop():
    shop = Shop()
    yield shop
    shop.close()


@pytest.fixture
def line(weir, shop):
    """A shop before which everybody has to wait, until the operator says otherwise."""
    gate = f"location / {{ weir_gate room={ROOM}; proxy_pass http://127.0.0.1:{shop.port}; }}"
    return weir(rooms={ROOM: "mode=hold seen_ttl_sec=60"}, server=gate, admin=["ops"])


class Plane:
    """A browser that can be cut off and tampered with."""

    def __init__(self, server, driver):
        self.server = server
        self.driver = driver
        driver.execute_cdp_cmd("Network.enable", {})

    def go(self, path):
        try:
            self.driver.get(self.server.url + path)
        except WebDriverException:
            pass  # there is no network: the browser shows a page of its own
        return self

    def cut(self, is_off=True):
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": is_off, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})

    def on_every_page(self, script):
        self.driver.execute_cdp_cmd("Page.enable", {})
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})

    def is_waiting(self):
        found = self.driver.find_elements(By.ID, "position")
        return bool(found) and found[0].text.isdigit()

    def shows(self, text):
        try:
            return text in self.driver.page_source
        except WebDriverException:
            return False  # between two pages


@pytest.fixture
def plane(line, browser):
    return Plane(line, browser())


def tries(plane):
    """Everything that a visitor may do with the address bar."""
    for path in ("/seats", "/", "/seats?return=/seats", "/queue/concert?return=/seats", "//seats", "/Seats"):
        plane.go(path)


def test_airplane_mode_in_the_middle_of_the_line(plane, shop, line):
    plane.go("/seats")
    wait_until(plane.is_waiting, 20, "a place in line")
    plane.cut()
    wait_until(lambda: "shaky" in plane.driver.find_element(By.ID, "notice").text, 30, "the page to say so")
    tries(plane)
    plane.cut(False)
    plane.go("/seats")
    wait_until(plane.is_waiting, 20, "the same line")
    assert not shop.seen
    # Their turn comes, and they get in with a pass.
    assert line.admin().advance(ROOM, 1).json()["called"] == 1
    wait_until(lambda: plane.shows('"shop": true'), 30, "the shop")
    assert shop.seen and all(visit.of_weir().get("x-weir-session") for visit in shop.seen)


def test_without_scripts_nobody_gets_further(plane, shop):
    plane.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    tries(plane)
    assert "/queue/" in plane.driver.current_url or plane.driver.current_url.endswith("/Seats")
    assert not shop.seen


LIES = {
    "errors": "async () => new Response('{}', {status: 500})",
    "nothing": "() => new Promise(() => {})",
    "failures": "() => Promise.reject(new TypeError('Failed to fetch'))",
    "junk": "async () => new Response('<html>', {status: 200})",
    "a turn that is none": "async (address) => new Response(JSON.stringify(String(address).includes('enter')"
                           " ? {admission: 'granted', reservation_token: 'a.b.c', ttl_sec: 180}"
                           " : {waiting_token: 'x', status: 'waiting', ready_for_entry: true, position: 1}), {status: 200})",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_browser_that_is_lied_to_does_not_get_in(plane, shop, lie):
    plane.on_every_page(f"window.fetch = {LIES[lie]};")
    plane.go("/seats")
    wait_until(lambda: "/queue/" in plane.driver.current_url, 20, "the waiting page")
    wait_until(lambda: plane.driver.find_elements(By.ID, "page"), 10, "the page")
    tries(plane)
    assert not shop.seen


def test_a_forged_ticket_and_a_forged_pass_open_nothing(plane, shop, line):
    """Somebody else's pass, of another server, with every cookie and key of the page set by hand."""
    plane.go("/queue/concert")
    wait_until(plane.is_waiting, 20, "a place in line")
    ticket = json.dumps({"token": "A" * 80, "hasEntered": True, "entered": []})
    plane.driver.execute_script("localStorage.setItem('weir:ticket:concert', arguments[0])", ticket)
    for value in ("eyJhbGciOiJub25lIn0.e30.", "x", "a.b.c"):
        plane.driver.add_cookie({"name": f"weir-pass-{ROOM}", "value": value})
        tries(plane)
    assert not shop.seen
