#!/usr/bin/env python3
"""Packs files into a .tar.gz that depends only on their content and names: no owner, and the time of SOURCE_DATE_EPOCH.

    packaging/archive.py ARCHIVE NAME=FILE...
"""

import gzip
import io
import os
import sys
import tarfile


def main() -> None:
    archive, *entries = sys.argv[1:]
    time = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, path in sorted(entry.split("=", 1) for entry in entries):
            with open(path, "rb") as file:
                content = file.read()
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), time
            # Not the mode of the file, which depends on the system.
            member.mode = 0o644 if name == "LICENSE" else 0o755
            tar.addfile(member, io.BytesIO(content))
    with open(archive, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=time) as compressed:
        compressed.write(packed.getvalue())


main()
