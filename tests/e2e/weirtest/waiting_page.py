# SPDX-License-Identifier: BSD-2-Clause
"""The waiting page as a person sees it, of whichever contract."""

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from .wait import wait_until


class WaitingPage:
    def __init__(self, driver):
        self.driver = driver

    @property
    def state(self):
        return self.driver.find_element(By.ID, "page").get_attribute("data-state")

    @property
    def position(self):
        shown = self.text("position")
        return int(shown) if shown.isdigit() else None

    @property
    def progress(self):
        return int(self.driver.find_element(By.ID, "bar").get_attribute("aria-valuenow"))

    @property
    def notice(self):
        return self.text("notice")

    def text(self, id):
        return self.driver.find_element(By.ID, id).text

    def has(self, id):
        return bool(self.driver.find_elements(By.ID, id))

    def wait(self, condition, what, timeout_sec=30):
        return wait_until(condition, timeout_sec, what, every_sec=0.05)

    def wait_in_line(self):
        self.wait(lambda: self.state == "waiting" and self.position, "a place in line")
        return self

    def mark(self):
        """From here on `has_stayed` tells whether this very page is still there: the gate would bring a new one back."""
        self.driver.execute_script("window.isMarked = true")
        return self

    @property
    def has_stayed(self):
        return self.driver.execute_script("return window.isMarked === true")

    def wake(self):
        """It would ask again by itself when it was told to; coming back to the network makes it ask at once."""
        self.driver.execute_script("dispatchEvent(new Event('online'))")

    def block(self, *patterns):
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(patterns)})


def ignoring_navigation(look):
    """The page may go on between two looks at it: that look saw nothing."""

    def try_look():
        try:
            return look()
        except WebDriverException:
            return None

    return try_look
