# SPDX-License-Identifier: BSD-2-Clause
"""A disk that can be told to fail: a library between nginx and libc (faults.c). No right to mount anything is needed."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("faults.c")


class Disk:
    """What becomes of calls on files in `folder`, from the moment it is said; what `scratch` is for, is nobody's business."""

    def __init__(self, scratch, folder):
        self.library = Path(scratch) / "faults.so"
        self.file = Path(scratch) / "faults"
        self.folder = Path(folder)
        build = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(self.library), str(SOURCE), "-ldl"]
        subprocess.run(build, check=True, timeout=60)
        self.heal()

    @property
    def env(self):
        return {"WEIR_FAULTS": str(self.file), "WEIR_FAULTS_IN": str(self.folder)}

    def set(self, **fates):
        """set(fdatasync="EIO", fallocate="ENOSPC", pwrite=20): an errno, or milliseconds that it takes longer."""
        fresh = self.file.with_suffix(".fresh")
        fresh.write_text("".join(f"{call} {fate}\n" for call, fate in fates.items()))
        fresh.replace(self.file)

    def heal(self):
        self.set()

    def calls(self, name):
        """What was done to each call of this name: "done", or what it was told."""
        path = self.file.with_name(self.file.name + ".log")
        lines = path.read_text().splitlines() if path.exists() else []
        return [fate for call, fate in map(str.split, lines) if call == name]
