#!/usr/bin/env python3
"""Changes the sources of weft, a small thing at a time, and looks whether a test fails.

  tools/mutate.py --layer sync                 all layers where none is named
  tools/mutate.py --layer sync --layer wait --count 50    50 of each
  tools/mutate.py --count 600 --seed 7         600 of them, spread over rules and files
  tools/mutate.py --at weft/sched/strand.cpp:151   all mutations of that line
  tools/mutate.py --list --layer wheel         says them, and builds nothing

Its one idea: all chosen mutations are compiled into one build of a copy of the tree, each behind a
number that is asked at run time (mutate_rules.py, mutate.hpp), so that a mutation costs a run of
tests and no build. Which tests come by a mutation is noted in a run without any, and only those are
run, the ones that failed lately first, until one fails. The
copy and its builds lie in build/mutate; nothing else is written.

  caught       a test fails, crashes, or takes several times as long as it does
  survived     all tests pass that come by it; "unreached": none comes by it
  equivalent   it survived, and tools/mutate_equivalent.txt says why it changes nothing
  uncompiled   it does not compile, and is not counted

The tests are those of the file's layer, and of test/model where the file has one. A memory order is tried
under the model checker, or, where the file has no model, under ThreadSanitizer; a call that was left
out and survived is tried once more under AddressSanitizer, or under ThreadSanitizer if it tells that
something (--sanitize no: neither). A test that fails
without any mutation ends the run before it begins; one that fails with a mutation is run again
without it, and is no witness if it fails then too.

Results are appended to build/mutate/results.jsonl, a line for each mutation, and what stands there
of the same source is not tried again (--fresh: all are); what survived is, when the layer's tests
have changed, or when a sanitizer is to look that has not.
Exit: 0 at most --most percent survived, 1 more did, 2 misuse, or a test fails by itself.
"""

import collections
import concurrent.futures
import dataclasses
import fcntl
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mutate_rules as rules  # noqa: E402
from arguments import Arguments, misuse_of  # noqa: E402

TOOLS = Path(__file__).resolve().parent
COPIED = ("weft", "test", "cmake", "bench", "examples", "tools", "CMakeLists.txt", "LICENSE",
          "README.md", "docs")
SETTINGS = {"none": "-O0", "address": "-O1 -g1", "thread": "-O1 -g1"}
ENVIRONMENT = {"ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1",
               "TSAN_OPTIONS": "halt_on_error=1"}
NICE = 10            # all but the terminal goes before it
CHEAP_MS = 60        # of a test that is run before the others
BATCH_MS = 4000      # of the tests that are run at once
SLOWER = 6           # times its usual time, and a test hangs
GRACE_S = 10         # and this besides
CUT_ROUNDS = 12      # builds until what does not compile has been found
SANITIZED = {"order": "thread", "call": "address", "deregister": "address", "wake": "thread"}
misuse = misuse_of("mutate")

ERROR = re.compile(r"^(/[^:\n]+):(\d+):\d+: (?:fatal )?error:", re.MULTILINE)
PLACE = re.compile(r"(/[^:\s\n]+):(\d+):\d+:")


def sanitizer_of(m):
    """Which sanitizer may see what no test has seen; what is said to one itself, that one."""
    return "thread" if "tsan" in m.source and m.rule in SANITIZED else SANITIZED.get(m.rule)


# -------------------------------------------------------------------------------------------------
# Which mutations


def sources(root, layers):
    """The files of some layers, or of all of them."""
    for layer in layers or ():
        if not (root / "weft" / layer).is_dir():
            misuse(f"there is no layer {layer}")
    return sorted(str(p.relative_to(root)) for p in (root / "weft").rglob("*")
                  if p.suffix in (".hpp", ".cpp") and len(p.relative_to(root).parts) > 2
                  and not rules.OTHER_BACKEND.match(p.stem)
                  and (not layers or p.relative_to(root).parts[1] in layers))


def layer_of(path):
    return Path(path).parts[1]


