# SPDX-License-Identifier: BSD-2-Clause
"""A power cut, as it leaves a journal: that of a moment before, with a note that something is missing."""

import shutil


class Loss:
    """What happens between this and `happen` is lost. The server has `weir_journal journal`, and somebody has joined a room of it:
    before the first answer nobody knows what of it is written."""

    def __init__(self, server):
        self.server, self.journal, self.saved = server, server.dir / "journal", server.dir / "saved"
        shutil.copytree(self.journal, self.saved)

    def happen(self):
        self.server.kill()
        shutil.rmtree(self.journal)
        self.saved.rename(self.journal)
        (self.journal / "journal-lost").touch()
        self.server.start()
