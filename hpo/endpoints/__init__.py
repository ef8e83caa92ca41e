"""What follows a search: a job's model predicts files, or answers requests on Ray Serve."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.endpoints.endpoint import (
        Endpoint as Endpoint,
        check_place as check_place,
        delete as delete,
        deploy as deploy,
        deployed as deployed,
        ray_serve as ray_serve,
        states as states,
    )
    from hpo.endpoints.files import predict_files as predict_files
    from hpo.endpoints.predictor import Predictor as Predictor
    from hpo.endpoints.scoring import Scorer as Scorer, scorer_of as scorer_of

load_when_used(__name__)