def spread(mutations, count, seed):
    """`count` of them, as many of each rule and of each file as there are."""
    draw = random.Random(seed)
    by_rule = collections.defaultdict(lambda: collections.defaultdict(list))
    for m in mutations:
        by_rule[m.rule][m.path].append(m)
    queues = []
    for rule in sorted(by_rule):
        files = sorted(by_rule[rule].items())
        draw.shuffle(files)
        for _, of_file in files:
            draw.shuffle(of_file)
        queue, depth = [], 0
        while len(queue) < sum(len(f) for _, f in files):
            queue += [f[depth] for _, f in files if depth < len(f)]
            depth += 1
        queues.append(queue)
    chosen = []
    while len(chosen) < count and any(queues):
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return chosen


class Equivalents:
    """tools/mutate_equivalent.txt: three lines each, `<file>: <rule>: <change>`, the line of the
    source, and the reason; lines of # are comments."""

    def __init__(self, path):
        self.reasons = {}
        lines = [] if not path.is_file() else [
            line.strip() for line in path.read_text().splitlines()
            if line.strip() and not line.startswith("#")]
        for head, source, reason in zip(lines[0::3], lines[1::3], lines[2::3]):
            self.reasons[head, source] = reason
        if len(lines) % 3:
            misuse(f"{path.name}: an entry has three lines")

    def reason(self, m):
        return (self.reasons.get((f"{m.path}: {m.rule}: {m.change}", m.source))
                or self.reasons.get((f"{m.path}: {m.rule}: *", m.source))
                or self.reasons.get((f"{m.path}: *: *", m.source)))


# -------------------------------------------------------------------------------------------------
# The copy and its builds


class Copy:
    """The tree with mutations in it, at `folder`/tree."""

    def __init__(self, root, folder):
        self.root, self.folder, self.tree = root, folder, folder / "tree"

    def write(self, mutations):
        """The tree as it is, with these in it; files that stay the same keep their time."""
        by_file = collections.defaultdict(list)
        for m in mutations:
            by_file[m.path].append(m)
        wanted, crossing = {}, []
        for name in COPIED:
            top = self.root / name
            for path in [top] if top.is_file() else sorted(top.rglob("*")):
                if path.is_file() and "target" not in path.parts and "__pycache__" not in path.parts:
                    wanted[str(path.relative_to(self.root))] = path
        for relative, path in wanted.items():
            if relative in by_file:
                text, apart = rules.rendered(path.read_text(), by_file[relative])
                crossing += apart
                # The number of a line stays what it is.
                self.put(relative, f'#include "{TOOLS / "mutate.hpp"}"\n'
                                   f'#line 1 "{self.tree / relative}"\n{text}'.encode())
            else:
                self.put(relative, path.read_bytes(), path.stat().st_mode)
        listener = (TOOLS / "mutate_listener.cpp").read_text().replace(
            "@MUTATE_HPP@", str(TOOLS / "mutate.hpp"))
        for tests in sorted((self.root / "test").iterdir()):
            if tests.is_dir() and any(tests.glob("*_test.cpp")):
                name = f"test/{tests.name}/zz_mutate_listener_test.cpp"
                wanted[name] = None
                self.put(name, listener.encode())
        for part in self.parts():
            name = f"test/{part[0]}/{part[1]}_zz_mutate_listener_test.cpp"
            wanted[name] = None
            self.put(name, listener.replace("weft_mutate_", f"weft_mutate_{part[1]}_").encode())
        for path in sorted(self.tree.rglob("*"), reverse=True):
            if path.is_file() and str(path.relative_to(self.tree)) not in wanted:
                path.unlink()
        return crossing

    def parts(self):
        """(layer, part) of those that have tests of their own: test/<layer>/<part>_<x>_test.cpp."""
        for folder in sorted((self.root / "weft").glob("*/*/")):
            layer, part = folder.parts[-2:]
            if part != "detail" and any((self.root / "test" / layer).glob(f"{part}_*_test.cpp")):
                yield layer, part

    def put(self, relative, data, mode=None):
        path = self.tree / relative
        if path.is_file() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if mode is not None:
            path.chmod(mode)


