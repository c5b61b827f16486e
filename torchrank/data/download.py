"""Fetch archives: checked, unpacked safely, and never left half done."""

import hashlib
import shutil
import stat
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urljoin

from torchrank.errors import DataError

_CHUNK = 1 << 18
#: seconds a server may stay silent
_TIMEOUT = 30
#: bytes an archive may have, packed or unpacked
_LARGEST = 16 << 30


class Archive(NamedTuple):
    """A zip archive on the web.

    Attributes:
        url: where it is.
        folder: the one folder at its top.
        checksum: ``"sha256:…"`` or ``"md5:…"`` of the archive.
    """

    url: str
    folder: str
    checksum: str


def fetch(archive: Archive, out: str | Path, *, progress: Callable[[int, int | None], None] | None = None) -> Path:
    """Download and unpack an archive, unless its folder is already there.

    Args:
        archive: what to fetch.
        out: the folder to put the archive's folder into; made where it is missing.
        progress: called with the bytes received and expected (None where the server does not say).

    Returns:
        the unpacked folder.

    Raises:
        DataError: the server cannot be reached or stops early, the checksum differs, or the archive is not safe to
            unpack. Nothing is left behind then.
    """
    out = Path(out)
    target = out / archive.folder
    if target.is_dir():
        return target
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".torchrank-", dir=out) as temporary:
        packed = Path(temporary) / "archive.zip"
        download(archive.url, packed, checksum=archive.checksum, progress=progress)
        unpacked = Path(temporary) / "unpacked"
        extract_zip(packed, unpacked)
        if not (unpacked / archive.folder).is_dir():
            raise DataError(f"{archive.url} holds no folder {archive.folder}")
        (unpacked / archive.folder).replace(target)
    return target


def download(
    url: str, path: str | Path, *, checksum: str, progress: Callable[[int, int | None], None] | None = None
) -> None:
    """Download a file under a temporary name, check it, then give it its name.

    Args:
        url: an ``http`` or ``https`` address.
        path: the file to write.
        checksum: ``"sha256:…"`` or ``"md5:…"``.
        progress: called with the bytes received and expected (None where the server does not say).

    Raises:
        DataError: another kind of address, here or where the server sends on to, no answer, an answer that ends early,
            or a checksum that differs.
    """
    if not url.startswith(("https://", "http://")):
        raise DataError(f"{url} is not an http or https address")
    path = Path(path)
    part = path.with_name(path.name + ".part")
    algorithm, _, expected = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    received = 0
    try:
        opener = urllib.request.build_opener(_WebOnly)
        with opener.open(url, timeout=_TIMEOUT) as answer, part.open("wb") as file:
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            while block := answer.read(_CHUNK):
                file.write(block)
                digest.update(block)
                received += len(block)
                if received > _LARGEST:
                    raise DataError(f"{url} sends more than {_LARGEST:,} bytes")
                if progress:
                    progress(received, total)
        if total is not None and received < total:
            raise DataError(f"{url} ended after {received:,} of {total:,} bytes; run it again")
        if digest.hexdigest() != expected:
            raise DataError(
                f"{url} has the {algorithm} sum {digest.hexdigest()}, not {expected}: the file was changed or damaged"
            )
        part.replace(path)
    except (urllib.error.URLError, HTTPException, TimeoutError, OSError) as error:
        raise DataError(f"{url} cannot be fetched: {error}") from error
    finally:
        part.unlink(missing_ok=True)


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follow a server to other web addresses alone, where urllib would go to ftp too."""

    def http_error_302(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any) -> Any:
        there = headers.get("Location") or headers.get("URI") or ""
        if not urljoin(req.full_url, there).lower().startswith(("https://", "http://")):
            raise DataError(f"{req.full_url} sends on to {there}, which is no http or https address")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def extract_zip(path: str | Path, folder: str | Path, *, largest: int = _LARGEST) -> None:
    """Unpack a zip archive whose every member stays inside the folder.

    Args:
        path: the archive.
        folder: a folder that does not exist yet.
        largest: the most bytes the members may add up to.

    Raises:
        DataError: it is no zip archive or is damaged; a member has an absolute path, a path with ``..`` or a drive, is
            a link or encrypted, or occurs twice; the members are too large. Nothing is unpacked then.
    """
    folder = Path(folder)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [(member, _inside(member)) for member in archive.infolist()]
            names = [name for _, name in members]
            if len(set(names)) < len(names):
                raise DataError(f"{path} holds a member twice")
            claimed = sum(member.file_size for member, _ in members)
            if claimed > largest:
                raise DataError(f"{path} would unpack to {claimed:,} bytes, more than the {largest:,} allowed")
            folder.mkdir(parents=True)
            for member, name in members:
                target = folder.joinpath(*name.parts)
                if member.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("xb") as file:
                    shutil.copyfileobj(source, file, _CHUNK)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise DataError(f"{path} is not a zip archive that unpacks: {error}") from error


def _inside(member: zipfile.ZipInfo) -> PurePosixPath:
    """Return a member's path, refusing one that could lead outside."""
    name = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise DataError(f"the archive's member {member.filename!r} is a link or a device")
    if name.is_absolute() or ".." in name.parts or not name.parts or any(c in member.filename for c in "\\:\0"):
        raise DataError(f"the archive's member {member.filename!r} would lie outside the folder")
    return name
