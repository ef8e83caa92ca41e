"""The program of Transformers, which stays loaded: what differs are `keep`, twice, and what `report` returns."""

import argparse
import os
import pydoc_data.topics
import time
from typing import Any

import torch
import warmband
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

LENGTH = 64


@warmband.keep
def pieces(first: int, last: int) -> list[dict[str, torch.Tensor]]:
    text = "\n".join(pydoc_data.topics.topics.values()).encode()[first:last]
    whole = torch.tensor(list(text[: len(text) // LENGTH * LENGTH])).reshape(-1, LENGTH)
    return [{"input_ids": each, "labels": each} for each in whole]


@warmband.keep
def untrained() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2))


class ReportMetrics(TrainerCallback):
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero and state.global_step == 1:  # For experiments.program_cost alone.
            print(f"first step at {time.time()}")

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any) -> None:
        control.should_training_stop = warmband.report(eval_loss=metrics["eval_loss"], step=round(state.epoch))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=int, default=3)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--output_dir", default=os.environ.get("SM_CHECKPOINT_DIR", "checkpoints"))
    args = parser.parse_args()

    trainer = Trainer(
        model=untrained(),
        args=TrainingArguments(
            output_dir=args.output_dir,
            num_train_epochs=args.num_train_epochs,
            learning_rate=args.learning_rate,
            per_device_train_batch_size=16,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            use_cpu=not torch.cuda.is_available(),
            ddp_backend=None if torch.cuda.is_available() else "gloo",
            dataloader_pin_memory=torch.cuda.is_available(),
            report_to="none",
            disable_tqdm=True,
            seed=0,
        ),
        train_dataset=pieces(0, 60_000),
        eval_dataset=pieces(60_000, 70_000),
        callbacks=[ReportMetrics()],
    )
    last = get_last_checkpoint(args.output_dir) if os.path.isdir(args.output_dir) else None
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model(os.environ.get("SM_MODEL_DIR", "model"))


if __name__ == "__main__":
    main()
