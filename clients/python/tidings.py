"""Sends events to a Tidings server. Needs Python 3.9, and nothing else. Licence: MIT."""

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

__all__ = ["Tidings", "TidingsError"]

_TRANSIENT = {408, 429, 500, 502, 503, 504}


class TidingsError(Exception):
    """A failed request. Without a response of the server, `status` is None."""

    def __init__(self, message, status=None, code=None, request_id=None, details=()):
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.details = list(details)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Keeps the API key from another server, and a POST from becoming a GET."""

    def redirect_request(self, *args):
        return None


_open = urllib.request.build_opener(_NoRedirect).open


class Tidings:
    """A client of one project. Without arguments it reads TIDINGS_URL and TIDINGS_API_KEY.

    A method returns the `data` of the response, or raises TidingsError. What failed for a
    transient reason is sent again for up to `retry_seconds`, and makes nothing twice.
    """

    def __init__(self, url=None, api_key=None, timeout=10, retry_seconds=30):
        self._url = (url or os.environ["TIDINGS_URL"]).rstrip("/")
        self._api_key = api_key or os.environ["TIDINGS_API_KEY"]
        self._timeout = timeout
        self._retry_seconds = retry_seconds

    def send(self, title, channel, idempotency_key=None, **fields):
        """Creates an event. `fields` are those of `POST /v1/events`, such as `level="high"`."""
        event = {"channelName": channel, "title": title, **fields}
        return self.request("POST", "/v1/events", event, idempotency_key=idempotency_key)

    def identify(self, user_id, idempotency_key=None, **fields):
        """Creates or updates a user. `fields` are `properties` and `aliases`."""
        user = {"user_id": user_id, **fields}
        return self.request("POST", "/v1/identify", user, idempotency_key=idempotency_key)

    def ask(self, title, channel, actions, expires_in=3600, **fields):
        """Asks the members, and returns the event. `actions` maps ids to labels of buttons."""
        choices = [{"id": id, "label": label} for id, label in actions.items()]
        answer = {"expiresInSeconds": expires_in, **fields.pop("answer", {})}
        return self.send(title, channel, actions=choices, answer=answer, **fields)

    def wait_for_answer(self, event_id, timeout=None):
        """Returns the answer: `action` is its id, or None if `state` is `expired`.

        After `timeout` seconds, `state` is `waiting`.
        """
        path = "/v1/events/" + urllib.parse.quote(event_id, safe="") + "/answer"
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 50 if end is None else max(0, min(50, int(end - time.monotonic())))
            answer = self.request("GET", f"{path}?wait={left}", timeout=left + self._timeout)
            if answer["state"] != "waiting" or left == 0:
                return answer

    def request(self, method, path, body=None, idempotency_key=None, timeout=None):
        """Makes a request to another path of `/v1`, in the same way."""
        headers = {"Authorization": "Bearer " + self._api_key}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise ValueError("The API key and the Idempotency-Key are one line of ASCII")
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        end = None
        pause = 0.25
        while True:
            failure, wait = None, None
            try:
                with _open(request, timeout=timeout or self._timeout) as response:
                    return json.load(response)["data"]
            except urllib.error.HTTPError as error:
                failure, wait = _to_failure(error)
                if error.code not in _TRANSIENT and failure.code != "idempotency_key_in_use":
                    raise failure from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                # ValueError: the response ended within its JSON.
                failure = TidingsError(f"No response of {self._url}: {error}")
            # A random part keeps many clients from returning at the same moment.
            wait = pause * random.uniform(0.5, 1) if wait is None else wait + random.random() / 4
            # The time begins with the first failure, because a long poll may fail late.
            now = time.monotonic()
            end = end or now + self._retry_seconds
            if now + wait > end:
                raise failure
            time.sleep(wait)
            pause = min(2 * pause, 8)


def _to_failure(error):
    """Returns the error of a response, and the seconds after which to try again, or None."""
    try:
        with error:
            body = json.load(error)
    except (OSError, http.client.HTTPException, ValueError):
        body = {}
    if not isinstance(body, dict):
        body = {}
    details = body.get("details") or []
    lines = [f"{'.'.join(map(str, one['path'])) or 'body'}: {one['message']}" for one in details]
    text = body.get("message") or body.get("error") or f"HTTP {error.code}"
    retry_after = error.headers.get("Retry-After") or ""
    failure = TidingsError(
        "; ".join([text, *lines]), error.code, body.get("code"), body.get("requestId"), details
    )
    return failure, int(retry_after) if retry_after.isdecimal() else None