class Build:
    """The copy compiled with one sanitizer, or none."""

    def __init__(self, copy, sanitize, jobs):
        self.copy, self.sanitize, self.jobs = copy, sanitize, jobs
        self.folder = copy.folder / sanitize
        self.log = copy.folder / f"{sanitize}.log"

    def configure(self):
        done = subprocess.run(
            ["cmake", "-S", str(self.copy.tree), "-B", str(self.folder), "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_CXX_FLAGS_DEBUG={SETTINGS[self.sanitize]}",
             "-DCMAKE_CXX_FLAGS=-w -Wno-narrowing", f"-DWEFT_SANITIZE={self.sanitize}",
             "-DWEFT_UNITY=ON", "-DWEFT_EXAMPLES=OFF", "-DWEFT_BENCH=OFF"],
            capture_output=True, text=True)
        if done.returncode != 0:
            misuse(f"cmake fails:\n{done.stdout}{done.stderr}")
        said = subprocess.run(["ninja", "-C", str(self.folder), "-t", "targets", "all"],
                              capture_output=True, text=True).stdout
        return set(re.findall(r"^(\w+): ", said, re.MULTILINE))

    def make(self, targets):
        """What the compiler said; None when all compiled."""
        done = subprocess.run(["cmake", "--build", str(self.folder), "-j", str(self.jobs),
                               "--target", *targets, "--", "-k", "0"],
                              capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        self.log.write_text(done.stdout + done.stderr)
        return None if done.returncode == 0 else done.stdout + done.stderr

    def program(self, target):
        found = [p for p in self.folder.rglob(target) if p.is_file() and os.access(p, os.X_OK)]
        return found[0] if found else None


def blamed(said, mutations, tree):
    """The mutations on the lines that errors name; failing that, on the lines that led there."""
    by_place = collections.defaultdict(list)
    for m in mutations:
        for line in range(m.line, m.last_line + 1):
            by_place[str(tree / m.path), line].append(m)

    def at(pattern):
        return {m.number for path, line in pattern.findall(said) for m in by_place[path, int(line)]}

    return at(ERROR) or at(PLACE)


def build_all(builder, copy, mutations, stages, show):
    """Builds, and leaves out what does not compile. (mutations that are in, those left out)."""
    inside = list(mutations)
    outside = copy.write(inside)
    inside = [m for m in inside if m not in outside]
    available = builder.configure()
    for stage in stages:
        targets = sorted(t for t in stage if t in available)
        for round_number in range(CUT_ROUNDS + 1):
            show(f"builds {len(targets)} targets with {len(inside)} mutations"
                 f"{f' ({builder.sanitize})' if builder.sanitize != 'none' else ''}")
            said = builder.make(targets) if targets else None
            if said is None:
                break
            bad = blamed(said, inside, copy.tree)
            if not bad or round_number == CUT_ROUNDS:
                misuse(f"the build fails, and no mutation is to blame: {builder.log}")
            outside += [m for m in inside if m.number in bad]
            inside = [m for m in inside if m.number not in bad]
            copy.write(inside)
    return inside, outside


# -------------------------------------------------------------------------------------------------
# Running tests


@dataclasses.dataclass
class Outcome:
    failed: bool
    test: str = ""      # which one failed, where that is known
    how: str = ""


class Program:
    """A program of tests: what each takes, and which mutations it comes by."""

    def __init__(self, path, sanitize, grace):
        self.path, self.sanitize, self.grace = path, sanitize, grace
        self.ms = {}
        self.by_mutation = collections.defaultdict(list)
        self.lately = collections.Counter()
        self.no_witness = set()

    def run(self, tests, number=0, seconds=None, extra=None):
        """Runs `tests`, all if None, with a mutation."""
        environment = {**os.environ, **ENVIRONMENT, "WEFT_MUTANT": str(number), "GTEST_BRIEF": "0",
                       **(extra or {})}
        if tests is not None:
            environment["GTEST_FILTER"] = ":".join(tests)
        command = [str(self.path), "--gtest_fail_fast"]
        if self.sanitize == "thread":
            command = ["setarch", "-R", *command]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, env=environment, cwd=self.path.parent,
                              start_new_session=True) as process:
            late = []

            def end():
                late.append(True)
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

            timer = threading.Timer(seconds or 3600, end)
            timer.start()
            try:
                said = process.stdout.read().decode(errors="replace")
                process.wait()
            finally:
                timer.cancel()
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # what a crash left running
                except ProcessLookupError:
                    pass
        self.said = said
        failed = re.findall(r"^\[  FAILED  \] ([^\s,]+)", said, re.MULTILINE)
        began = re.findall(r"^\[ RUN      \] (\S+)", said, re.MULTILINE)
        if late:
            return Outcome(True, began[-1] if began else "", "hangs")
        if process.returncode == 0:
            return Outcome(False)
        if failed:
            return Outcome(True, failed[0], "fails")
        return Outcome(True, began[-1] if began else "", "crashes")

    def note(self, mutations, folder):
        """Runs all tests without a mutation, and notes what they come by. What fails by itself."""
        hits, log = folder / f"{self.path.name}.hits", folder / f"{self.path.name}.log"
        self.ms.clear()
        self.by_mutation.clear()
        failing = []
        done = set()
        while True:
            hits.write_bytes(bytes(1 + max(m.number for m in mutations)))
            log.write_text("")
            skip = [f"-{':'.join(sorted(done | set(failing)))}"] if done or failing else None
            outcome = self.run(skip, seconds=1800, extra={
                "WEFT_MUTANT_HITS": str(hits), "WEFT_MUTANT_LOG": str(log)})
            for line in log.read_text().splitlines():
                test, ms, *numbers = line.split()
                done.add(test)
                self.ms[test] = int(ms)
                for n in numbers:
                    self.by_mutation[int(n)].append(test)
            if not outcome.failed:
                return failing
            again = self.run([outcome.test], seconds=300) if outcome.test else outcome
            if outcome.test and not again.failed:
                self.no_witness.add(outcome.test)  # only in the company of others
            if again.failed or not outcome.test:
                failing.append(outcome.test or f"{self.path.name} as a whole")
                if not outcome.test or len(failing) > 20:
                    return failing

    def reaching(self, number):
        return [t for t in self.by_mutation.get(number, ()) if t not in self.no_witness]

    def stands(self, batch, outcome, seconds):
        """Whether the same tests pass without the mutation. It is asked twice of each that fails,
        and always of a hang, for a busy machine lets a test take long, and of a crash, for what is
        found at the end of a process, such as a leak, belongs to no test."""
        if outcome.how == "fails" and self.lately[outcome.test] >= 2:
            return True
        return not self.run(batch, 0, seconds).failed

    def short(self, tests):
        """As many of them as take BATCH_MS together, and one: a hang is noticed that much sooner."""
        batch, ms = [], 0
        for test in tests:
            if batch and ms + self.ms[test] > BATCH_MS:
                break
            batch.append(test)
            ms += self.ms[test]
        return batch

    def kills(self, number):
        """The outcome of the tests that come by a mutation, up to the first that fails."""
        left = self.reaching(number)
        while left:
            hot = [t for t in left if self.lately[t]]
            hot = sorted(hot, key=lambda t: (-self.lately[t], self.ms[t]))[:8]
            cheap = [t for t in left if t not in hot and self.ms[t] <= CHEAP_MS]
            batch = self.short(hot or cheap or left)
            taken = sum(self.ms[t] for t in batch) / 1000
            seconds = SLOWER * taken + self.grace
            outcome = self.run(batch, number, seconds)
            if outcome.failed:
                test = outcome.test
                if test in batch and not self.stands(batch, outcome, seconds):
                    self.no_witness.add(test)
                    left = [t for t in left if t != test]
                    continue
                self.lately[test] += 1
                return outcome
            left = [t for t in left if t not in batch]
        return Outcome(False)


