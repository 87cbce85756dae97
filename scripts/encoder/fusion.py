"""Whether meaning should count in another way: weights that differ by what the words and the model found for a query, each chosen on
the other collections, and other functions of the cosine."""

import numpy as np

from measuring import beside_best, by_meaning, first_ten, measures
from words import words

# How much meaning counts, in shares of what it does; ONE is the name of the same for every query.
WEIGHTS, ONE = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0), "one weight"
# What a weight may depend on, with the values that divide queries into five kinds. Scores are in rare words.
BY = {
    "words of the query": (6, 10, 16, 26), "lead over the second": (0.05, 0.15, 0.3, 0.6), "lead over the fifth": (0.1, 0.25, 0.5, 0.9),
    "best score": (0.5, 1.0, 1.5, 2.5), "best score for each word": (0.06, 0.12, 0.18, 0.3), "best cosine": (0.3, 0.4, 0.5, 0.6),
    "lead of the best cosine": (0.01, 0.03, 0.06, 0.1),
}
# What the cosines `near` of the tools add to their scores, in rare words.
SHAPES = {
    "the cosine, divided by the best": beside_best,
    "its cube": lambda near: beside_best(near) ** 3,
    "its fourth power": lambda near: beside_best(near) ** 4,
    "e to the distance from the best cosine, by .1": lambda near: np.exp((near - near.max()) / 0.1),
    "e to the distance from the best cosine, by .2": lambda near: np.exp((near - near.max()) / 0.2),
    "three times the cosine": lambda near: 3 * np.maximum(near, 0),
    "four times its square": lambda near: 4 * np.square(np.maximum(near, 0)),
    "from the eleventh to the best": lambda near: by_distance(near, 10),
    "from the middle to the best, squared": lambda near: by_distance(near, len(near) // 2) ** 2,
}


def by_distance(near, place):
    """How far each cosine is on the way from the one at `place` to the best."""
    low = np.sort(near)[::-1][min(place, len(near) - 1)]
    return np.maximum(near - low, 0) / max(near.max() - low, 1e-9)


def tried(scored):
    """By way and set nDCG@10 and recall@5 of each query."""
    gained, told, shaped = {}, {}, {shape: {} for shape in SHAPES}
    for name, line, groups, near, by_words, rare in scored:
        meaning = rare * by_meaning(near)
        ranked = (first_ten(by_words + weight * meaning) for weight in WEIGHTS)
        gained.setdefault(name, []).append([measures(of, groups, 5) for of in ranked])
        for shape, of in SHAPES.items():
            shaped[shape].setdefault(name, []).append(measures(first_ten(by_words + rare * of(near)), groups, 5))
        best = np.pad(np.sort(by_words / rare)[::-1], (0, 5))
        nearest, length = np.pad(np.sort(near)[::-1], (0, 2)), len(words(line))
        told.setdefault(name, []).append((
            length, best[0] - best[1], best[0] - best[4], best[0], best[0] / max(length, 1), nearest[0], nearest[0] - nearest[1]))
    gained = {name: np.array(of) for name, of in gained.items()}
    told = {name: np.array(of) for name, of in told.items()}
    same = WEIGHTS.index(1.0)
    values = {ONE: {name: of[:, same] for name, of in gained.items()}}
    # Everyday requests are for testing: nothing is chosen on them.
    dev = [name for name in gained if not name.startswith("everyday")]
    for at, (by, bounds) in enumerate(BY.items()):
        kinds = {name: np.searchsorted(bounds, of[:, at]) for name, of in told.items()}
        values[by] = {}
        for name, of in gained.items():
            chosen = []
            for kind in range(len(bounds) + 1):
                # Each of the other collections counts alike.
                gains = [
                    (gained[other] - gained[other][:, [same]])[kinds[other] == kind, :, 0].sum(0) / len(kinds[other])
                    for other in dev if other != name
                ]
                chosen.append(int(np.argmax(np.sum(gains, 0))))
            weights = np.array(chosen)[kinds[name]]
            values[by][name] = of[np.arange(len(of)), weights]
    for shape, of in shaped.items():
        values[shape] = {name: np.array(measured) for name, measured in of.items()}
    return values
