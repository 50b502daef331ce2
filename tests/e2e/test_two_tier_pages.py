# SPDX-License-Identifier: BSD-2-Clause
"""The pages of the two tiers in a real browser, on the sample matrix: ten people from the lobby to a reservation, each place kept over
every refresh; and whatever goes wrong, no page goes on by itself."""

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from weirtest import Nginx, free_port, wait_until
from weirtest.browser import browser as start_browser
from weirtest.browser import windows
from weirtest.redis import make_certificates
from weirtest.waiting_page import WaitingPage, ignoring_navigation

pytestmark = pytest.mark.one_store

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "gate-matrix.conf"
PEOPLE, SLOTS = 10, 3
HELD = "mode=hold seen_ttl_sec=60"
OPEN_HALL = "preset=hall rate=100"
ROOMS = {
    "site": "tier=1 mode=open max_active=0",
    "lobby:42": f"preset=lobby batch=4 interval_sec=1 {HELD}", "42": f"preset=hall max_active={SLOTS} rate=100 {HELD}",
    "lobby:held": f"preset=lobby {HELD}", "held": f"preset=hall {HELD}",
    "lobby:wrong": f"preset=lobby {HELD}", "wrong": f"preset=hall {HELD}",
    "lobby:quick": "preset=lobby rate=100", "quick": OPEN_HALL,
    "lobby:open": "preset=lobby mode=open", "open": OPEN_HALL,
    "lobby:closed": "preset=lobby mode=closed", "closed": OPEN_HALL,
}

# What stands between a page and its server may say anything. (Errors, redirects and silence are the same to all: test_page.py.)
LIES = {
    "portal": "200 '<html>please log in to this network</html>'",
    "half": """200 '{"admitted":true,"queued":false,"status":"active"}'""",
    "forged": """200 '{"admitted":true,"token":"a; b","queued":false,"status":"active","entryToken":"a; b"}'""",
    "nothing": "404 '<html>404</html>'",
}

# Who signs in gets a cookie, and the proxy in front says whose it is. It lies to those who have a cookie that says so.
FRONT = """
    upstream shop {{ server 127.0.0.1:{shop}; }}
    server {{
        listen 127.0.0.1:{front};
        listen 127.0.0.1:{tls} ssl;
        ssl_certificate {folder}/server.crt;
        ssl_certificate_key {folder}/server.key;
        proxy_set_header Host $http_host;
        proxy_set_header X-User-Id $cookie_login;
        location / {{ proxy_pass http://127.0.0.1:{port}; }}
        location ~ ^/(?:vwr-api|api/v1/queue)/ {{
            {lies}
            proxy_pass http://127.0.0.1:{port};
        }}
    }}
"""
SHOP = """
        default_type text/html;
        location ~ ^/events/(?<event>[a-z0-9]+)$ {
            return 200 '<!doctype html><h1 id="event">$event</h1><a id="tickets" href="/queue/$event?return=/events/$event/seats">Tickets</a>';
        }
        location ~ ^/events/(?<event>[a-z0-9]+)/seats$ {
            return 200 '<!doctype html><h1 id="seats">$event</h1><button id="buy">Buy</button><p id="bought"></p><script>
                document.getElementById("buy").onclick = async () => {
                    const answer = await fetch("/api/v1/reservations", { method: "POST", body: "{}" });
                    document.getElementById("bought").textContent = answer.status + " " + await answer.text();
                };
            </script>';
        }
        location = /api/v1/reservations {
            add_header Weir-Session end always;
            return 201 '$http_x_weir_user $http_x_weir_room $http_x_weir_tier';
        }
        location / { return 200 'the shop'; }
"""


class Site(Nginx):
    """The sample as it is, but that the sign-in proxy is here."""

    def __init__(self, folder):
        super().__init__(folder / "nginx", rooms=ROOMS, api=False, admin=["ops"], shop=SHOP, journal=folder / "journal")
        matrix = folder / "matrix.conf"
        matrix.write_text(SAMPLE.read_text().replace("from=10.0.0.0/8", "from=127.0.0.1"))
        make_certificates(folder)
        self.front, self.tls = free_port(), free_port()
        lies = "".join(f"if ($cookie_lie = {name}) {{ return {answer}; }}" for name, answer in LIES.items())
        front = FRONT.format(shop=self.shop_port, front=self.front, tls=self.tls, port=self.port, folder=folder, lies=lies)
        self.write_conf(http=front, server=f"include {matrix};")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    server = Site(tmp_path_factory.mktemp("pages")).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("browser") / "profile", flags=["--ignore-certificate-errors"])
    yield driver
    driver.quit()


