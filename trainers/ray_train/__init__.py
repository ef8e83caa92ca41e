"""Ray Train's trainers as users have them: their function on a warm gang, with `ray.train` answered for each trial."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.ray_train.loop import is_ray_trainer as is_ray_trainer
    from trainers.ray_train.trainer import RayTrainTrainer as RayTrainTrainer

load_when_used(__name__)
