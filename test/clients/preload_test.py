"""Programs that know nothing of weft say and return the same with libweft_hook.so loaded before them,
and with their main() in a fiber.

usage: preload_test.py <libweft_hook.so> <the case>, or: preload_test.py <libweft_hook.so> --all

Each case runs a few programs in a folder of its own and writes down what they said and how they ended.
It does so without the hooks, with them, and with main() in a fiber over each driver; all must have
written the same. A program that is not installed is named, and the case is skipped (77). Bounded: a
case is given sixty seconds, on loopback only.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
LIMIT = 20  # seconds that one program is given
LIBRARY = ""

MODES = {
    "without hooks": None,
    "with hooks": {},
    "main in a fiber": {"WEFT_HOOK_MAIN": "1", "WEFT_IO": "epoll"},
    "main in a fiber, over io_uring": {"WEFT_HOOK_MAIN": "1", "WEFT_IO": "io_uring"},
}
# Where programs are that no PATH of a user names.
MORE_PATHS = ["/usr/sbin", "/usr/lib/postgresql/15/bin"]
CASES = {}


def case(*programs):
    def with_name(f):
        CASES[f.__name__] = (programs, f)
        return f
    return with_name


def found(program):
    return shutil.which(program, path=os.pathsep.join(
        [*os.environ.get("PATH", "").split(os.pathsep), *MORE_PATHS]))


class Run:
    """One run of a case: in a folder, in a mode; collects what was said."""

    def __init__(self, folder, mode):
        self.folder = folder
        self.said = []
        self.servers = []
        self.ports = []
        self.clean = {"PATH": os.pathsep.join([os.environ.get("PATH", "/usr/bin:/bin"), *MORE_PATHS]),
                      "HOME": str(folder), "LC_ALL": "C", "TZ": "UTC"}
        self.hooked = dict(self.clean)
        if MODES[mode] is not None:
            self.hooked |= {"LD_PRELOAD": LIBRARY, **MODES[mode]}

    def free_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.ports.append(str(s.getsockname()[1]))
            return self.ports[-1]

    def neutral(self, text):
        """Without what is another in each run."""
        for i, port in enumerate(self.ports):
            text = text.replace(port, f"@port{i}@")
        return text.replace(str(self.folder), "@folder@")

    def tell(self, words, text):
        text = self.neutral(text)
        lines = [line for line in text.splitlines() if "io_uring is refused" not in line]
        self.said.append(f"{words}:\n" + "\n".join(lines))

    def run(self, *command, given="", hooked=True, **more):
        """Its output, which is written down with how it ended."""
        name = self.neutral(" ".join(command))[:60]
        try:
            done = subprocess.run([str(c) for c in command], input=given, capture_output=True, text=True,
                                  timeout=LIMIT, cwd=self.folder, errors="replace",
                                  env=self.hooked if hooked else self.clean, **more)
        except subprocess.TimeoutExpired as late:
            self.tell(name, f"is not done after {LIMIT} s: {late.stdout} {late.stderr}")
            return ""
        self.tell(name, f"{done.stdout}{done.stderr}ended with {done.returncode}")
        return done.stdout

    def quiet(self, *command, **more):
        """The same without hooks, not written down: preparations."""
        subprocess.run([str(c) for c in command], check=True, capture_output=True, timeout=LIMIT,
                       cwd=self.folder, env=self.clean, **more)

    def serve(self, *command, hooked=True, **more):
        log = open(self.folder / "server.log", "ab")
        self.servers.append(subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            env=self.hooked if hooked else self.clean, start_new_session=True, **more))
        log.close()
        return self.servers[-1]

    def until_answered(self, port):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        self.tell("server", "does not answer: " + (self.folder / "server.log").read_text("utf-8", "replace"))

    def until_it_works(self, *command):
        """A server may answer before it is up: until the command ends with 0."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                return self.quiet(*command)
            except subprocess.CalledProcessError:
                time.sleep(0.05)
        self.tell("server", "is not up: " + (self.folder / "server.log").read_text("utf-8", "replace"))

    def end(self):
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                self.tell("server", "does not end")
            try:
                os.killpg(server.pid, signal.SIGKILL)
            except OSError:
                pass
            server.wait()


