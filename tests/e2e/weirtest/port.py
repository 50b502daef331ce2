# SPDX-License-Identifier: BSD-2-Clause
"""Ports of this machine's loopback address."""

import socket


def free_port():
    """Free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_free_port(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
