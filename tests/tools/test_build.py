# SPDX-License-Identifier: BSD-2-Clause
"""The module as others build it, and what the build puts into it."""

import os
import shutil
import subprocess
from pathlib import Path

from weirtest import Nginx

ROOT = Path(__file__).resolve().parent.parent.parent
NGINX_SOURCE = Path("/usr/share/nginx/src")
MODULE = "ngx_http_weir_module.so"


def run(*command, **kwargs):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported_names(module):
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", module).splitlines()}


def test_nginx_builds_the_module_itself_from_the_config_file(tmp_path):
    source = tmp_path / "nginx"
    shutil.copytree(NGINX_SOURCE, source)
    run("sh", "configure", "--with-compat", "--with-threads", "--with-http_ssl_module", f"--add-dynamic-module={ROOT}", cwd=source)
    # Upstream's tree has a Makefile on top that does just this; Debian's nginx-dev leaves it out.
    run("make", f"-j{os.cpu_count()}", "-f", "objs/Makefile", "modules", cwd=source)
    module = source / "objs" / MODULE
    server = Nginx(tmp_path / "server", rooms={"concert": "rate=1"}, gate="concert", module=module)
    is_accepted, said = server.check_conf()
    assert is_accepted, said
    assert exported_names(module) == {"ngx_modules", "ngx_module_names", "ngx_module_order"}


def test_the_module_shows_nginx_three_names_and_keeps_the_rest_to_itself():
    run("make", "module", cwd=ROOT)
    assert exported_names(ROOT / "build" / "gcc" / MODULE) == {"ngx_modules", "ngx_module_names", "ngx_module_order"}


def test_the_module_is_hardened_as_debian_hardens():
    run("make", "module", cwd=ROOT)
    module = ROOT / "build" / "gcc" / MODULE
    dynamic = run("readelf", "-W", "-d", "-l", module)
    assert "BIND_NOW" in dynamic and "GNU_RELRO" in dynamic
    stack = next(line for line in dynamic.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack
    assert "__stack_chk_fail" in run("nm", "-D", module)


def test_an_embedded_page_is_the_same_byte_for_byte(tmp_path):
    page = tmp_path / "page"
    page.write_bytes(bytes(range(256)) * 3 + b"\n")
    (tmp_path / "page.c").write_text(run(ROOT / "scripts" / "embed", "weir_page_test", page))
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\n"
        "extern const unsigned char weir_page_test[]; extern const size_t weir_page_test_len;\n"
        "int main(void) { fwrite(weir_page_test, 1, weir_page_test_len, stdout); return 0; }\n"
    )
    run("gcc", "-Wall", "-Werror", "-o", tmp_path / "show", tmp_path / "main.c", tmp_path / "page.c")
    assert subprocess.run([tmp_path / "show"], stdout=subprocess.PIPE, check=True).stdout == page.read_bytes()
