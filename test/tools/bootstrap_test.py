"""tools/bootstrap against a make-believe system: a PATH of few commands, of which apt-get only
writes down what it is asked for, and a folder for the system's headers and libraries."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BOOTSTRAP = Path(__file__).resolve().parents[2] / "tools" / "bootstrap"
NEEDED = ("bash", "cat", "chmod", "env", "grep", "mktemp", "paste", "rm", "sort", "tail", "touch",
          "true")


class Bootstrap(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.bin = Path(holder.name)
        for name in NEEDED:
            (self.bin / name).symlink_to(shutil.which(name))
        self.log = self.bin / "asked.log"
        self.policy = self.bin / "policy"
        self.system = self.bin / "system"
        self.header("liburing.h")
        self.command("id", "echo 0")

    def command(self, name, script="true"):
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def have(self, *names):
        for name in names:
            self.command(name)

    def header(self, name):
        path = self.system / "usr" / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def refuse_packages(self, *refused, reason="E: Unable to correct problems"):
        """An apt-get that can install every package but some, and none together with those."""
        brings = "".join(f"{package}) touch '{path}'; chmod 755 '{path}' ;;\n" for package, path in {
            "ninja-build": self.bin / "ninja", "gdb": self.bin / "gdb",
            "valgrind": self.bin / "valgrind", "ccache": self.bin / "ccache",
            "liburing-dev": self.system / "usr/include/liburing.h"}.items())
        patterns = "|".join(f"*' {package} '*" for package in refused)
        self.apt(f"""case "$*" in *install*) ;; *) exit 0 ;; esac
