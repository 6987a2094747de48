"""Folders of tiny pictures, an encoder that sees their colour, and a client that speaks plain HTTP."""

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from protocon.features.extract import FrozenEncoder
from protocon.labeller.security import Bucket
from protocon.labeller.server import Labeller

COLOURS = {"red": (200, 30, 30), "green": (30, 190, 40), "blue": (40, 40, 210)}
SIDE = 16


class Colours(nn.Module):
    """Mean colour of each quarter of an image: 12 features."""

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.adaptive_avg_pool2d(images, 2).flatten(1)


def colour_encoder() -> FrozenEncoder:
    return FrozenEncoder("colours", Colours(), 12, torch.full((3,), 0.5), torch.full((3,), 0.25))


def make_folder(root: Path, count: int = 40, *, first: int = 0) -> dict[str, str]:
    """Noisy pictures of three colours; their truth by path."""
    truth = {}
    root.mkdir(parents=True, exist_ok=True)
    names = list(COLOURS)
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        colour = names[number % 3]
        pixels = np.clip(np.array(COLOURS[colour]) + rng.normal(0, 25, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
        path = f"{'even' if number % 2 == 0 else 'odd'}/{number:03}.png"
        (root / path).parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(root / path)
        truth[path] = colour
    return truth


def labeller(root: Path, scratch: Path, **options: Any) -> Labeller:
    """A server on this folder that is not started yet."""
    options.setdefault("bucket", Bucket(rate=1e6, burst=1e6))
    options.setdefault("out", scratch / "runs")
    return Labeller(root, who="tester", cache=scratch / "cache", encoder=(colour_encoder, SIDE), **options)


class Client:
    """One who knows the address."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)
        self.token = parts.query.removeprefix("token=")

    def raw(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Exactly this, nothing added but the host."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": f"{self.host}:{self.port}", **(headers or {})}
            if body is not None and "Transfer-Encoding" not in given:
                given.setdefault("Content-Length", str(len(body)))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body, encode_chunked="Transfer-Encoding" in given)
            answer = connection.getresponse()
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, content, _ = self.raw("GET", path, headers={"X-ProtoCon-Token": self.token})
        assert status == 200, (status, content)
        return json.loads(content)

    def post(self, path: str, body: dict[str, Any], *, expect: int = 200) -> Any:
        content = json.dumps({"key": uuid4().hex, "tab": "tab-1", **body}).encode()
        headers = {"X-ProtoCon-Token": self.token, "Content-Type": "application/json"}
        status, answer, _ = self.raw("POST", path, headers=headers, body=content)
        assert status == expect, (status, answer)
        return json.loads(answer)

    def answer(self, item: dict[str, Any], *, expect: int = 200, **body: Any) -> Any:
        chosen = [{"number": item["number"], "stamp": item["stamp"]}]
        return self.post("/api/answer", {"do": "label", "images": chosen, "why": item["why"], **body}, expect=expect)

    def next(self, tab: str = "tab-1") -> dict[str, Any]:
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self.get(f"/api/next?tab={tab}"))
            return found["next"] is not None

        wait(there)
        asked: dict[str, Any] = found["next"]
        return asked


def wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Until it is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
