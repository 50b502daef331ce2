# SPDX-License-Identifier: BSD-2-Clause
"""Tests of what surrounds the module: the build, the scripts, the demo. They use the harness of the end-to-end tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "e2e"))
