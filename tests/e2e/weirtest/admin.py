# SPDX-License-Identifier: BSD-2-Clause
"""The operator's API as one operator calls it. Each call returns the Response; nothing is asserted here."""

from .http import Client

PREFIX = "/weir/api/"


class Admin(Client):
    def __init__(self, port, token):
        super().__init__(port, cookies=False, headers={"Authorization": f"Bearer {token}"} if token is not None else {})

    def call(self, method, path, body=None, **kwargs):
        return self.request(method, PREFIX + path, body, **kwargs)

    def rooms(self):
        return self.call("GET", "rooms")

    def room(self, name):
        return self.call("GET", f"rooms/{name}")

    def put(self, name, **settings):
        return self.call("PUT", f"rooms/{name}", settings)

    def patch(self, name, **settings):
        return self.call("PATCH", f"rooms/{name}", settings)

    def delete(self, name):
        return self.call("DELETE", f"rooms/{name}")

    def advance(self, name, count):
        return self.call("POST", f"rooms/{name}/advance", {"count": count})

    def clear(self, name):
        return self.call("POST", f"rooms/{name}/clear")

    def figures(self, name):
        return self.call("GET", f"rooms/{name}/figures")

    def ticket(self, token):
        return self.call("POST", "ticket", {"token": token})
