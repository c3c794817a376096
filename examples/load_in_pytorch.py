"""A model folder, or what `tacit export` wrote, in PyTorch: python load_in_pytorch.py FOLDER 'thank you for'."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file


def logits(p, ids):  # (L,) ids of words, <bos> = 1 first -> (L, V) scores of the word after each
    cell, fed_back, scores = torch.zeros(p["projection"].shape[0]), torch.zeros(p["projection"].shape[1]), []
    for word in p["embedding"][ids]:
        update, candidate, emit = (torch.cat([word, fed_back]) @ p["kernel"] + p["bias"]).chunk(3)
        cell = torch.lerp(cell, torch.tanh(candidate), torch.sigmoid(update))  # CIFG: f = 1 - i
        fed_back = (torch.sigmoid(emit) * torch.tanh(cell)) @ p["projection"]
        scores.append(fed_back @ (p["output"] if p["output"].numel() else p["embedding"].T) + p["output_bias"])
    return torch.stack(scores)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    words = ["<pad>", "<bos>", "<eos>", "<oov>", *json.loads((folder / "vocabulary.json").read_text())["words"]]
    ids = [1, *(words.index(word) if word in words else 3 for word in sys.argv[2].split())]
    likeliest = logits(load_file(folder / "model.safetensors"), ids)[-1].topk(5).indices
    print([words[id] for id in likeliest])
