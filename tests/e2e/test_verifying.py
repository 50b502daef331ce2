# SPDX-License-Identifier: BSD-2-Clause
"""The examples of docs/verifying.md, taken from the page and run: they take what is valid and refuse what is not."""

import base64
import json
import os
import re
import secrets
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from test_passes import eddsa_key, entered, hs256_key, public_bytes
from weirtest import Nginx, free_port, wait_until
from weirtest.http import Client

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "verifying.md").read_text()
URL = "https://shop.example/.well-known/jwks.json"
PYTHON = "/usr/bin/python3"


def examples(heading):
    """[(language, text)] of the blocks under a heading."""
    (section,) = re.findall(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S)


HEADINGS = ["nginx, with auth_request", "Envoy", "Spring", "Express", "Python", "Go"]


@pytest.mark.parametrize("heading", HEADINGS)
def test_each_example_is_under_ten_lines(heading):
    for _, text in examples(heading):
        assert 0 < len([line for line in text.splitlines() if line.strip()]) < 10


def test_every_example_is_looked_at_here():
    assert re.findall(r"^## (.*)$", PAGE, re.M) == ["Keys", *HEADINGS]


# --- a server, and tokens to show


ROOMS = {"shop": "rate=1000 burst=100", "other": "rate=1000 burst=100", "lobby": "rate=1000 burst=100 tier=1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """As the page says it is configured."""
    ((_, lines),) = examples("Keys")
    http, location = lines.strip().split("\n")
    secret = secrets.token_hex(32)
    server = Nginx(tmp_path_factory.mktemp("verifying") / "nginx", rooms=ROOMS)
    server.secret = secret
    server.write_secret(f"1 {secret}\n")
    (there, _) = (text for _, text in examples("nginx, with auth_request"))
    server.write_conf(http=http, server=f"weir_gate room=other; {location} {there}" + "".join(
        f"location {path} {{ weir_gate off; {api} }}" for path, api in
        (("/api/v1/queue/", "weir_api queue;"), ("/queue/", "weir_page;"))), api=False)
    server.start()
    yield server
    server.stop()


def tokens(server, key, algorithm):
    """{what it is: (token, whether it is to be taken)}; the key signs as the server does."""
    _, _, fine = entered(server)
    stranger = Ed25519PrivateKey.generate() if algorithm == "EdDSA" else secrets.token_bytes(32)
    claims = jwt.decode(fine, options={"verify_signature": False})
    header, payload, signature = fine.split(".")

    def signed(key=key, algorithm=algorithm, kid="2.1", **changes):
        kept = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        return jwt.encode(kept, key, algorithm, headers={"kid": kid})

    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "2.1", "typ": "JWT"}).encode()).decode().rstrip("=")
    return {
        "a pass": (fine, True),
        "the same by a library": (signed(), True),
        "expired": (signed(exp=claims["iat"] - 1), False),
        "of another room": (entered(server, "other")[2], False),
        "of another tier": (entered(server, "lobby")[2], False),
        "of a stranger": (signed(key=stranger), False),
        "of another issuer": (signed(iss="shop"), False),
        "of an unknown key": (signed(kid="2.9"), algorithm == "HS256"),
        "without a signature": (f"{none}.{payload}.", False),
        "with none": (f"{none}.{payload}.{signature}", False),
        "of a public key": (signed(key=public_bytes(eddsa_key(server.secret)), algorithm="HS256"), False),
        "changed": (f"{header}.{payload[:-4]}AAAA.{signature}", False),
        "cut": (fine[:-10], False),
        "empty": ("", False),
        "nonsense": ("hello", False),
        "three dots": ("...", False),
    }


# --- Python


ASK = """
import json, sys
for token in json.load(sys.stdin):
    try:
        print(json.dumps(pass_of(token, "shop")["uid"]))
    except jwt.PyJWTError:
        print("null")
"""


def answers_of_python(text, shown, **environment):
    done = subprocess.run([PYTHON, "-c", text + ASK], input=json.dumps(shown), text=True, capture_output=True, timeout=60,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) is not None for line in done.stdout.splitlines()]


def assert_taken(shown, taken):
    assert dict(zip(shown, taken)) == {what: is_fine for what, (_, is_fine) in shown.items()}


def test_the_python_example_takes_passes_and_nothing_else(server):
    shown = tokens(server, eddsa_key(server.secret), "EdDSA")
    (text, _) = (text for language, text in examples("Python") if language == "python")
    text = text.replace(URL, server.url + "/.well-known/jwks.json")
    assert_taken(shown, answers_of_python(text, [token for token, _ in shown.values()]))


def test_the_python_example_for_hs256_takes_passes_and_nothing_else(weir):
    server = weir(rooms=ROOMS)
    (line,) = subprocess.run([Path(server.module).parent / "weir", "key", "export", server.secret_file, "--tier=2", "--secret"],
                             check=True, capture_output=True, text=True).stdout.splitlines()
    server.secret = server.secret_file.read_text().split()[1]
    shown = tokens(server, hs256_key(server.secret), "HS256")
    (_, text) = (text for language, text in examples("Python") if language == "python")
    taken = answers_of_python(text, [token for token, _ in shown.values()], WEIR_PASS_KEY=line.split()[1])
    assert_taken(shown, taken)


# --- Node


EXPRESS = """
const pass = require('./pass.js');
require('node:http').createServer((req, res) => pass(req, res, () => res.end(req.pass.uid))).listen(PORT, '127.0.0.1');
"""


@pytest.fixture
def node(server, tmp_path):
    """The middleware of the page in a server of its own: its port."""
    ((language, text),) = examples("Express")
    assert language == "js"
    port = free_port()
    (tmp_path / "pass.js").write_text(text.replace(URL, server.url + "/.well-known/jwks.json"))
    (tmp_path / "server.js").write_text(EXPRESS.replace("PORT", str(port)))
    process = subprocess.Popen(["node", "server.js"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs"})

    def answers():
        if process.poll() is not None:
            raise AssertionError(process.stderr.read())
        try:
            return Client(port).get("/").status == 403
        except OSError:
            return False

    try:
        wait_until(answers, 20, "node answering")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        process.stderr.close()


def test_the_express_example_takes_passes_and_nothing_else(server, node):
    shown = tokens(server, eddsa_key(server.secret), "EdDSA")
    client = Client(node)
    statuses = [client.get("/", headers={"x-queue-entry-token": token}).status for token, _ in shown.values()]
    assert set(statuses) == {200, 403}
    assert_taken(shown, [status == 200 for status in statuses])


# --- nginx


class Service(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *args):
        pass


@pytest.fixture
def service():
    http = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield http.server_address[1]
    http.shutdown()
    http.server_close()


def test_the_nginx_example_takes_passes_that_live_and_nothing_else(server, weir, service):
    _, here = (text for _, text in examples("nginx, with auth_request"))
    here = here.replace("shop.example", f"127.0.0.1:{server.port}").replace("127.0.0.1:8080", f"127.0.0.1:{service}")
    front = weir(start=False, api=False, server=here).start().client(cookies=False)
    visitor, ticket, token = entered(server)
    shown = tokens(server, eddsa_key(server.secret), "EdDSA")
    for token_, is_fine in shown.values():
        assert front.get("/", headers={"x-queue-entry-token": token_}).status == (200 if is_fine else 403)
    browser = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
    assert front.get("/", headers=browser).status == 403
    assert front.get("/", headers={**browser, "Cookie": f"weir-pass-shop={token}"}).body == b"done"
    assert front.get("/pass").status == 404
    assert visitor.leave(ticket).status == 200
    # A worker that saw the session live may take it for living for half a second more.
    wait_until(lambda: front.get("/", headers={"x-queue-entry-token": token}).status == 403, 5, "the end of the session")


# --- what cannot be run here


def test_the_envoy_example_is_yaml_and_names_what_a_pass_has():
    ((_, text),) = examples("Envoy")
    conf = yaml.safe_load(text)
    (rule,) = conf["rules"]
    provider = conf["providers"][rule["requires"]["provider_name"]]
    assert provider["issuer"] == "weir" and provider["from_cookies"] == ["weir-pass-" + provider["subjects"]["exact"]]
    assert provider["remote_jwks"]["http_uri"]["uri"] == URL
