"""Builds the wheel from a checkout, with cargo, when pip asks for it: `pip install ./packaging/python`.

`--config-settings profile=dev` builds for a fast start instead of a fast program.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds command and module, and packs them as scripts/package does."""
    profile = (config_settings or {}).get("profile", "dist")
    build = ["cargo", "build", "--locked", "--profile", profile, "--package", "contextweaver", "--package", "contextweaver-python"]
    subprocess.run([*build, "--bin", "contextweaver", "--lib"], cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / ("debug" if profile == "dev" else profile) / ("contextweaver.exe" if os.name == "nt" else "contextweaver")
    there = set(pathlib.Path(wheel_directory).glob("*.whl"))
    subprocess.run([sys.executable, ROOT / "scripts/package", "--wheel", "--binary", binary, "--out", wheel_directory], check=True)
    return (set(pathlib.Path(wheel_directory).glob("*.whl")) - there).pop().name


def build_sdist(sdist_directory, config_settings=None):
    """Refuses: the sources are the whole checkout."""
    raise SystemExit("contextweaver-rs has no source package; build the wheel in a checkout")