@pytest.fixture
def visitors(site, driver):
    """So many people who have opened nothing yet."""
    opened = []

    def make(count=1):
        people = [Visitor(site, driver, handle) for handle in windows(driver, count)]
        opened.extend(people)
        return people

    home = driver.current_window_handle
    yield make
    for person in opened:
        person.look()
        driver.close()
    driver.switch_to.window(home)


@pytest.fixture
def visitor(visitors):
    return visitors()[0].look()


class Visitor(WaitingPage):
    """One person's window. The driver looks at one at a time: `look` before anything else."""

    def __init__(self, site, driver, handle):
        super().__init__(driver)
        self.site = site
        self.handle = handle
        self.url = f"http://127.0.0.1:{site.front}"

    def look(self):
        self.driver.switch_to.window(self.handle)
        return self

    def open(self, path):
        self.driver.get(self.url + path)
        return self

    def begin(self, script):
        """Something that leads to another page; who waits for that page (`wait_at`) does not find this one."""
        self.driver.execute_script("window.isMarked = true;" + script)
        return self

    def refresh(self):
        return self.begin("location.reload()")

    def sign_in(self, name):
        self.driver.execute_script("document.cookie = `login=${arguments[0]}; path=/`", name)
        return self

    def lie(self, name):
        """From here on they are lied to in this way; None: no more."""
        self.driver.execute_script("document.cookie = `lie=${arguments[0] || ''}; path=/; max-age=${arguments[0] ? 600 : 0}`", name)
        self.wake()

    @property
    def path(self):
        return self.driver.execute_script("return location.pathname")

    def is_at(self, path):
        """On this page, and not on one that they are about to leave."""
        seen = "return location.pathname === arguments[0] && document.readyState === 'complete' && !window.isMarked"
        return ignoring_navigation(lambda: self.driver.execute_script(seen, path))

    def wait_at(self, path):
        self.wait(self.is_at(path), path)
        return self

    def request_id(self, event):
        return (self.kept(f"urr-vwr-{event}") or {}).get("requestId")

    def kept(self, key):
        return json.loads(self.driver.execute_script("return localStorage.getItem(arguments[0])", key) or "null")

    def keep(self, key, value):
        self.driver.execute_script("localStorage.setItem(arguments[0], arguments[1])", key, value)

    def cookie(self, name):
        return next((cookie for cookie in self.driver.get_cookies() if cookie["name"] == name), None)


# --- ten people


def test_ten_people_go_from_the_lobby_page_to_a_reservation(site, visitors):
    people = visitors(PEOPLE)
    stand_in_lobby(site, people)
    stand_in_hall(site, people)
    bought = set()

    def everybody_has_bought():
        assert site.admin().figures("42").json()["inside"] <= SLOTS
        for person in set(people) - bought:
            if person.look().is_at("/events/42/seats")():
                buy(person)
                bought.add(person)
        return len(bought) == PEOPLE
    wait_until(everybody_has_bought, 120, "ten reservations", every_sec=0.05)
    assert site.admin().figures("lobby:42").json()["issued"] == PEOPLE, "a refresh took another place in the lobby"
    assert site.admin().figures("42").json()["issued"] == PEOPLE, "a refresh took another place in the hall"


def stand_in_lobby(site, people):
    for person in people:
        person.look().begin(f"location.href = '{person.url}/events/42'")
    refresh_in_line(people, "/vwr/42", lambda person: (person.position, person.request_id("42")))
    site.admin().patch("lobby:42", mode="queue")
    for person in people:
        person.look().wait_at("/events/42")
        token = person.cookie("urr-vwr-token")
        assert (token["path"], token["sameSite"], token["httpOnly"]) == ("/", "Strict", False)
        person.refresh()


def stand_in_hall(site, people):
    for number, person in enumerate(people):
        person.look().wait_at("/events/42").sign_in(f"person-{number}").begin("document.getElementById('tickets').click()")
    refresh_in_line(people, "/queue/42", lambda person: person.position)
    site.admin().patch("42", mode="queue")


