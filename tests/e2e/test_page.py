# SPDX-License-Identifier: BSD-2-Clause
"""The waiting page in a real browser: it stands in line, it survives, and it never goes on without a pass."""

import json

import pytest
from selenium.webdriver.common.by import By

from weirtest import Nginx, free_port, wait_until
from weirtest.browser import browser as start_browser
from weirtest.waiting_page import WaitingPage, ignoring_navigation

pytestmark = pytest.mark.one_store

ROOM = "concert"
PAGE = f"/queue/{ROOM}"
SHOP = """
        default_type text/html;
        location / { return 200 '<!doctype html><title>shop</title><h1 id="shop">The shop: $request_uri</h1>'; }
"""
HOLD = "mode=hold seen_ttl_sec=60"
PACE = "rate=1 burst=1 seen_ttl_sec=60"


class Visitor(WaitingPage):
    """The page of one room, and the shop behind it."""

    def __init__(self, server, driver):
        super().__init__(driver)
        self.server = server

    def open(self, path=PAGE):
        self.driver.get(self.server.url + path)
        return self

    @property
    def token(self):
        kept = self.driver.execute_script(f"return localStorage.getItem('weir:ticket:{ROOM}')")
        return json.loads(kept).get("token") if kept else None

    @property
    def is_in_shop(self):
        return self.has("shop")

    def start_calls(self):
        """The line stands still until here, however long the browser took to come up."""
        self.server.write_conf(rooms={ROOM: PACE})
        self.server.reload()


@pytest.fixture
def visit(weir, browser):
    """Makes a server with one room and a gated shop, and a visitor who has not opened anything yet."""

    def make(settings, ahead=0, **kwargs):
        server = weir(rooms={ROOM: settings}, gate=ROOM, shop=SHOP)
        for _ in range(ahead):
            server.api(cookies=False).ticket(ROOM)
        return Visitor(server, browser(**kwargs))

    return make


def test_a_visitor_sees_the_position_fall_and_lands_in_the_shop(visit):
    visitor = visit(HOLD, ahead=4).open("/seats/front?row=3").wait_in_line()
    seen, progress = [visitor.position], [visitor.progress]
    assert seen == [5]
    visitor.start_calls()

    def is_let_in():
        if visitor.is_in_shop:
            return True
        seen.append(visitor.position or seen[-1])
        progress.append(visitor.progress)
        return False

    visitor.wait(ignoring_navigation(is_let_in), "the shop")
    assert len(set(seen)) > 2, "the position was not seen to fall"
    assert seen == sorted(seen, reverse=True), "a shown position rose"
    assert progress == sorted(progress), "the progress bar went back"
    assert visitor.driver.find_element(By.ID, "shop").text == "The shop: /seats/front?row=3"


def test_the_gate_stands_before_the_shop_whatever_the_browser_does(visit):
    visitor = visit(HOLD).open("/seats")
    visitor.wait(lambda: "/queue/" in visitor.driver.current_url, "the waiting page")
    visitor.wait_in_line().driver.get(visitor.server.url + "/seats")
    assert "/queue/" in visitor.driver.current_url and not visitor.is_in_shop


def test_a_refresh_keeps_the_place(visit):
    visitor = visit(HOLD, ahead=3).open().wait_in_line()
    token, position = visitor.token, visitor.position
    assert token and position == 4
    # By the ticket it keeps or by the visitor cookie: either alone will do.
    clear_storage = lambda: visitor.driver.execute_script("localStorage.clear()")  # noqa: E731
    for wipe in (lambda: None, clear_storage, visitor.driver.delete_all_cookies):
        wipe()
        visitor.driver.refresh()
        visitor.wait_in_line()
        assert (visitor.token, visitor.position) == (token, position)
    assert visitor.server.api(cookies=False).status(token).json()["position"] == 4
    # Nobody was added to the line by that.
    newcomer = visitor.server.api(cookies=False)
    assert newcomer.status(newcomer.ticket(ROOM)).json()["position"] == 5


def test_a_second_tab_stands_at_the_same_place(visit):
    visitor = visit(HOLD, ahead=2).open().wait_in_line()
    token = visitor.token
    visitor.driver.switch_to.new_window("tab")
    visitor.open().wait_in_line()
    assert (visitor.token, visitor.position) == (token, 3)


