"""Small generated data in the form that each public program expects."""

from __future__ import annotations

import gzip
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

CLASSES = 10
NOISE = 0.35


def digits(count: int, seed: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return images of 28 x 28 pixels and their classes: a fixed pattern for each class, with noise."""
    patterns = np.random.default_rng(0).random((CLASSES, 28, 28))
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    pixels = patterns[labels] * (1 - NOISE) + random.random((count, 28, 28)) * NOISE
    return (pixels * 255).astype(np.uint8), labels.astype(np.uint8)


def mnist_files(folder: Path, train: int, test: int) -> None:
    """Write the four files of MNIST, unpacked, with generated images."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate([("train", train), ("t10k", test)]):
        images, labels = digits(count, seed)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 2051, count, 28, 28) + images.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 2049, count) + labels.tobytes())


def packed_mnist_files(folder: Path, train: int, test: int) -> None:
    """Write the four files of MNIST, packed by gzip."""
    mnist_files(folder, train, test)
    for path in list(folder.glob("*-ubyte")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))


def image_folders(folder: Path, train: int, test: int) -> None:
    """Write train/ and val/ with a folder of pictures for each of two classes."""
    for seed, (part, count) in enumerate([("train", train), ("val", test)]):
        images, labels = digits(count, seed)
        for number, (image, label) in enumerate(zip(images, labels % 2, strict=True)):
            path = folder / part / f"class{label}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).convert("RGB").save(path)


def images_and_masks(folder: Path, train: int, test: int) -> None:
    """Write pictures and masks of train/ and test/: a bright square, of class 1, on noise, of class 2."""
    for seed, (part, count) in enumerate([("train", train), ("test", test)]):
        random = np.random.default_rng(seed)
        for kind in ("images", "masks"):
            (folder / part / kind).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            row, column = random.integers(0, 16, 2)
            inside = np.zeros((32, 32), dtype=bool)
            inside[row : row + 16, column : column + 16] = True
            image = (random.random((32, 32, 3)) * 100 + inside[..., None] * 100).astype(np.uint8)
            Image.fromarray(image).save(folder / part / "images" / f"{number}.png")
            Image.fromarray(np.where(inside, 1, 2).astype(np.uint8)).save(folder / part / "masks" / f"{number}.png")


def tfds_mnist(folder: Path, train: int, test: int) -> None:
    """Write MNIST with generated images, as TensorFlow Datasets keeps it below `TFDS_DATA_DIR`."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    parts = {}
    for seed, (name, count) in enumerate([("train", train), ("test", test)]):
        images, labels = digits(count, seed)
        rows = {"image": images[..., None], "label": labels.astype(np.int64)}
        parts[name] = tf.data.Dataset.from_tensor_slices(rows)
    tfds.dataset_builders.store_as_tfds_dataset(
        name="mnist",
        version=str(tfds.builder_cls("mnist").VERSION),
        data_dir=folder,
        features=tfds.features.FeaturesDict(
            {"image": tfds.features.Image(shape=(28, 28, 1)), "label": tfds.features.ClassLabel(num_classes=CLASSES)}
        ),
        split_datasets=parts,
    )


def shakespeare_tokens(folder: Path, train: int, test: int) -> None:
    """Write meta.pkl, and train.bin and val.bin, in which each token follows from the one before it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 61}))
    for name, count in [("train", train), ("val", test)]:
        (np.arange(count) * 7 % 61).astype(np.uint16).tofile(folder / f"{name}.bin")


def tables(folder: Path, train: int, test: int) -> None:
    """Write train/rows.csv and test/rows.csv without a header: the label, and four numbers that it depends on."""
    for seed, (part, count) in enumerate([("train", train), ("test", test)]):
        random = np.random.default_rng(seed)
        numbers = random.random((count, 4))
        labels = numbers[:, 0] + 2 * numbers[:, 1] * numbers[:, 2] + random.normal(scale=0.1, size=count)
        (folder / part).mkdir(parents=True)
        np.savetxt(folder / part / "rows.csv", np.column_stack([labels, numbers]), fmt="%.4f", delimiter=",")


def wines(path: Path, count: int) -> None:
    """Write a table of wines with semicolons, whose quality depends on their other columns."""
    numbers = np.random.default_rng(0).random((count, 3))
    quality = np.round(3 + 5 * numbers[:, 0] * numbers[:, 1])
    names = '"fixed acidity";"volatile acidity";"alcohol";"quality"'
    rows = np.column_stack([numbers, quality])
    np.savetxt(path, rows, fmt=["%.4f", "%.4f", "%.4f", "%d"], delimiter=";", header=names, comments="")


def lightning_mnist(folder: Path, train: int, test: int) -> None:
    """Write training.pt and test.pt, which Lightning's own class of MNIST reads."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate([("training", train), ("test", test)]):
        images, labels = digits(count, seed)
        torch.save((torch.from_numpy(images), torch.from_numpy(labels).long()), folder / f"{name}.pt")


WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def glue_of_words(folder: Path, train: int, test: int) -> None:
    """Write a tiny BERT, pairs of sentences that are equal or not, and their accuracy, under the names of the hub.

    The program asks the hub for `bert-base-cased`, `nyu-mll/glue` and the metric `glue`. Folders of these names in the
    working directory come first.
    """
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    model = folder / "bert-base-cased"
    model.mkdir(parents=True)
    (model / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    config = BertConfig(
        vocab_size=len(WORDS) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertForSequenceClassification(config).save_pretrained(model)
    BertTokenizer(str(model / "vocab.txt")).save_pretrained(model)
    random = np.random.default_rng(0)
    data = folder / "nyu-mll" / "glue"
    data.mkdir(parents=True)
    for part, count in [("train", train), ("validation", test)]:
        lines = []
        for number in range(count):
            first, second = (" ".join(random.choice(WORDS, 4)) for _ in range(2))
            label = number % 2
            pair = {"sentence1": first, "sentence2": first if label else second, "label": label, "idx": number}
            lines.append(json.dumps(pair))
        (data / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    files = "".join(f"  - split: {part}\n    path: {part}.jsonl\n" for part in ("train", "validation"))
    (data / "README.md").write_text(f"---\nconfigs:\n- config_name: mrpc\n  data_files:\n{files}---\n")
    write_metric(folder / "glue")


def write_metric(folder: Path) -> None:
    """Write the accuracy into a folder, as a metric of the library evaluate."""
    folder.mkdir()
    (folder / f"{folder.name}.py").write_text(METRIC)


def language_of_words(folder: Path, train: int, test: int) -> None:
    """Write a text in which each word tells the next, a tokenizer, the config of a tiny GPT-2, and a metric.

    The program asks the hub for the metric `accuracy`. A folder of this name in the working directory comes first.
    """
    from transformers import BertTokenizer, GPT2Config

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for name, count in [("train", train), ("validation", test)]:
        starts = random.integers(0, len(WORDS), count)
        lines = (" ".join(WORDS[(start + 3 * number) % len(WORDS)] for number in range(8)) for start in starts)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *WORDS]) + "\n")
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "tokenizer")
    config = GPT2Config(vocab_size=len(WORDS) + len(special), n_positions=64, n_embd=16, n_layer=1, n_head=2)
    config.save_pretrained(folder / "config")
    write_metric(folder / "accuracy")


METRIC = """import datasets
import evaluate


class Accuracy(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("int64"), "references": datasets.Value("int64")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        equal = [first == second for first, second in zip(predictions, references)]
        return {"accuracy": sum(equal) / len(equal)}
"""
