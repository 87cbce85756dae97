"""Whether meaning should count for more or less by query: weights by what the words and the model found, each chosen on the other
collections."""

import numpy as np

from measuring import by_meaning, measures
from words import words

# How much meaning counts, in shares of what it does; ONE is the name of the same for every query.
WEIGHTS, ONE = (0.5, 0.7, 1.0, 1.4, 2.0, 3.0), "one weight"
# What a weight may depend on, with the values that divide queries into five kinds. Scores are in rare words.
BY = {
    "words of the query": (6, 10, 16, 26), "lead over the second": (0.05, 0.15, 0.3, 0.6), "lead over the fifth": (0.1, 0.25, 0.5, 0.9),
    "best score": (0.5, 1.0, 1.5, 2.5), "best score for each word": (0.06, 0.12, 0.18, 0.3), "best cosine": (0.3, 0.4, 0.5, 0.6),
    "lead of the best cosine": (0.01, 0.03, 0.06, 0.1),
}


def tried(scored):
    """By way and set nDCG@10 and recall@5 of each query."""
    gained, told = {}, {}
    for name, line, groups, near, by_words, rare in scored:
        meaning = rare * by_meaning(near)
        ranked = (np.argsort(-(by_words + weight * meaning), kind="stable")[:10] for weight in WEIGHTS)
        gained.setdefault(name, []).append([measures(of, groups, 5) for of in ranked])
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
    return values
