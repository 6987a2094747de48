"""Addresses of the page: what it may ask, and what it gets. Thin: the desk does the work."""

import html
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from protocon.errors import ProtoConError
from protocon.labeller import browse
from protocon.labeller.answer_log import NotSavedError
from protocon.labeller.desk import Desk, StaleError
from protocon.labeller.full_run import FullRun
from protocon.labeller.pictures import Pictures
from protocon.labeller.show import Show

_STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_REPORT_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
_FOREVER = {"cache-control": "private, max-age=86400, immutable"}

Key = Annotated[str, Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9-]+$")]
Tab = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9-]+$")]
ClassId = Annotated[str, Field(max_length=16, pattern=r"^(c[0-9]+)?$")]
Name = Annotated[str, Field(max_length=400)]
Number = Annotated[int, Field(ge=0, lt=2**31)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    key: Key
    tab: Tab


class Chosen(BaseModel):
    """An image as the page shows it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    number: Number
    stamp: Annotated[str, Field(min_length=16, max_length=16)]


class AnswerBody(_Body):
    """An answer about one image, or about a group."""

    do: Literal["label", "none", "skip"]
    images: Annotated[list[Chosen], Field(min_length=1, max_length=100)]
    class_id: ClassId = ""
    name: Name = ""
    why: Literal["pick", "audit", "grid", "review"] = "review"


class UndoBody(_Body):
    """Undo the latest line, or one by its key."""

    of: Key | None = None


class ClassBody(_Body):
    """A class that is made, renamed or merged."""

    do: Literal["class", "rename", "merge"]
    class_id: ClassId = ""
    name: Name = ""
    into: ClassId = ""


class RunBody(_Body):
    """Start or stop the full run."""

    do: Literal["start", "stop"]


def make_app(desk: Desk, full_run: FullRun, *, token: str) -> FastAPI:
    """The application, without its guard.

    Args:
        desk: holds images, answers and the model.
        full_run: starts and watches `protocon train`.
        token: that a page must show.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    show, pictures = Show(desk, full_run), Pictures(desk.photos)
    _errors(app)
    _pages(app, full_run, token)
    _questions(app, desk, show)
    _answers(app, desk, show)
    _runs(app, desk, full_run, show)

    @app.get("/image/{number}")
    def image(number: Number, size: Literal["thumb", "large", "full"] = "large") -> Response:
        picture = pictures.get(number, size)
        return Response(picture.content, media_type=picture.kind, headers=_FOREVER)

    return app


def _errors(app: FastAPI) -> None:
    """Every error of ours has a status and a reason; none says more than that."""

    @app.exception_handler(ProtoConError)
    def ours(_request: Request, error: ProtoConError) -> Response:
        status = 507 if isinstance(error, NotSavedError) else 409 if isinstance(error, StaleError) else 422
        return JSONResponse({"error": _text(str(error))}, status)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Response:
        where = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        return JSONResponse({"error": _text(f"the request is not understood: {where}")}, 422)


def _text(value: str) -> str:
    """Without stray halves of characters, which no answer can hold."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _pages(app: FastAPI, full_run: FullRun, token: str) -> None:
    static = files("protocon.labeller") / "static"
    page = (static / "page.html").read_text(encoding="utf-8").replace("{{token}}", html.escape(token, quote=True))
    contents = {name: (static / name).read_bytes() for name in _STATIC}

    @app.get("/")
    def index() -> Response:
        return Response(page, media_type="text/html")

    @app.get("/{name}")
    def asset(name: str) -> Response:
        if name not in _STATIC:
            return JSONResponse({"error": "there is nothing at this address"}, 404)
        return Response(contents[name], media_type=_STATIC[name], headers={"cache-control": "no-cache"})

    @app.get("/run/{name}")
    def of_run(name: str) -> Response:
        found = full_run.file(name)
        if found is None:
            return JSONResponse({"error": "there is no such file of a finished run"}, 404)
        path, kind = found
        if name == "report":
            headers = {"content-security-policy": _REPORT_POLICY.decode()}
            return Response(path.read_bytes(), media_type=kind, headers=headers)
        return FileResponse(path, media_type=kind, filename=path.name)


def _questions(app: FastAPI, desk: Desk, show: Show) -> None:
    @app.get("/api/status")
    def status() -> dict[str, Any]:
        return show.status()

    @app.get("/api/next")
    def following(tab: Annotated[Tab, Query()]) -> dict[str, Any]:
        return show.question(tab)

    @app.get("/api/item")
    def item(number: Number) -> dict[str, Any]:
        return show.item(number)

    @app.get("/api/grid")
    def grid(
        class_id: ClassId = "",
        count: Annotated[int, Query(ge=1, le=8)] = 1,
        skip: Annotated[int, Query(ge=0, le=200)] = 0,
    ) -> dict[str, Any]:
        return {"groups": show.groups(class_id=class_id, count=count, skip=skip)}

    @app.get("/api/browse")
    def look(
        view: Literal["class", "doubtful", "wrong", "strangers", "mine"],
        class_id: ClassId = "",
        order: Literal["doubtful", "sure"] = "doubtful",
        page: Annotated[int, Query(ge=0, le=10_000)] = 0,
    ) -> dict[str, Any]:
        found = browse.view(desk, view, class_id=class_id, order=order, page=page)
        return {"images": [show.shown(one) for one in found], "more": len(found) == browse.PAGE}

    @app.get("/api/history")
    def history() -> dict[str, Any]:
        return {"entries": show.history()}


def _answers(app: FastAPI, desk: Desk, show: Show) -> None:
    @app.post("/api/answer")
    def answer(body: AnswerBody) -> dict[str, Any]:
        images = [(image.number, image.stamp) for image in body.images]
        entry = desk.answer(body.do, images, key=body.key, class_id=body.class_id, name=body.name, why=body.why)
        return {"saved": entry.key, "class_id": entry.class_id, "classes": show.classes(), **show.question(body.tab)}

    @app.post("/api/undo")
    def undo(body: UndoBody) -> dict[str, Any]:
        undone = desk.undo(key=body.key, of=body.of)
        return {"undone": show.entry(undone) if undone else None, "classes": show.classes(), **show.again(undone)}

    @app.post("/api/class")
    def change(body: ClassBody) -> dict[str, Any]:
        if body.do == "rename":
            desk.rename(body.class_id, body.name, key=body.key)
        elif body.do == "merge":
            desk.merge(body.class_id, body.into, key=body.key)
        else:
            desk.add_class(body.name, key=body.key)
        return {"classes": show.classes()}


def _runs(app: FastAPI, desk: Desk, full_run: FullRun, show: Show) -> None:
    @app.post("/api/run")
    def run(body: RunBody) -> dict[str, Any]:
        if body.do == "start":
            desk.write_labels()
            full_run.start()
        else:
            full_run.stop()
        return {"run": show.run()}