def test_a_blocked_api_makes_it_wait_and_say_so(visit):
    visitor = visit(HOLD, ahead=1).open().wait_in_line().mark()
    visitor.block("*/api/v1/queue/*")
    visitor.start_calls()
    visitor.wait(lambda: "connection" in visitor.notice, "a word about the connection")
    token = visitor.token
    # The turn comes while the page cannot hear of it.
    other = visitor.server.api(cookies=False)
    visitor.wait(lambda: other.status(token).json()["ready_for_entry"], "the call")
    assert visitor.has_stayed and visitor.token == token
    visitor.block()
    visitor.wait(lambda: visitor.is_in_shop, "the shop, once the API is back", timeout_sec=60)


@pytest.mark.parametrize(
    "answer",
    [
        "return 500;",
        "return 200 '<html>please log in to this network</html>';",
        """default_type application/json; return 200 '{"status":"ready","ready_for_entry":true}';""",
        """default_type application/json; return 200 '{"status":"open"}';""",
        "return 302 /;",
        "return 444;",
    ],
    ids=["error", "captive portal", "half an answer", "a word of no meaning", "redirect", "cut off"],
)
def test_no_answer_but_a_granted_enter_lets_it_on(visit, answer):
    visitor = visit(HOLD).open().wait_in_line().mark()
    token = visitor.token
    visitor.server.write_conf(server="location ^~ /api/v1/queue/status { %s } location ^~ /api/v1/queue/enter { %s }"
                                     % (answer, answer))
    visitor.server.reload()
    visitor.wait(lambda: visitor.notice, "a notice")
    assert visitor.has_stayed, "it went on without a pass"
    assert visitor.token == token, "the place was given up over an error"


def test_a_called_visitor_whose_enter_fails_stays_and_gets_in_later(visit):
    visitor = visit(HOLD, ahead=1).open().wait_in_line().mark()
    visitor.block("*/api/v1/queue/enter")
    visitor.start_calls()
    visitor.wait(lambda: visitor.state == "entering" and "connection" in visitor.notice, "the enter to fail")
    assert visitor.has_stayed
    visitor.block()
    visitor.wait(lambda: visitor.is_in_shop, "the shop", timeout_sec=60)


def test_a_lost_place_is_said_and_the_line_joined_anew(visit):
    visitor = visit(HOLD, ahead=1).open().wait_in_line()
    token = visitor.token
    visitor.server.api(cookies=False).leave(token)
    visitor.wait(lambda: "expired" in visitor.notice, "a word about the lost place")
    visitor.wait(lambda: visitor.token and visitor.token != token, "a new ticket")


def test_leaving_takes_a_second_word_and_is_final(visit):
    visitor = visit(HOLD).open().wait_in_line()
    token, driver = visitor.token, visitor.driver
    driver.find_element(By.ID, "leave").click()
    driver.find_element(By.CSS_SELECTOR, "#sure [value=stay]").click()
    assert visitor.state == "waiting" and visitor.token == token
    driver.find_element(By.ID, "leave").click()
    driver.find_element(By.CSS_SELECTOR, "#sure [value=leave]").click()
    visitor.wait(lambda: visitor.state == "left", "having left")
    assert visitor.server.api(cookies=False).status(token).error_code == "TOKEN_NOT_FOUND"
    assert visitor.token is None
    driver.find_element(By.ID, "rejoin").click()
    visitor.wait_in_line()
    assert visitor.token not in (None, token)


def test_someone_inside_who_comes_back_to_the_page_is_let_straight_on(visit):
    visitor = visit("rate=50").open()
    visitor.wait(lambda: visitor.is_in_shop, "the shop")
    visitor.open(PAGE + "?return=/again")
    visitor.wait(lambda: visitor.is_in_shop, "the shop again")
    assert visitor.text("shop") == "The shop: /again"


def test_a_browser_that_refuses_cookies_is_told_so_and_takes_no_place(visit):
    visitor = visit(HOLD, prefs={"profile.default_content_setting_values.cookies": 2}).open()
    visitor.wait(lambda: "cookies" in visitor.notice, "a word about cookies")
    newcomer = visitor.server.api(cookies=False)
    assert newcomer.status(newcomer.ticket(ROOM)).json()["position"] == 1


