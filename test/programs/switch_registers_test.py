"""A switch keeps no register but the stack and the frame pointer, whatever the processor has.

The compiler is asked for assembly, so no processor need have the registers. With each set of flags
it is asked twice: of the switch itself no register may be found, and of the control, which declares
nothing clobbered, every one must be.

usage: switch_registers_test.py <compiler> <root>
"""

import pathlib
import re
import subprocess
import sys

FLAGS = [
    ["-O2"],
    ["-O0"],
    ["-O3", "-fno-omit-frame-pointer", "-mavx2"],
    ["-O2", "-fcf-protection=branch", "-mavx512bw", "-mavx512vl"],
    ["-O2", "-mapxf"],
]
OF_CLANG = [["-O2", "-DBY_ATTRIBUTE"]]

# What the switch keeps, and what it brings.
KEPT = {"rsp", "rbp"} | {"rdi", "rsi", "rdx"}
GENERAL = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp"} | {f"r{n}" for n in range(8, 16)}
EVERY = {
    "general": GENERAL,
    "scalar": {f"vector{n}" for n in range(16)},
    "vector_128": {f"vector{n}" for n in range(16)},
    "vector_256": {f"vector{n}" for n in range(16)},
    "vector_512": {f"vector{n}" for n in range(32)},
    "mask": {f"k{n}" for n in range(8)},
    "multimedia": {f"mm{n}" for n in range(8)},
    "stacked": {"st"},
    "extended_general": GENERAL | {f"r{n}" for n in range(16, 32)},
}

REGISTER = re.compile(r"%([a-z]+\d*[a-z]?)(?:\((\d)\))?")
SWITCH = re.compile(r"\s*jmpq\s+\*0?\(%rsi\)\s*")


def named(register):
    """The register that a name is a part of; None for what is never the compiler's to allocate."""
    if found := re.fullmatch(r"[xyz]mm(\d+)", register):
        return f"vector{found[1]}"
    if found := re.fullmatch(r"(r\d+)[dwb]?|([er]?)([abcd])x|([er]?)([sd]i|bp|sp)", register):
        return found[1] or ("r" + (found[3] + "x" if found[3] else found[5]))
    if re.fullmatch(r"k\d|mm\d|st", register):
        return register
    return None


def kept_of(lines):
    """Registers read before they are written. On the x87 stack: whether one is read that was not
    loaded before."""
    kept, written, loaded = set(), set(), 0
    for line in lines:
        code = re.sub(r"(?<=\S)\s+#.*", "", line.strip())  # what Clang remarks
        if code.startswith("# read"):
            sources, target = code, None
        elif not code or code[0] in "#.":
            continue
        else:
            sources, target = code, None
            last = re.search(r"%([a-z]+\d*[a-z]?)$", code)
            if last and re.match(r"v?k?(mov|lea|pop)", code):
                sources, target = code[:last.start()], named(last[1])
        for name, depth in REGISTER.findall(sources):
            register = named(name)
            if register == "st":
                if int(depth or 0) >= loaded:
                    kept.add("st")
            elif register and register not in written:
                kept.add(register)
        if target:
            written.add(target)
        if re.match(r"fld", code):
            loaded += 1
        if re.match(r"fstp", code):
            loaded -= 1
    return kept


def functions_of(assembly):
    """For each function what it keeps."""
    found, name, after = {}, None, None
    for line in assembly.splitlines():
        if label := re.fullmatch(r"([.\w]+):.*", line):
            if label[1] in EVERY:
                name, after, jumps = label[1], None, False
            elif name and jumps:
                after, jumps = [], False  # the landing of the switch
        elif SWITCH.fullmatch(line) and name:
            jumps = True
        elif "# landed" in line and name and after is None:
            after = []
        elif "# used" in line and name:
            found[name] = kept_of(after)
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
    wrong = []
    for flags in FLAGS + (OF_CLANG if is_clang else []):
        real = compile_with(compiler, root, flags)
        if real.returncode != 0 and flags[-1] == "-mapxf":
            print(f"{' '.join(flags)}: this compiler does not know it")
            continue
        control = compile_with(compiler, root,
                               [*flags, "-fomit-frame-pointer", "-DKEEPS_ALL"])
        for done in (real, control):
            if done.returncode != 0:
                sys.exit(f"{' '.join(flags)}:\n{done.stderr}")
        of_switch, of_control = functions_of(real.stdout), functions_of(control.stdout)
        if not of_switch or of_switch.keys() != of_control.keys():
            sys.exit(f"{' '.join(flags)}: not every function was found: {of_switch.keys()}")
        for name in of_switch:
            if found := of_switch[name] - KEPT:
                wrong.append(f"{' '.join(flags)}: {name}: kept across a switch: {sorted(found)}")
            if flags[0] != "-O0" and (missed := EVERY[name] - of_control[name]):
                wrong.append(f"{' '.join(flags)}: {name}: the control does not find {sorted(missed)}")
        print(f"{' '.join(flags)}: {', '.join(of_switch)}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
