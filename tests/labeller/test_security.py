"""Nobody else gets in: against the running server, over plain HTTP."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from protocon.labeller.security import LARGEST_BODY, Bucket
from protocon.labeller.server import Labeller
from tests.labeller.folders import Client, labeller, make_folder, wait

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labeller]:
    scratch = tmp_path_factory.mktemp("security")
    root = scratch / "photos"
    make_folder(root, 12)
    Image.new("RGB", (8, 8)).save(root / "<img src=x onerror=alert(1)>.png")
    Image.new("RGB", (8, 8)).save(scratch / "secret.png")
    (scratch / "elsewhere").mkdir()
    Image.new("RGB", (8, 8)).save(scratch / "elsewhere" / "private.png")
    (root / "link.png").symlink_to(scratch / "secret.png")
    (root / "linked").symlink_to(scratch / "elsewhere")
    (root / "inside.png").symlink_to(root / "even" / "000.png")
    with labeller(root, scratch) as server:
        yield server


@pytest.fixture
def client(running: Labeller) -> Client:
    return Client(running.url)


def with_token(client: Client, **more: str) -> dict[str, str]:
    return {"X-ProtoCon-Token": client.token, **more}


def test_listens_on_loopback_only(running: Labeller) -> None:
    assert running._socket.getsockname()[0] == "127.0.0.1"
    assert running.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil:{port}"]
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    headers = with_token(client, Host=host.format(port=client.port))
    for path in ("/", "/page.js", "/api/status"):
        assert client.raw("GET", path, headers=headers)[0] in (400, 421)


def test_localhost_is_a_name_of_this_machine(client: Client) -> None:
    assert client.raw("GET", "/api/status", headers=with_token(client, Host=f"localhost:{client.port}"))[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_origin_is_refused(client: Client, origin: str, method: str) -> None:
    headers = with_token(client, Origin=origin.format(port=client.port), **{"Content-Type": "application/json"})
    status, content, answer = client.raw(method, "/api/status", headers=headers, body=b"{}")
    assert status == 403
    assert b"other pages" in content
    assert "access-control-allow-origin" not in answer


def test_its_own_origin_is_served(client: Client) -> None:
    own = f"http://{client.host}:{client.port}"
    assert client.raw("GET", "/api/status", headers=with_token(client, Origin=own))[0] == 200


@pytest.mark.parametrize("path", ["/", "/api/status", "/api/next?tab=t", "/image/0", "/run/report", "/api/nothing"])
@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
def test_without_the_token_there_is_nothing(client: Client, path: str, token: str | None) -> None:
    headers = {} if token is None else {"X-ProtoCon-Token": token.encode().decode("latin-1")}
    assert client.raw("GET", path, headers=headers)[0] == 403
    mark = "&" if "?" in path else "?"
    assert client.raw("GET", f"{path}{mark}token=wrong")[0] == 403


def test_an_answer_needs_the_token_in_its_header(client: Client) -> None:
    """An address can be put into somebody else's form, a header cannot."""
    headers = {"Content-Type": "application/json"}
    assert client.raw("POST", f"/api/undo?token={client.token}", headers=headers, body=b"{}")[0] == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_what_a_form_can_send_is_refused(client: Client, kind: str) -> None:
    assert client.raw("POST", "/api/undo", headers=with_token(client, **{"Content-Type": kind}), body=b"{}")[0] == 415


@pytest.mark.parametrize(
    "path",
    ["/../secret.png", "/image/../../secret.png", "/image/..%2f..%2fsecret.png", "/image/%2e%2e%2fsecret.png",
     "/image//etc/passwd", "/image/link.png", "/static/page.html", "/page.html", "/server.py", "/run/../labels.csv",
     "/image/-1", "/image/99999", "/image/1e3", "/image/0x1", "/image/１", "/run/%2e%2e", "/image/0/..",
     "//etc/passwd"],
)  # fmt: skip
def test_no_path_reaches_the_file_system(client: Client, path: str) -> None:
    sent = path.encode().decode("latin-1")
    try:
        status, content, _ = client.raw("GET", sent, headers=with_token(client))
    except UnicodeEncodeError:
        return  # not even a request
    assert status in (400, 404, 405, 422)
    assert b"root:" not in content
    assert not content.startswith(b"\x89PNG")


