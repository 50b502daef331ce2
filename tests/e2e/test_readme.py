# SPDX-License-Identifier: BSD-2-Clause
"""What README tells a stranger to type works; what the documents name is there."""

import re
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest
from weirtest.nginx import FOLDERS, module_path
from weirtest.redis import Standalone

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md"))]

# What nginx needs to run in a folder of its own, as an ordinary user's process.
MAIN = """\
{user}
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log info;
"""
HTTP = """\
http {{
""" + FOLDERS + """\
    server {{ listen 127.0.0.1:{shop_port}; return 200 "the shop, for $http_x_weir_user"; }}
"""


def replace_once(text, old, new):
    assert text.count(old) == 1, f"README says {old!r} {text.count(old)} times"
    return text.replace(old, new)


WHOLE, UPSTREAM, ROOM, STORE = re.findall(r"^```nginx\n(.*?)^```$", README, re.M | re.S)


@pytest.fixture
def pasted(weir):
    return paste(weir, WHOLE)


def paste(weir, conf):
    """An nginx whose configuration is README's, but for paths and ports."""
    server = weir(start=False, workers=1)
    place = dict(dir=server.dir, shop_port=server.shop_port)
    user = next((line for line in server.conf.splitlines() if line.startswith("user ")), "")
    conf = replace_once(conf, "modules/ngx_http_weir_module.so", server.module)
    conf = replace_once(conf, "/var/lib/weir;", f"{server.dir}/journal;")
    conf = replace_once(conf, "listen 80;", f"listen 127.0.0.1:{server.port};")
    conf = replace_once(conf, "127.0.0.1:8080", f"127.0.0.1:{server.shop_port}")
    conf = replace_once(conf, "http {\n", HTTP.format(**place))
    (server.dir / "nginx.conf").write_text(MAIN.format(user=user, **place) + conf)
    make_secret(server)
    return server


def make_secret(server):
    (line,) = re.findall(r"^    (printf .*weir\.secret)$", README, re.M)
    line = replace_once(line, "sudo ", "").replace("/etc/nginx/", f"{server.dir}/")
    subprocess.run(["sh", "-c", line], check=True, timeout=30)


@pytest.mark.local
def test_the_nginx_lines_are_accepted(pasted):
    accepted, said = pasted.check_conf()
    assert accepted, said


@pytest.mark.local
def test_the_nginx_lines_put_a_room_before_the_shop(pasted):
    visitor = pasted.start().api()
    browser = {"Accept": "text/html"}
    for path, headers in (("/", browser), ("/picture", {})):
        assert re.fullmatch(rb"the shop, for v-[A-Za-z0-9_-]{16}", visitor.get(path, headers=headers).body)
    assert pasted.api().get("/").error_code == "ADMISSION_REQUIRED"
    crowd = [pasted.api().get("/", headers=browser) for _ in range(100)]
    away = [answer for answer in crowd if answer.status != 200]
    assert away, "a hundred at once are more than 50 a second"
    assert all((answer.status, answer.header("location")) == (302, "/queue/shop?return=%2F") for answer in away)
    assert visitor.get("/queue/shop").status == 200


@pytest.mark.local
def test_the_breaker_as_shown_leaves_a_dead_shop_alone(weir):
    conf = replace_once(WHOLE, "http://127.0.0.1:8080;", "http://shop; proxy_read_timeout 5s;")
    server = paste(weir, replace_once(conf, "http {\n", "http {\n" + UPSTREAM))
    dead = server.dir / "nginx.conf"
    dead.write_text(replace_once(dead.read_text(), f"listen 127.0.0.1:{server.shop_port};", f"listen unix:{server.dir}/elsewhere;"))
    visitor = server.start().api()
    visitor.enter(visitor.ticket("shop"))
    answers = [visitor.get("/") for _ in range(11)]
    assert answers[0].status == 502
    assert (answers[-1].status, answers[-1].error_code) == (503, "SERVICE_UNAVAILABLE")
    assert 0 < int(answers[-1].header("retry-after")) <= 30


@pytest.mark.local
def test_the_room_that_follows_the_shop_as_shown_lets_people_in(weir):
    server = paste(weir, replace_once(WHOLE, "weir_room shop rate=50 max_active=1000;\n", ROOM))
    visitor = server.start().api()
    assert visitor.enter(visitor.ticket("shop")).status == 200


@pytest.mark.once
def test_two_servers_with_the_store_as_shown_share_a_room(weir):
    password = secrets.token_hex(16)
    with Standalone(password=password, requirepass=password) as store:
        (store.only.folder / "redis.password").touch(mode=0o600)
        (store.only.folder / "redis.password").write_text(password)
        line = replace_once(STORE, "127.0.0.1:6379", store.only.address)
        line = replace_once(line, "/etc/nginx/", f"{store.only.folder}/")
        servers = [paste(weir, WHOLE) for _ in range(2)]
        for server in servers:
            conf = server.dir / "nginx.conf"
            kept = re.search(r" *weir_zone .*\n *weir_journal .*\n", conf.read_text())[0]
            conf.write_text(replace_once(conf.read_text(), kept, line))
            (server.dir / "weir.secret").write_text((servers[0].dir / "weir.secret").read_text())
            server.start()
        token = servers[0].api().ticket("shop")
        passes = [server.api().enter(token) for server in servers]
        assert [answer.status for answer in passes] == [200, 200] and passes[0].body == passes[1].body


