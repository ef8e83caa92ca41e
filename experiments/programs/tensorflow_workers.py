"""Handwritten digits in Keras on TensorFlow's MultiWorkerMirroredStrategy, whose workers TF_CONFIG names."""

import argparse
import json
import os

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class PrintMetrics(tf.keras.callbacks.Callback):
    first = True

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        if self.first and epoch:
            print(f"resumed after epoch {epoch}")
        self.first = False

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        print(f"\nepoch={epoch + 1} accuracy={(logs or {})['val_accuracy']:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    index = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("index", 0)
    tf.keras.utils.set_random_seed(0)
    features, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(features / 16, labels, test_size=0.2, random_state=0)
    batch = 16 * strategy.num_replicas_in_sync
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    train = tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(2000, seed=0).batch(batch)
    test = tf.data.Dataset.from_tensor_slices((test_x, test_y)).batch(batch)

    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Dense(args.hidden, activation="relu"),
                tf.keras.layers.Dense(args.hidden, activation="relu"),
                tf.keras.layers.Dense(10),
            ]
        )
        model.build((None, 64))
        model.compile(
            optimizer=tf.keras.optimizers.SGD(args.lr, momentum=0.9),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    backup = tf.keras.callbacks.BackupAndRestore(os.path.join(args.checkpoints, "backup"))
    model.fit(
        train.with_options(options),
        validation_data=test.with_options(options),
        epochs=args.epochs,
        verbose=0,
        callbacks=[backup] if index else [PrintMetrics(), backup],
    )


if __name__ == "__main__":
    main()