def refresh_in_line(people, path, place_of):
    """All of them, in whichever order they came, have places of their own and keep them."""
    places = [place_of(person.look().wait_at(path).wait_in_line()) for person in people]
    assert len(set(places)) == PEOPLE
    assert sorted(person.look().position for person in people) == list(range(1, PEOPLE + 1))
    for person in people:
        person.look().refresh()
    assert [place_of(person.look().wait_at(path).wait_in_line()) for person in people] == places


def buy(person):
    """With the hall's pass, and then the visit is over."""
    assert person.cookie("urr-entry-token")
    person.refresh().wait_at("/events/42/seats").driver.find_element(By.ID, "buy").click()
    person.wait(lambda: person.text("bought"), "the reservation")
    assert person.text("bought") == f"201 {person.cookie('login')['value']} 42 2"
    person.wait(lambda: status_of(person, "/api/v1/seats") == 403, "the visit's end")


def status_of(person, path):
    return person.driver.execute_async_script("fetch(arguments[0]).then((answer) => arguments[1](answer.status))", path)


# --- what others kept, and what they find


def test_a_place_that_a_page_of_theirs_kept_goes_on(site, visitor):
    assigned = site.client(cookies=False).post("/vwr-api/vwr/assign/held", {"userId": "anon-1"}).json()
    visitor.open("/healthz").keep("urr-vwr-held", json.dumps({"requestId": assigned["requestId"], "position": assigned["position"]}))
    visitor.keep("urr-anon-id", "anon-1")
    issued = site.admin().figures("lobby:held").json()["issued"]
    visitor.open("/vwr/held").wait_in_line()
    assert visitor.request_id("held") == assigned["requestId"]
    assert visitor.driver.execute_script("return localStorage.getItem('urr-anon-id')") == "anon-1"
    assert site.admin().figures("lobby:held").json()["issued"] == issued


@pytest.mark.parametrize("kept", [
    '{"requestId":"0b0e7e2c-7a35-4f6c-9d0e-1c2f3a4b5c6d","position":17}', '{"requestId":"../../x"}', "not json", "null",
], ids=["another system's", "a path", "text", "nothing"])
def test_a_place_that_is_none_here_is_taken_anew(site, visitor, kept):
    visitor.open("/healthz").keep("urr-vwr-held", kept)
    visitor.open("/vwr/held").wait_in_line()
    assert visitor.request_id("held") not in (None, "", json.loads(kept).get("requestId") if kept.startswith("{") else None)
    assert visitor.kept("urr-vwr-held")["position"] > 0
    assert ("expired" in visitor.notice) == ("0b0e7e2c" in kept)


def test_a_second_tab_stands_at_the_same_place(visitor):
    visitor.open("/vwr/held").wait_in_line()
    before = visitor.request_id("held"), visitor.position
    visitor.driver.execute_script("open('/vwr/held')")
    other = visitor.wait(lambda: [handle for handle in visitor.driver.window_handles if is_of(visitor, handle)], "the second tab")
    visitor.driver.switch_to.window(other[0])
    visitor.wait_in_line()
    assert (visitor.request_id("held"), visitor.position) == before
    visitor.driver.close()


def is_of(visitor, handle):
    """Whether this is another tab of theirs: it knows what they keep."""
    visitor.driver.switch_to.window(handle)
    return handle != visitor.handle and ignoring_navigation(lambda: visitor.path == "/vwr/held")()


def test_who_is_not_signed_in_is_told_so_and_goes_on_when_they_are(visitor):
    visitor.open("/events/quick").wait_at("/events/quick").driver.find_element(By.ID, "tickets").click()
    visitor.wait(ignoring_navigation(lambda: visitor.state == "outside" and "signed in" in visitor.notice), "a word about signing in")
    back = visitor.driver.find_element(By.ID, "back")
    assert back.is_displayed() and back.get_attribute("href") == visitor.url + "/events/quick"
    visitor.refresh().wait_at("/queue/quick")
    visitor.wait(lambda: visitor.state == "outside", "the same after a refresh")
    visitor.sign_in("late")
    visitor.wake()
    visitor.wait_at("/events/quick/seats")


def test_a_hall_without_its_lobby_leads_through_the_lobby_and_back(visitor):
    visitor.open("/healthz").sign_in("from-the-side")
    visitor.open("/queue/quick?return=%2Fevents%2Fquick%2Fseats").wait_at("/events/quick/seats")
    assert visitor.cookie("urr-vwr-token") and visitor.cookie("urr-entry-token")
    visitor.open("/queue/quick").wait_at("/events/quick")


