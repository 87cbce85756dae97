"""Training on query-tool pairs: a query should be nearer to its tool than to others of the same source."""

import numpy as np

from data import spread

DIMS = (32, 64, 128)
TEMPERATURE = 0.1
# What name, description and parameters count in a tool's vector.
FIELDS = (1.0, 1.0, 0.5)
# At most this many pieces of a query or field are read in training.
QUERY_PIECES, FIELD_PIECES = 64, 96
# Pairs of a source that are trained on, and tools of it that hard negatives are looked for among, at most.
SOURCE_PAIRS, SOURCE_TOOLS = 3000, 2000
# The share of batches whose first half is of everyday requests; all of those are trained on.
EVERYDAY = 0.6
BATCH, HARD, RATE, SCALAR_RATE = 256, 256, 2e-3, 4e-3
SEED = 20260


class Tools:
    def __init__(self, tools, pieces):
        self.ids = [tool["tool"] for tool in tools]
        self.place = {number: at for at, number in enumerate(self.ids)}
        fields = ("name", "description", "parameters")
        self._texts = [[tool[field] for field in fields] for tool in tools]
        self._pieces = pieces
        self._bags = {}

    def bag(self, at):
        """(pieces, weights) of one tool."""
        if at not in self._bags:
            self._bags[at] = bag(self._texts[at], self._pieces, FIELD_PIECES)
        return self._bags[at]


def bag(texts, pieces, at_most):
    """(pieces, weights) of the fields of a tool, of each at most so many."""
    numbers, weights = [], []
    for share, text in zip(FIELDS, texts):
        field = pieces.of_text(text, at_most)
        numbers.extend(field)
        weights.extend([share / max(len(field), 1) ** 0.5] * len(field))
    return numbers, weights


def dense(bags, size):
    """Bags as a matrix over the pieces that occur in them."""
    lengths = np.array([len(numbers) for numbers, _ in bags])
    columns = np.array([n for numbers, _ in bags for n in numbers], np.int64)
    values = np.array([w for _, weights in bags for w in weights])
    used, inverse = np.unique(columns, return_inverse=True)
    flat = np.repeat(np.arange(len(bags)), lengths) * len(used) + inverse
    matrix = np.bincount(flat, values, len(bags) * len(used)).astype(np.float32)
    return used, matrix.reshape(len(bags), len(used))


def encode(bags, table, scalars):
    """Vectors of bags (not yet of unit length), a few at a time."""
    out = np.empty((len(bags), table.shape[1]), np.float32)
    for at in range(0, len(bags), 256):
        used, matrix = dense(bags[at : at + 256], len(table))
        out[at : at + 256] = matrix @ (table[used] * scalars[used, None])
    return out


def unit(vectors):
    length = np.sqrt(np.square(vectors).sum(-1, keepdims=True)) + np.float32(1e-9)
    return vectors / length, length


class Adam:
    """Adam that moves only the rows it is given."""

    def __init__(self, values, rate):
        self.values, self.rate = values, rate
        self.mean, self.square = np.zeros_like(values), np.zeros_like(values)

    def step(self, rows, gradient, number, decay=1.0):
        mean = self.mean[rows] * np.float32(0.9) + gradient * np.float32(0.1)
        square = self.square[rows] * np.float32(0.99) + np.square(gradient) * np.float32(0.01)
        self.mean[rows], self.square[rows] = mean, square
        rate = self.rate * decay * np.sqrt(1 - 0.99**number) / (1 - 0.9**number)
        self.values[rows] -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))


def side_gradient(used, matrix, table, scalars, gradient):
    """Gradients of the rows and scalars behind `matrix @ (table * scalars)`."""
    back = matrix.T @ gradient
    return back * scalars[used, None], (back * table[used]).sum(1)