SHELL = r"""
seq 1 2000 | sort -rn | uniq | wc -l
for i in 1 2 3; do echo "line $i"; done | while read -r word rest; do echo "$rest"; done
echo hi | { read -r x; echo "got $x"; }
(exit 3); echo "status $?"
(sleep 0.05; echo late) & wait; echo waited
x=$(printf 'a\nb\nc\n' | grep -c .); echo "$x"
head -c 300000 /dev/zero | tr '\0' x | cat | wc -c
yes | head -n 3
kill -TERM $$
"""


@case("sh")
def shell(r):
    r.run("sh", "-c", SHELL)
    r.run("sh", given="echo from a script; exit 4\n")


@case("bash")
def bash(r):
    r.run("bash", "-c", SHELL)
    r.run("bash", "-c", "set -o pipefail; false | cat; echo $?; cat <(echo one) <(echo two); "
                        "mapfile -t all < <(seq 3); echo ${#all[@]}; read -t 0.05 x < <(sleep 0.2); echo $?; "
                        "coproc c { read -r a; echo \"back $a\"; }; echo ping >&${c[1]}; "
                        "read -r b <&${c[0]}; echo $b; trap 'echo caught' USR1; kill -USR1 $$; echo end")


@case("perl")
def perl(r):
    r.run("perl", "-e", r"""
use strict; use Socket; use IO::Select; use POSIX ":sys_wait_h"; $| = 1;
pipe(my $in, my $out); my $child = fork;
if (!$child) { close $in; syswrite $out, "from the child\n"; exit 5 }
close $out; print scalar <$in>; waitpid $child, 0; print $? >> 8, "\n";
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0); syswrite $a, "abc"; sysread $b, my $got, 10; print "$got\n";
my @r = IO::Select->new($b)->can_read(0.01); print scalar(@r), "\n";
eval { local $SIG{ALRM} = sub { die "alarm\n" }; require Time::HiRes; Time::HiRes::alarm(0.05); sysread $b, $got, 10; };
print $@; print `echo backquoted`; system "exit 6"; print $? >> 8, "\n"; select undef, undef, undef, 0.01; exit 7;
""")


@case("python3")
def python(r):
    r.run(os.path.realpath(sys.executable), "-c", r"""
import asyncio, os, select, signal, socket, subprocess, sys, threading, time
a, b = socket.socketpair(); a.sendall(b"x" * 300); print(len(b.recv(1000)))
b.settimeout(0.01)
try: b.recv(1)
except TimeoutError: print("late")
print(subprocess.run(["sh", "-c", "cat; exit 3"], input=b"in", capture_output=True))
l = threading.Lock(); done = []
def work(i):
    time.sleep(0.01)
    with l: done.append(i)
all = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in all: t.start()
for t in all: t.join()
print(sorted(done))
async def hello():
    s = await asyncio.start_server(lambda r, w: (w.write(b"hello\n"), w.close()), "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); print(await r.read()); s.close()
asyncio.run(hello())
pid = os.fork()
if pid == 0: os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
e = threading.Event(); threading.Timer(0.02, e.set).start(); print(e.wait(5))
signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.03)
time.sleep(0.1); print(select.select([b], [], [], 0.01)); sys.exit(4)
""")


@case("php")
def php(r):
    r.run("php", "-n", "-r", r"""
$p = proc_open(["cat"], [["pipe", "r"], ["pipe", "w"]], $ends); fwrite($ends[0], "through\n"); fclose($ends[0]);
echo stream_get_contents($ends[1]), proc_close($p), "\n"; echo shell_exec("echo shell");
$two = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fwrite($two[0], "abc\n"); echo fgets($two[1]);
$r = [$two[1]]; $w = $e = null; echo stream_select($r, $w, $e, 0, 1000), "\n"; usleep(1000); exit(3);
""")


