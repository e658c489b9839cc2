"""What a report says of the machine it was written on, and the peers in other languages that are built
for it."""

import json
import os
import platform
import shutil
import subprocess

from bench_measure import BadInput

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def lscpu():
    try:
        found = subprocess.run(["lscpu", "-J"], capture_output=True, text=True, env=dict(
            os.environ, LC_ALL="C"))
        fields = json.loads(found.stdout)["lscpu"]
    except (OSError, ValueError, KeyError):
        return {}
    flat = {}
    while fields:
        field = fields.pop(0)
        flat[field["field"].rstrip(":")] = field.get("data", "")
        fields = field.get("children", []) + fields
    return flat


def machine_lines():
    """The processor, and the system."""
    cpu = lscpu()
    caches = ", ".join(f"{name} {cpu[key]}" for name, key in (
        ("L1d", "L1d cache"), ("L2", "L2 cache"), ("L3", "L3 cache")) if key in cpu)
    family = f", family {cpu['CPU family']} model {cpu['Model']}" if "CPU family" in cpu else ""
    return [f"- {cpu.get('Model name', platform.machine())}{family}, "
            f"{cpu.get('CPU(s)', os.cpu_count())} cores" +
            (f", under {cpu['Hypervisor vendor']}" if "Hypervisor vendor" in cpu else "") +
            (f"; {caches}" if caches else ""),
            f"- Linux {platform.release().split('-')[0]}, {' '.join(platform.libc_ver())}"]


def build_rust(folder, target, program, crate):
    """(the program's path, its crate's and rustc's names), or (None, why not). It is built into
    build/<target>."""
    if folder == "none":
        return None, "not asked for"
    if not os.path.isfile(os.path.join(folder, "Cargo.toml")):
        raise BadInput(f"{folder} holds no Cargo.toml")
    cargo = shutil.which("cargo")
    if cargo is None:
        return None, "cargo is not installed"
    target = os.path.join(ROOT, "build", target)
    done = subprocess.run([cargo, "build", "--release", "--locked", "--quiet", "--target-dir", target],
                          cwd=folder, capture_output=True, text=True)
    program = os.path.join(target, "release", program)
    if done.returncode != 0 or not os.path.isfile(program):
        lines = [x for x in done.stderr.splitlines() if x.startswith("error")] or ["cargo failed"]
        return None, lines[0]
    version = subprocess.run(["rustc", "--version"], cwd=folder, capture_output=True, text=True)
    with open(os.path.join(folder, "Cargo.lock"), encoding="utf-8") as lock:
        number = lock.read().split(f'name = "{crate}"\nversion = "')[1].split('"')[0]
    return program, f"{crate} {number}, {' '.join(version.stdout.split()[:2]) or 'rustc'}"


def build_go(folder, output, packages):
    """(build/<output>, Go's name), or (None, why not). The output is a program or, where it ends in a
    slash, a folder with a program for each package."""
    if folder == "none":
        return None, "not asked for"
    if not os.path.isfile(os.path.join(folder, "go.mod")):
        raise BadInput(f"{folder} holds no go.mod")
    go = shutil.which("go")
    if go is None:
        return None, "go is not installed"
    output = os.path.join(ROOT, "build", output)
    done = subprocess.run([go, "build", "-o", output, *packages], cwd=folder, capture_output=True,
                          text=True)
    if done.returncode != 0 or not os.path.exists(output):
        return None, (done.stderr.strip().splitlines() or ["go build failed"])[-1]
    version = subprocess.run([go, "version"], cwd=folder, capture_output=True, text=True)
    return output, f"Go {version.stdout.split()[2][2:]}, GOMAXPROCS 1"