def train(table, data, pieces, steps, log):
    """Moves `table` and returns it with the scalars of the query and of the document side."""
    random = np.random.Generator(np.random.PCG64(SEED))
    table = table.copy()
    deviation = np.float32(np.sqrt(np.square(table).mean(dtype=np.float64)))
    table /= deviation
    size = len(table)
    query_scalars, tool_scalars = np.ones(size, np.float32), np.ones(size, np.float32)
    tools = Tools(list(data.tools.values()), pieces)
    groups = {}
    for pair in data.pairs:
        numbers = pieces.of_text(pair["query"], QUERY_PIECES)
        if numbers:
            wanted = [tools.place[tool] for tool in pair["tools"]]
            entry = ((numbers, [1.0] * len(numbers)), wanted, wanted + [tools.place[tool] for tool in pair.get("fine", ())])
            groups.setdefault(pair["source"], []).append(entry)
    everyday = sorted(source for source in groups if source.startswith("everyday"))
    groups = {of: entries if of in everyday else spread(entries, SOURCE_PAIRS) for of, entries in groups.items()}
    sources = sorted(groups)
    shares = np.array([len(groups[source]) ** 0.5 for source in sources])
    shares /= shares.sum()
    nearest = hard_negatives(groups, tools, data, table, query_scalars, tool_scalars)
    rows = Adam(table, RATE)
    query_rows, tool_rows = Adam(query_scalars, SCALAR_RATE), Adam(tool_scalars, SCALAR_RATE)
    lost = 0.0
    for step in range(1, steps + 1):
        batch = []
        # Two sources a batch: most of its negatives come from the same catalog.
        drawn = [sources[at] for at in random.choice(len(sources), 2, replace=False, p=shares)]
        if everyday and random.random() < EVERYDAY:
            drawn[0] = everyday[int(random.integers(len(everyday)))]
        for source in drawn:
            for at in random.integers(len(groups[source]), size=BATCH // 2):
                batch.append((source, int(at)))
        taken = [groups[source][at] for source, at in batch]
        positive = [wanted[int(random.integers(len(wanted)))] for _, wanted, _ in taken]
        hard = []
        for source, at in batch[:HARD]:
            near = nearest[source][at]
            hard.append(int(near[int(random.integers(len(near)))]))
        documents = positive + hard
        q_used, q_matrix = dense([bag for bag, *_ in taken], size)
        d_used, d_matrix = dense([tools.bag(at) for at in documents], size)
        q = q_matrix @ (table[q_used] * query_scalars[q_used, None])
        d = d_matrix @ (table[d_used] * tool_scalars[d_used, None])
        right = np.zeros((len(taken), len(documents)), bool)
        for row, (*_, fine) in enumerate(taken):
            right[row] = np.isin(documents, fine)
        own = np.arange(len(taken))
        right[own, own] = False
        gradient_q, gradient_d = np.zeros_like(q), np.zeros_like(d)
        for dims in DIMS:
            qn, ql = unit(q[:, :dims])
            dn, dl = unit(d[:, :dims])
            logits = qn @ dn.T / np.float32(TEMPERATURE)
            logits[right] = -1e4
            logits -= logits.max(1, keepdims=True)
            share = np.exp(logits)
            share /= share.sum(1, keepdims=True)
            if dims == DIMS[-1]:
                loss = float(-np.log(share[own, own] + 1e-9).mean())
            share[own, own] -= 1
            share /= np.float32(TEMPERATURE * len(taken) * len(DIMS))
            gq, gd = share @ dn, share.T @ qn
            gradient_q[:, :dims] += (gq - (gq * qn).sum(1, keepdims=True) * qn) / ql
            gradient_d[:, :dims] += (gd - (gd * dn).sum(1, keepdims=True) * dn) / dl
        q_rows, q_scalar = side_gradient(q_used, q_matrix, table, query_scalars, gradient_q)
        d_rows, d_scalar = side_gradient(d_used, d_matrix, table, tool_scalars, gradient_d)
        used = np.union1d(q_used, d_used)
        total = np.zeros((len(used), table.shape[1]), np.float32)
        total[np.searchsorted(used, q_used)] += q_rows
        total[np.searchsorted(used, d_used)] += d_rows
        decay = 1 - (step - 1) / steps
        rows.step(used, total, step, decay)
        query_rows.step(q_used, q_scalar, step, decay)
        tool_rows.step(d_used, d_scalar, step, decay)
        lost += loss
        if step % 50 == 0:
            log(f"step {step}: loss {lost / 50:.4f}")
            lost = 0.0
    return table, query_scalars, tool_scalars


def hard_negatives(groups, tools, data, table, query_scalars, tool_scalars, most=20):
    """For every query the nearest wrong tools of its source, as the untrained table sees them."""
    by_source = {}
    for at, tool in enumerate(data.tools.values()):
        by_source.setdefault(tool["source"], []).append(at)
    found = {}
    for source, entries in groups.items():
        homes = sorted({data.tools[tools.ids[at]]["source"] for _, wanted, _ in entries for at in wanted})
        pool = np.array(spread(sorted(at for home in homes for at in by_source[home]), SOURCE_TOOLS))
        documents, _ = unit(encode([tools.bag(at) for at in pool], table, tool_scalars))
        queries, _ = unit(encode([bag for bag, *_ in entries], table, query_scalars))
        near = []
        for at in range(0, len(entries), 256):
            scores = queries[at : at + 256] @ documents.T
            count = min(most + 5, len(pool))
            best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
            for row, (*_, fine) in zip(best, entries[at : at + 256]):
                wrong = pool[np.sort(row)]
                wrong = wrong[~np.isin(wrong, fine)]
                near.append(wrong if len(wrong) else pool[:1])
        found[source] = near
    return found
