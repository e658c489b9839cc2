"""The comparison with libraries that come as checkouts: without them the bench configures, and says
aloud what it skips. Given: the program of CMake, and that of the compiler."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CMAKE, COMPILER = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tools"))
import bench_seeds  # noqa: E402
import bench_seeds_tables  # noqa: E402

LIBRARIES = ("cppcoro", "libco", "libcopp", "libcopp1", "libaco", "minicoro", "libfork", "toomanycooks", "libgo",
             "boost_fiber_no_atomics", "photon", "fluentnet", "librf")


def configured(folder, *flags):
    """What CMake says of the bench alone, and what it leaves for the report."""
    done = subprocess.run(
        [CMAKE, "-S", ROOT, "-B", folder, "--log-level=NOTICE", "-G", "Ninja",
         f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DWEFT_TESTS=OFF", "-DWEFT_EXAMPLES=OFF",
         "-DWEFT_BENCH=ON", *flags],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr, bench_seeds.found_peers(folder)


class Peers(unittest.TestCase):
    def test_without_a_folder_of_checkouts_every_library_is_skipped_aloud(self):
        with tempfile.TemporaryDirectory() as folder:
            said, (there, missing) = configured(folder)
        line = next(x for x in said.splitlines() if "compared with none of" in x)
        self.assertIn("WEFT_PEERS names no folder of checkouts", line)
        for library in LIBRARIES:
            self.assertIn(f" {library}", line)
        self.assertEqual(there, [])
        self.assertEqual(sorted(library for library, _ in missing), sorted(LIBRARIES))

    def test_a_library_that_is_not_among_the_checkouts_is_skipped_aloud(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as peers:
            Path(peers, "minicoro").mkdir()
            Path(peers, "minicoro", "minicoro.h").write_text("")
            said, (there, missing) = configured(folder, f"-DWEFT_PEERS={peers}")
        for library in LIBRARIES:
            if library != "minicoro":
                self.assertIn(f"weft: {library} is skipped: there is no {peers}/", said)
        self.assertNotIn("minicoro is skipped", said)
        self.assertEqual(there, [])
        self.assertIn(("minicoro", "of an unknown version: weft_bench_minicoro did not build"),
                      missing)

    def test_every_row_has_a_figure_of_the_seed_for_each_column_and_a_subject(self):
        for table in bench_seeds_tables.TABLES:
            self.assertEqual(len(table.columns), len(table.groups), table.title)
            for row in table.rows:
                self.assertEqual(len(table.groups_of(row)), len(table.columns), row.name)
                if row.name:
                    self.assertEqual(len(row.theirs), len(table.columns), row.name)
                else:
                    self.assertIsNotNone(row.peer)


if __name__ == "__main__":
    unittest.main()
