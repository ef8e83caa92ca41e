"""Handwritten digits in TensorFlow on parameter servers: a chief gives steps to workers, as TF_CONFIG says."""

import argparse
import itertools
import os

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        )
        server.join()

    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    tf.random.set_seed(0)
    features, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        features.astype("float32") / 16, labels, test_size=0.2, random_state=0
    )
    sizes = [64, args.hidden, args.hidden, 10]
    with strategy.scope():
        weights = [
            (tf.Variable(tf.random.normal((a, b), stddev=(2 / a) ** 0.5)), tf.Variable(tf.zeros(b)))
            for a, b in itertools.pairwise(sizes)
        ]
        epochs_done = tf.Variable(0, dtype=tf.int64)

    def logits(x: tf.Tensor) -> tf.Tensor:
        for matrix, offset in weights[:-1]:
            x = tf.nn.relu(x @ matrix + offset)
        return x @ weights[-1][0] + weights[-1][1]

    @tf.function
    def step(batches: tf.data.Iterator) -> None:
        x, y = next(batches)
        variables = [each for pair in weights for each in pair]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits(x)))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(args.lr * gradient)

    def batches() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(2000).repeat().batch(16)

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    layers = {f"layer{number}": list(pair) for number, pair in enumerate(weights)}
    checkpoint = tf.train.Checkpoint(epochs_done=epochs_done, **layers)
    manager = tf.train.CheckpointManager(checkpoint, args.checkpoints, max_to_keep=1)
    checkpoint.restore(manager.latest_checkpoint)
    if first := int(epochs_done.numpy()):
        print(f"resumed after epoch {first}")

    for epoch in range(first + 1, args.epochs + 1):
        for _ in range(len(train_x) // 16):
            coordinator.schedule(step, args=(iterator,))
        coordinator.join()
        accuracy = float(tf.reduce_mean(tf.cast(tf.argmax(logits(test_x), axis=1) == test_y, tf.float32)))
        print(f"epoch={epoch} accuracy={accuracy:.4f}")
        epochs_done.assign(epoch)
        manager.save()


if __name__ == "__main__":
    main()
