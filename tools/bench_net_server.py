"""A server as a process: started on its core, found listening, asked what it used, ended."""

import contextlib
import glob
import http.client
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import time

PATIENCE = 10  # seconds until a server must be listening
TRIES = 100    # of ports
BODY = b"Hello, World!"

NGINX = """daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr crit;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    default_type text/plain;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 200 "{body}"; }}
    }}
}}
"""


class Failed(Exception):
    """A server did not do what it was measured at; the message is one line."""


def nginx_command(folder, port):
    """nginx as one worker with a configuration of its own, beside whatever nginx the system runs."""
    config = os.path.join(folder, "nginx.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(NGINX.format(folder=folder, port=port, body=BODY.decode()))
    return [find("nginx"), "-p", folder, "-c", config, "-e", "stderr"]


class Program:
    """A server's name, command and environment. The command is a list in which {port} and {folder}
    names are filled in, or a function of a temporary folder and the port that gives one."""

    def __init__(self, name, command, environment=None):
        self.name, self.command, self.environment = name, command, environment or {}

    def arguments(self, folders, folder, port):
        if callable(self.command):
            return self.command(folder, port)
        return [word.format(port=port, **folders) for word in self.command]

    def missing(self, folders, why_not):
        """Why it cannot be run, or None. why_not: of a folder, if there is none."""
        first = "nginx" if callable(self.command) else self.command[0]
        for name, why in why_not.items():
            if f"{{{name}}}" in first:
                return why
        path = first.format(**folders)
        if find(path):
            return None
        return f"{os.path.basename(path)} is not " + ("built" if os.sep in path else "installed")


def find(program):
    """Its path. Debian has nginx where only root looks."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin")


def free_port():
    """One below those that the system gives to connecting sockets: none of them is taken by chance between
    here and the server's own bind."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    for _ in range(TRIES):
        port = random.randrange(first // 2, first)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port
    raise Failed("no port is free")


def raise_file_limit():
    """For a program that is started from here and does not do so itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Server:
    def __init__(self, process, port, said):
        self.process, self.pid, self.port, self.said = process, process.pid, port, said

    def wait_until_listening(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.check_alive()
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise Failed(f"did not listen within {PATIENCE} s")

    def check_alive(self):
        if self.process.poll() is not None:
            self.said.seek(0)
            words = self.said.read().decode(errors="replace").strip().splitlines() or ["no word"]
            raise Failed(f"ended with {self.process.returncode}: {words[-1]}")

    def check_answer(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", "/")
            answer = connection.getresponse()
            found = (answer.status, answer.read())
        except (OSError, http.client.HTTPException) as fault:
            raise Failed(f"GET /: {fault or type(fault).__name__}") from None
        finally:
            connection.close()
        if found != (200, BODY):
            raise Failed(f"answers {found[0]} {found[1][:40]!r} and not 200 {BODY!r}")

    def rss_kib(self):
        return sum(resident_kib(pid) for pid in family(self.pid))


@contextlib.contextmanager
def running(program, pinned, folders):
    """The server from when it listens until it has ended. What it prints to standard error is kept for
    its last words, which say more of a failure than the load does that missed it."""
    raise_file_limit()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                [*pinned, *program.arguments(folders, folder, port)], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=said, env={**os.environ, **program.environment})
        except OSError as fault:
            raise Failed(str(fault)) from None
        server = Server(process, port, said)
        try:
            server.wait_until_listening()
            try:
                yield server
            except Failed:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1)  # if it is dying, it may
                server.check_alive()
                raise
            server.check_alive()
        finally:
            end(process)


def end(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def family(pid):
    """The process and its children."""
    found = [pid]
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += family(int(child))
    return found


def spent(pid):
    """Seconds of processor time that the process and its children have used, by the clock the kernel
    keeps for each."""
    return sum(time.clock_gettime((~p << 3) | 2) for p in family(pid))


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("VmRSS:")), 0)


def versions():
    """Of the peers that the system has, where it can tell."""
    found = []
    for name, pattern, start in (
            ("Boost", "/usr/include/boost/version.hpp", "#define BOOST_LIB_VERSION"),
            ("liburing", "/usr/lib/*/pkgconfig/liburing.pc", "Version:")):
        for path in glob.glob(pattern)[:1]:
            with open(path, encoding="utf-8") as file:
                found += [f"{name} " + line[len(start):].strip(' \n"').replace("_", ".")
                          for line in file if line.startswith(start)]
    for name in ("nginx", "wrk"):
        if find(name):
            done = subprocess.run([find(name), "-v"], capture_output=True, text=True)
            number = re.search(r"\d+(\.\d+)+", done.stderr + done.stdout)
            found.append(f"{name} {number.group()}" if number else name)
    return found
