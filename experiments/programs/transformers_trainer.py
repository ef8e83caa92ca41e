"""A small GPT-2 that learns Python's own docstrings byte by byte, with Transformers' Trainer, for torchrun."""

import argparse
import os
import pydoc_data.topics
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

LENGTH = 64


class Bytes(Dataset):
    """Pieces of a text of LENGTH bytes each: the byte is the token."""

    def __init__(self, text: bytes) -> None:
        whole = torch.tensor(list(text[: len(text) // LENGTH * LENGTH]))
        self.pieces = whole.reshape(-1, LENGTH)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.pieces[index], "labels": self.pieces[index]}


class PrintMetrics(TrainerCallback):
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero and state.global_step:
            print(f"resumed after epoch {round(state.epoch)}")

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any) -> None:
        if state.is_world_process_zero:
            print(f"epoch={round(state.epoch)} eval_loss={metrics['eval_loss']:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--weight_decay", type=float, default=0.0)
    parser.add_argument("--output_dir", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    text = "\n".join(pydoc_data.topics.topics.values()).encode()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2))
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=args.output_dir,
            num_train_epochs=args.num_train_epochs,
            learning_rate=args.learning_rate,
            weight_decay=args.weight_decay,
            per_device_train_batch_size=16,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            use_cpu=not torch.cuda.is_available(),
            ddp_backend=None if torch.cuda.is_available() else "gloo",
            dataloader_pin_memory=torch.cuda.is_available(),
            report_to="none",
            seed=0,
        ),
        train_dataset=Bytes(text[:60_000]),
        eval_dataset=Bytes(text[60_000:70_000]),
        callbacks=[PrintMetrics()],
    )
    last = get_last_checkpoint(args.output_dir) if os.path.isdir(args.output_dir) else None
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model(os.environ.get("SM_MODEL_DIR", "model"))


if __name__ == "__main__":
    main()
