"""Handwritten digits in Lightning, whose Trainer takes the processes that torchrun has started."""

import argparse
import os

import lightning as L  # noqa: N812 - as its documentation does
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(L.LightningModule):
    def __init__(self, lr: float, hidden: int) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.network.append(nn.Linear(hidden, 10))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        return nn.functional.cross_entropy(self.network(x), y)

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        x, y = batch
        self.log("accuracy", (self.network(x).argmax(1) == y).float().mean(), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.hparams["lr"], momentum=0.9)


class PrintMetrics(L.Callback):
    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if trainer.is_global_zero and trainer.current_epoch:
            print(f"resumed after epoch {trainer.current_epoch}")

    def on_validation_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if trainer.is_global_zero and not trainer.sanity_checking:
            print(f"epoch={trainer.current_epoch + 1} accuracy={trainer.callback_metrics['accuracy']:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--nodes", type=int, default=int(os.environ.get("SM_HOST_COUNT", 1)))
    parser.add_argument("--checkpoints", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    L.seed_everything(0)
    features, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(features / 16, dtype=torch.float32), torch.tensor(labels)
    train, test = train_test_split(torch.arange(len(x)), test_size=0.2, random_state=0)
    trainer = L.Trainer(
        strategy="ddp",
        accelerator="auto" if torch.cuda.is_available() else "cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
        num_nodes=args.nodes,
        max_epochs=args.epochs,
        logger=False,
        enable_progress_bar=False,
        callbacks=[PrintMetrics(), ModelCheckpoint(dirpath=args.checkpoints, save_last=True)],
    )
    last = os.path.join(args.checkpoints, "last.ckpt")
    trainer.fit(
        Digits(args.lr, args.hidden),
        DataLoader(TensorDataset(x[train], y[train]), batch_size=16, shuffle=True),
        DataLoader(TensorDataset(x[test], y[test]), batch_size=64),
        ckpt_path=last if os.path.exists(last) else None,
    )


if __name__ == "__main__":
    main()
