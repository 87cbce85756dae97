"""Runs the binary that was installed with this module."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path


def binary():
    """Where the installer put the binary: among the scripts of an environment, of a user, of a prefix or of a target."""
    name = "contextweaver" + (sysconfig.get_config_var("EXE") or "")
    here = Path(__file__).resolve().parent
    folders = [Path(sysconfig.get_path("scripts"))]
    user = "osx_framework_user" if sys.platform == "darwin" and sys._framework else f"{os.name}_user"
    folders.append(Path(sysconfig.get_path("scripts", user)))
    folders += [parent / folder for parent in list(here.parents)[:4] for folder in ("bin", "Scripts")]
    found = [folder / name for folder in folders if (folder / name).is_file()]
    for path in found:
        with path.open("rb") as file:
            # The Python project contextweaver has a script of this name.
            if file.read(2) != b"#!":
                return path
    what = f"{found[0]} is a script of another package" if found else f"there is no {name} in {folders[0]}"
    sys.exit(f"contextweaver-rs: {what}; install contextweaver-rs again, in an environment of its own")


def main():
    """Becomes the binary, with the arguments of this process."""
    path = binary()
    arguments = [str(path), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(arguments).returncode)
    os.execv(path, arguments)


if __name__ == "__main__":
    main()
