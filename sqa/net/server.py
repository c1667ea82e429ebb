"""What the HTTP servers of this project have in common (aiohttp): who may ask, how much and how slowly.

A server binds to loopback unless it was given a token.  A request then brings it as "Authorization: Bearer TOKEN", or,
for clients that can only be given an address, as the password in it: http://any:TOKEN@host:port.
"""

from __future__ import annotations

import asyncio
import binascii
import hmac
import json
from base64 import b64decode
from http import HTTPStatus
from ipaddress import ip_address

from aiohttp import web

from sqa.files.records import parse_json

TYPE = "text/html; charset=UTF-8"  # of every reply of tornado's, JSON or not


class Refused(Exception):
    """A request that is answered with an error page."""

    def __init__(self, status: int) -> None:
        self.status = status


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_problems(host: str, port: int, token: str | None) -> list[str]:
    """What is wrong with where a server shall listen, one line each."""
    wrong = [] if 0 <= port <= 65535 else [f"--port: must be 0 to 65535, got {port}"]
    if not is_loopback(host) and not token:
        wrong.append(f"--host: {host} can be reached from other machines; give a --token")
    return wrong


def check_token(request: web.Request, token: str | None) -> None:
    """Refused (401) unless the request brings the token, if there is one."""
    if not token:
        return
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "basic":
        try:
            given = b64decode(given, validate=True).decode("utf-8", "replace").partition(":")[2]
        except binascii.Error:
            given = ""
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        raise Refused(401)


async def read_body(request: web.Request, seconds: float) -> bytes:
    """The body; 408 if it is not there in time, 413 (by aiohttp) if it is longer than the application allows."""
    try:
        async with asyncio.timeout(seconds):
            return await request.read()
    except TimeoutError as error:
        raise Refused(408) from error


def json_body(body: bytes) -> object:
    """The JSON value of a body; ValueError if it is none."""
    try:
        return parse_json(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def reply(text: str, status: int = 200) -> web.Response:
    """A reply with tornado's content type."""
    return web.Response(body=text.encode(), status=status, headers={"Content-Type": TYPE})


def json_reply(value: object) -> web.Response:
    """A value as JSON."""
    return reply(json.dumps(value))


def page(status: int) -> web.Response:
    """tornado's error page."""
    title = f"{status}: {HTTPStatus(status).phrase}"
    return reply(f"<html><title>{title}</title><body>{title}</body></html>", status)


def run_app(app: web.Application, host: str, port: int) -> None:
    """Serve until interrupted."""
    web.run_app(app, host=host, port=port, print=None, access_log=None, shutdown_timeout=1.0)
