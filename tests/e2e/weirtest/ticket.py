# SPDX-License-Identifier: BSD-2-Clause
"""What stands in a ticket, for tests that want to see the place itself: the layout is told in src/token/ticket.h."""

import base64
import struct
from collections import namedtuple

Place = namedtuple("Place", "epoch count")

HEAD = struct.Struct("!BBBIII12sB")
MAC_SIZE = 16


def place_of(token):
    """(epoch, count) of a waiting_token. The signature is the server's to judge."""
    data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    version, _, _, epoch, count, _, _, room_len = HEAD.unpack_from(data)
    assert version == 1 and len(data) == HEAD.size + room_len + MAC_SIZE, token
    return Place(epoch, count)
