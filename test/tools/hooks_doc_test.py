"""docs/hooks.md lists the calls of weft/hook/calls.def, each once and as what it is."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import hooks_table  # noqa: E402

PIECE = """// What stands above is no title,
// and this is none.

// Bytes.
WEFT_IN_FIBER(ssize_t, read, (int fd), (fd))
WEFT_PASSES(int, shutdown, (int fd), (fd))

// Files, with an option.
WEFT_ELLIPSIS(int, open, (const char* path, int flags), flags, mode_t, (path, flags, last))
"""


class HooksDoc(unittest.TestCase):
    def test_lists_what_there_is(self):
        text = (ROOT / "weft/hook/calls.def").read_text(encoding="utf-8")
        document = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
        names = [n for _, of in hooks_table.sections(text) for all in of.values() for n in all]
        self.assertGreater(len(names), 50)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(document, hooks_table.rewritten(document, text), "run tools/hooks_table.py")

    def test_puts_each_kind_in_its_column(self):
        self.assertEqual(hooks_table.table(PIECE).splitlines()[2:],
                         ["| Bytes | `read` |  | `shutdown` |",
                          "| Files, with an option |  | `open` |  |"])


if __name__ == "__main__":
    unittest.main()