case " $* " in {patterns}) echo "{reason}" >&2; exit 100 ;; esac
for package in "$@"; do case $package in\n{brings}esac; done""")

    def apt(self, script=":"):
        self.command("apt-get", f'echo "$@" >> "{self.log}"\n{script}')

    def run_for(self, *groups):
        done = subprocess.run([shutil.which("bash"), str(BOOTSTRAP), *groups], capture_output=True,
                              text=True,
                              env={"PATH": str(self.bin), "WEFT_POLICY": str(self.policy),
                                   "WEFT_SYSTEM": str(self.system)})
        return done.returncode, done.stdout, done.stderr

    def asked(self):
        return self.log.read_text() if self.log.exists() else ""

    def test_says_and_asks_nothing_when_nothing_is_missing(self):
        self.have("g++", "cmake", "ninja")
        self.apt("exit 1")
        self.assertEqual(self.run_for("run"), (0, "", ""))
        self.assertEqual(self.asked(), "")

    def test_needs_no_root_when_nothing_is_missing(self):
        self.have("g++", "cmake", "ninja")
        self.command("id", "echo 1000")
        self.assertEqual(self.run_for("run"), (0, "", ""))

    def test_installs_what_is_missing_by_name_and_says_so(self):
        self.have("g++")
        made = " ".join(f'touch "{self.bin}/{name}"; chmod 755 "{self.bin}/{name}";'
                        for name in ("cmake", "ninja"))
        self.apt(f'case "$*" in *install*) {made} esac; echo chatter')
        status, out, err = self.run_for("run")
        self.assertEqual((status, out, err), (0, "bootstrap: installing cmake ninja-build\n", ""))
        self.assertRegex(self.asked(), r"install .* cmake ninja-build\n")
        self.assertEqual(self.run_for("run"), (0, "", ""))

    def keeps_services(self):
        """What it runs apt-get under: the policy, or "none"; and the policy after that."""
        self.have("g++", "cmake")
        self.apt(f'cat "{self.policy}" >> "{self.log}"; touch "{self.bin}/ninja"; '
                 f'chmod 755 "{self.bin}/ninja"')
        self.assertEqual(self.run_for("run")[0], 0)
        return self.asked(), self.policy.read_text() if self.policy.exists() else None

    def test_what_it_installs_starts_no_service(self):
        meanwhile, after = self.keeps_services()
        self.assertIn("\nexit 101\n", meanwhile)
        self.assertIsNone(after)

    def test_a_policy_that_is_there_stays(self):
        self.policy.write_text("#!/bin/sh\nexit 104\n")
        meanwhile, after = self.keeps_services()
        self.assertIn("\nexit 104\n", meanwhile)
        self.assertEqual(after, "#!/bin/sh\nexit 104\n")

    def test_a_policy_that_a_killed_one_left_goes(self):
        self.policy.write_text("# tools/bootstrap of weft, while it installs\nexit 101\n")
        self.assertIsNone(self.keeps_services()[1])

    def test_a_failed_installation_leaves_no_policy(self):
        self.have("g++", "cmake")
        self.apt("exit 100")
        self.assertEqual(self.run_for("run")[0], 2)
        self.assertFalse(self.policy.exists())

    def test_without_root_it_is_one_line_that_names_the_packages(self):
        self.have("g++", "cmake")
        self.apt()
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        status, out, err = self.run_for("run")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "bootstrap: not root; first run: sudo apt-get install ninja-build\n")
        self.assertEqual(self.asked(), "")

    def test_uses_sudo_where_it_asks_for_no_password(self):
        self.have("g++", "cmake")
        self.apt(f'touch "{self.bin}/ninja"; chmod 755 "{self.bin}/ninja"')
        self.command("id", "echo 1000")
        self.command("sudo", 'shift; exec "$@"')
        status, _, err = self.run_for("run")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("ninja-build", self.asked())

    def test_a_failed_installation_is_one_line_with_its_reason(self):
        self.have("g++", "cmake")
        self.apt('echo chatter; echo "E: Unable to locate package ninja-build" >&2; exit 100')
        status, _, err = self.run_for("run")
        self.assertEqual(status, 2)
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn("E: Unable to locate package ninja-build", err)

    def test_an_installation_that_brought_nothing_is_noticed(self):
        self.have("g++", "cmake")
        self.apt()
        status, _, err = self.run_for("run")
        self.assertEqual(status, 2)
        self.assertEqual(err, "bootstrap: installed, but still not found: ninja-build\n")

    def test_the_main_job_asks_for_both_drivers(self):
        self.have("g++", "cmake", "ninja")
        self.refuse_packages("none")
        (self.system / "usr/include/liburing.h").unlink()
        self.assertEqual(self.run_for("run"), (0, "bootstrap: installing liburing-dev\n", ""))
        self.assertEqual(self.run_for("run"), (0, "", ""))

    def test_a_package_that_cannot_be_had_refuses_none_of_the_others(self):
        self.have("g++", "cmake", "python3")
        self.header("gtest/gtest.h")
        self.refuse_packages("libunwind8", reason="E: Packages need to be removed")
        status, out, err = self.run_for("test")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("\nbootstrap: without libunwind8: E: Packages need to be removed\n", out)
        self.assertEqual(out.count("bootstrap: without"), 1)
        for command in ("ninja", "gdb", "valgrind", "ccache"):
            self.assertTrue((self.bin / command).exists(), command)

    def test_what_a_build_needs_is_asked_for_apart_from_what_it_can_do_without(self):
        self.have("g++", "cmake", "python3")
        self.header("gtest/gtest.h")
        self.refuse_packages("none")
        self.assertEqual(self.run_for("test")[0], 0)
        self.assertRegex(self.asked(), r"(?m)^.* install .* ninja-build$")

    def test_no_package_is_ever_removed(self):
        self.have("g++", "cmake", "ninja", "python3")
        self.header("gtest/gtest.h")
        self.refuse_packages("libunwind8")
        self.run_for("test")
        for line in self.asked().splitlines():
            if "install" in line:
                self.assertIn(" --no-remove ", line)

    def test_without_root_a_build_goes_on_without_what_it_does_not_need(self):
        self.have("g++", "cmake", "ninja")
        (self.system / "usr/include/liburing.h").unlink()
        self.apt()
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        status, out, err = self.run_for("run")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^bootstrap: without liburing-dev: not root\n$")
        self.assertEqual(self.asked(), "")

    def test_without_apt_a_build_goes_on_without_what_it_does_not_need(self):
        self.have("g++", "cmake", "ninja")
        (self.system / "usr/include/liburing.h").unlink()
        self.assertEqual(self.run_for("run"),
                         (0, "bootstrap: without liburing-dev: there is no apt-get\n", ""))

    def test_without_network_a_build_goes_on_without_what_it_does_not_need(self):
        self.have("g++", "cmake", "ninja")
        (self.system / "usr/include/liburing.h").unlink()
        self.apt('echo "E: Failed to fetch" >&2; exit 100')
        self.assertEqual(self.run_for("run"),
                         (0, "bootstrap: installing liburing-dev\n"
                             "bootstrap: without liburing-dev: E: Failed to fetch\n", ""))

    def test_a_system_without_apt_is_told_what_is_missing(self):
        status, _, err = self.run_for("run")
        self.assertEqual(status, 2)
        self.assertRegex(err, r"no apt-get to install it: cmake g\+\+ ninja-build\n$")

    def test_misuse_is_one_line_and_exit_status_2(self):
        for groups in ((), ("everything",)):
            status, _, err = self.run_for(*groups)
            self.assertEqual((status, len(err.splitlines())), (2, 1), err)


if __name__ == "__main__":
    unittest.main()