# -------------------------------------------------------------------------------------------------


def modelled(root):
    """The files of weft that the tests of the model checker are made of."""
    folder = root / "test" / "model"
    if not folder.is_dir():
        return set()
    seen, todo = set(), [p for p in folder.iterdir() if p.suffix in (".cpp", ".hpp")]
    build = folder / "CMakeLists.txt"
    if build.is_file():
        todo += [root / "weft" / name for name in re.findall(r"\b(\w+/\w+\.cpp)\b", build.read_text())]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        todo += [root / name for name in re.findall(r'#include "(weft/[^"]+)"', path.read_text())]
    return {str(p.relative_to(root)) for p in seen if p.is_relative_to(root / "weft")}


class Session:
    def __init__(self, root, options):
        self.root, self.options = root, options
        self.folder = root / "build" / "mutate"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.equivalents = Equivalents(root / "tools" / "mutate_equivalent.txt")
        self.results_file = self.folder / "results.jsonl"
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.done = []
        self.total = 0

    def show(self, text):
        print(f"{time.monotonic() - self.began:7.0f} s  {text}", flush=True)

    def choose(self):
        o = self.options
        places = [(path, line) for path, _, line in (at.rpartition(":") for at in o.at or ())]
        for path, line in places:
            if not line.isdigit() or not (self.root / path).is_file():
                misuse(f"--at {path}:{line}: not FILE:LINE")
        files = sorted({path for path, _ in places}) or sources(self.root, o.layer)
        everything = []
        for path in files:
            everything += rules.mutations_of(path, (self.root / path).read_text())
        if o.rule:
            everything = [m for m in everything if m.rule in o.rule]
        if o.at:
            everything = [m for m in everything if any(
                m.path == path and m.line <= int(line) <= m.last_line for path, line in places)]
        for number, m in enumerate(everything, 1):
            m.number = number
        if not o.count:
            return everything
        chosen = []
        for layer in o.layer or [None]:
            of_layer = [m for m in everything if layer in (None, layer_of(m.path))]
            chosen += spread(of_layer, o.count, o.seed)
        return sorted(chosen, key=lambda m: m.number)

    def key(self, m):
        """What a result is of: the text of the file, the place in it, and the change."""
        text = self.texts.setdefault(m.path, (self.root / m.path).read_text())
        return hashlib.sha256(f"{m.path}\0{m.rule}\0{m.change}\0{m.start}\0{text}".encode()).hexdigest()[:16]

    def tests(self, layer):
        """A digest of what a layer is tested with."""
        if layer not in self.digests:
            digest = hashlib.sha256()
            for folder in (layer, "model", "support"):
                for path in sorted((self.root / "test" / folder).rglob("*")):
                    if path.suffix in (".hpp", ".cpp", ".txt"):
                        digest.update(path.read_bytes())
            self.digests[layer] = digest.hexdigest()[:16]
        return self.digests[layer]

    def stands(self, result):
        """Whether a result is still one: what survived may be caught by a test that is new."""
        return (result["verdict"] not in ("survived", "unreached")
                or result["tests"] == self.tests(layer_of(result["path"])))

    def awaits_sanitizer(self, m, result, with_model):
        """Whether it has survived the tests, and only a sanitizer has not looked at it."""
        return (self.options.sanitize and not result["sanitized"] and result["verdict"] == "survived"
                and m.rule in SANITIZED and not (m.rule == "order" and m.path in with_model)
                and not self.equivalents.reason(m))

    def known(self):
        found = {}
        if self.results_file.is_file() and not self.options.fresh and not self.options.at:
            for line in self.results_file.read_text().splitlines():
                result = json.loads(line)
                found[result["key"]] = result
        return {key: result for key, result in found.items() if self.stands(result)}

    def explained(self, m, verdict):
        """What the verdict is, given the reasons that stand now, and the reason."""
        reason = self.equivalents.reason(m)
        if verdict in ("survived", "unreached") and reason:
            return "equivalent", reason
        return ("survived" if verdict == "equivalent" and not reason else verdict), reason

    def finish(self, m, verdict, by="", how=""):
        verdict, reason = self.explained(m, verdict)
        if verdict == "equivalent":
            by = reason
        result = {"key": self.key(m), "verdict": verdict, "path": m.path, "line": m.line,
                  "rule": m.rule, "change": m.change, "source": m.source, "by": by, "how": how,
                  "seed": self.options.seed, "tests": self.tests(layer_of(m.path)),
                  "sanitized": self.options.sanitize}
        with self.lock:
            self.done.append(result)
            with self.results_file.open("a") as file:
                file.write(json.dumps(result) + "\n")
            if verdict != "caught" or self.options.verbose or self.options.at:
                self.show(f"{len(self.done)}/{self.total} {verdict}: {m.path}:{m.line}: {m.rule}: "
                          f"{m.change}{f' ({how} {by})' if verdict == 'caught' else ''}"
                          f"{f' ({by})' if verdict == 'equivalent' else ''}")
            elif len(self.done) % 25 == 0:
                self.show(f"{len(self.done)}/{self.total}")

    def stages(self, layers, models):
        targets = set()
        for layer in layers:
            targets.add(f"weft_{layer}_test")
        parts = {part for layer, part in Copy(self.root, self.folder).parts() if layer in layers}
        for part in parts | {p.name for l in layers for p in (self.root / "weft" / l).iterdir()
                             if p.is_dir()}:
            targets.add(f"weft_{part}_test")
        libraries = {f"weft_{layer}" for layer in layers} | {f"weft_{p}" for p in parts}
        return libraries, targets, ({"weft_model_test"} if models else set())

    def trial(self, mutations, sanitize, targets_wanted):
        """Builds them, and gives (what came out of each, what was left out)."""
        copy = Copy(self.root, self.folder)
        build = Build(copy, sanitize, self.options.jobs)
        inside, outside = build_all(build, copy, mutations, targets_wanted, self.show)
        programs = []
        for target in sorted(set().union(*targets_wanted)):
            path = build.program(target) if target.endswith("_test") else None
            if path is not None:
                programs.append(Program(path, sanitize, self.options.grace))
        failing = []
        for program in programs:
            self.show(f"runs {program.path.name} as it is")
            failing += [f"{program.path.name}: {t}" for t in program.note(inside, self.folder)]
        if failing and not self.options.although:
            misuse("these tests fail without any mutation (--although: leave them out):\n  "
                   + "\n  ".join(failing))
        return inside, outside, programs

    def run(self):
        self.texts, self.digests = {}, {}
        chosen = self.choose()
        known = self.known()
        self.show(f"seed {self.options.seed}: {len(chosen)} mutations")
        if self.options.list:
            for m in chosen:
                print(f"{m.path}:{m.line}: {m.rule}: {m.change}")
            return 0
        with_model = modelled(self.root)
        again = collections.defaultdict(list)
        for m in chosen:
            if self.key(m) in known and self.awaits_sanitizer(m, known[self.key(m)], with_model):
                again[sanitizer_of(m)].append(m)
        begun = {m.number for mutations in again.values() for m in mutations}
        old = [{**known[self.key(m)],
                "verdict": self.explained(m, known[self.key(m)]["verdict"])[0]}
               for m in chosen if self.key(m) in known and m.number not in begun]
        todo = [m for m in chosen if self.key(m) not in known]
        self.total = len(chosen)
        self.done = old
        if old:
            self.show(f"{len(old)} are known from {self.results_file.relative_to(self.root)}")
        if todo:
            models = any(m.path in with_model for m in todo)
            stages = self.stages({layer_of(m.path) for m in todo}, models)
            inside, outside, programs = self.trial(todo, "none", stages)
            for m in outside:
                self.finish(m, "uncompiled")
            if not programs:
                misuse("there is no program of tests")
            self.show(f"tries {len(inside)} mutations")
            self.try_all(inside, programs, again)
        for sanitize, mutations in sorted(again.items()):
            layers = {layer_of(m.path) for m in mutations}
            libraries, tests, _ = self.stages(layers, False)
            inside, outside, programs = self.trial(mutations, sanitize, (libraries, tests))
            for m in outside:
                self.finish(m, "survived")
            self.try_all(inside, programs, None)
        return self.conclude()

    def try_all(self, mutations, programs, again):
        own = {layer: self.stages([layer], True) for layer in {layer_of(m.path) for m in mutations}}

        def one(m):
            reached = False
            # A walk of the checker takes longest, and is first only where nothing else can see it.
            for program in sorted(programs, key=lambda p: (
                    (p.path.name == "weft_model_test") != (m.rule == "order"), p.path.name)):
                if not program.reaching(m.number) or not any(
                        program.path.name in stage for stage in own[layer_of(m.path)]):
                    continue
                model = program.path.name == "weft_model_test"
                reached = True
                # On this machine a weaker order is none to the eye; only these see it.
                if m.rule == "order" and program.sanitize == "none" and not model:
                    continue
                outcome = program.kills(m.number)
                if outcome.failed:
                    self.finish(m, "caught", outcome.test, outcome.how)
                    return
            if again is not None and reached and self.options.sanitize and m.rule in SANITIZED:
                by_model = any(p.path.name == "weft_model_test" and p.reaching(m.number)
                               for p in programs)
                if not (m.rule == "order" and by_model) and not self.equivalents.reason(m):
                    with self.lock:
                        again[sanitizer_of(m)].append(m)
                    return
            self.finish(m, "survived" if reached or again is None else "unreached")

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for done in [pool.submit(one, m) for m in mutations]:
                done.result()

    def conclude(self):
        count = collections.Counter(r["verdict"] for r in self.done)
        by_rule = collections.defaultdict(collections.Counter)
        for r in self.done:
            by_rule[r["rule"]][r["verdict"]] += 1
        print("\nsurvived:")
        for r in sorted(self.done, key=lambda r: (r["path"], r["line"])):
            if r["verdict"] in ("survived", "unreached"):
                print(f"  {r['path']}:{r['line']}: {r['rule']}: {r['change']}"
                      f"{' (no test comes by)' if r['verdict'] == 'unreached' else ''}")
        verdicts = ("caught", "survived", "unreached", "equivalent", "uncompiled")
        print(f"\n{'':12}" + "".join(f"{v:>12}" for v in verdicts))
        for rule in sorted(by_rule):
            print(f"{rule:12}" + "".join(f"{by_rule[rule][v]:12}" for v in verdicts))
        print(f"{'':12}" + "".join(f"{count[v]:12}" for v in verdicts))
        alive = count["survived"] + count["unreached"]
        counted = count["caught"] + count["equivalent"] + alive
        share = 100 * alive / counted if counted else 0
        print(f"\nmutate: of {counted} mutations {alive} survived unexplained: {share:.1f} %")
        return 1 if share > self.options.most else 0


