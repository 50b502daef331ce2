# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests stand on: a real nginx with the module, and clients that talk to it."""

from .admin import Admin
from .api import Api
from .crowd import at_once
from .http import Client, Response, raw
from .nginx import Nginx, free_port, module_path
from .people import Caller, Person
from .shop import Shop
from .ticket import place_of
from .wait import wait_until

__all__ = [
    "Admin", "Api", "Caller", "Client", "Nginx", "Person", "Response", "Shop", "at_once", "free_port", "module_path", "place_of",
    "raw", "wait_until",
]
