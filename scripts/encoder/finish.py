"""Makes of the trained weights what is shipped: a mean with the weights from before the training, in bytes."""

import argparse
import hashlib
import json
import pathlib

import numpy as np

import network

# How much of the trained weights there is in the mean with those from before: the rest keeps what is known in general.
TRAINED = 0.9


def between(before, after, share):
    return {name: before[name] + np.float32(share) * (after[name] - before[name]) for name in before}


# The largest value of a row that is not cut, as shares of its largest: the one with the least error is taken.
CUTS = (1.0, 0.96, 0.92, 0.88, 0.84, 0.8, 0.75, 0.7)


def in_bytes(arrays):
    """Every matrix as whole numbers from -127 to 127, and what one unit of each row is."""
    found = {}
    for name, values in arrays.items():
        if values.ndim < 2 or "token_type" in name:
            found[name] = values.astype(np.float32)
            continue
        most = np.maximum(np.abs(values).max(1), 1e-12)
        best = None
        for cut in CUTS:
            scale = (most * np.float32(cut / 127))[:, None]
            rows = np.clip(np.rint(values / scale), -127, 127)
            error = np.square(rows * scale - values).sum(1)
            if best is None:
                best = [rows, scale, error]
                continue
            better = error < best[2]
            for kept, new in zip(best, (rows, scale, error)):
                kept[better] = new[better]
        found[name] = best[0].astype(np.int8)
        found[f"{name}.scale"] = best[1][:, 0].astype(np.float32)
    return found


def main():
    arguments = argparse.ArgumentParser(prog="train-encoder")
    arguments.add_argument("model", type=pathlib.Path)
    arguments.add_argument("trained", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--share", type=float, default=TRAINED)
    given = arguments.parse_args()
    whole = between(network.read(given.model / "model.safetensors"), network.read(given.trained / "mean.safetensors"), given.share)
    network.write(given.out, in_bytes(whole))
    manifest = json.loads((given.trained / "manifest.json").read_text()) if (given.trained / "manifest.json").exists() else {}
    raw = given.out.read_bytes()
    manifest["share"] = given.share
    manifest["model"] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    given.out.with_suffix(".json").write_text(json.dumps(manifest, indent=2) + "\n")


if __name__ == "__main__":
    main()