def main():
    a = Arguments("mutate", __doc__)
    a.add_argument("--root", type=Path, default=TOOLS.parent, help="the repository")
    a.add_argument("--layer", action="append", help="only files of weft/LAYER")
    a.add_argument("--rule", action="append", choices=sorted(rules.RULES), help="only of this rule")
    a.add_argument("--count", type=int, help="so many, of each layer that is named; without it all")
    a.add_argument("--seed", type=int, default=None, help="which of them, when not all are chosen")
    a.add_argument("--at", metavar="FILE:LINE", action="append", help="all mutations of a line")
    a.add_argument("--most", type=float, default=3.0, help="percent that may survive")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--sanitize", choices=("yes", "no"), default="yes")
    a.add_argument("--grace", type=float, default=GRACE_S, metavar="SECONDS",
                   help=f"a test hangs that takes {SLOWER} times its time and these")
    a.add_argument("--although", action="store_true", help="although tests fail by themselves")
    a.add_argument("--fresh", action="store_true", help="try what is known again")
    a.add_argument("--verbose", action="store_true", help="a line for what is caught, too")
    a.add_argument("--list", action="store_true", help="say them, and try none")
    options = a.parse_args()
    options.sanitize = options.sanitize == "yes"
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    root = options.root.resolve()
    if not (root / "weft").is_dir():
        misuse(f"{options.root} is not a repository of weft")
    session = Session(root, options)
    if options.list:
        return session.run()
    with (session.folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            misuse("another one runs in build/mutate")
        os.nice(max(0, NICE - os.nice(0)))
        return session.run()


if __name__ == "__main__":
    sys.exit(main())
