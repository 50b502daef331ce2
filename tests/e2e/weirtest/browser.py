# SPDX-License-Identifier: BSD-2-Clause
"""A real browser: headless Chromium with a profile of its own."""

from contextlib import contextmanager

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
