# SPDX-License-Identifier: BSD-2-Clause
"""A real browser: headless Chromium with a profile of its own."""

import json
import urllib.request
from contextlib import contextmanager

import trio
import trio_websocket
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def browser(profile, lang="en", size=(900, 900), flags=(), prefs=None):
    """Starts one; the caller quits it. `profile` is a folder that nobody else uses."""
    options = webdriver.ChromeOptions()
    for flag in [*FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={profile}", *flags]:
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"intl.accept_languages": lang, **(prefs or {})})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(30)
    return driver


@contextmanager
def browsers(folder):
    """Starts as many as are asked for, each a visitor of its own, and quits them all."""
    started = []

    def start(**kwargs):
        started.append(browser(folder / f"profile{len(started)}", **kwargs))
        return started[-1]

    try:
        yield start
    finally:
        for driver in started:
            driver.quit()


def windows(driver, count):
    """Opens windows that share nothing, cookies and storage least of all, as of so many people; returns their handles.

    The driver speaks with pages only, and contexts are the browser's own to make.
    """
    address = driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
    with urllib.request.urlopen(f"http://{address}/json/version", timeout=30) as answer:
        return trio.run(_windows_open, json.load(answer)["webSocketDebuggerUrl"], count)


async def _windows_open(url, count):
    async with trio_websocket.open_websocket_url(url) as socket:
        opened = []
        for _ in range(count):
            context = await _ask(socket, "Target.createBrowserContext")
            opened.append(await _ask(socket, "Target.createTarget", url="about:blank", newWindow=True, **context))
        return [window["targetId"] for window in opened]


async def _ask(socket, method, **params):
    """One question at a time, so one id is enough; what else is said meanwhile are events."""
    await socket.send_message(json.dumps({"id": 1, "method": method, "params": params}))
    while True:
        said = json.loads(await socket.get_message())
        if said.get("id") == 1:
            return said["result"]
