"""The servers that are compared: weft's in each style and over each driver, and their peers."""

import os
import re

from bench_host import build_go, build_rust
from bench_net_server import Program, nginx_command, versions

# {bench} and {examples} are folders of the build, {go} and {tokio} of the peers built here, {port} is
# chosen for each run.
WEFT = [Program(f"weft.{style}.{io}", ["{bench}/weft_net_echo", "{port}", style], {"WEFT_IO": io})
        for style in ("fiber", "task", "shared") for io in ("epoll", "io_uring")]
ECHO = [
    Program("bare.epoll", ["{bench}/net_bare_epoll", "{port}"]),
    Program("bare.io_uring", ["{bench}/net_bare_uring", "{port}"]),
    *WEFT,
    Program("boost.asio.callback", ["{bench}/net_asio_callback", "{port}"]),
    Program("boost.asio.awaitable", ["{bench}/net_asio_awaitable", "{port}"]),
    Program("tokio", ["{tokio}/tokio_echo", "{port}"]),
    Program("go", ["{go}/go_echo", "{port}"], {"GOMAXPROCS": "1"}),
]
HTTP = [
    Program("nginx", nginx_command),
    Program("go.http", ["{go}/go_http", "{port}"], {"GOMAXPROCS": "1"}),
    *(Program(f"weft.http.{io}", ["{examples}/http_hello", "{port}"], {"WEFT_IO": io})
      for io in ("epoll", "io_uring")),
]


def prepare(o):
    """Builds the peers in other languages, as far as o.only wants them; gives the servers there are,
    [echo, http], their versions, and what is skipped."""
    def wanted(name, build, *arguments):
        if any(re.search(o.only, p.name) and f"{{{name}}}" in p.command[0]
               for p in ECHO + HTTP if not callable(p.command)):
            return build(*arguments)
        return None, "not asked for"
    go, go_name = wanted("go", build_go, o.go, os.path.join("go_net", ""), ["./go_echo", "./go_http"])
    tokio, tokio_name = wanted("tokio", build_rust, o.tokio, "tokio_echo", "tokio_echo", "tokio")
    o.folders = {"bench": os.path.join(o.build, "bench"),
                 "examples": os.path.join(o.build, "examples"), "go": go or "",
                 "tokio": os.path.dirname(tokio) if tokio else ""}
    why_not = {name: why for built, name, why in ((go, "go", go_name), (tokio, "tokio", tokio_name))
               if not built}
    skipped, servers = [], []
    for programs in (ECHO, HTTP):
        there = []
        for program in (p for p in programs if re.search(o.only, p.name)):
            missing = program.missing(o.folders, why_not)
            if not missing and programs is HTTP:
                missing = Program("", ["wrk"]).missing(o.folders, {})
            skipped += [f"{program.name}: {missing}"] if missing else []
            there += [] if missing else [program]
        servers.append(there)
    names = [name for built, name in ((go, go_name), (tokio, tokio_name)) if built]
    return servers, names + versions(), skipped
