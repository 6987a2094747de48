"""The labelling server: loopback only unless asked otherwise, an address with a token, an orderly end."""

import contextlib
import hashlib
import json
import os
import secrets
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
import uvicorn

from protocon.data.files.stores import FolderStore
from protocon.data.imageset import DataBundle, DataHints
from protocon.data.sources.listing import probe_size
from protocon.engine.setup.encode import build_frozen
from protocon.errors import ConfigError, RunError
from protocon.features.extract import FrozenEncoder
from protocon.features.key import default_cache
from protocon.labeller.answer_log import AnswerLog
from protocon.labeller.app import make_app
from protocon.labeller.desk import Desk
from protocon.labeller.full_run import FullRun
from protocon.labeller.labels_file import LabelsFile
from protocon.labeller.photos import Photos
from protocon.labeller.security import Bucket, Guard
from protocon.labeller.sight import MakeEncoder, Readable, Sight
from protocon.labeller.worker import Worker
from protocon.settings.auto import image_size_for, largest_side, resolve_auto
from protocon.settings.config import RunConfig, build_config

LOG_FILE = "labels.jsonl"
LABELS_FILE = "labels.csv"
LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("0.0.0.0", "::")


class Labeller:
    """A folder that is being labelled: server, background, files. `url` is where the page is.

    Args:
        folder: of images. labels.jsonl (all answers) and labels.csv (what they come to) are kept in it.
        who: answers; by default the user of this computer.
        host: address to listen on.
        port: 0 takes the one of last time if it is free, else any.
        out: folder for full runs.
        settings: of the encoder, as `key=value`: those of `train`.
        classes: names of classes to begin with.
        cache: folder that holds features.
        framed: whether notebooks on this machine may show the page in a frame.
        encoder: how to load an encoder, and the side at which it looks; by default what `train --frozen` takes.
        bucket: limit on the rate of requests.
    """

    def __init__(
        self,
        folder: Path,
        *,
        who: str | None = None,
        host: str = LOOPBACK,
        port: int = 0,
        out: Path = Path("runs"),
        settings: Sequence[str] = (),
        classes: Sequence[str] = (),
        cache: Path | None = None,
        framed: bool = False,
        encoder: tuple[MakeEncoder, int] | None = None,
        bucket: Bucket | None = None,
    ) -> None:
        folder = folder.expanduser()
        photos = Photos(folder)
        cache = (cache or default_cache()).expanduser()
        make, size = encoder or _encoder(photos, settings)
        self.log = AnswerLog(folder / LOG_FILE)
        try:
            self.desk = Desk(photos, self.log, LabelsFile(folder / LABELS_FILE), who=who)
            for name in classes:
                self.desk.add_class(name, key=secrets.token_hex(16))
            self.sight = Sight(photos, make, image_size=size, cache=cache)
            self.worker = Worker(self.desk, self.sight)
            self.full_run = FullRun(folder, folder / LABELS_FILE, out, settings, cache=cache)
            self._place = cache / f"label-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]}.address"
            last = _last_address(self._place)
            self.token: str = last.get("token") or secrets.token_urlsafe(24)
            self._socket = _listen(host, port, last.get("port"))
        except BaseException:
            self.log.close()
            raise
        self.host, self.port = host, int(self._socket.getsockname()[1])
        _remember_address(self._place, self.token, self.port)
        self.app = Guard(
            make_app(self.desk, self.full_run, token=self.token),
            token=self.token,
            hosts=_hosts(host, self.port),
            framed=framed,
            bucket=bucket,
        )
        config = uvicorn.Config(self.app, log_level="error", access_log=False, server_header=False, date_header=False)
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The page's address, with its token."""
        shown = socket.gethostname() if self.host in _EVERYWHERE else self.host
        return f"http://{shown}:{self.port}/?token={self.token}"

    def serve(self) -> None:
        """Until Ctrl-C."""
        self.worker.start()
        try:
            with contextlib.suppress(KeyboardInterrupt):  # uvicorn has ended in good order, and says so once more
                self._server.run(sockets=[self._socket])
        finally:
            self._end()

    def start(self) -> Self:
        """In the background, for notebooks and tests."""
        self.worker.start()
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the server; all answers are on disk already."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._end()

    def _end(self) -> None:
        self.full_run.stop()
        self.worker.stop()
        self._socket.close()
        self.log.close()

    def labels(self) -> dict[str, str]:
        """Class name by file, of all images that have a label now."""
        answers, photos = self.desk.answers, self.desk.photos
        return {photos.files[n].path: answers.classes[c] for n, c in self.desk.labelled().items()}

    def _repr_html_(self) -> str:
        """The page in a notebook."""
        return f'<iframe src="{self.url}" width="100%" height="760" style="border:0" title="Labelling"></iframe>'

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _encoder(photos: Photos, settings: Sequence[str]) -> tuple[MakeEncoder, int]:
    """The encoder that `train --frozen` takes for this folder, and the side at which it looks at images."""
    store = FolderStore(photos.root)
    base: dict[str, Any] = {"data": {"name": "folder", "root": str(photos.root)}, "network": {"frozen": True}}
    asked: RunConfig = build_config(settings=base, overrides=list(settings))
    size = asked.data.size_asked
    if size is None:
        native = probe_size(store, photos.files, largest_side(asked))
        size = min(image_size_for(native, asked), largest_side(asked))
    images = Readable(store, photos.files[:2000], image_size=size)
    resolved = resolve_auto(asked, shape=images.shape, flip=True, unlabelled=len(photos)).config

    def make() -> FrozenEncoder:
        return build_frozen(resolved, DataBundle(images, None, DataHints(flip=True))).to(torch.device("cpu"))

    return make, size


def _hosts(host: str, port: int) -> frozenset[str]:
    names = {LOOPBACK, "localhost", host}
    if host in _EVERYWHERE:
        names |= {socket.gethostname(), socket.getfqdn()}
        with contextlib.suppress(OSError):
            names |= set(socket.gethostbyname_ex(socket.gethostname())[2])
    return frozenset(f"{name}:{port}" for name in names)


def _listen(host: str, port: int, last: int | None) -> socket.socket:
    """A socket at the port asked for; else at last time's, so that an open page finds the server again."""
    for wanted in [port] if port else [last, 0] if last else [0]:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, wanted))
            listening.listen(128)  # whoever comes before the server is up waits for it
        except (OSError, OverflowError) as error:
            listening.close()
            if wanted and wanted == last and not port:
                continue
            raise RunError(f"cannot listen on {host}:{wanted}: {error}. Choose another --port or --host") from error
        return listening
    raise ConfigError("no port to listen on")


def _last_address(place: Path) -> dict[str, Any]:
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    good = isinstance(content, dict) and isinstance(content.get("token"), str) and isinstance(content.get("port"), int)
    return content if good and len(content["token"]) >= 16 else {}


def _remember_address(place: Path, token: str, port: int) -> None:
    """Port and token of this folder, readable by its owner only. Where it cannot be kept, the next address is new."""
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"token": token, "port": port}, file)
