# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests stand on: a real nginx with the module, and clients that talk to it."""

from .api import Api
from .crowd import at_once
from .http import Client, Response, raw
from .nginx import Nginx, free_port, module_path
from .wait import wait_until

__all__ = ["Api", "Client", "Nginx", "Response", "at_once", "free_port", "module_path", "raw", "wait_until"]