def test_the_three_curl_lines_get_a_pass(weir):
    server = weir(rooms={"concert": "rate=2 burst=1"})
    server.api().ticket("concert")
    block = re.search(r"^    TOKEN=.*\n(    .*\n)+", README, re.M)[0]
    lines = block.replace("http://127.0.0.1:8000", server.url)
    assert len(lines.splitlines()) == 3
    done = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, timeout=60, check=True)
    assert '"position":' in done.stdout
    assert '"admission":"granted"' in done.stdout


def test_replacing_a_key_as_told_keeps_everybody(weir):
    server = weir(rooms={"shop": "mode=hold"})
    old, new = secrets.token_hex(32), secrets.token_hex(32)
    server.write_secret(f"1 {old}\n")
    server.reload()
    early = server.api()
    first = early.ticket("shop")

    server.write_secret(f"2 {new}\n1 {old}\n")
    server.reload()
    late = server.api()
    second = late.ticket("shop")
    assert early.ticket("shop") == first
    assert early.status(first).status == 200

    server.write_secret(f"2 {new}\nholder {old}\n")
    server.reload()
    assert early.status(first).error_code == "TOKEN_NOT_FOUND"
    assert late.ticket("shop") == second
    assert late.status(second).status == 200


def test_a_secret_that_became_known_is_worth_nothing_after_a_reload(weir):
    server = weir(rooms={"shop": "rate=1000"}, gate="shop")
    visitor = server.api()
    token = visitor.ticket("shop")
    visitor.enter(token)
    assert visitor.get("/").status == 200
    server.write_secret(f"2 {secrets.token_hex(32)}\n")
    server.reload()
    visitor.close()
    assert visitor.status(token).error_code == "TOKEN_NOT_FOUND"
    assert visitor.get("/").status == 403


def test_a_reload_with_a_new_module_file_keeps_the_line(weir, tmp_path):
    """Under a new name: the loader takes a file of a name it knows for the one it has."""
    server = weir(rooms={"shop": "mode=hold"})
    visitor = server.api()
    token = visitor.ticket("shop")
    server.module = tmp_path / "new.so"
    shutil.copy(module_path(), server.module)
    server.write_conf()
    server.reload()
    visitor.close()
    for pid in server.worker_pids():
        assert str(server.module) in Path(f"/proc/{pid}/maps").read_text(), "it is not loaded"
    assert visitor.status(token).json()["position"] == 1
    assert server.api().join("shop").json()["position_hint"] == 2


@pytest.mark.once
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    links = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    local = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:", link)]
    missing = [link for link in local if link and not (document.parent / link).exists()]
    assert not missing


@pytest.mark.once
def test_every_test_that_guarantees_names_exists():
    named = re.findall(r"`([^`\n]+)`", (ROOT / "docs" / "GUARANTEES.md").read_text())
    missing, text, tests = [], "", 0
    for name in named:
        if re.fullmatch(r"(test|fuzz)_\w+\.(c|py)", name):
            (path,) = ROOT.glob(f"tests/*/{name}")
            text = path.read_text()
        elif name.startswith("test_") or name.count("_") > 2:
            tests += 1
            if not re.search(rf"\b{name}\(", text):
                missing.append(name)
    assert not missing
    assert tests > 100


@pytest.mark.once
def test_every_source_file_is_on_the_map():
    """A row names files of one folder, which its first name says: `journal/frame`, `log`."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    mapped, folder = set(), ""
    for row in text[text.index("## File map"):text.index("## Life of a request")].splitlines():
        for name in re.findall(r"`([\w/]+)`", row.split("|")[1] if row.startswith("| `") else ""):
            folder = name.split("/")[0] if "/" in name else folder
            mapped.add(name if "/" in name else f"{folder}/{name}")
    there = {str(path.relative_to(ROOT / "src").with_suffix("")) for path in (ROOT / "src").glob("*/*.[ch]")}
    assert there == mapped


def test_the_families_are_as_small_as_the_architecture_says():
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    said = {name: int(lines) for name, lines in re.findall(r"^\| [^|]+ \| `(nginx/\w+\.c)` \| (\d+) \|$", text, re.M)}
    files = {f"nginx/{path.name}" for pattern in ("family*.c", "api_tier2.c", "api_lobby.c", "api_concert.c", "gate_ticket.c")
             for path in (ROOT / "src" / "nginx").glob(pattern)}
    assert set(said) == files
    assert said == {name: len((ROOT / "src" / name).read_text().splitlines()) for name in files}
    assert all(lines < 250 for name, lines in said.items() if "/api_" in name), "an adapter, and no more"