def test_links_out_of_the_folder_are_not_images(running: Labeller, client: Client) -> None:
    paths = [entry.path for entry in running.desk.photos.files]
    assert "inside.png" in paths
    assert not {"link.png", "linked/private.png"} & set(paths)
    assert any("leads out of the folder" in remark for remark in client.get("/api/status")["remarks"])


def test_a_file_that_becomes_a_link_is_not_served(running: Labeller, client: Client, tmp_path: Path) -> None:
    photos = running.desk.photos
    number = next(n for n, entry in enumerate(photos.files) if entry.path == "odd/011.png")
    (tmp_path / "other.png").write_bytes((photos.root / "odd/011.png").read_bytes())
    (photos.root / "odd/011.png").unlink()
    (photos.root / "odd/011.png").symlink_to(tmp_path / "other.png")
    status, content, _ = client.raw("GET", f"/image/{number}", headers=with_token(client))
    assert status == 422
    assert b"leads out" in content


@pytest.mark.parametrize("chunked", [False, True])
def test_oversized_bodies_are_refused(client: Client, chunked: bool) -> None:
    body = b'{"key": "' + b"x" * LARGEST_BODY + b'"}'
    headers = with_token(client, **{"Content-Type": "application/json"})
    if chunked:
        headers["Transfer-Encoding"] = "chunked"
    try:
        status = client.raw("POST", "/api/undo", headers=headers, body=body)[0]
    except (BrokenPipeError, ConnectionResetError):
        return  # hung up on before all was sent
    assert status == 413


def test_long_addresses_and_many_images_are_refused(client: Client) -> None:
    assert client.raw("GET", "/api/status?x=" + "a" * 4000, headers=with_token(client))[0] == 414
    images = [{"number": 0, "stamp": "0" * 16}] * 101
    client.post("/api/answer", {"do": "skip", "images": images}, expect=422)


def test_every_answer_has_a_strict_policy(client: Client) -> None:
    for path in ("/", "/page.js", "/page.css", "/api/status", "/image/0", "/api/nothing"):
        headers = client.raw("GET", path, headers=with_token(client))[2]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
    assert client.raw("GET", "/")[2]["content-security-policy"]  # refusals too


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    static = Path(__file__).parents[2] / "src/protocon/labeller/static"
    for name in ("page.html", "page.css", "page.js"):
        text = (static / name).read_text(encoding="utf-8")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text
        assert "eval(" not in text


def test_names_are_data(running: Labeller, client: Client) -> None:
    client.answer(client.next(), name=SCRIPT)
    status, content, headers = client.raw("GET", "/api/status", headers=with_token(client))
    assert status == 200
    assert headers["content-type"].startswith("application/json")
    assert SCRIPT in [c["name"] for c in json.loads(content)["classes"]]
    page = client.raw("GET", f"/?token={client.token}")[1]
    assert b"alert(1)" not in page
    labels = running.desk.labels.path
    wait(lambda: labels.exists() and SCRIPT in labels.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["", " ", "-1", "\u202ereversed", "a\x00b", "x" * 81, "\u200b"])
def test_names_that_cannot_be_classes_are_refused(client: Client, name: str) -> None:
    before = client.get("/api/status")["labels"]
    client.answer(client.next(), name=name, expect=422)
    assert client.get("/api/status")["labels"] == before


def test_floods_are_slowed_down() -> None:
    now = [0.0]
    bucket = Bucket(rate=10, burst=5, clock=lambda: now[0])
    assert [bucket.take() for _ in range(7)] == [True] * 5 + [False] * 2
    now[0] = 0.2
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_a_flood_gets_429(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 3)
    with labeller(tmp_path / "photos", tmp_path, bucket=Bucket(rate=0.001, burst=3)) as server:
        client = Client(server.url)
        assert [client.raw("GET", "/page.css")[0] for _ in range(5)] == [200, 200, 200, 429, 429]


