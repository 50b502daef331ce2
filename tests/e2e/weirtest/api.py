# SPDX-License-Identifier: BSD-2-Clause
"""The queue API as one visitor calls it. Each call returns the Response; nothing is asserted here."""

from urllib.parse import quote

from .http import Client


class Api(Client):
    def join(self, room, **kwargs):
        body = {"event_id": room, **kwargs.pop("fields", {})}
        return self.post("/api/v1/queue/join", body, **kwargs)

    def status(self, token, **kwargs):
        return self.get(f"/api/v1/queue/status?token={quote(token)}", **kwargs)

    def enter(self, token, **kwargs):
        return self.post("/api/v1/queue/enter", {"waiting_token": token}, **kwargs)

    def heartbeat(self, token, **kwargs):
        return self.post("/api/v1/queue/heartbeat", {"waiting_token": token}, **kwargs)

    def leave(self, token, **kwargs):
        return self.request("DELETE", f"/api/v1/queue/leave?token={quote(token)}", **kwargs)

    def leave_beacon(self, token, **kwargs):
        headers = {"Content-Type": "text/plain;charset=UTF-8"}
        return self.post(f"/api/v1/queue/leave?token={quote(token)}", "", headers=headers, **kwargs)

    def ticket(self, room, **kwargs):
        """The token of a join that must succeed."""
        response = self.join(room, **kwargs)
        assert response.status == 202, response
        return response.json()["waiting_token"]
