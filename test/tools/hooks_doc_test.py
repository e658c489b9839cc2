"""docs/hooks.md lists the calls of weft/hook/calls.def, each once and as what it is."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("IN_FIBER", "EVERYWHERE", "PASSES")  # the columns


def of_table():
    text = (ROOT / "weft/hook/calls.def").read_text(encoding="utf-8")
    return sorted((name, "EVERYWHERE" if kind == "ELLIPSIS" else kind) for kind, name in
                  re.findall(r"^WEFT_(IN_FIBER|EVERYWHERE|ELLIPSIS|PASSES)\([^,]+,\s*(\w+),", text,
                             re.MULTILINE))


def of_document():
    text = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    rows = text.split("<!-- calls -->")[1].split("<!-- /calls -->")[0].strip().splitlines()[2:]
    found = []
    for row in rows:
        for kind, cell in zip(KINDS, row.strip("|").split("|")[1:]):
            found += [(name, kind) for name in re.findall(r"`(\w+)`", cell)]
    return sorted(found)


class HooksDoc(unittest.TestCase):
    def test_lists_what_there_is(self):
        self.assertGreater(len(of_table()), 50)
        self.assertEqual(of_table(), of_document())


if __name__ == "__main__":
    unittest.main()
