"""A switch keeps no register but the stack and the frame pointer, whatever the processor has.

The compiler is asked for assembly, so no processor need have the registers. With each set of flags
it is asked twice: of the switch itself no register may be found, and of the control, which declares
nothing clobbered, every one must be.

usage: switch_registers_test.py <compiler> <root>
"""

import dataclasses
import pathlib
import re
import subprocess
import sys

GENERAL = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp"} | {f"r{n}" for n in range(8, 16)}
GENERAL_ARM = {f"x{n}" for n in range(31)} - {"x29"}  # which points to the frame, used or not


def numbered(name, count):
    return {f"{name}{n}" for n in range(count)}


def split_x86_64(code):
    last = re.search(r"%[a-z]+\d*[a-z]?$", code)
    if last and re.match(r"v?k?(mov|lea|pop)", code):
        return code[:last.start()], last[0]
    return code, ""


def split_aarch64(code):
    operation, _, operands = code.partition("\t")
    if re.match(r"st|cmp|b|cb|ret", operation):
        return operands, ""
    written = re.match(r"[^,]*,[^,]*" if operation == "ldp" else r"[^,]*", operands)[0]
    return operands[len(written):], written


@dataclasses.dataclass(frozen=True)
class Abi:
    flags: list
    of_clang: list  # more flags
    kept: set       # what the switch keeps, and what it brings
    every: dict     # {function: the registers of its class}
    register: str   # how one is written: its name, and its depth on the stack of the x87
    switch: str     # the jump
    split: object   # an instruction into what it reads and what it writes


X86_64 = Abi(
    flags=[
        ["-O2"],
        ["-O0"],
        ["-O3", "-fno-omit-frame-pointer", "-mavx2"],
        ["-O2", "-fcf-protection=branch", "-mavx512bw", "-mavx512vl"],
        ["-O2", "-mapxf"],
    ],
    of_clang=[["-O2", "-DBY_ATTRIBUTE"]],
    kept={"rsp", "rbp", "rdi", "rsi", "rdx"},
    every={
        "general": GENERAL,
        "scalar": numbered("vector", 16),
        "vector_128": numbered("vector", 16),
        "vector_256": numbered("vector", 16),
        "vector_512": numbered("vector", 32),
        "mask": numbered("k", 8),
        "multimedia": numbered("mm", 8),
        "stacked": {"st"},
        "extended_general": GENERAL | {f"r{n}" for n in range(16, 32)},
    },
    register=r"%([a-z]+\d*[a-z]?)(?:\((\d)\))?",
    switch=r"\s*jmpq\s+\*0?\(%rsi\)\s*",
    split=split_x86_64,
)
AARCH64 = Abi(
    flags=[
        ["-O2"],
        ["-O0"],
        ["-O3", "-fno-omit-frame-pointer", "-mbranch-protection=standard"],
        ["-O2", "-march=armv8.2-a+sve"],
    ],
    of_clang=[],
    kept={"x29", "x19", "x0", "x1", "x2"},
    every={
        "general": GENERAL_ARM,
        "scalar": numbered("vector", 32),
        "vector_128": numbered("vector", 32),
        "vector_scalable": numbered("vector", 32),
        "predicate": numbered("p", 16),
    },
    register=r"\b([xwvqdszp]\d+)\b()",
    switch=r"\s*br\s+x16\s*",
    split=split_aarch64,
)


def named(register):
    """The register that a name is a part of; None for what is never the compiler's to allocate."""
    if found := re.fullmatch(r"(?:[xyz]mm|[vqdsz])(\d+)", register):
        return f"vector{found[1]}"
    if found := re.fullmatch(r"[xw](\d+)", register):
        return f"x{found[1]}"
    if found := re.fullmatch(r"(r\d+)[dwb]?|([er]?)([abcd])x|([er]?)([sd]i|bp|sp)", register):
        return found[1] or ("r" + (found[3] + "x" if found[3] else found[5]))
    if re.fullmatch(r"k\d|mm\d|st|p\d+", register):
        return register
    return None


def kept_of(abi, lines):
    """Registers read before they are written. On the x87 stack: whether one is read that was not
    loaded before."""
    kept, written, loaded = set(), set(), 0
    for line in lines:
        code = re.sub(r"(?<=\S)\s+(#(?!\d)|//).*", "", line.strip())  # what Clang remarks
        if code.startswith("# read"):
            sources, targets = code, ""
        elif not code or code[0] in "#./":
            continue
        else:
            sources, targets = abi.split(code)
        for name, depth in re.findall(abi.register, sources):
            register = named(name)
            if register == "st":
                if int(depth or 0) >= loaded:
                    kept.add("st")
            elif register and register not in written:
                kept.add(register)
        written |= {named(name) for name, _ in re.findall(abi.register, targets)}
        if re.match(r"fld", code):
            loaded += 1
        if re.match(r"fstp", code):
            loaded -= 1
    return kept


def functions_of(abi, assembly):
    """For each function what it keeps."""
    found, name, after = {}, None, None
    for line in assembly.splitlines():
        line = re.sub(r"^\s*// ", "# ", line)  # as Clang writes comments for aarch64
        if label := re.fullmatch(r"([.\w]+):.*", line):
            if label[1] in abi.every:
                name, after, jumps = label[1], None, False
            elif name and jumps:
                after, jumps = [], False  # the landing of the switch
        elif re.fullmatch(abi.switch, line) and name:
            jumps = True
        elif "# landed" in line and name and after is None:
            after = []
        elif "# used" in line and name:
            found[name] = kept_of(abi, after)
            name = None
        elif after is not None:
            after.append(line)
    return found


def compile_with(compiler, root, flags):
    source = pathlib.Path(__file__).with_name("switch_registers.cpp")
    return subprocess.run(
        [*compiler, "-std=c++20", "-S", "-o", "-", "-w", "-DWEFT_BACKEND_UCONTEXT=0", f"-I{root}",
         *flags, source], capture_output=True, text=True, check=False)


def main():
    compiler, root = sys.argv[1].split(), sys.argv[2]
    version = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=True)
    is_clang = "clang" in version.stdout
    made_for = subprocess.run([*compiler, "-dumpmachine"], capture_output=True, text=True, check=True)
    abi = AARCH64 if made_for.stdout.startswith("aarch64") else X86_64
    wrong = []
    for flags in abi.flags + (abi.of_clang if is_clang else []):
        real = compile_with(compiler, root, flags)
        if real.returncode != 0 and flags[-1] == "-mapxf":
            print(f"{' '.join(flags)}: this compiler does not know it")
            continue
        control = compile_with(compiler, root,
                               [*flags, "-fomit-frame-pointer", "-DKEEPS_ALL"])
        for done in (real, control):
            if done.returncode != 0:
                sys.exit(f"{' '.join(flags)}:\n{done.stderr}")
        of_switch, of_control = functions_of(abi, real.stdout), functions_of(abi, control.stdout)
        if not of_switch or of_switch.keys() != of_control.keys():
            sys.exit(f"{' '.join(flags)}: not every function was found: {of_switch.keys()}")
        for name in of_switch:
            if found := of_switch[name] - abi.kept:
                wrong.append(f"{' '.join(flags)}: {name}: kept across a switch: {sorted(found)}")
            if flags[0] != "-O0" and (missed := abi.every[name] - of_control[name]):
                wrong.append(f"{' '.join(flags)}: {name}: the control does not find {sorted(missed)}")
        print(f"{' '.join(flags)}: {', '.join(of_switch)}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
