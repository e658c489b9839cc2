"""How a tool is called: what is not right is said in one line that begins with the tool's name, and the
exit status is then 2."""

import argparse
import sys


def misuse_of(tool):
    """The function that ends the tool, for the reason that it is given."""
    def misuse(why):
        print(f"{tool}: {why}", file=sys.stderr)
        sys.exit(2)
    return misuse


class Arguments(argparse.ArgumentParser):
    """Those of tools/<tool>.py, which its docstring describes."""

    def __init__(self, tool, docstring):
        super().__init__(prog=f"tools/{tool}.py", description=docstring,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.misuse = misuse_of(tool)

    def error(self, message):
        self.misuse(f"{message} (try --help)")
