"""Handwritten digits in JAX on several processes, whose batch is one array over the devices of all of them."""

import argparse
import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

Weights = list[tuple[jax.Array, jax.Array]]


def logits(weights: Weights, x: jax.Array) -> jax.Array:
    *hidden, (last, bias) = weights
    for matrix, offset in hidden:
        x = jax.nn.relu(x @ matrix + offset)
    return x @ last + bias


def loss(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(weights, x)), y[:, None], axis=1))


@jax.jit
def step(weights: Weights, x: jax.Array, y: jax.Array, lr: float) -> Weights:
    return jax.tree.map(lambda weight, slope: weight - lr * slope, weights, jax.grad(loss)(weights, x, y))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    jax.distributed.initialize(
        coordinator_address=f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        num_processes=int(os.environ["WORLD_SIZE"]),
        process_id=int(os.environ["RANK"]),
    )
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    features, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(features / 16, labels, test_size=0.2, random_state=0)
    mine = slice(jax.process_index(), None, jax.process_count())

    draw, sizes = np.random.default_rng(0), [64, args.hidden, args.hidden, 10]
    start = [(draw.normal(0, (2 / a) ** 0.5, (a, b)), np.zeros(b)) for a, b in itertools.pairwise(sizes)]
    path, first = os.path.join(args.checkpoints, "checkpoint.npz"), 0
    if os.path.exists(path):
        kept = np.load(path)
        first = int(kept["epoch"])
        start = [(kept[f"matrix{layer}"], kept[f"offset{layer}"]) for layer in range(len(start))]
        print(f"resumed after epoch {first}")
    weights = jax.device_put(jax.tree.map(np.float32, start), everywhere)

    for epoch in range(first + 1, args.epochs + 1):
        order = np.random.default_rng(epoch).permutation(len(train_x) // 32 * 32)
        for batch in order.reshape(-1, 32):
            x = jax.make_array_from_process_local_data(rows, train_x[batch[mine]].astype(np.float32))
            y = jax.make_array_from_process_local_data(rows, train_y[batch[mine]])
            weights = step(weights, x, y, args.lr)
        here = jax.tree.map(np.asarray, weights)
        if jax.process_index() == 0:
            accuracy = float(np.mean(np.argmax(logits(here, test_x), axis=1) == test_y))
            print(f"epoch={epoch} accuracy={accuracy:.4f}")
            os.makedirs(args.checkpoints, exist_ok=True)
            named = {f"matrix{layer}": matrix for layer, (matrix, _) in enumerate(here)}
            named |= {f"offset{layer}": offset for layer, (_, offset) in enumerate(here)}
            np.savez(os.path.join(args.checkpoints, "new.npz"), epoch=epoch, **named)
            os.replace(os.path.join(args.checkpoints, "new.npz"), path)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