def test_a_pass_that_never_reaches_the_gate_does_not_send_it_in_circles(weir, browser):
    server = weir(start=False, rooms={ROOM: "mode=hold"}, gate=ROOM, shop=SHOP, admin=["operator"])
    front = free_port()
    server.write_conf(http=f"""
    server {{
        listen 127.0.0.1:{front};
        location / {{
            proxy_pass http://127.0.0.1:{server.port};
            proxy_set_header Cookie "";
            proxy_hide_header Set-Cookie;
        }}
    }}""")
    server.start()
    driver = browser()
    driver.get(f"http://127.0.0.1:{front}/seats")
    wait_until(lambda: server.admin().advance(ROOM, 10).json()["called"] > 0, 10, "somebody in line", every_sec=0.5)

    def is_told():
        found = driver.find_elements(By.ID, "notice")
        return found and "cookies" in found[0].text

    wait_until(ignoring_navigation(is_told), 30, "a word about cookies")
    assert "/queue/" in driver.current_url


@pytest.mark.parametrize(
    "wanted, goes_to",
    [
        ("/seats?a=1%26b=2", "/seats?a=1&b=2"),
        ("//evil.example/", "/"),
        ("/%5Cevil.example/", "/"),
        ("/%09/evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("seats", "/"),
        ("", "/"),
    ],
)
def test_it_goes_on_only_to_an_address_of_its_own_site(return_page, wanted, goes_to):
    driver, url = return_page
    driver.get(f"{url}{PAGE}?return={wanted}")
    assert driver.execute_script("return returnAddress()") == url + goes_to


@pytest.fixture(scope="module")
def return_page(tmp_path_factory):
    """One server and one browser for all the addresses: nobody gets in here."""
    folder = tmp_path_factory.mktemp("return")
    server = Nginx(folder / "nginx", rooms={ROOM: HOLD}).start()
    driver = start_browser(folder / "profile")
    yield driver, server.url
    driver.quit()
    server.stop()


def test_it_asks_nobody_but_its_own_site_and_fits_a_small_screen(visit):
    visitor = visit(HOLD, lang="ko")
    visitor.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 320, "height": 568, "deviceScaleFactor": 2, "mobile": True}
    )
    visitor.open().wait_in_line()
    asked = visitor.driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert asked and all(name.startswith(visitor.server.url + "/api/v1/queue/") for name in asked)
    assert visitor.driver.execute_script("return document.documentElement.scrollWidth") <= 320
    assert visitor.driver.execute_script("return document.documentElement.lang") == "ko"
    assert "순서" in visitor.text("title")


def test_a_room_that_does_not_exist_has_no_page(weir):
    server = weir(rooms={ROOM: HOLD})
    assert server.client().get(PAGE).status == 200
    for path in ("/queue/no-such-room", "/queue/", "/queue/a%2fb", "/queue/" + "x" * 65):
        assert server.client().get(path).status == 404, path


def test_a_room_that_went_away_is_said_to_be_none(visit):
    visitor = visit(HOLD)
    visitor.server.write_conf(
        server="""location = /api/v1/queue/join {
            default_type application/json;
            return 404 '{"error":{"code":"ROOM_NOT_FOUND","message":"There is no such room","trace_id":"1"}}';
        }"""
    )
    visitor.server.reload()
    visitor.open().wait(lambda: "no waiting room" in visitor.notice, "a word about the missing room")
    assert visitor.state == "refused"


def test_a_full_line_is_said_and_joined_once_there_is_space(visit):
    visitor = visit("mode=hold max_waiting=1")
    other = visitor.server.api()
    token = other.ticket(ROOM)
    visitor.open().wait(lambda: "full" in visitor.notice, "a word about the full line")
    assert visitor.token is None
    other.leave(token)
    visitor.wait(lambda: visitor.state == "waiting" and visitor.position == 1, "a place in line", timeout_sec=60)
    assert visitor.notice == ""


def test_a_closed_room_is_said_and_joined_once_it_opens(visit):
    visitor = visit("mode=closed").open()
    visitor.wait(lambda: "not open" in visitor.notice, "a word about the closed room")
    visitor.server.write_conf(rooms={ROOM: HOLD})
    visitor.server.reload()
    visitor.wake()
    visitor.wait(lambda: visitor.state == "waiting" and visitor.position == 1, "a place in line", timeout_sec=60)
