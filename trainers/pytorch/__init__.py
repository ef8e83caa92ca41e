"""PyTorch training functions: their context on a worker, and the gradients of all workers as one update."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.allreduce_trainer import TorchTrainer as TorchTrainer
    from trainers.pytorch.context import TrainContext as TrainContext
    from trainers.pytorch.data import (
        GLOBAL as GLOBAL,
        PER_WORKER as PER_WORKER,
        BatchSize as BatchSize,
        Room as Room,
        Shard as Shard,
        Worker as Worker,
        held as held,
    )
    from trainers.pytorch.deadline import Deadline as Deadline
    from trainers.pytorch.distribution import (
        Distribution as Distribution,
        MicroBatch as MicroBatch,
        Peers as Peers,
        SetUp as SetUp,
        trained as trained,
        weighed as weighed,
    )
    from trainers.pytorch.function import (
        ARGUMENT as ARGUMENT,
        TrainFunction as TrainFunction,
        resolve as resolve,
        unloaded as unloaded,
    )
    from trainers.pytorch.function_trainer import (
        REPORT_SECONDS as REPORT_SECONDS,
        FunctionTrainer as FunctionTrainer,
        but as but,
    )
    from trainers.pytorch.gradients import ProcessGroup as ProcessGroup, share as share
    from trainers.pytorch.layouts import (
        LaidOut as LaidOut,
        Layout as Layout,
        Parts as Parts,
    )
    from trainers.pytorch.measures import (
        STEPS as STEPS,
        Communication as Communication,
        HostClock as HostClock,
        Profiled as Profiled,
    )
    from trainers.pytorch.plan import ModelPlan as ModelPlan
    from trainers.pytorch.program import (
        FunctionProgram as FunctionProgram,
        FunctionSettings as FunctionSettings,
        device_of as device_of,
        threads as threads,
        worker_of as worker_of,
    )
    from trainers.pytorch.rates import RULE as RULE
    from trainers.pytorch.segment import train_segment as train_segment
    from trainers.pytorch.state import (
        Mixed as Mixed,
        TorchCheckpoint as TorchCheckpoint,
        random_state as random_state,
        shards as shards,
        switches as switches,
    )

load_when_used(__name__)
