#!/usr/bin/env python3
"""Computes cells of the benchmark on a Dask cluster.

    contextweaver bench cells > cells.jsonl
    dask_runner.py --scheduler tcp://HOST:8786 --contextweaver contextweaver --root CHECKOUT cells.jsonl results.jsonl
    contextweaver bench merge --results results.jsonl

Every thread of a worker keeps one `contextweaver bench cell` and gives it one line at a time, so that collections are
loaded once. A cell whose worker is lost is given to another one. Results are written in the order of the cells, when all
are there. Workers need the program and the checkout under the same paths; nothing else is sent to them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading

from dask.distributed import Client, as_completed, get_worker

# How often a cell is tried again when its process ends. When whole workers are lost, Dask gives their cells to others
# (`distributed.scheduler.allowed-failures` times).
RETRIES = 5


def compute(command, line):
    """What a worker does with a cell: the line that `bench cell` writes for it. An exception makes Dask repeat it."""
    # Each thread of a worker has a process of its own. It ends with the worker, however that ends: its standard input is
    # closed then.
    processes = get_worker().__dict__.setdefault("contextweaver_processes", {})
    process = processes.get(threading.get_ident())
    if process is None or process.poll() is not None:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        processes[threading.get_ident()] = process
    process.stdin.write(line + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer.endswith("\n"):
        raise RuntimeError(f"contextweaver bench cell has ended in the middle of a cell: {process.wait()}")
    return answer


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", required=True, help="address of the scheduler, or the file that it writes")
    parser.add_argument("--contextweaver", default="contextweaver", help="the program, as workers find it")
    parser.add_argument("--root", default=".", help="the checkout, as workers find it")
    parser.add_argument("--public", help="the folder of public collections, as workers find it")
    parser.add_argument("cells", help="lines of `contextweaver bench cells`")
    parser.add_argument("results", help="the file to write")
    return parser.parse_args()


def main():
    args = arguments()
    with open(args.cells, encoding="utf-8") as file:
        cells = [line.strip() for line in file if line.strip()]
    command = [args.contextweaver, "bench", "cell", "--root", args.root]
    if args.public:
        command += ["--public", args.public]
    where = {"address": args.scheduler} if "://" in args.scheduler else {"scheduler_file": args.scheduler}
    answers, failed = {}, 0
    with Client(**where) as client:
        futures = {
            client.submit(compute, command, cell, key=f"cell-{number}", retries=RETRIES, pure=False): number
            for number, cell in enumerate(cells)
        }
        for future in as_completed(futures):
            number = futures[future]
            try:
                answers[number] = future.result()
            except Exception as error:  # whatever a worker raised: the cell is named, the others go on
                answers[number] = json.dumps({"line": number + 1, "error": str(error)}) + "\n"
            failed += "error" in json.loads(answers[number])
            if sys.stderr.isatty():
                print(f"\r{len(answers)} of {len(cells)} cells", end="", file=sys.stderr)
    folder = os.path.dirname(os.path.abspath(args.results))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as file:
        file.writelines(answers[number] for number in range(len(cells)))
    os.replace(file.name, args.results)
    print(f"{len(cells) - failed} of {len(cells)} cells computed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
