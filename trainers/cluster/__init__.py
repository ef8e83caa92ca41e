"""The Ray cluster that a job runs on."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.cluster import head as head
    from trainers.cluster.draining import Notices as Notices
    from trainers.cluster.gpus import PeersGpus as PeersGpus
    from trainers.cluster.placement import (
        SLACK as SLACK,
        free_places as free_places,
        gangs_that_fit as gangs_that_fit,
        given_back as given_back,
        has_labels as has_labels,
        how_many as how_many,
        lay as lay,
        places as places,
    )
    from trainers.cluster.reach import Reach as Reach, is_reach_marker as is_reach_marker
    from trainers.cluster.session import Cluster as Cluster, cluster as cluster
    from trainers.cluster.shared_paths import reaching as reaching
    from trainers.cluster.train_run import GangTrainer as GangTrainer

load_when_used(__name__)
