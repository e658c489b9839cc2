"""The mutations that tools/mutate.py makes of a C++ source, by rule.

Its one idea: a mutation is a choice at run time, so that one build holds many of them:

    if (n < limit) wake();      if (((WEFT_MUTANT(7) ? (n <= limit) : (n < limit)))) wake();

A source is cut into tokens and no more: what does not compile is left out again by mutate.py. What
is evaluated by the compiler has no run-time choice; where it stands is known by its keywords, and
nothing is changed there, nor in what is for another machine, for a sanitizer or for Valgrind alone.
No line is added, so that a message names the line of the original.
"""

import dataclasses
import platform
import re

RULES = {
    "negate": "the condition of an if, a while or a return negated",
    "compare": "a comparison changed: < to <=, == to !=",
    "logic": "&& to ||, & to |, and back",
    "arithmetic": "+ to -, ++ to --, and back",
    "constant": "an integer one larger, a bool the other",
    "branch": "the two results of ?: exchanged",
    "order": "a memory order weakened",
    "store": "an assignment left out",
    "call": "a call left out",
    "wake": "a call left out that wakes, signals or posts",
    "deregister": "a call left out that unlinks, disarms, releases or closes",
}

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<text>(?:u8|[uUL])?R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
            |(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign><=>|<<=|>>=|\.\.\.|->\*|->|::|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

CLOSES = {"(": ")", "[": "]", "{": "}"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&", "&": "|", "|": "&"}
ARITHMETIC = {"+": "-", "-": "+"}
SHORT = re.compile(r"0|[1-9][0-9]*[uUlLzZ]*|0[xX][0-9a-fA-F]+[uUlL]*")
WEAKER = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"]}
WEAKER_SEQ_CST = {"load": ["acquire"], "store": ["release"]}

# Words after which an expression begins, or that no expression statement begins with.
KEYWORDS = {"return", "co_return", "co_yield", "throw", "if", "else", "for", "while", "do", "switch",
            "case", "default", "break", "continue", "goto", "delete", "new", "using", "typedef",
            "template", "static", "const", "constexpr", "constinit", "thread_local", "extern", "struct",
            "class", "enum", "union", "namespace", "friend", "public", "private", "protected", "try",
            "catch", "operator", "auto", "static_assert", "asm", "inline", "virtual", "explicit",
            "co_await", "typename", "concept", "requires", "void", "bool", "int", "unsigned", "char",
            "static_cast", "volatile", "mutable"}

# They change nothing but time, or are no part of a release build.
ONLY_TIME = {"spin_pause", "cpu_pause", "spin_yield", "prefetch", "__builtin_prefetch", "reserve",
             "WEFT_DEBUG_ASSERT", "static_assert", "__builtin_unreachable", "yield_processor"}
WAKES = re.compile(r"(?:\w*_)?(?:wake|notify|signal|post|resume|complete|ring|prompt|tell|fire|settle|"
                   r"deliver)\w*")
DEREGISTERS = re.compile(r"(?:\w*_)?(?:unlink|remove|erase|disarm|cancel|forget|detach|pop|"
                         r"reset|release|unlock|close|unregister|deregister|clear|leave|"
                         r"drop|free|deallocate|munmap|unmap)\w*")

# What an assertion says that checks a numbered invariant, which no user can break: without it
# nothing that is right changes.
INVARIANT = re.compile(r"\b[A-Z]\d+\b")

# Their brackets, or what follows to the end of the statement, are the compiler's to evaluate.
CONSTANT_CALLS = {"static_assert", "alignas", "noexcept", "sizeof", "decltype", "alignof", "requires",
                  "asm", "__asm__", "WEFT_DEBUG_ASSERT", "__attribute__", "explicit", "offsetof"}
CONSTANT_STATEMENTS = {"using", "typedef", "case", "concept", "constinit", "goto", "friend"}

# What the preprocessor knows in a build without a sanitizer; of other names both sides are taken.
X86_64 = platform.machine() == "x86_64"
AARCH64 = platform.machine() == "aarch64"
MACROS = {"WEFT_ASAN": False, "WEFT_TSAN": False, "WEFT_VALGRIND": False, "WEFT_X86_64": X86_64,
          "WEFT_AARCH64": AARCH64, "WEFT_BACKEND_UCONTEXT": not (X86_64 or AARCH64), "WEFT_LINUX": True, "WEFT_EXCEPTIONS": True}

# The files of the other switches, which this build does not include.
BACKEND = "x86_64_sysv" if X86_64 else "aarch64_aapcs" if AARCH64 else "ucontext"
OTHER_BACKEND = re.compile(rf"(context|switch)_(?!{BACKEND}$)")


def is_taken(condition):
    """Whether an #if is; None if that is not known."""
    words = re.findall(r"\w+|&&|\|\||[!()]|\S", condition.split("//")[0])
    python = {"&&": "and", "||": "or", "!": "not", "(": "(", ")": ")"}
    if not words or any(w not in MACROS and w not in python for w in words):
        return None
    return bool(eval(" ".join(python.get(w) or str(MACROS[w]) for w in words)))


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclasses.dataclass
class Mutation:
    """`text` of the source from `start` to `end` becomes `other`; a statement is left out."""
    path: str
    rule: str
    line: int
    last_line: int
    start: int
    end: int
    change: str
    other: str
    statement: bool = False
    source: str = ""   # its first line, to be found again when lines have moved
    number: int = 0


def tokens_of(text):
    """All but comments; a directive is one token."""
    return [Token(m.lastgroup if m.lastgroup != "raw" else "text", m.group(), m.start(), m.end())
            for m in TOKEN.finditer(text)
            if m.lastgroup != "comment" and not m.group().isspace()]


class Source:
    """A file's tokens, their brackets, and what stands where."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.tokens = tokens_of(text)
        self.pair = self.brackets()
        self.scope = self.scopes()       # by token: is it in the code of a function?
        self.constant = self.constants()

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def kind(self, i):
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def brackets(self):
        pair, stack, self.around = {}, [], []
        for i, t in enumerate(self.tokens):
            self.around.append(self.tokens[stack[-1]].text if stack else "{")
            if t.kind != "sign":
                continue
            if t.text in CLOSES:
                stack.append(i)
            elif t.text in CLOSES.values() and stack and CLOSES[self.tokens[stack[-1]].text] == t.text:
                pair[i] = stack.pop()
                pair[pair[i]] = i
        return pair

    def head(self, i):
        """The tokens of what a brace at `i` is the body of, brackets left out."""
        words, j = [], i - 1
        while j >= 0 and self.word(j) not in (";", "{", "}") and self.kind(j) != "directive":
            if self.word(j) in (")", "]") and j in self.pair:
                j = self.pair[j]
                words.append("()" if self.word(j) == "(" else "[]")
            else:
                words.append(self.word(j))
            j -= 1
        return words[::-1]

    def scopes(self):
        """For each token what the innermost brace around it is: "code", "bool" (code of a function
        that returns one), "init" or "declarations"."""
        scope, stack = [], ["declarations"]
        for i, t in enumerate(self.tokens):
            if t.text == "}" and t.kind == "sign" and len(stack) > 1:
                stack.pop()
            scope.append(stack[-1])
            if t.text != "{" or t.kind != "sign":
                continue
            head, before = self.head(i), self.word(i - 1)
            if stack[-1] == "declarations" and ({"namespace", "class", "struct", "union", "enum"}
                                                & set(head) or head[:1] == ["extern"]):
                stack.append("enum" if "enum" in head else "declarations")
            elif before in ("else", "do", "try", ";", "{", "}", ")", "]", "const", "noexcept",
                            "override", "final", "mutable") or "->" in head or before.startswith("[["):
                inner = stack[-1] if stack[-1] in ("code", "bool") else "code"
                if stack[-1] == "declarations" and "bool" in head:
                    inner = "bool"
                if "()" in head and head[-1:] == ["()"] and "[]" in head:
                    inner = "code"   # a lambda
                stack.append(inner)
            else:
                stack.append("init" if stack[-1] != "enum" else "enum")
        return scope

    def statement_end(self, i):
        """The `;` of the statement at `i`, or the brace of its body."""
        while i < len(self.tokens) and self.word(i) not in (";", "{", "}"):
            i = self.pair.get(i, i) + 1 if self.word(i) in CLOSES else i + 1
        return i

    def not_compiled(self):
        """The tokens that the preprocessor takes out."""
        stack = []  # of each #if: (is one of its parts known to be taken, is this part left out)
        for i, t in enumerate(self.tokens):
            m = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", t.text) if (
                t.kind == "directive") else None
            if m is None:
                if any(out for _, out in stack):
                    yield i
            elif m[1].startswith("if"):
                now = is_taken(m[2]) if m[1] == "if" else None
                stack.append((now is True, now is False))
            elif stack and m[1] == "endif":
                stack.pop()
            elif stack:
                before, _ = stack.pop()
                now = is_taken(m[2]) if m[1] == "elif" else None
                stack.append((before or now is True, before or now is False))

    def constants(self):
        """Which tokens the compiler evaluates."""
        yes = [False] * len(self.tokens)

        def mark(first, last):
            for k in range(max(first, 0), min(last + 1, len(yes))):
                yes[k] = True

        for i in self.not_compiled():
            mark(i, i)
        for i, t in enumerate(self.tokens):
            if t.kind == "directive":
                mark(i, i)
            elif t.text == "template" and self.word(i + 1) == "<":
                depth, j = 0, i + 1
                while j < len(self.tokens):
                    depth += {"<": 1, ">": -1, ">>": -2}.get(self.word(j), 0)
                    if depth <= 0:
                        break
                    j += 1
                mark(i, j)
            elif t.text in CONSTANT_CALLS and self.word(i + 1) in ("(", "volatile"):
                opens = i + 1 if self.word(i + 1) == "(" else i + 2
                mark(i, self.pair.get(opens, opens))
            elif t.text == "WEFT_ASSERT" and self.word(i + 1) == "(" and self.pair.get(i + 1) and (
                    INVARIANT.search(self.word(self.pair[i + 1] - 1))):
                mark(i, self.pair[i + 1])
            elif t.text == "if" and self.word(i + 1) == "constexpr":
                closes = self.pair.get(i + 2, i + 2)
                mark(i, closes)
                if is_taken(" ".join(self.word(k) for k in range(i + 3, closes))) is False:
                    mark(i, self.pair.get(closes + 1, self.statement_end(closes + 1)))
            elif t.text in CONSTANT_STATEMENTS or (t.text == "requires" and self.word(i + 1) != "("):
                mark(i, self.statement_end(i))
            elif t.text == "[" and self.word(i + 1) == "[":
                mark(i, self.pair.get(i, i))
            elif t.text == "constexpr" and self.word(i - 1) != "if":
                j = i
                while self.word(j) not in ("=", "{", "(", ";", ""):
                    j += 1
                if self.word(j) != "(":
                    end = j
                    while end < len(self.tokens) and self.word(end) != ";":
                        end = self.pair.get(end, end) + 1 if self.word(end) in CLOSES else end + 1
                    mark(i, end)
        return yes

    def in_code(self, i):
        return self.scope[i] in ("code", "bool") and not self.constant[i]

    def inside_code(self, i):
        """In code, or within the braces of a value in code."""
        return self.scope[i] in ("code", "bool", "init") and not self.constant[i]

    def adjacent(self, i, j):
        return self.tokens[i].end == self.tokens[j].start

    def spaced(self, i):
        return (0 < i < len(self.tokens) - 1 and not self.adjacent(i - 1, i)
                and not self.adjacent(i, i + 1))

    def span(self, i, lower):
        """The expression around token `i`, as far as the signs of `lower` precedence."""
        ends = {";", ",", "?", ":", "return", "co_return", "co_yield", "throw", "case", "else",
                "{", "(", "["} | ASSIGNMENTS | lower
        def stops(k, words):
            return self.word(k) in words and (self.word(k) not in ("<", ">") or self.spaced(k))

        first = i
        while first > 0 and not stops(first - 1, ends | {"}"}):
            first -= 1
            if first in self.pair and self.word(first) in (")", "]"):
                opens = self.pair[first]
                if self.word(opens - 1) in ("if", "while", "for", "switch"):
                    first += 1
                    break
                first = opens
        last = i
        while last + 1 < len(self.tokens) and not stops(
                last + 1, ends - {"{", "(", "["} | {")", "]", "}"}):
            last += 1
            if last in self.pair and self.word(last) in CLOSES:
                last = self.pair[last]
        return first, last

    def spelt(self, first, last, change=None):
        """Tokens on one line, with those of `change` replaced."""
        out = []
        for k in range(first, last + 1):
            if k > first and not self.adjacent(k - 1, k):
                out.append(" ")
            out.append((change or {}).get(k, self.word(k)))
        return "".join(out)

    def line(self, i, end=False):
        return self.text.count("\n", 0, self.tokens[i].end if end else self.tokens[i].start) + 1


def short(text, most=60):
    return text if len(text) <= most else text[:most - 3] + "..."


def mutations_of(path, text):
    """All mutations of a source, in the order in which they stand."""
    s = Source(path, text)
    lines = text.split("\n")
    found = []

    def add(rule, first, last, other, statement=False, change=None):
        if any(s.kind(k) == "directive" for k in range(first, last + 1)):
            return
        old = s.spelt(first, last)
        line = s.line(first)
        found.append(Mutation(path, rule, line, s.line(last, True), s.tokens[first].start,
                              s.tokens[last].end,
                              change or f"{short(old)} -> {short(other)}", other, statement,
                              lines[line - 1].strip()))

    for i, t in enumerate(s.tokens):
        if t.kind == "number" or t.text in ("true", "false"):
            constant(s, i, add)
        elif t.kind == "sign" and s.in_code(i):
            signs(s, i, add)
        elif t.kind == "name" and s.in_code(i):
            if t.text in ("if", "while"):
                condition(s, i, add)
            elif t.text == "return":
                returned(s, i, add)
            elif t.text.startswith("memory_order_"):
                order(s, i, add)
        if s.in_code(i) and begins_statement(s, i):
            left_out(s, i, add)
    opposite = {(m.start, m.end) for m in found if m.rule == "compare"
                and any(f" {sign} " in m.other for sign in ("==", "!="))}
    found = [m for m in found if m.rule != "negate" or (m.start, m.end) not in opposite]
    return sorted(found, key=lambda m: (m.start, -m.end, m.rule))


def constant(s, i, add):
    if not s.inside_code(i) and not (s.scope[i] == "declarations" and s.word(i - 1) == "="
                                     and s.word(i + 1) == ";" and not s.constant[i]):
        return
    if not s.inside_code(i) and "operator" in (s.word(i - 2), s.word(i - 3)):
        return
    t = s.word(i)
    before, after = s.word(i - 1), s.word(i + 1)
    if (before in ("<", ",") and after in (">", ",") and s.adjacent(i, i + 1) and after == ">") or (
            before == "<" and s.adjacent(i - 1, i)):
        return  # an argument of a template
    if before == ")" and after == ";" and s.word(i - 2) == "(":
        return
    if before == "=" and s.scope[i] == "declarations" and s.word(i - 2) == ")":
        return  # a pure virtual function
    if t in ("true", "false"):
        add("constant", i, i, "false" if t == "true" else "true")
    elif SHORT.fullmatch(t):
        add("constant", i, i, f"{t} + 1")


def signs(s, i, add):
    t = s.word(i)
    compared = set(COMPARED)
    if t in COMPARED and s.spaced(i):
        first, last = s.span(i, {"&&", "||"})
        add("compare", first, last, s.spelt(first, last, {i: COMPARED[t]}))
    elif t in LOGIC and s.spaced(i):
        lower = {"&&", "||"} | compared if t in ("&", "|") else set()
        first, last = s.span(i, lower)
        add("logic", first, last, s.spelt(first, last, {i: LOGIC[t]}))
    elif t in ARITHMETIC and s.spaced(i):
        first, last = s.span(i, {"&&", "||", "&", "|"} | compared)
        add("arithmetic", first, last, s.spelt(first, last, {i: ARITHMETIC[t]}))
    elif t in ("++", "--") and s.kind(i + 1) == "name" and (s.word(i - 1) in ("{", "}", ";", ")", "(",
                                                                              "return", "[", ",")):
        last = i + 1
        while s.word(last + 1) in (".", "->", "::") or s.word(last + 1) == "[":
            last = s.pair.get(last + 1, last + 2) if s.word(last + 1) == "[" else last + 2
        if s.word(last + 1) != "(":
            add("arithmetic", i, last, s.spelt(i, last, {i: "--" if t == "++" else "++"}))
    elif t == "?":
        first, middle = s.span(i - 1, set())[0], i + 1
        depth, colon = 0, None
        while middle < len(s.tokens) and s.word(middle) not in (";", ")", "]", "}"):
            if s.word(middle) in CLOSES:
                middle = s.pair.get(middle, middle)
            elif s.word(middle) == "?":
                depth += 1
            elif s.word(middle) == ":":
                if depth == 0:
                    colon = middle
                    break
                depth -= 1
            middle += 1
        if colon is None:
            return
        last = s.span(colon + 1, set())[1]
        if s.word(last + 1) == "?":
            return
        add("branch", first, last, f"{s.spelt(first, i)} {s.spelt(colon + 1, last)} : "
                                   f"{s.spelt(i + 1, colon - 1)}")


def condition(s, i, add):
    opens = i + 1
    if s.word(opens) != "(" or opens not in s.pair:
        return
    closes = s.pair[opens]
    first, k = opens + 1, opens + 1
    while k < closes:
        if s.word(k) in CLOSES:
            k = s.pair.get(k, k)
        elif s.word(k) == ";":
            first = k + 1
        k += 1
    k = first
    while k < closes:  # a declaration has no negation
        if s.word(k) in CLOSES:
            k = s.pair.get(k, k)
        elif s.word(k) == "=":
            return
        k += 1
    if first < closes:
        add("negate", first, closes - 1, f"!({s.spelt(first, closes - 1)})")


def returned(s, i, add):
    end = s.statement_end(i)
    if s.word(end) != ";" or end <= i + 1 or s.word(i + 1) in ("{", "true", "false"):
        return
    k, plain, value = i + 1, True, s.word(i + 1) == "!"
    while k < end:
        if s.word(k) in CLOSES:
            k = s.pair.get(k, k)
        elif s.word(k) in (",", "?"):
            plain = False
        elif s.word(k) in ("&&", "||") or (s.word(k) in COMPARED and s.spaced(k)):
            value = True
        k += 1
    if plain and (value or s.scope[i] == "bool"):
        add("negate", i + 1, end - 1, f"!({s.spelt(i + 1, end - 1)})")


def chain_begin(s, opens):
    """Where the call begins of which `opens` is the bracket; None if that is not plain to see."""
    k = opens - 1
    while True:
        if s.word(k) in (")", "]") and k in s.pair:
            k = s.pair[k] - 1
            continue
        if s.kind(k) != "name" or s.word(k) in KEYWORDS:
            return None
        if s.word(k - 1) in (".", "->", "::"):
            k -= 2
            if s.word(k + 1) == "::" and s.kind(k) != "name":
                return k + 1
            continue
        return k


def order(s, i, add):
    name = s.word(i).removeprefix("memory_order_")
    k, depth = i, 0
    while k >= 0:  # the bracket of the call
        if s.word(k) in (")", "]", "}") and k in s.pair:
            k = s.pair[k]
        elif s.word(k) == "(":
            break
        elif s.word(k) in (";", "{"):
            return
        k -= 1
    if k < 0 or k not in s.pair:
        return
    begin = chain_begin(s, k)
    if begin is None:
        return
    called = s.word(k - 1)
    weaker = WEAKER.get(name, [])
    if name == "seq_cst":
        weaker = WEAKER_SEQ_CST.get(called, ["acq_rel"])
    if name == "acquire" and called == "store" or name == "release" and called == "load":
        return
    for other in weaker:
        add("order", begin, s.pair[k], s.spelt(begin, s.pair[k], {i: f"memory_order_{other}"}),
            change=f"{called}: {name} -> {other}")


def begins_statement(s, i):
    if s.around[i] != "{":
        return False  # the head of a loop
    before = s.word(i - 1)
    if s.kind(i - 1) == "directive" or before in (";", "{", "}", "else", "do"):
        return before != "}" or s.kind(i) != "sign" or s.word(i) in ("*", "(", "++", "--")
    if before == ")" and i - 1 in s.pair:
        return s.word(s.pair[i - 1] - 1) in ("if", "for", "while")
    if before == "]" and i - 1 in s.pair and s.word(s.pair[i - 1] + 1) == "[":
        return True
    return False


def left_out(s, i, add):
    """A statement that is a call or an assignment."""
    first = i
    if s.word(i) in KEYWORDS:
        return
    k, assigned, called, previous = i, False, None, ""
    while s.word(k) == "*":
        k += 1
    if s.kind(k) != "name" and s.word(k) not in ("(", "::"):
        return
    while k < len(s.tokens) and s.word(k) != ";":
        word = s.word(k)
        if word in ASSIGNMENTS and not assigned:
            assigned = True
        elif assigned:
            pass
        elif s.kind(k) == "name":
            if previous == "name":
                return  # a declaration
            if s.word(k + 1) == "(" or s.word(k + 1) == "<":
                called = word
            previous = "name"
            k += 1
            if s.word(k) == "<" and s.adjacent(k - 1, k):  # of a template
                depth = 0
                while k < len(s.tokens) and s.word(k) not in (";", "{"):
                    depth += {"<": 1, ">": -1, ">>": -2}.get(s.word(k), 0)
                    k += 1
                    if depth <= 0:
                        break
                if s.word(k) != "(":
                    if s.word(k) != "::":
                        return
            continue
        elif word not in (".", "->", "::", "(", "["):
            return
        if word in CLOSES:
            if word == "{" and not assigned:
                return
            k = s.pair.get(k, k)
            previous = "call"
        elif word in (".", "->", "::"):
            previous = ""
        k += 1
    if s.word(k) != ";" or (not assigned and (s.word(k - 1) != ")" or called in ONLY_TIME)):
        return
    if not assigned and s.word(i) == "(" and s.pair.get(i) == k - 1:
        return
    if assigned:
        rule = "store"
    elif WAKES.fullmatch(called or ""):
        rule = "wake"
    elif DEREGISTERS.fullmatch(called or ""):
        rule = "deregister"
    else:
        rule = "call"
    if not assigned and s.word(i) in ("super", "this") and s.word(i + 1) == "(":
        return
    add(rule, first, k, "", True, change=f"{short(s.spelt(first, k))} left out")


def rendered(text, mutations, macro="WEFT_MUTANT"):
    """`text` with all of `mutations` in it, each behind its number; and those that overlap another
    without being within it, which are left out."""
    chosen, apart = [], []
    for m in sorted(mutations, key=lambda m: (m.start, -m.end, not m.statement, m.number)):
        crossing = any(c.start < m.start < c.end < m.end for c in chosen)
        (apart if crossing else chosen).append(m)

    def part(start, end, inside):
        out, at = [], start
        while inside:
            m, inside = inside[0], inside[1:]
            if m.start >= m.end:
                continue
            within = [n for n in inside if n.end <= m.end]
            inside = inside[len(within):]
            out.append(text[at:m.start])
            old = part(m.start, m.end, within)
            if m.statement:
                out.append(f"{{ if (!{macro}({m.number})) {old} }}")
            else:
                out.append(f"({macro}({m.number}) ? ({m.other}) : ({old}))")
            at = m.end
        out.append(text[at:end])
        return "".join(out)

    return part(0, len(text), chosen), apart