ODD: list[Any] = [None, -1, 0, 2**40, 1.5, "", "x" * 300, [], {}, True, "c1", SCRIPT, "\ud800", [[[]]], "audit"]
IDS, TABS = ["", "c1", "c2", "c9"], ["tab-9"]
QUERIES: dict[str, dict[str, list[str]]] = {
    "/api/next": {"tab": TABS},
    "/api/item": {"number": ["0", "3", "12", "13", "14", "99999"]},
    "/api/grid": {"class_id": IDS, "count": ["1", "8"], "skip": ["0", "1", "200"]},
    "/api/browse": {
        "view": ["class", "doubtful", "wrong", "strangers", "mine"],
        "class_id": IDS,
        "order": ["doubtful", "sure"],
        "page": ["0", "1", "10000"],
    },
    "/image/0": {"size": ["thumb", "large", "full"]},
    "/image/3": {"size": ["thumb", "large", "full"]},
}
NAMES = ["red", "blue", SCRIPT, "ß"]
BODIES: dict[str, dict[str, list[Any]]] = {
    "/api/answer": {
        "do": ["label", "none", "skip"],
        "class_id": ["", "", "c1"],
        "name": NAMES,
        "why": ["pick", "audit", "grid", "review"],
    },
    "/api/undo": {"of": ["fuzz-0-1", "fuzz-0-5"]},
    "/api/class": {"do": ["class", "rename", "merge"], "class_id": IDS, "name": NAMES, "into": IDS},
}
PLAIN = ["/", "/page.js", "/%00", "/api/", "/api/status", "/api/history", "/run/report", "/nothing"]
PATHS = [*PLAIN, *QUERIES, *QUERIES, *BODIES, *BODIES, *BODIES]


def _fuzzed(rng: random.Random, client: Client, stamps: list[str]) -> tuple[str, str, dict[str, str], bytes | None]:
    """Mostly what a page could send, with something odd in it more often than not."""
    path = rng.choice(PATHS)
    headers = with_token(client) if rng.random() > 0.05 else {}
    usual = "POST" if path in BODIES else "GET"
    method = usual if rng.random() < 0.85 else rng.choice(["GET", "POST", "HEAD", "PUT", "OPTIONS"])
    query = "&".join(
        f"{name}={rng.choice(values) if rng.random() < 0.85 else rng.choice(['-1', 'x', '%ff', '1e9', '', '0'])}"
        for name, values in QUERIES.get(path, {"page": ["0"]}).items()
        if rng.random() < 0.9
    )
    body = None
    if method in ("POST", "PUT"):
        headers["Content-Type"] = rng.choice(["application/json"] * 9 + ["text/plain"])
        number = rng.randrange(len(stamps))
        values: dict[str, list[Any]] = {
            "key": [f"fuzz-0-{rng.randrange(10**6):06}"],
            "tab": TABS,
            **BODIES.get(path, {"extra": ODD}),
        }
        if path == "/api/answer":
            values["images"] = [[{"number": number, "stamp": stamps[number]}]] * 4
            values["images"] += [[{"number": number, "stamp": "0" * 16}], [{"number": 0}], [{}]]
        content = {
            field: rng.choice(good if rng.random() < 0.92 else ODD)
            for field, good in values.items()
            if rng.random() < 0.97
        }
        body = json.dumps(content).encode() if rng.random() < 0.95 else rng.randbytes(rng.randrange(200))
    return method, f"{path}?{query}" if query else path, headers, body


def test_a_thousand_fuzzed_requests_and_no_failure(client: Client) -> None:
    rng = random.Random(0)
    images = client.get("/api/status")["images"]
    stamps = [client.get(f"/api/item?number={number}")["stamp"] for number in range(images)]
    seen: dict[int, int] = {}
    served: set[str] = set()
    for _ in range(1000):
        method, path, headers, body = _fuzzed(rng, client, stamps)
        status = client.raw(method, path, headers=headers, body=body)[0]
        assert status < 500, (method, path, body)
        seen[status] = seen.get(status, 0) + 1
        if status == 200:
            served.add(path.split("?")[0])
    assert seen[200] > 300
    assert {*QUERIES, *BODIES} <= served  # every kind of request was answered too, not only refused
    assert {403, 404, 405, 409, 415, 422} <= seen.keys()
    assert client.get("/api/status")["images"] > 0
