"""./start in a PATH of few commands, of which apt-get and make only write down what they are asked
for. Whether it starts on a bare Debian is test/start/bare_debian_test.sh."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

START = Path(__file__).resolve().parents[2] / "start"
MAKES = 'printf "#!/bin/sh\\necho make \\$@\\n" >"{0}/make"; chmod 755 "{0}/make"'


class Start(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.bin = Path(directory.name)
        for name in ("chmod", "dirname", "echo", "grep", "head"):
            (self.bin / name).symlink_to(shutil.which(name))
        self.command("id", "echo 0")

    def command(self, name, script):
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def apt(self):
        self.command("apt-get", f'case "$*" in *install*make) {MAKES.format(self.bin)} ;; esac')

    def start(self, *arguments):
        done = subprocess.run([shutil.which("dash") or "/bin/sh", str(START), *arguments],
                              capture_output=True, text=True, env={"PATH": str(self.bin)}, cwd="/")
        return done.returncode, done.stdout, done.stderr

    def test_hands_its_arguments_to_make(self):
        self.command("make", 'echo make "$@"')
        self.assertEqual(self.start("fuzz", "SECONDS=5"), (0, "make fuzz SECONDS=5\n", ""))

    def test_runs_the_main_job_without_arguments(self):
        self.command("make", 'echo make "$@"')
        self.assertEqual(self.start(), (0, "make run\n", ""))

    def test_ends_as_make_ends(self):
        self.command("make", "exit 3")
        self.assertEqual(self.start("test")[0], 3)

    def test_installs_make_where_it_is_missing(self):
        self.apt()
        self.assertEqual(self.start(), (0, "start: installing make\nmake run\n", ""))

    def test_uses_sudo_where_it_asks_for_no_password(self):
        self.apt()
        self.command("id", "echo 1000")
        self.command("sudo", 'shift; [ "$1" = true ] || exec "$@"')
        self.assertEqual(self.start(), (0, "start: installing make\nmake run\n", ""))

    def test_says_in_one_line_what_to_install_without_root(self):
        self.apt()
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        self.assertEqual(self.start(),
                         (2, "", "start: not root; first run: sudo apt-get install make\n"))

    def test_says_in_one_line_that_there_is_no_apt(self):
        self.assertEqual(
            self.start(),
            (2, "", "start: make is missing, and there is no apt-get to install it\n"))

    def test_says_in_one_line_why_apt_failed(self):
        self.command("apt-get", 'echo chatter; echo "E: Failed to fetch" >&2; exit 100')
        status, _, said = self.start()
        self.assertEqual((status, said),
                         (2, "start: apt-get could not install make: E: Failed to fetch\n"))

    def test_refuses_in_one_line_what_is_no_target(self):
        self.command("make", 'echo make "$@"')
        for wrong in ("nonsense", "-j", "", "../x", ".PHONY", "r.n"):
            self.assertEqual(
                self.start("run", wrong),
                (2, "", f'start: unknown argument "{wrong}"; ./start help lists what there is\n'))


if __name__ == "__main__":
    unittest.main()
