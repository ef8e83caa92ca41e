"""Handwritten digits in scikit-learn: a classifier that `partial_fit` trains pass by pass, in one process."""

import argparse
import os

import joblib
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--alpha", type=float, default=1e-4)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    features, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(features / 16, labels, test_size=0.2, random_state=0)
    path = os.path.join(args.checkpoints, "classifier.joblib")
    first, model = joblib.load(path) if os.path.exists(path) else (0, SGDClassifier(alpha=args.alpha, random_state=0))
    if first:
        print(f"resumed after epoch {first}")

    for epoch in range(first + 1, args.epochs + 1):
        for _ in range(args.passes):
            model.partial_fit(train_x, train_y, classes=range(10))
        print(f"epoch={epoch} accuracy={model.score(test_x, test_y):.4f}")
        os.makedirs(args.checkpoints, exist_ok=True)
        joblib.dump((epoch, model), path + ".new")
        os.replace(path + ".new", path)
    joblib.dump(model, os.path.join(os.environ.get("SM_MODEL_DIR", args.checkpoints), "model.joblib"))


if __name__ == "__main__":
    main()
