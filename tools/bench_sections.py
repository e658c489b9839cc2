"""The parts of pages that scripts write, each between two marks of its own."""

README_MARKS = ("<!-- table -->\n", "<!-- /table -->")
NET_MARKS = ("<!-- net: begin -->\n", "<!-- net: end -->")
MANY_MARKS = ("<!-- many: begin -->\n", "<!-- many: end -->")
COUNTS_MARKS = ("<!-- counts: begin -->\n", "<!-- counts: end -->")
OF_SERVERS = (NET_MARKS, MANY_MARKS, COUNTS_MARKS)  # behind the rest of the page


def parts(path, begin, end):
    """The page before, between and after the marks, or None if there is no such page or section."""
    try:
        with open(path, encoding="utf-8") as file:
            before, mark, rest = file.read().partition(begin)
    except FileNotFoundError:
        return None
    between, close, after = rest.partition(end)
    return (before, between, after) if mark and close else None


def section(path, begin, end):
    found = parts(path, begin, end)
    return found[1] if found else None


def replace_section(path, begin, end, text):
    """False, and nothing is written, where there are no such marks."""
    found = parts(path, begin, end)
    if not found:
        return False
    with open(path, "w", encoding="utf-8") as file:
        file.write(found[0] + begin + text + end + found[2])
    return True


def write_section(path, begin, end, text):
    """In its place, or at the end of the page."""
    if not replace_section(path, begin, end, text):
        append_section(path, begin, end, text)


def append_section(path, begin, end, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n" + begin + text + end + "\n")
