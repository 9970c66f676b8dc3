"""The API described by itself: the OpenAPI document, and a page to try it out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from tidemill.api.openapi import openapi_document
from tidemill.api.routing import PUBLIC, Answer, Call, Content, Endpoint, endpoint

_FILES = {
    "index.html": "text/html; charset=utf-8",
    "docs.css": "text/css; charset=utf-8",
    "docs.js": "text/javascript; charset=utf-8",
}


def description_endpoints(others: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The endpoints that describe others, and themselves."""

    @cache
    def document() -> bytes:
        return msgspec.json.encode(openapi_document((*others, *own)))

    @endpoint(
        "GET",
        "/v1/openapi.json",
        permission=PUBLIC,
        summary="The OpenAPI document",
        tag="service",
        returns=dict[str, Any],
        headers={"If-None-Match": "The ETag of the document that the client has."},
        statuses={304: "The client has this document already."},
    )
    async def get_openapi(call: Call) -> Answer[Content]:
        """Everything that is served, with all types: for generators of clients."""
        data = document()
        etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        return Answer(Content(data), headers={"ETag": etag})

    own = (get_openapi, docs_page, docs_style, docs_script)
    return own


def _file(name: str) -> Content:
    return Content((files("tidemill.api") / "pages" / name).read_bytes())


@endpoint(
    "GET",
    "/docs",
    permission=PUBLIC,
    summary="A page to read and try the API",
    tag="service",
    media_type=_FILES["index.html"],
    page=True,
)
async def docs_page(call: Call) -> Content:
    """It loads nothing from other servers."""
    return _file("index.html")


@endpoint(
    "GET",
    "/docs/docs.css",
    permission=PUBLIC,
    summary="The style of the page",
    tag="service",
    media_type=_FILES["docs.css"],
    page=True,
)
async def docs_style(call: Call) -> Content:
    """Part of /docs."""
    return _file("docs.css")


@endpoint(
    "GET",
    "/docs/docs.js",
    permission=PUBLIC,
    summary="The script of the page",
    tag="service",
    media_type=_FILES["docs.js"],
    page=True,
)
async def docs_script(call: Call) -> Content:
    """Part of /docs."""
    return _file("docs.js")