@case("make", "gcc")
def make_and_gcc(r):
    (r.folder / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
    (r.folder / "Makefile").write_text(
        "all: one two hello\n\t./hello\none two:\n\t@echo $@ > $@\nhello: hello.c\n\tgcc -O1 -o $@ $<\n"
        "fails:\n\t@exit 2\n")
    r.run("make", "-j4", "one", "two", "hello")
    r.run("make")
    r.run("make", "-k", "fails")
    r.run("gcc", "-c", "no-such-file.c")
    r.run("gcc", "-pipe", "-S", "-O2", "-xc", "-o", "-", "-", given="int f(int x) { return x * 3; }\n")


# What main() ends with: in a child of fork() it returns as ever, and its own thread may leave others behind.
ENDS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static sem_t told;
static void* last(void* of) {
    sem_wait(&told);  // a wait of weft's, which may have a thread of its own for it
    usleep(50000);
    puts("the last thread ends");
    return of;
}
int main(int count, char** words) {
    (void)words;
    if (count == 1) {
        pid_t child = fork();
        if (child == 0) return 7;
        int status = 0;
        waitpid(child, &status, 0);
        printf("the child ended with %d\n", WEXITSTATUS(status));
        return 5;
    }
    pthread_t other;
    sem_init(&told, 0, 0);
    pthread_create(&other, 0, last, 0);
    sem_post(&told);
    pclose(popen("true", "r"));
    pthread_exit(0);
}
"""


@case("gcc")
def ends(r):
    (r.folder / "ends.c").write_text(ENDS)
    r.quiet("gcc", "-o", "ends", "ends.c", "-pthread")
    r.run("./ends")
    r.run("./ends", "by its threads")


@case("git")
def git(r):
    r.clean |= {f"GIT_{w}_{k}": v for w in ("AUTHOR", "COMMITTER")
                for k, v in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "1700000000 +0000"))}
    r.hooked |= {k: v for k, v in r.clean.items() if k.startswith("GIT_")}
    r.run("git", "init", "-q", "-b", "main", "one")
    for i in range(20):
        (r.folder / "one" / f"file{i}").write_text(f"{i}\n" * 500)
    one = ("git", "-C", "one")
    r.run(*one, "add", ".")
    r.run(*one, "commit", "-q", "-m", "first")
    r.run(*one, "log", "--stat")
    r.run(*one, "gc", "-q")
    r.run("git", "clone", "-q", f"file://{r.folder}/one", "two")
    r.run("git", "-C", "two", "log", "--format=%H %s")
    r.run("git", "-C", "two", "status", "--short", "--branch")
    (r.folder / "two" / "more").write_text("more\n")
    r.run("git", "-C", "two", "add", "more")
    r.run("git", "-C", "two", "commit", "-q", "-m", "second")
    r.run("git", "-C", "two", "push", "-q", "origin", "main:other")
    r.run(*one, "fsck", "--no-progress")
    r.run(*one, "log", "other", "--format=%H")
    r.run("git", "clone", "-q", "no-such", "three")


@case("curl", "python3")
def curl(r):
    port = r.free_port()
    (r.folder / "big").write_bytes(bytes(range(256)) * 4000)
    (r.folder / "small").write_text("small\n")
    r.serve(os.path.realpath(sys.executable), "-m", "http.server", "--bind", "127.0.0.1", port, hooked=False)
    r.until_answered(port)
    at = f"http://127.0.0.1:{port}"
    r.run("curl", "-sS", f"{at}/small")
    r.run("curl", "-sS", "-o", "copy", "-w", "%{http_code} %{size_download}\n", f"{at}/big")
    r.tell("the copy", str((r.folder / "copy").read_bytes() == (r.folder / "big").read_bytes()))
    r.run("curl", "-sS", "--no-progress-meter", "-Z", f"http://localhost:{port}/small", f"{at}/small")
    r.run("curl", "-sS", "-f", "-o", "none", f"{at}/none")
    r.run("curl", "-s", f"http://127.0.0.1:{r.free_port()}/")
    r.run("curl", "-sS", f"file://{r.folder}/small")


@case("redis-server", "redis-cli")
def redis(r):
    port = r.free_port()
    r.serve("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", r.folder)
    r.until_answered(port)
    cli = ("redis-cli", "-p", port)
    r.run(*cli, "set", "key", "value")
    r.run(*cli, given="get key\nincr n\nlpush list a b c\nlrange list 0 -1\nblpop list 1\nnonsense\n")
    r.run(*cli, "eval", "return redis.call('incr', KEYS[1])", "1", "n")
    r.run(*cli, "blpop", "none", "0.05")
    r.run(*cli, "--pipe", given="SET a 1\r\nSET b 2\r\n")
    r.run(*cli, "bgsave")
    r.run("redis-cli", "-p", r.free_port(), "ping")


def unprivileged():
    """Arguments for a program that does not run as root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            of = pwd.getpwnam(name)
            return {"user": of.pw_uid, "group": of.pw_gid, "extra_groups": []}
        except KeyError:
            pass
    return {}


@case("psql", "postgres", "initdb")
def psql(r):
    as_user = unprivileged()
    os.chmod(r.folder, 0o755)
    first = r.folder.parent / "data"  # made once for all modes
    if not first.exists():
        first.mkdir()
        if as_user:
            os.chown(first, as_user["user"], as_user["group"])
        r.quiet("initdb", "-D", first, "-U", "weft", "-A", "trust", "--no-sync", "--no-locale", **as_user)
    data = r.folder / "data"
    r.quiet("cp", "-a", first, data)
    port = r.free_port()
    r.serve("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off",
            "-c", f"unix_socket_directories={data}", hooked=False, **as_user)
    r.until_answered(port)
    sql = ("psql", "-X", "-h", "127.0.0.1", "-p", port, "-U", "weft", "-d", "postgres")
    r.until_it_works(*sql, "-c", "select 1")
    r.run(*sql, "-At", "-c", "select generate_series(1, 5)")
    r.run(*sql, "-At", given="create table t(n int);\n\\copy t from stdin\n1\n2\n\\.\nselect sum(n) from t;\n"
                             "select pg_sleep(0.05);\nnonsense;\nselect repeat('x', 100000) is not null;\n"
                             "\\! echo shell\n")
    r.run(*sql, "-v", "ON_ERROR_STOP=1", "-c", "select 1/0")


@case("ssh", "sshd", "ssh-keygen")
def ssh(r):
    r.run("ssh", "-V")
    if os.getuid() != 0:
        r.tell("ssh", "no log-in: that is tried as root alone")
        return
    port = r.free_port()
    for name in ("host", "user"):
        r.quiet("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", r.folder / name)
    shutil.copy(r.folder / "user.pub", r.folder / "allowed")
    (r.folder / "sshd_config").write_text(
        f"HostKey {r.folder}/host\nAuthorizedKeysFile {r.folder}/allowed\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nPrintMotd no\nPrintLastLog no\n"
        "ListenAddress 127.0.0.1\n")
    ours = not os.path.exists("/run/sshd")
    os.makedirs("/run/sshd", exist_ok=True)  # sshd separates its privileges there
    try:
        r.serve(found("sshd"), "-D", "-e", "-p", port, "-f", r.folder / "sshd_config")
        r.until_answered(port)
        to = ("ssh", "-F", "none", "-i", f"{r.folder}/user", "-p", port, "-o", "StrictHostKeyChecking=no",
              "-o", f"UserKnownHostsFile={r.folder}/known", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
              "root@127.0.0.1")
        r.run(*to, "echo there; cat; exit 5", given="through\n")
        r.run(*to, "head -c 200000 /dev/zero | wc -c")
        r.run(*to, "cat | wc -c", given="y" * 300000)
        r.run(*to[:-1], "-o", "IdentitiesOnly=yes", "nobody@127.0.0.1", "true")
        r.end()
        r.servers.clear()
    finally:
        if ours:
            shutil.rmtree("/run/sshd", ignore_errors=True)


def result(f, mode, folder):
    folder.mkdir()
    run = Run(folder, mode)
    try:
        f(run)
    finally:
        run.end()
    shutil.rmtree(folder, ignore_errors=True)
    return run.said


def differences(name):
    """Of one case: text, empty where all modes say the same."""
    _, f = CASES[name]
    text = ""
    with tempfile.TemporaryDirectory(prefix="weft.preload.") as place:
        os.chmod(place, 0o755)
        folder = Path(place) / "here"
        plain = result(f, "without hooks", folder)
        for mode in list(MODES)[1:]:
            hooked = result(f, mode, folder)
            for a, b in zip(plain, hooked):
                if a != b:
                    text += f"{name}, {mode}:\n--- without\n{a}\n+++ with\n{b}\n"
            if len(plain) != len(hooked):
                text += f"{name}, {mode}: {len(hooked)} answers for {len(plain)}\n"
    return text


def main():
    global LIBRARY
    if len(sys.argv) != 3 or sys.argv[2] not in (*CASES, "--all"):
        sys.exit(f"usage: preload_test.py LIBRARY --all|{'|'.join(CASES)}")
    LIBRARY = os.path.abspath(sys.argv[1])
    status = 0
    for name in CASES if sys.argv[2] == "--all" else [sys.argv[2]]:
        missing = [p for p in CASES[name][0] if found(p) is None]
        if missing:
            print(f"skipped: {name}: {', '.join(missing)} is not installed")
            status = status or (SKIPPED if sys.argv[2] != "--all" else 0)
            continue
        began = time.monotonic()
        text = differences(name)
        print(f"{text}{name}: {'DIFFERS' if text else 'the same'}, {time.monotonic() - began:.1f} s", flush=True)
        status = 1 if text else status
    sys.exit(status)


main()