def test_another_who_signs_in_at_the_same_browser_goes_through_the_lobby_too(site, visitor):
    visitor.open("/healthz").sign_in("elder")
    visitor.open("/queue/quick").wait_at("/events/quick").sign_in("younger")
    issued = site.admin().figures("lobby:quick").json()["issued"]
    visitor.begin("location.href = '/queue/quick?return=/events/quick/seats'").wait_at("/events/quick/seats")
    assert site.admin().figures("lobby:quick").json()["issued"] == issued + 1


def test_over_tls_the_passes_go_nowhere_else(visitor):
    visitor.url = f"https://127.0.0.1:{visitor.site.tls}"
    visitor.open("/healthz").sign_in("careful")
    visitor.open("/queue/quick").wait_at("/events/quick")
    for name in ("urr-vwr-token", "urr-entry-token"):
        assert visitor.cookie(name)["secure"] and visitor.cookie(name)["sameSite"] == "Strict"


def test_where_nobody_queues_the_gate_is_asked(visitor):
    visitor.open("/vwr/open").wait_at("/events/open")
    assert visitor.text("event") == "open" and not visitor.cookie("urr-vwr-token")


def test_a_closed_lobby_is_waited_for(site, visitor):
    visitor.open("/vwr/closed")
    visitor.wait(ignoring_navigation(lambda: "join right now" in visitor.notice), "a word about it")
    visitor.mark()
    site.admin().patch("lobby:closed", mode="queue")
    visitor.wake()
    visitor.wait_at("/events/closed")


def test_one_leaves_the_hall_for_good_and_the_lobby_by_going(site, visitor):
    visitor.open("/vwr/held").wait_in_line()
    assert not visitor.driver.find_element(By.ID, "leave").is_displayed(), "its clients know no way to leave"
    site.admin().advance("lobby:held", 1000)
    visitor.wait_at("/events/held").sign_in("leaver")
    visitor.open("/queue/held").wait_in_line()
    visitor.driver.find_element(By.ID, "leave").click()
    visitor.driver.find_element(By.CSS_SELECTOR, "#sure [value=leave]").click()
    visitor.wait(lambda: visitor.state == "left", "having left")
    assert site.admin().figures("held").json()["waiting"] == 0


# --- what goes wrong


@pytest.fixture(scope="module")
def two(site, driver):
    """One who stands in the lobby and one who stands in the hall, of an event that calls nobody."""
    hall, lobby = (Visitor(site, driver, handle) for handle in windows(driver, 2))
    hall.look().open("/vwr/wrong").wait_in_line()
    site.admin().advance("lobby:wrong", 1)
    hall.wait_at("/events/wrong").sign_in("patient")
    hall.open("/queue/wrong").wait_in_line()
    lobby.look().open("/vwr/wrong").wait_in_line()
    return lobby, hall


def places(two):
    lobby, hall = two
    return lobby.look().position, lobby.request_id("wrong"), hall.look().position


def is_troubled(person):
    """It says so, and is still the page that it was."""
    person.look()
    assert person.has_stayed, "it went on without a pass"
    return person.notice


@pytest.mark.parametrize("lie", LIES)
def test_no_answer_but_a_pass_lets_a_page_on(two, lie):
    before = places(two)
    for person in two:
        person.look().mark().lie(lie)
    for person in two:
        person.wait(lambda: is_troubled(person), "a notice")
        person.lie(None)
        person.wait(lambda: not is_troubled(person), "its going on to wait")
    assert places(two) == before


def test_a_server_that_is_gone_is_waited_for(site, two):
    before = places(two)
    for person in two:
        person.look().mark()
    site.stop()
    for person in two:
        person.wait(lambda: "connection" in is_troubled(person), "a word about the connection")
    site.start()
    for person in two:
        person.look().wake()
        person.wait(lambda: not is_troubled(person), "its going on to wait")
    assert places(two) == before


def test_an_assign_that_is_not_found_by_somebody_else_leads_nowhere(visitor):
    """Of the lobby, 404 says that nobody queues. Of a network that is in the way, it says nothing."""
    visitor.open("/healthz").lie("nothing")
    visitor.open("/vwr/held")
    visitor.wait(ignoring_navigation(lambda: visitor.notice), "a notice")
    assert not (visitor.kept("urr-vwr-held") or {}).get("went"), "it asked the gate"
    visitor.lie(None)
    visitor.wait_in_line()
