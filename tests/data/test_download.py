"""Downloads from a server on this machine, in every way they can go wrong."""

import hashlib
import io
import socket
import stat
import struct
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchrank.data import download as module
from torchrank.data.download import Archive, download, extract_zip, fetch
from torchrank.errors import DataError


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            # A fixed date: the archive's bytes go into the names of tests, which must not change by the second.
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


RATINGS = b"1::1193::5::978300760\n" * 50_000
GOOD = zipped([("ml-1m/ratings.dat", RATINGS), ("ml-1m/README", b"terms")])
SMALL = zipped([("ml-1m/", b""), ("ml-1m/ratings.dat", b"a\n" * 200), ("ml-1m/README", b"terms")])
ERRORS = {"/missing": 404, "/forbidden": 403, "/error": 500, "/busy": 503}
MOVED = {
    "/moved": "/good",
    "/to-file": "file:///etc/passwd",
    "/to-ftp": "ftp://127.0.0.1:9/file",
    "/to-data": "data:text/plain,x",
    "/loop": "/loop",
}
LENGTHS = {"/no-length": "many", "/short-length": "10", "/long-length": str(2 * len(GOOD))}


@pytest.fixture
def server(monkeypatch):
    """The address of a server that sends ``server.body`` for /good, and half of it for /half."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path in ERRORS:
                self.send_error(ERRORS[self.path])
                return
            if self.path in MOVED:
                self.send_response(302)
                self.send_header("Location", MOVED[self.path])
                self.end_headers()
                return
            self.send_response(200)
            if self.path != "/endless":
                self.send_header("Content-Length", LENGTHS.get(self.path, str(len(GOOD))))
            self.end_headers()
            if self.path == "/stalled":
                self.wfile.write(GOOD[:100])
                stop.wait(5)
            elif self.path == "/endless":
                for _ in range(1000):
                    self.wfile.write(bytes(10_000))
            elif self.path == "/reset":
                self.wfile.write(GOOD[:1000])
                self.wfile.flush()
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            else:
                self.wfile.write(GOOD[: len(GOOD) // 2] if self.path == "/half" else GOOD)

        def log_message(self, *args):
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *args):
            """The client hung up: that is what is tested."""

    stop = threading.Event()
    running = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    stop.set()
    running.shutdown()
    thread.join()
    running.server_close()


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_an_archive_is_fetched_checked_and_unpacked(server, tmp_path, algorithm):
    checksum = f"{algorithm}:{hashlib.new(algorithm, GOOD).hexdigest()}"
    seen = []
    archive = Archive(f"{server}/good", "ml-1m", checksum)
    folder = fetch(archive, tmp_path / "new" / "data", progress=lambda *now: seen.append(now))
    assert folder == tmp_path / "new" / "data" / "ml-1m"
    assert (folder / "ratings.dat").read_bytes() == RATINGS
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert [path.name for path in folder.parent.iterdir()] == ["ml-1m"]


def test_what_is_there_is_not_fetched_again(tmp_path):
    (tmp_path / "ml-1m").mkdir()
    assert fetch(Archive("http://127.0.0.1:9/nobody", "ml-1m", "md5:0"), tmp_path) == tmp_path / "ml-1m"


@pytest.mark.parametrize(
    ("path", "checksum", "message"),
    [
        ("/half", sha256(GOOD), r"ended after .* of .* bytes; run it again|cannot be fetched"),
        ("/good", sha256(b"other"), r"sha256 sum .* not .* changed or damaged"),
        ("/short-length", sha256(GOOD), r"sha256 sum .* not .* changed or damaged"),
        ("/long-length", sha256(GOOD), r"ended after .* of .* bytes; run it again|cannot be fetched"),
        ("/no-length", sha256(GOOD[1:]), r"sha256 sum .* not .* changed or damaged"),
        ("/reset", sha256(GOOD), r"cannot be fetched: .*reset|ended after"),
        ("/missing", sha256(GOOD), r"cannot be fetched: HTTP Error 404"),
        ("/forbidden", sha256(GOOD), r"cannot be fetched: HTTP Error 403"),
        ("/error", sha256(GOOD), r"cannot be fetched: HTTP Error 500"),
        ("/busy", sha256(GOOD), r"cannot be fetched: HTTP Error 503"),
        ("/to-file", sha256(GOOD), r"sends on to file:///etc/passwd, which is no http or https address"),
        ("/to-ftp", sha256(GOOD), r"sends on to ftp://127.0.0.1:9/file, which is no http or https address"),
        ("/to-data", sha256(GOOD), r"sends on to data:text/plain,x, which is no http or https address"),
        ("/loop", sha256(GOOD), r"cannot be fetched: .*infinite loop"),
        ("/stalled", sha256(GOOD), r"cannot be fetched: .*timed out"),
        ("/endless", sha256(GOOD), r"sends more than 1,000,000 bytes"),
    ],
)
def test_a_bad_answer_is_an_error_and_leaves_nothing(server, tmp_path, monkeypatch, path, checksum, message):
    monkeypatch.setattr(module, "_TIMEOUT", 0.3)
    monkeypatch.setattr(module, "_LARGEST", 1_000_000)
    with pytest.raises(DataError, match=message):
        fetch(Archive(server + path, "ml-1m", checksum), tmp_path)
    with pytest.raises(DataError, match=message):
        download(server + path, tmp_path / "file.zip", checksum=checksum)
    assert list(tmp_path.iterdir()) == []


def test_a_server_may_send_on_and_need_not_know_the_length(server, tmp_path):
    for path in ("/moved", "/no-length"):
        download(server + path, tmp_path / "file.zip", checksum=sha256(GOOD))
        assert (tmp_path / "file.zip").read_bytes() == GOOD


def test_an_interrupted_download_leaves_nothing(server, tmp_path):
    def interrupt(received, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(Archive(f"{server}/good", "ml-1m", sha256(GOOD)), tmp_path, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        download(f"{server}/good", tmp_path / "file.zip", checksum=sha256(GOOD), progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_survives_a_bad_answer(server, tmp_path):
    (tmp_path / "file.zip").write_text("before")
    with pytest.raises(DataError):
        download(f"{server}/half", tmp_path / "file.zip", checksum=sha256(GOOD))
    assert (tmp_path / "file.zip").read_text() == "before"


def test_nobody_there_and_another_kind_of_address(tmp_path):
    with pytest.raises(DataError, match="cannot be fetched"):
        download("http://127.0.0.1:9/file", tmp_path / "file", checksum="md5:0")
    with pytest.raises(DataError, match="not an http or https address"):
        download((tmp_path / "file").as_uri(), tmp_path / "copy", checksum="md5:0")


def test_an_archive_without_its_folder_is_refused(server, tmp_path):
    with pytest.raises(DataError, match="holds no folder ml-20m"):
        fetch(Archive(f"{server}/good", "ml-20m", sha256(GOOD)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def special(name, kind):
    member = zipfile.ZipInfo(name)
    member.external_attr = (kind | 0o777) << 16
    return member


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("../outside", b"x")], "outside the folder"),
        ([("a/../../outside", b"x")], "outside the folder"),
        ([("/tmp/absolute", b"x")], "outside the folder"),
        ([("C:/windows", b"x")], "outside the folder"),
        ([("a\\..\\..\\outside", b"x")], "outside the folder"),
        ([("//server/share", b"x")], "outside the folder"),
        ([("./../outside", b"x")], "outside the folder"),
        ([("..", b"x")], "outside the folder"),
        ([(".", b"x")], "outside the folder"),
        ([(special("a/link", stat.S_IFLNK), b"/etc/passwd")], "link or a device"),
        ([(special("a/pipe", stat.S_IFIFO), b"")], "link or a device"),
        ([(special("a/tape", stat.S_IFCHR), b"")], "link or a device"),
        ([(special("a/disk", stat.S_IFBLK), b"")], "link or a device"),
        ([(special("a/plug", stat.S_IFSOCK), b"")], "link or a device"),
        ([("n" * 300, b"x")], "not a zip archive that unpacks"),
        ([("a", b"x"), ("a/b", b"y")], "not a zip archive that unpacks"),
        ([("large", bytes(2_000_000))], "more than the 1,000,000 allowed"),
    ],
)
def test_hostile_members_are_refused_and_nothing_is_unpacked(tmp_path, members, message):
    (tmp_path / "archive.zip").write_bytes(zipped([("fine", b"fine"), *members]))
    with pytest.raises(DataError, match=message):
        extract_zip(tmp_path / "archive.zip", tmp_path / "inside" / "folder", largest=1_000_000)
    assert not (tmp_path / "inside" / "folder").exists()
    assert not (tmp_path / "outside").exists()


def test_members_that_are_larger_than_they_say_are_refused(tmp_path):
    """The sizes a bomb claims are small; what comes out is more."""
    content = zipped([("large", bytes(2_000_000))])
    assert content.count((2_000_000).to_bytes(4, "little")) == 2
    content = content.replace((2_000_000).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    (tmp_path / "archive.zip").write_bytes(content)
    with pytest.raises(DataError, match="not a zip archive that unpacks"):
        extract_zip(tmp_path / "archive.zip", tmp_path / "folder", largest=1_000_000)
    assert not (tmp_path / "folder").exists()


@settings(max_examples=300)
@given(data=st.data())
def test_bytes_changed_anywhere_are_refused_or_harmless(data):
    content = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 1] = data.draw(st.binary(max_size=2))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "archive.zip").write_bytes(content)
        try:
            extract_zip(folder / "archive.zip", folder / "out", largest=10_000)
        except DataError:
            assert not (folder / "out").exists()
        else:
            files = [path for path in (folder / "out").rglob("*") if path.is_file()]
            assert {path.read_bytes() for path in files} <= {b"a\n" * 200, b"terms"}  # names may have changed
        assert {path.name for path in folder.iterdir()} <= {"archive.zip", "out"}


def test_a_member_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = zipped([("a", b"x"), ("a", b"y")])
    (tmp_path / "archive.zip").write_bytes(content)
    with pytest.raises(DataError, match="a member twice"):
        extract_zip(tmp_path / "archive.zip", tmp_path / "folder")


@pytest.mark.parametrize("damage", [b"no zip at all", GOOD[: len(GOOD) // 2], GOOD[:200] + b"####" + GOOD[204:]])
def test_a_damaged_archive_is_refused(tmp_path, damage):
    (tmp_path / "archive.zip").write_bytes(damage)
    with pytest.raises(DataError, match="not a zip archive that unpacks"):
        extract_zip(tmp_path / "archive.zip", tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
