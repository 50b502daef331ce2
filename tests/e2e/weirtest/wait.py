# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for a condition. No test sleeps for a time and hopes."""

import time


def wait_until(condition, timeout_sec=10.0, what="the condition", every_sec=0.02):
    """Returns the first truthy value of `condition()`; fails the test when `timeout_sec` is over."""
    deadline = time.monotonic() + timeout_sec
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout_sec} s")
        time.sleep(every_sec)
