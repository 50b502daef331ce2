# SPDX-License-Identifier: BSD-2-Clause
"""The order of calls, as people see it who wait together."""

import itertools


def assert_called_in_order(nodes, waiting):
    """Asks everybody, last place first, each time another node, and lets in who was called.

    Nobody leaves, so once somebody was seen called, everybody asked later who stands before them must have been, too.
    """
    apis, shown = itertools.cycle([node.api() for node in nodes]), dict.fromkeys(waiting, len(waiting))
    while waiting:
        called = 0
        for count in sorted(waiting, reverse=True):
            answer = next(apis).status(waiting[count])
            assert answer.status == 200, answer
            standing = answer.json()
            assert not called or standing["ready_for_entry"], f"{called} was called and {count}, before them, was not"
            assert standing["position"] <= shown[count], f"the position of {count} rose from {shown[count]}: {standing}"
            shown[count] = standing["position"]
            if standing["ready_for_entry"]:
                called = max(called, count)
                assert next(apis).enter(waiting.pop(count)).status == 200
